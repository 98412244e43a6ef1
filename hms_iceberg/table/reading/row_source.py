"""What all scans share: which rows and columns are wanted, and the forms in which the rows can be had."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from hms_iceberg.errors import InvalidInputError, MissingDependencyError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, And, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_source import named_table
from hms_iceberg.scan.metadata_filter import filter_schema
from hms_iceberg.spec.arguments import column_names, whole_number
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import metadata_column
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

if TYPE_CHECKING:
    import bodo
    import daft
    import duckdb
    import pandas as pd
    import pyarrow as pa
    import ray

S = TypeVar("S", bound="RowSource")


@dataclass(frozen=True, repr=False)
class RowSource(ABC):
    """A frozen description of a read; every method that narrows it returns a new one, and only `to_*`, `count` and
    `plan_files` read anything.

    Attributes:
        metadata: the table at the version that is read.
        storage: where its files are.
        row_filter: which rows.
        selected_fields: which columns, `("*",)` for all.
        case_sensitive: whether column names must match in case.
        options: further reading options.
        limit: at most this many rows, None for all.
        table_name: what errors call the table; None takes its location.
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
        """The table, and what differs from a read of all of it."""
        told = [self.table_name or self.metadata.location]
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in ("metadata", "storage", "table_name") or value == _default_of(each):
                continue
            told.append(f"{each.name}={str(value)!r}" if each.name == "row_filter" else f"{each.name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow's C interface, for `pa.table(scan)`, `pl.DataFrame(scan)`, DuckDB and others.

        Args:
            requested_schema: a capsule of the schema that the caller would like, as the interface has it.

        Returns:
            A capsule; rows are read as they are taken out of it.
        """
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    # ----------------------------------------------------------------------------------------- narrowing

    def filter(self: S, expression: str | BooleanExpression) -> S:
        """Only rows that also match `expression`."""
        if isinstance(expression, str):
            expression = parse(expression)
        return replace(self, row_filter=And(self._filter, expression))

    def select(self: S, *names: str) -> S:
        """Only these columns; of those selected so far, if any were."""
        if "*" in self.selected_fields:
            return replace(self, selected_fields=names)
        return replace(self, selected_fields=tuple(name for name in self.selected_fields if name in names))

    def with_case_sensitive(self: S, case_sensitive: bool = True) -> S:
        """Whether column names must match in case."""
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

        try:
            return for_pandas(self.to_arrow()).to_pandas(**options)
        except ImportError as error:
            raise MissingDependencyError("to_pandas needs pandas: pip install pandas") from error

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars data frame."""
        from hms_iceberg.arrow.columns.frames import to_polars

        return to_polars(self.to_arrow())

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

    def to_daft(self) -> daft.DataFrame:
        """The rows as a Daft data frame."""
        try:
            import daft
        except ImportError as error:
            raise MissingDependencyError("to_daft needs Daft: pip install daft") from error
        return daft.from_arrow(self.to_arrow())

    def to_ray(self) -> ray.data.Dataset:
        """The rows as a dataset of Ray."""
        try:
            import ray.data
        except ImportError as error:
            raise MissingDependencyError("to_ray needs Ray: pip install 'ray[data]'") from error
        return ray.data.from_arrow(self.to_arrow())

    def to_bodo(self) -> bodo.pandas.DataFrame:
        """The rows as a data frame of Bodo."""
        try:
            import bodo.pandas
        except ImportError as error:
            raise MissingDependencyError("to_bodo needs Bodo: pip install bodo") from error
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
