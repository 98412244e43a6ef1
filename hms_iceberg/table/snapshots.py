"""PyIceberg's module path of snapshots: `hms_iceberg.spec.snapshots_and_refs`."""

from __future__ import annotations

from hms_iceberg.spec.snapshots_and_refs import (
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
