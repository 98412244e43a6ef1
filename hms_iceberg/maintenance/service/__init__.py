"""A service that looks at tables, says what they need, and does it within limits."""
