"""What a table holds, in a few numbers that do not depend on the order of its rows.

Both sides of a proof are summed up by this code, and each is read by another reader: the Hive table by Spark, the
Iceberg table by this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from decimal import Context, Decimal
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

_EXACT = Context(prec=200)
_WORD = 1 << 64
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class ColumnSummary:
    """A summary of the values of one column.

    Attributes:
        nulls: how many values are null.
        nans: how many are NaN.
        total: the sum of whole numbers and decimals, as text; None for other types. The sum of floats depends on their
            order; the checksum does not.
        least, greatest: of types that have an order, as text; None without values.
        checksum: sum of the hashes of all values.
    """

    nulls: int = 0
    nans: int = 0
    total: str | None = None
    least: Any = None
    greatest: Any = None
    checksum: int = 0

    def plus(self, other: ColumnSummary) -> ColumnSummary:
        """The summary of the values of both together."""
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
    """All columns, and the rows as a whole.

    Attributes:
        rows: how many rows.
        checksum: sum of the hashes of all rows.
        columns: each column, by name.
    """

    rows: int
    checksum: int
    columns: dict[str, ColumnSummary]

    def plus(self, other: TableSummary) -> TableSummary:
        """The summary of the rows of both together."""
        columns = {name: column.plus(other.columns[name]) for name, column in self.columns.items()}
        return TableSummary(self.rows + other.rows, (self.checksum + other.checksum) % _WORD, columns)


def empty_summary(schema: pa.Schema) -> TableSummary:
    """The summary of a table without rows."""
    return TableSummary(0, 0, {name: ColumnSummary() for name in schema.names})


def summarise(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> TableSummary:
    """Summarises rows, batch by batch.

    Args:
        batches: the rows; their columns are cast to those of the schema.
        schema: names and types.

    Returns:
        number of rows, a checksum that does not depend on their order, and what is known of each column.
    """
    summary = empty_summary(schema)
    for batch in batches:
        if batch.num_rows:
            summary = summary.plus(_of_batch(batch, schema))
    return summary


def differences(hive: TableSummary, iceberg: TableSummary) -> Iterator[str]:
    """Tells in what two tables differ.

    Args:
        hive: the summary of the Hive table.
        iceberg: the summary of the Iceberg table.

    Returns:
        a sentence for each difference; none if the tables are equal.
    """
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
    """Numbers so mixed that their sum tells which hashes came together (the finalizer of SplitMix64)."""
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
    return None if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def _ordered(value: Any, kind: pa.DataType) -> Any:
    """A value as itself if numbers are, so that text is not compared with them; times as text in ISO's form."""
    if isinstance(value, (int, float, str, bytes, Decimal)) or value is None:
        return value
    return value.isoformat()
