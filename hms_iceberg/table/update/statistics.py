"""PyIceberg's module path of changes of statistics files."""

from __future__ import annotations

from hms_iceberg.table.changes.manage_snapshots import UpdateStatistics

__all__ = ["UpdateStatistics"]
