"""Spark's questions about reads, and their answers."""
