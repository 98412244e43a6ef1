"""The Iceberg table format as immutable values and pure functions: no files, no Arrow, no metastore, no engine."""
