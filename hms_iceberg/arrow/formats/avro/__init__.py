"""Avro data files."""
