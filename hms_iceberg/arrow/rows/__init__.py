"""Whole rows of Arrow tables: which match, which are the same, their keys, their order and their partitions."""
