"""Iceberg tables that follow Hive tables until the switch."""
