"""Evolving the schema."""
