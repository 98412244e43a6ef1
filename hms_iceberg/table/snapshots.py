"""PyIceberg's door to snapshots: `hms_iceberg.spec.snapshots`."""

from __future__ import annotations

from hms_iceberg.spec.snapshots import (
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    Summary,
)

__all__ = [
    "MetadataLogEntry",
    "Operation",
    "Snapshot",
    "SnapshotLogEntry",
    "Summary",
]
