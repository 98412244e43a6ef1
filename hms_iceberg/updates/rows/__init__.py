"""Changes of what a table holds: data and delete files added, removed and replaced."""
