"""PyIceberg's door to branches and tags: `hms_iceberg.spec.snapshots`."""

from __future__ import annotations

from hms_iceberg.spec.snapshots import (
    MAIN_BRANCH,
    SnapshotRef,
    SnapshotRefType,
)

__all__ = [
    "MAIN_BRANCH",
    "SnapshotRef",
    "SnapshotRefType",
]
