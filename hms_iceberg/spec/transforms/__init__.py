"""Transforms of partition and sort fields; `hms_iceberg.spec.partition_transforms` lists them all."""
