"""Partition specs, their fields, and the partitions of files."""
