"""Columns: types, values, transforms, sorting and filters of Arrow tables."""
