"""What migrations leave to Spark: reading Hive tables as proof, and copying those that cannot stay where they are."""
