"""Scans of a table."""
