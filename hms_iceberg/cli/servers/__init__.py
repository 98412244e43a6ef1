"""Commands that run for long: the SQL shell, servers of Spark and REST, and an embedded metastore."""
