"""A scan of one snapshot of a table, and the parts that all scans share: rows and columns to read, and forms of the
result."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.plain import with_dictionaries
from hms_iceberg.arrow.reading.read import count_rows, read_all, read_tasks, read_whole_frame, up_to
from hms_iceberg.errors import InvalidInputError, NoSuchRefError, NoSuchSnapshotError
from hms_iceberg.expressions.residuals import inclusive_projection
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, And, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.notebook_html import framed, pairs_table
from hms_iceberg.printable import printable
from hms_iceberg.scan.manifests.manifest_source import named_table
from hms_iceberg.scan.metadata_filter import filter_schema
from hms_iceberg.scan.planner import plan_parts, plan_scan
from hms_iceberg.scan.splitting import ScanTaskGroup, SplitOptions, task_groups
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan, ScanRequest, TaskPlanner
from hms_iceberg.spec.json_model import column_names, snapshot_number, whole_number
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import is_metadata_column, metadata_column
from hms_iceberg.spec.schema import Schema, columns_html
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.values.datetimes import format_milliseconds, parse_timestamp
from hms_iceberg.storage import Storage
from hms_iceberg.table.reading.lazy_frame import dask_frame, lazy_frame, needing

if TYPE_CHECKING:
    import bodo
    import daft
    import dask.dataframe as dd
    import duckdb
    import pandas as pd
    import pyarrow as pa
    import ray


S = TypeVar("S", bound="RowSource")


@dataclass(frozen=True, repr=False)
class RowSource(ABC):
    """A frozen description of a read; methods that narrow it return a new one, and only `to_*`, `count` and
    `plan_files` read.

    Attributes:
        metadata: the table at the version that is read.
        storage: the storage of its files.
        row_filter: the predicate of the rows to read.
        selected_fields: the columns to read, `("*",)` for all.
        case_sensitive: whether column names must match in case.
        options: further reading options.
        limit: at most this many rows, None for all.
        table_name: the table's name in errors; None takes its location.
    """

    metadata: TableMetadata
    storage: Storage
    row_filter: str | BooleanExpression = field(default_factory=AlwaysTrue)
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    table_name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.row_filter, str):
            object.__setattr__(self, "row_filter", parse(self.row_filter))
        elif not isinstance(self.row_filter, BooleanExpression):
            raise InvalidInputError(f"row_filter: expected text or an expression, got {self.row_filter!r}.")
        object.__setattr__(self, "selected_fields", column_names(self.selected_fields, "selected_fields"))
        if self.limit is not None:
            whole_number(self.limit, "Limit of a scan", "a number of rows")

    def __repr__(self) -> str:
        told = [self.table_name or self.metadata.location]
        for each in fields(self):
            value = getattr(self, each.name)
            if not each.repr or each.name in ("metadata", "storage", "table_name") or value == _default_of(each):
                continue
            told.append(f"{each.name}={str(value)!r}" if each.name == "row_filter" else f"{each.name}={value!r}")
        return f"{type(self).__name__}({printable(', '.join(told))})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow's C interface, read as they are taken, for `pa.table(scan)`,
        `pl.DataFrame(scan)`, DuckDB and others; `requested_schema` is the capsule of a wanted schema."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    # ----------------------------------------------------------------------------------------- narrowing

    def filter(self: S, expr: str | BooleanExpression) -> S:
        """Only rows that also match `expr`."""
        return replace(self, row_filter=And(self._filter, parse(expr) if isinstance(expr, str) else expr))

    def select(self: S, *names: str) -> S:
        """Only these columns; of those selected so far, if any were."""
        if "*" in self.selected_fields:
            return replace(self, selected_fields=names)
        return replace(self, selected_fields=tuple(name for name in self.selected_fields if name in names))

    def with_case_sensitive(self: S, case_sensitive: bool = True) -> S:
        """A copy of the scan in which column names must, or need not, match in case."""
        return replace(self, case_sensitive=case_sensitive)

    # --------------------------------------------------------------------------------------- description

    @property
    def table_schema(self) -> Schema:
        """All columns that the scan could read."""
        return self.metadata.schema()

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
        with named_table(self.metadata.location, self.table_name):
            selected = schema.select(*own, case_sensitive=self.case_sensitive)
        return Schema(*selected.fields, *extra, schema_id=schema.schema_id) if extra else selected

    @property
    def _filter(self) -> BooleanExpression:
        assert not isinstance(self.row_filter, str)
        return self.row_filter

    @property
    def filter_schema(self) -> Schema:
        """All columns that the filter may name: those of the table, and the metadata columns that it does name."""
        return filter_schema(self.metadata, self.table_schema, self._filter)

    # ------------------------------------------------------------------------------------------- reading

    @abstractmethod
    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as record batches, read as they are asked for."""

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.to_arrow_batch_reader().read_all()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The rows as a pandas data frame; `options` go to `pyarrow.Table.to_pandas`.

        A uuid is a `uuid.UUID`; within nested columns, pyarrow gives its 16 bytes.
        """
        from hms_iceberg.arrow.columns.frames import for_pandas

        with needing("to_pandas", "pandas", "pandas"):
            return for_pandas(self.to_arrow()).to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars data frame."""
        from hms_iceberg.arrow.columns.frames import to_polars

        return to_polars(self.to_arrow())

    def to_duckdb(
        self, table_name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Registers the rows as a table of a DuckDB connection.

        Args:
            table_name: the name in DuckDB.
            connection: a connection of DuckDB; None opens one in memory.

        Returns:
            the connection, on which the table can be queried.

        Raises:
            MissingDependencyError: DuckDB is not installed.
        """
        with needing("to_duckdb", "DuckDB", "duckdb"):
            import duckdb
        from hms_iceberg.arrow.columns.frames import for_duckdb

        connection = connection or duckdb.connect(database=":memory:")
        connection.register(table_name, for_duckdb(self.to_arrow()))
        return connection

    def to_daft(self) -> daft.DataFrame:
        """The rows as a Daft data frame."""
        with needing("to_daft", "Daft", "daft"):
            import daft
        return daft.from_arrow(self.to_arrow())

    def to_ray(self) -> ray.data.Dataset:
        """The rows as a dataset of Ray."""
        with needing("to_ray", "Ray", "'ray[data]'"):
            import ray.data
        return ray.data.from_arrow(self.to_arrow())

    def to_bodo(self) -> bodo.pandas.DataFrame:
        """The rows as a data frame of Bodo."""
        with needing("to_bodo", "Bodo", "bodo"):
            import bodo.pandas
        return bodo.pandas.from_pandas(self.to_pandas())

    def update(self: S, **overrides: Any) -> S:
        """A copy of the read with other attributes."""
        return replace(self, **overrides)

    def count(self) -> int:
        """How many rows the scan has."""
        return sum(batch.num_rows for batch in self.to_arrow_batch_reader())


def _default_of(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Batches of at most so many rows altogether; no batch is asked for beyond that."""
    if limit is None:
        yield from batches
        return
    left = limit
    while left > 0:
        batch = next(batches, None)
        if batch is None:
            return
        yield batch.slice(0, left)
        left -= batch.num_rows


_BATCH_ROWS = 131_072
_LEAST_BATCH_ROWS = 1024


@dataclass(frozen=True, repr=False)
class TableScan(RowSource):
    """A read of one snapshot.

    Attributes:
        snapshot_id: the snapshot that is read; None for the current one.
        schema_id: the schema of the result; None for the table's current one.
        planner: plans tasks instead of this process, if given; columns of a plan (`plan`) are always made here.
    """

    snapshot_id: int | None = None
    schema_id: int | None = None
    planner: TaskPlanner | None = field(default=None, kw_only=True, repr=False, compare=False)

    def _repr_html_(self) -> str:
        snapshot = self.snapshot()
        facts = [
            ("snapshot", "none" if snapshot is None else snapshot.snapshot_id),
            ("filter", str(self.row_filter)),
            ("limit", "none" if self.limit is None else self.limit),
        ]
        return framed(pairs_table(facts), columns_html(self.projection()))

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
                f"{self._table} has no branch or tag {name!r}; it has "
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
                f"{self._table} had no snapshot at {format_milliseconds(milliseconds(time))}; "
                f"{first}. Choose a later time."
            )
        return self.use_snapshot(snapshot.snapshot_id)

    # --------------------------------------------------------------------------------------- description

    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; None for a table without any."""
        if self.snapshot_id is None:
            return self.metadata.current_snapshot()
        return self._snapshot(self.snapshot_id)

    @property
    def _table(self) -> str:
        return f"Table {self.table_name}" if self.table_name else f"The table at {self.metadata.location}"

    def _snapshot(self, snapshot_id: int) -> Snapshot:
        snapshot_number(snapshot_id)
        for snapshot in self.metadata.snapshots:
            if snapshot.snapshot_id == snapshot_id:
                return snapshot
        raise NoSuchSnapshotError(
            f"{self._table} has no snapshot {snapshot_id}: it never had, or it has expired. "
            "Table.snapshots() lists those that it has."
        )

    @property
    def table_schema(self) -> Schema:
        """All columns that the scan could read."""
        if self.schema_id is None:
            return self.metadata.schema()
        return self.metadata.schema_by_id(self.schema_id)

    @property
    def partition_filters(self) -> dict[int, BooleanExpression]:
        """The filter on partitions of each spec, by its id, that a file's partition must match to have matching
        rows."""
        specs = self.metadata.partition_specs
        return {spec.spec_id: inclusive_projection(self.filter_schema, spec)(self._filter) for spec in specs}

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
        """Plans the files that are read, one task each, with the deletes that apply and the residual filter.

        A large table is planned in parts, as tasks are taken.
        """
        # Who reads columns of the files' own, such as `_last_updated_sequence_number`, needs more than is told.
        if self.planner is not None and not any(is_metadata_column(each.field_id) for each in self.projection().fields):
            tasks = self.planner(self._request())
            if tasks is not None:
                return tasks
        parts = plan_parts(self._request(), self.storage)
        first = next(parts)
        return chain.from_iterable(plan.tasks() for plan in chain([first], parts))

    def plan_tasks(self) -> Iterator[ScanTaskGroup]:
        """Plans groups of files and of parts of files of about the same size, for readers that work side by side.

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
            up_to(tasks, self.limit),
            self.filter_schema,
            projection,
            self.metadata,
            self.storage,
            batch_rows=rows,
            most_rows=self.limit,
        )
        return pa.RecordBatchReader.from_batches(to_arrow(projection), limited(batches, self.limit))

    def to_arrow_batch_reader(self, dictionary_columns: tuple[str, ...] = ()) -> pa.RecordBatchReader:
        """The rows as record batches, read as they are asked for: in parallel, and in bounded memory.

        Args:
            dictionary_columns: columns of text or bytes that come as dictionaries.
        """
        return with_dictionaries(self.read(self.plan_files()), dictionary_columns)

    def to_arrow(self, dictionary_columns: tuple[str, ...] = ()) -> pa.Table:
        """The rows as an Arrow table.

        Args:
            dictionary_columns: columns of text or bytes that come as dictionaries.
        """
        if self.limit is not None or dictionary_columns:
            return self.to_arrow_batch_reader(dictionary_columns).read_all()
        return read_all(self.plan_files(), self.filter_schema, self.projection(), self.metadata, self.storage)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars data frame."""
        if self.limit is not None:
            return super().to_polars()
        return read_whole_frame(self.plan_files(), self.filter_schema, self.projection(), self.metadata, self.storage)

    def to_polars_lazy(self) -> pl.LazyFrame:
        """The rows as a polars LazyFrame, which reads only the columns and rows of its query when it is collected."""
        return lazy_frame(self)

    def to_dask(self) -> dd.DataFrame:
        """The rows as a Dask data frame, whose partitions are read by its workers; see `plan_tasks`.

        Raises:
            MissingDependencyError: Dask is not installed.
        """
        return dask_frame(self)

    def count(self) -> int:
        """Counts the rows of the scan; reads only the files whose metadata does not give the number."""
        total = count_rows(plan_parts(self._request(decide=True), self.storage), self.metadata, self.storage)
        return total if self.limit is None else min(total, self.limit)


# --------------------------------------------------------------------------------------------------- time travel

# Source: Iceberg specification, "Point in Time Reads (Time Travel)": the snapshot log decides, not the lineage.


def snapshot_as_of(metadata: TableMetadata, time: int | str | dt.datetime, inclusive: bool = True) -> Snapshot | None:
    """The snapshot that was current at a time (milliseconds since 1970, ISO text, datetime); None if none was."""
    limit = milliseconds(time)
    found = None
    for entry in metadata.snapshot_log:
        if entry.timestamp_ms < limit or (inclusive and entry.timestamp_ms == limit):
            found = entry
    if found is None:
        return None
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id == found.snapshot_id:
            return snapshot
    raise NoSuchSnapshotError(
        f"Snapshot {found.snapshot_id}, current at {format_milliseconds(limit)}, of the table at {metadata.location} "
        "has expired. Choose a later time."
    )


def milliseconds(time: int | str | dt.datetime) -> int:
    """Milliseconds since the epoch of a number of them, ISO text or a datetime; without a zone it is UTC."""
    if isinstance(time, bool) or not isinstance(time, (int, str, dt.datetime)):
        raise InvalidInputError(f"Not a time: {time!r}. Expected milliseconds since the epoch, ISO text or a datetime.")
    if isinstance(time, int):
        return time
    if isinstance(time, dt.datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=dt.timezone.utc)
        return (zoned - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(milliseconds=1)
    try:
        nanos, offset = parse_timestamp(time)
    except ValueError as error:
        raise InvalidInputError(f"Not a time: {error}") from error
    return (nanos - (offset or 0) * 1_000_000_000) // 1_000_000
