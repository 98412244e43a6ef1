"""Spark's questions about writes: how rows become files when a write begins, and its commit."""
