"""PyIceberg's module path of changes of snapshots; those expire by `table.maintenance.expire_snapshots()`."""

from __future__ import annotations

from hms_iceberg.table.changes.file_changes import UpdateSnapshot
from hms_iceberg.table.changes.manage_snapshots import ManageSnapshots

__all__ = ["ManageSnapshots", "UpdateSnapshot"]
