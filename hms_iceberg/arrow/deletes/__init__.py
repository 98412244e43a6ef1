"""Position deletes, equality deletes and deletion vectors."""
