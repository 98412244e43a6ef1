"""The command that applies the events of topics to tables."""
