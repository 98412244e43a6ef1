"""Column metrics of data files."""
