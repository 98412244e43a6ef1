"""Compares a Hive table with an Iceberg table by a few numbers on which the order of rows has no influence.

Both sides are summed up by this code, and each is read by another reader: the Hive table by Spark, the Iceberg table by
this package.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Context, Decimal
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions import EqualTo
from hms_iceberg.lazy import pl
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table

_EXACT = Context(prec=200)
_WORD = 1 << 64
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class ColumnSummary:
    """A summary of the values of one column."""

    nulls: int = 0  # how many values are null
    nans: int = 0  # how many are NaN
    # the sum of whole numbers and decimals, as text; None for other types. The sum of floats depends on their order;
    # the checksum does not.
    total: str | None = None
    least: Any = None  # least, greatest: of types that have an order, as text; None without values
    greatest: Any = None
    checksum: int = 0  # sum of the hashes of all values

    def plus(self, other: ColumnSummary) -> ColumnSummary:
        totals = [Decimal(each) for each in (self.total, other.total) if each is not None]
        total = reduce(_EXACT.add, totals) if totals else None
        lows = [each for each in (self.least, other.least) if each is not None]
        highs = [each for each in (self.greatest, other.greatest) if each is not None]
        return ColumnSummary(
            self.nulls + other.nulls,
            self.nans + other.nans,
            None if total is None else f"{total:f}",
            min(lows, default=None),
            max(highs, default=None),
            (self.checksum + other.checksum) % _WORD,
        )


@dataclass(frozen=True)
class TableSummary:
    """A summary of all rows: their number, the sum of the hashes of all, and each column by name."""

    rows: int
    checksum: int
    columns: dict[str, ColumnSummary]

    def plus(self, other: TableSummary) -> TableSummary:
        columns = {name: column.plus(other.columns[name]) for name, column in self.columns.items()}
        return TableSummary(self.rows + other.rows, (self.checksum + other.checksum) % _WORD, columns)


def empty_summary(schema: pa.Schema) -> TableSummary:
    return TableSummary(0, 0, {name: ColumnSummary() for name in schema.names})


def summarise(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> TableSummary:
    """Summarises rows, batch by batch; their columns are cast to those of the schema."""
    summary = empty_summary(schema)
    for batch in batches:
        if batch.num_rows:
            summary = summary.plus(_of_batch(batch, schema))
    return summary


def differences(hive: TableSummary, iceberg: TableSummary) -> Iterator[str]:
    """A sentence for each difference of two tables; none if they are equal."""
    if hive.rows != iceberg.rows:
        yield f"the Hive table has {hive.rows:,} rows, the Iceberg table {iceberg.rows:,}"
    for name, column in hive.columns.items():
        ours = asdict(iceberg.columns[name])
        for what, value in asdict(column).items():
            if value != ours[what]:
                yield f"column {name!r}: {_WORDS[what]} {value} in the Hive table, {ours[what]} in the Iceberg table"
    if hive.columns == iceberg.columns and hive.checksum != iceberg.checksum:
        yield "the values of every column are the same, but stand in other rows"


_WORDS = {
    "nulls": "nulls are",
    "nans": "NaN are",
    "total": "the sum is",
    "least": "the least value is",
    "greatest": "the greatest value is",
    "checksum": "the checksum is",
}


def _of_batch(batch: pa.RecordBatch, schema: pa.Schema) -> TableSummary:
    columns, of_rows = {}, np.zeros(batch.num_rows, np.uint64)
    for field in schema:
        array = pc.cast(batch.column(field.name), field.type)
        hashes = _hashes(array)
        of_rows = _mixed(of_rows * _FACTOR + hashes)
        checksum = int(np.sum(hashes, dtype=np.uint64))
        columns[field.name] = replace(_of_array(array), checksum=checksum)
    return TableSummary(batch.num_rows, int(np.sum(of_rows, dtype=np.uint64)), columns)


def _mixed(values: Any) -> Any:
    """Numbers so mixed that their sum shows which hashes came together (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hashes(array: pa.Array) -> Any:
    """A hash of each value, of which nested ones are taken as text."""
    if pa.types.is_nested(array.type):
        array = pa.array(map(repr, array.to_pylist()), pa.large_string())
    return pl.Series(pl.from_arrow(array)).hash(1).to_numpy()


def _of_array(array: pa.Array) -> ColumnSummary:
    kind, nans, total, least, greatest = array.type, 0, None, None, None
    nulls = array.null_count
    if pa.types.is_floating(kind):
        is_nan = pc.is_nan(array)
        nans = pc.sum(is_nan).as_py() or 0
        array = array.filter(pc.invert(pc.fill_null(is_nan, False)))
    if pa.types.is_integer(kind):
        total = str(sum(array.drop_null().to_pylist())) if _may_overflow(array) else _text(pc.sum(array).as_py())
    elif pa.types.is_decimal(kind):
        total = _text(pc.sum(array.cast(pa.decimal256(76, kind.scale))).as_py())
    if not pa.types.is_nested(kind):
        found = pc.min_max(array).as_py()
        least, greatest = (_ordered(found[each], kind) for each in ("min", "max"))
    return ColumnSummary(nulls, nans, total, least, greatest)


def _may_overflow(array: pa.Array) -> bool:
    found = pc.min_max(array).as_py()
    return max(abs(found["min"] or 0), abs(found["max"] or 0)) * len(array) >= 1 << 63


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _ordered(value: Any, kind: pa.DataType) -> Any:
    """A value as itself if numbers are, so that text is not compared with them; times as text in ISO's form."""
    if isinstance(value, (int, float, str, bytes, Decimal)) or value is None:
        return value
    return value.isoformat()


# --------------------------------------------------------------------------------------------------------- proof


COUNTS, SUMS, ROWS = "counts", "sums", "rows"
LEVELS = (COUNTS, SUMS, ROWS)
_MOST_DIFFERENCES = 20


class HiveReader(Protocol):
    """Reads Hive tables with another reader than ours: Spark's."""

    def counts(self, table: str, columns: tuple[str, ...]) -> tuple[int, Mapping[str, int]]:
        """The number of rows of a table, and the number of nulls of each column."""
        ...

    def summary(self, table: str, schema: Schema, arrow: pa.Schema) -> TableSummary:
        """Summarises a table's rows, with columns read as those of a schema."""
        ...

    def unlike_rows(self, hive: str, table: Table, most: int) -> Iterator[str]:
        """A sentence for each row that is in one of two tables only, at most `most` of each side. The Iceberg table is
        read by this package: an error of a reader is not seen if it reads both."""
        ...


@dataclass(frozen=True)
class VerifyResult:
    """The differences of two tables, compared by a level; `rows` is the number of the Iceberg table's."""

    hive: str
    iceberg: str
    level: str
    rows: int
    differences: tuple[str, ...]
    seconds: float

    @property
    def is_equal(self) -> bool:
        return not self.differences


def verify(hive: str, table: Table, level: str, reader: HiveReader, progress: Progress = silent) -> VerifyResult:
    """Compares a Hive table (`db.table`) with an Iceberg table, whose rows `progress` is told of, by a level: `counts`
    of rows and nulls, from Iceberg's metadata; `sums`, per column sums, bounds and a checksum that ignores the order,
    and filters by these bounds must find them; or all `rows`, in Spark's Python workers."""
    if level not in LEVELS:
        raise InvalidInputError(f"Cannot verify {level!r}. Expected one of {', '.join(LEVELS)}.")
    started = time.monotonic()
    name, schema = ".".join(table.identifier), table.schema()
    rows = table.scan().count()
    if level == SUMS:
        arrow = to_arrow(schema, field_ids=False, extensions=False)
        with table.scan().to_arrow_batch_reader() as batches:
            ours = summarise(_counted(batches, rows, progress), arrow)
    stage = f"Comparing rows with {hive}" if level == ROWS else f"Reading {hive}"
    progress(stage, 0, 1)
    if level == COUNTS:
        found = list(_unlike_counts(hive, table, rows, reader))
    elif level == SUMS:
        found = [*differences(reader.summary(hive, schema, arrow), ours), *_lost_by_filters(table, ours)]
    else:
        found = list(reader.unlike_rows(hive, table, _MOST_DIFFERENCES))
    progress(stage, 1, 1)
    return VerifyResult(hive, name, level, rows, tuple(found[:_MOST_DIFFERENCES]), time.monotonic() - started)


def _counted(batches: Iterable[pa.RecordBatch], rows: int, progress: Progress) -> Iterator[pa.RecordBatch]:
    """The batches; tells how many of the rows were read."""
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        progress("Reading the Iceberg table", done, rows)


# Types whose least and greatest values filters take as summaries have them.
_FILTERED = (BooleanType, IntegerType, LongType, FloatType, DoubleType, DecimalType, DateType, StringType, BinaryType)


def _lost_by_filters(table: Table, summary: TableSummary) -> Iterator[str]:
    """The least and greatest values that filters do not find, as bounds of files leave them out."""
    for field in table.schema().fields:
        column = summary.columns[field.name]
        if not isinstance(field.field_type, _FILTERED) or column.least is None:
            continue
        for value in dict.fromkeys((column.least, column.greatest)):
            if not table.scan(EqualTo(field.name, value)).count():
                yield f"column {field.name!r} holds {value}, and a filter by it finds no row of the Iceberg table"


def _unlike_counts(hive: str, table: Table, rows: int, reader: HiveReader) -> Iterator[str]:
    known = _nulls_in_metadata(table)
    found_rows, found_nulls = reader.counts(hive, tuple(known))
    if found_rows != rows:
        yield f"the Hive table has {found_rows:,} rows, the Iceberg table {rows:,}"
    for name, nulls in known.items():
        if found_nulls[name] != nulls:
            yield f"column {name!r} has {found_nulls[name]:,} nulls in the Hive table, {nulls:,} in the Iceberg table"


def _nulls_in_metadata(table: Table) -> dict[str, int]:
    """Nulls of the columns that have counts in the metadata of every file; none if rows were deleted since."""
    known = {field.name: 0 for field in table.schema().fields}
    for task in table.scan().plan_files():
        counts = task.file.null_value_counts or {}
        if task.delete_files:
            return {}
        ids = {name: table.schema().find_field(name).field_id for name in known}
        known = {name: nulls + counts[ids[name]] for name, nulls in known.items() if ids[name] in counts}
    return known
