"""PyIceberg's module path of view metadata: `hms_iceberg.spec.metadata.view_metadata`."""

from __future__ import annotations

from hms_iceberg.spec.metadata.view_metadata import (
    SQLViewRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
)

__all__ = [
    "SQLViewRepresentation",
    "ViewHistoryEntry",
    "ViewMetadata",
    "ViewVersion",
]
