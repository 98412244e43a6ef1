"""Proof that an Iceberg table holds what the Hive table holds."""
