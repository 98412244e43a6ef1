"""Changing rows: deletes, overwrites, updates, upserts, and the writing of what is new."""
