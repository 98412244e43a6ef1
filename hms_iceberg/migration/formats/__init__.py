"""The formats of Hive's files that Iceberg can read where they are: Parquet, ORC and Avro."""
