"""PyIceberg's module path of statistics files: `hms_iceberg.spec.snapshots_and_refs`."""

from __future__ import annotations

from hms_iceberg.spec.snapshots_and_refs import (
    BlobMetadata,
    PartitionStatisticsFile,
    StatisticsFile,
)

__all__ = [
    "BlobMetadata",
    "PartitionStatisticsFile",
    "StatisticsFile",
]
