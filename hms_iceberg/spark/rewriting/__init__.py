"""Data files rewritten by Spark: the plan and the commits are those of `hms_iceberg.maintenance`."""
