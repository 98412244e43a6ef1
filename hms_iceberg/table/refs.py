"""PyIceberg's module path of branches and tags: `hms_iceberg.spec.snapshots_and_refs`."""

from __future__ import annotations

from hms_iceberg.spec.snapshots_and_refs import (
    MAIN_BRANCH,
    SnapshotRef,
    SnapshotRefType,
)

__all__ = [
    "MAIN_BRANCH",
    "SnapshotRef",
    "SnapshotRefType",
]
