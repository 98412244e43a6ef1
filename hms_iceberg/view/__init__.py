"""Views: a query with a name, in as many dialects of SQL as there are engines to read it."""

from __future__ import annotations

from hms_iceberg.spec.metadata.view_metadata import SQLViewRepresentation, ViewHistoryEntry, ViewVersion
from hms_iceberg.view.view import View

__all__ = ["SQLViewRepresentation", "View", "ViewHistoryEntry", "ViewVersion"]
