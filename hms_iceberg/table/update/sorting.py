"""PyIceberg's module path of changes of sort orders."""

from __future__ import annotations

from hms_iceberg.table.changes.update_spec import UpdateSortOrder

__all__ = ["UpdateSortOrder"]
