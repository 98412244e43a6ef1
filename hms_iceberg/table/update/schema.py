"""PyIceberg's module path of changes of schemas."""

from __future__ import annotations

from hms_iceberg.table.changes.update_schema import UpdateSchema

__all__ = ["UpdateSchema"]
