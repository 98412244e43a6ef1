"""Commands that look after tables."""
