"""What Spark asks Python about reads, and the answers."""
