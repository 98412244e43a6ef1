"""Single values: their binary, JSON, Python and text forms."""
