"""Predicates over rows turned into predicates over partitions, and what of them is left."""
