"""PyIceberg's door to view metadata: `hms_iceberg.spec.views`."""

from __future__ import annotations

from hms_iceberg.spec.views.view_metadata import (
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
