"""Table metadata, its changes and its JSON."""
