"""Rows written as data and delete files."""
