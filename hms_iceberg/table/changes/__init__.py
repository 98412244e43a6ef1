"""Builders of changes other than of rows: what the methods of a table begin."""
