"""Position deletes, equality deletes and deletion vectors: read, applied and written."""
