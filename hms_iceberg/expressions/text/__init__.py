"""Filter strings: cut into tokens, parsed, and their literals read."""
