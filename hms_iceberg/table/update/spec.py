"""PyIceberg's module path of changes of partition specs."""

from __future__ import annotations

from hms_iceberg.table.changes.update_spec import UpdateSpec

__all__ = ["UpdateSpec"]
