"""Scans planned on the server: files, and the deletes that apply to them, in pages."""
