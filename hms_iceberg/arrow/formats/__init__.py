"""Parquet, ORC and Avro files: one reader and one writer each."""
