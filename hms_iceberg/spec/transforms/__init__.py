"""One file per transform, or per family of them; `hms_iceberg.spec.partition_transforms` lists them all."""
