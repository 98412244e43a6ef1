"""PyIceberg's door to statistics files: `hms_iceberg.spec.statistics_files`."""

from __future__ import annotations

from hms_iceberg.spec.statistics_files import (
    BlobMetadata,
    PartitionStatisticsFile,
    StatisticsFile,
)

__all__ = [
    "BlobMetadata",
    "PartitionStatisticsFile",
    "StatisticsFile",
]
