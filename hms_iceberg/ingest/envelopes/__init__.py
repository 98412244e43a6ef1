"""What an event says: its bytes decoded, and what it does to a row."""
