"""A scan of a table: what to read, and the forms in which it can be had."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.read import scan_to_batches, scan_to_table
from hms_iceberg.arrow.schema import to_arrow
from hms_iceberg.errors import InvalidInputError, MissingDependencyError, NoSuchRefError, NoSuchSnapshotError
from hms_iceberg.expressions.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, And, BooleanExpression
from hms_iceberg.scan.plan import FileScanTask, ScanPlan, ScanRequest
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import metadata_column
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots import Snapshot
from hms_iceberg.storage import Storage
from hms_iceberg.table.time_travel import snapshot_as_of

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True)
class TableScan:
    """A frozen description of a read; every method that narrows it returns a new one, and only `to_*`, `count` and
    `plan_files` read anything.

    Attributes:
        metadata: the table at the version that is read.
        storage: where its files are.
        row_filter: which rows.
        selected_fields: which columns, `("*",)` for all.
        case_sensitive: whether column names must match in case.
        snapshot_id: the snapshot that is read; None for the current one.
        schema_id: the schema of the result; None for the table's current one.
        options: further reading options.
        limit: at most this many rows, None for all.
    """

    metadata: TableMetadata
    storage: Storage
    row_filter: str | BooleanExpression = field(default_factory=AlwaysTrue)
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True
    snapshot_id: int | None = None
    schema_id: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.row_filter, str):
            object.__setattr__(self, "row_filter", parse(self.row_filter))
        if self.limit is not None and (isinstance(self.limit, bool) or self.limit < 0):
            raise InvalidInputError(f"Limit of a scan: expected a number of rows from 0, got {self.limit!r}.")

    # ----------------------------------------------------------------------------------------- narrowing

    def filter(self, expression: str | BooleanExpression) -> TableScan:
        """Only rows that also match `expression`."""
        if isinstance(expression, str):
            expression = parse(expression)
        return replace(self, row_filter=And(self._filter, expression))

    def select(self, *names: str) -> TableScan:
        """Only these columns; of those selected so far, where any were."""
        if "*" in self.selected_fields:
            return replace(self, selected_fields=names)
        return replace(self, selected_fields=tuple(name for name in self.selected_fields if name in names))

    def with_case_sensitive(self, case_sensitive: bool = True) -> TableScan:
        """Whether column names must match in case."""
        return replace(self, case_sensitive=case_sensitive)

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

    def projection(self) -> Schema:
        """The columns of the result; `_file`, `_pos` and the other metadata columns come after the table's own.

        Raises:
            UnknownColumnError: a selected column does not exist.
        """
        schema, names = self.table_schema, self.selected_fields
        extra = []
        for name in names:
            column = metadata_column(name, self.metadata.partition_specs, schema)
            if column is not None and name not in schema.index_by_name:
                extra.append(column)
        own = [name for name in names if all(name != column.name for column in extra)]
        selected = schema.select(*own, case_sensitive=self.case_sensitive)
        return Schema(*selected.fields, *extra, schema_id=schema.schema_id) if extra else selected

    @property
    def _filter(self) -> BooleanExpression:
        assert not isinstance(self.row_filter, str)
        return self.row_filter

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
        return pa.RecordBatchReader.from_batches(schema, _limited(batches, self.limit))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.limit is not None:
            return self.to_arrow_batch_reader().read_all()
        return scan_to_table(self.plan(), self.projection(), self.metadata, self.storage)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The rows as a pandas data frame; `options` go to `pyarrow.Table.to_pandas`."""
        try:
            return self.to_arrow().to_pandas(**options)
        except ImportError as error:
            raise MissingDependencyError("to_pandas needs pandas: pip install pandas") from error

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars data frame."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_duckdb(
        self, table_name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Registers the rows as a table of a DuckDB connection (a new one in memory by default), and returns it."""
        try:
            import duckdb
        except ImportError as error:
            raise MissingDependencyError("to_duckdb needs DuckDB: pip install duckdb") from error
        connection = connection or duckdb.connect(database=":memory:")
        connection.register(table_name, self.to_arrow())
        return connection

    def count(self) -> int:
        """How many rows the scan has: from metadata alone where no filter is left to apply and nothing is deleted."""
        plan = self.plan()
        total = plan.row_count()
        if total is None:
            columns = self.table_schema.select_ids(())
            total = sum(batch.num_rows for batch in scan_to_batches(plan, columns, self.metadata, self.storage))
        return total if self.limit is None else min(total, self.limit)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    left = limit
    for batch in batches:
        if left <= 0:
            break
        yield batch.slice(0, left)
        left -= batch.num_rows
