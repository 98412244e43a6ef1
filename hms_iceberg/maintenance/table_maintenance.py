"""`table.maintenance`: what can be done to care for one table."""

from __future__ import annotations

from typing import Any

from hms_iceberg.maintenance.consistency import ConsistencyReport, check_table
from hms_iceberg.maintenance.dangling_deletes import remove_dangling_deletes
from hms_iceberg.maintenance.rewrite.data_files import RewriteResult, rewrite_data_files
from hms_iceberg.maintenance.snapshot_expiry import SnapshotExpiry
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.table.table import Table


class TableMaintenance:
    """The actions of this room for one table; `Table.maintenance` reaches it through `hms_iceberg.doors`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def expire_snapshots(self) -> SnapshotExpiry:
        """Begins an expiry of snapshots and of the files that only they needed; `commit()` carries it out."""
        return SnapshotExpiry(self._table)

    def check(self) -> ConsistencyReport:
        """Compares metadata with what the files hold; see `check_table`."""
        return check_table(self._table)

    def rewrite_data_files(self, **options: Any) -> RewriteResult:
        """Replaces data files by fewer, larger or better sorted ones; see `rewrite_data_files`."""
        return rewrite_data_files(self._table, **options)

    def remove_dangling_deletes(self, **options: Any) -> tuple[DataFile, ...]:
        """Removes delete files that apply to nothing; see `remove_dangling_deletes`."""
        return remove_dangling_deletes(self._table, **options)
