"""Checks of a table: its metadata, manifests and files are compared with each other."""
