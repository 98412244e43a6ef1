"""Scans read with Arrow."""
