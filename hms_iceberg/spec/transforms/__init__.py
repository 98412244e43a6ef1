"""Transforms of partition and sort fields; `hms_iceberg.spec.transforms.partition_transforms` lists them all."""
