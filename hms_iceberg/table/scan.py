"""A scan of one snapshot of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hms_iceberg.arrow.read import scan_to_batches, scan_to_table
from hms_iceberg.arrow.schema import to_arrow
from hms_iceberg.errors import NoSuchRefError, NoSuchSnapshotError
from hms_iceberg.scan.plan import FileScanTask, ScanPlan, ScanRequest
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots import Snapshot
from hms_iceberg.table.row_source import RowSource, limited
from hms_iceberg.table.time_travel import snapshot_as_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TableScan(RowSource):
    """A read of one snapshot.

    Attributes:
        snapshot_id: the snapshot that is read; None for the current one.
        schema_id: the schema of the result; None for the table's current one.
    """

    snapshot_id: int | None = None
    schema_id: int | None = None

    def use_ref(self, name: str) -> TableScan:
        """Reads a branch (with the table's current schema) or a tag (with the schema of its snapshot).

        Raises:
            NoSuchRefError: no branch or tag of that name.
        """
        ref = self.metadata.refs.get(name)
        if ref is None:
            if name == "main":
                return replace(self, snapshot_id=None, schema_id=None)
            raise NoSuchRefError(
                f"The table at {self.metadata.location} has no branch or tag {name!r}; it has "
                f"{', '.join(sorted(self.metadata.refs)) or 'none'}."
            )
        scan = self.use_snapshot(ref.snapshot_id)
        return replace(scan, schema_id=None) if ref.is_branch else scan

    def use_snapshot(self, snapshot_id: int) -> TableScan:
        """Reads a snapshot, with the schema that was current when it was made.

        Raises:
            NoSuchSnapshotError: the table has no such snapshot.
        """
        snapshot = self._snapshot(snapshot_id)
        return replace(self, snapshot_id=snapshot_id, schema_id=self.metadata.schema_for_snapshot(snapshot).schema_id)

    def as_of(self, time: int | str | dt.datetime) -> TableScan:
        """Reads the snapshot that was current at a time (milliseconds since the epoch, ISO text or a datetime).

        Raises:
            NoSuchSnapshotError: the table had no snapshot yet, or that of the time has expired.
        """
        snapshot = snapshot_as_of(self.metadata, time)
        if snapshot is None:
            first = self.metadata.snapshot_log[0].timestamp_ms if self.metadata.snapshot_log else None
            raise NoSuchSnapshotError(
                f"The table at {self.metadata.location} had no snapshot at {time!r}; its first in the log is of "
                f"{first} ms. Choose a later time."
            )
        return self.use_snapshot(snapshot.snapshot_id)

    # --------------------------------------------------------------------------------------- description

    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read, None for a table without any."""
        if self.snapshot_id is None:
            return self.metadata.current_snapshot()
        return self._snapshot(self.snapshot_id)

    def _snapshot(self, snapshot_id: int) -> Snapshot:
        for snapshot in self.metadata.snapshots:
            if snapshot.snapshot_id == snapshot_id:
                return snapshot
        raise NoSuchSnapshotError(
            f"The table at {self.metadata.location} has no snapshot {snapshot_id}: it never had, or it has expired. "
            "Table.snapshots() lists those that it has."
        )

    @property
    def table_schema(self) -> Schema:
        """All columns that the scan could read."""
        if self.schema_id is None:
            return self.metadata.schema()
        return self.metadata.schema_by_id(self.schema_id)

    # ------------------------------------------------------------------------------------------- reading

    def plan(self) -> ScanPlan:
        """The files that are read, as columns."""
        snapshot = self.snapshot()
        request = ScanRequest(
            metadata=self.metadata,
            snapshot_id=snapshot.snapshot_id if snapshot else None,
            row_filter=self._filter,
            case_sensitive=self.case_sensitive,
            schema=self.table_schema,
        )
        return plan_scan(request, self.storage)

    def plan_files(self) -> Iterator[FileScanTask]:
        """The files that are read, one task each, with the deletes that apply and what is left to filter."""
        return self.plan().tasks()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as record batches, read as they are asked for."""
        import pyarrow as pa

        projection = self.projection()
        schema = to_arrow(projection, field_ids=True)
        batches = scan_to_batches(self.plan(), projection, self.metadata, self.storage)
        return pa.RecordBatchReader.from_batches(schema, limited(batches, self.limit))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.limit is not None:
            return self.to_arrow_batch_reader().read_all()
        return scan_to_table(self.plan(), self.projection(), self.metadata, self.storage)

    def count(self) -> int:
        """How many rows the scan has: from metadata alone where no filter is left to apply and nothing is deleted."""
        plan = self.plan()
        total = plan.row_count()
        if total is None:
            columns = self.table_schema.select_ids(())
            total = sum(batch.num_rows for batch in scan_to_batches(plan, columns, self.metadata, self.storage))
        return total if self.limit is None else min(total, self.limit)
