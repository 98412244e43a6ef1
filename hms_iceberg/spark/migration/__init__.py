"""Spark's part of migrations: reading Hive tables as proof, and copying those that cannot stay where they are."""
