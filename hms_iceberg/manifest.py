"""PyIceberg's module path of manifests and their entries: `hms_iceberg.spec.manifests`."""

from __future__ import annotations

from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.manifests.manifest_values import (
    FieldSummary as PartitionFieldSummary,
)

__all__ = [
    "DataFile",
    "DataFileContent",
    "FileFormat",
    "ManifestContent",
    "ManifestEntry",
    "ManifestEntryStatus",
    "ManifestFile",
    "PartitionFieldSummary",
]
