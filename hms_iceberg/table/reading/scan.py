"""A scan of one snapshot of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.reading.read import count_rows, read_all, read_tasks, up_to
from hms_iceberg.errors import NoSuchRefError, NoSuchSnapshotError
from hms_iceberg.hooks import Hook
from hms_iceberg.lazy import pl
from hms_iceberg.scan.planner import plan_parts, plan_scan
from hms_iceberg.scan.scan_plan import FileScanTask, ScanPlan, ScanRequest
from hms_iceberg.scan.splitting import ScanTaskGroup, SplitOptions, task_groups
from hms_iceberg.spec.arguments import snapshot_number
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.table.reading.dask_frame import dask_frame
from hms_iceberg.table.reading.lazy_frame import lazy_frame
from hms_iceberg.table.reading.row_source import RowSource, limited
from hms_iceberg.table.reading.time_travel import milliseconds, snapshot_as_of

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pyarrow as pa

_BATCH_ROWS = 131_072
_LEAST_BATCH_ROWS = 1024

SCAN_HTML: Hook[[TableScan], str] = Hook("hms_iceberg.report.notebook")


@dataclass(frozen=True, repr=False)
class TableScan(RowSource):
    """A read of one snapshot.

    Attributes:
        snapshot_id: the snapshot that is read; None for the current one.
        schema_id: the schema of the result; None for the table's current one.
    """

    snapshot_id: int | None = None
    schema_id: int | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return SCAN_HTML(self)

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
                f"{', '.join(sorted(map(str, self.metadata.refs))) or 'none'}."
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
            log = self.metadata.snapshot_log
            first = f"its first is of {format_milliseconds(log[0].timestamp_ms)}" if log else "it has none"
            raise NoSuchSnapshotError(
                f"The table at {self.metadata.location} had no snapshot at {format_milliseconds(milliseconds(time))}; "
                f"{first}. Choose a later time."
            )
        return self.use_snapshot(snapshot.snapshot_id)

    # --------------------------------------------------------------------------------------- description

    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read, None for a table without any."""
        if self.snapshot_id is None:
            return self.metadata.current_snapshot()
        return self._snapshot(self.snapshot_id)

    def _snapshot(self, snapshot_id: int) -> Snapshot:
        snapshot_number(snapshot_id)
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

    def _request(self, decide: bool = False) -> ScanRequest:
        snapshot = self.snapshot()
        return ScanRequest(
            metadata=self.metadata,
            snapshot_id=snapshot.snapshot_id if snapshot else None,
            row_filter=self._filter,
            case_sensitive=self.case_sensitive,
            schema=self.filter_schema,
            decide=decide,
            table_name=self.table_name,
        )

    def plan(self) -> ScanPlan:
        """The files that are read, as columns."""
        return plan_scan(self._request(), self.storage)

    def plan_files(self) -> Iterator[FileScanTask]:
        """The files that are read, one task each, with the deletes that apply and what is left to filter.

        A large table is planned in parts, as tasks are taken.
        """
        parts = plan_parts(self._request(), self.storage)
        first = next(parts)
        return chain.from_iterable(plan.tasks() for plan in chain([first], parts))

    def plan_tasks(self) -> Iterator[ScanTaskGroup]:
        """Groups of files and of parts of files that are about as large, for readers that work side by side.

        The table's properties `read.split.target-size`, `read.split.planning-lookback` and
        `read.split.open-file-cost` set the sizes; `options` of the scan come first. `read` reads a group's tasks.
        """
        return task_groups(self.plan_files(), SplitOptions.of(self.metadata.properties, self.options))

    def read(self, tasks: Iterable[FileScanTask]) -> pa.RecordBatchReader:
        """The rows of some tasks of this scan as record batches, read as they are asked for."""
        import pyarrow as pa

        projection = self.projection()
        rows = _BATCH_ROWS if self.limit is None else max(_LEAST_BATCH_ROWS, min(_BATCH_ROWS, self.limit))
        batches = read_tasks(
            up_to(tasks, self.limit), self.filter_schema, projection, self.metadata, self.storage, batch_rows=rows
        )
        return pa.RecordBatchReader.from_batches(to_arrow(projection), limited(batches, self.limit))

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as record batches, read as they are asked for: in parallel, and in bounded memory."""
        return self.read(self.plan_files())

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.limit is not None:
            return self.to_arrow_batch_reader().read_all()
        return read_all(self.plan_files(), self.filter_schema, self.projection(), self.metadata, self.storage)

    def to_polars_lazy(self) -> pl.LazyFrame:
        """The rows as a polars LazyFrame: nothing is read before it is collected, and then what its query needs."""
        return lazy_frame(self)

    def to_dask(self) -> dd.DataFrame:
        """The rows as a Dask data frame, whose partitions are read by its workers; see `plan_tasks`.

        Raises:
            MissingDependencyError: Dask is not installed.
        """
        return dask_frame(self)

    def count(self) -> int:
        """How many rows the scan has: only files are read of which metadata does not tell."""
        total = count_rows(plan_parts(self._request(decide=True), self.storage), self.metadata, self.storage)
        return total if self.limit is None else min(total, self.limit)
