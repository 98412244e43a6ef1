"""Commands that start Spark with this package in it: a shell, and servers."""
