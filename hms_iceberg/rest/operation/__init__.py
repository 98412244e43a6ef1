"""Health and metrics of a server, for those who run it."""
