"""Scan planning: from a snapshot to the files to read and the deletes to apply, on whole columns."""
