"""Rows in the order that a table's sort order asks for.

Source: Iceberg specification, "Sorting": nulls where the field says, NaN after all other numbers, -0.0 before 0.0 is
not told apart. Besides, rows along a curve through several columns, near in all of them at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.column_transforms import transform_array
from hms_iceberg.arrow.rows.partition_split import column_at, source_path
from hms_iceberg.lazy import pl
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortOrder

_ROW = "row"


class RowOrder(ABC):
    """An order of rows by keys; `order_id` is that of the table's sort order, if it is one."""

    def __init__(self, order_id: int | None, descending: Sequence[bool], nulls_last: Sequence[bool]) -> None:
        self.order_id = order_id
        self._descending = list(descending)
        self._nulls_last = list(nulls_last)

    @abstractmethod
    def keys(self, batches: Sequence[pa.RecordBatch]) -> pl.DataFrame: ...

    def sort(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        """The rows in order; rows that are equal in it keep theirs."""
        if rows.num_rows < 2:
            return rows
        positions = self.positions(self.keys(rows.to_batches() if isinstance(rows, pa.Table) else [rows]))
        return rows if _ascends(positions) else rows.take(positions.to_arrow())

    def follows(self, last: pa.RecordBatch, first: pa.RecordBatch) -> bool:
        """Whether rows that begin as `first` may come after rows that end as `last`."""
        return _ascends(self.positions(self.keys([last.slice(last.num_rows - 1), first.slice(0, 1)])))

    def positions(self, keys: pl.DataFrame) -> pl.Series:
        """Row numbers in order, those of equal keys ascending. They are the last key: polars takes ten times as long if
        nulls are last in every one."""
        rows = keys.with_row_index(_ROW)
        descending, nulls_last = [*self._descending, False], [*self._nulls_last, False]
        return rows.sort([*rows.columns[1:], _ROW], descending=descending, nulls_last=nulls_last)[_ROW].cast(pl.Int64)


def _ascends(positions: pl.Series) -> bool:
    return bool((positions[1:] > positions[:-1]).all())


class RowSorter(RowOrder):
    def __init__(self, schema: Schema, order: SortOrder) -> None:
        super().__init__(
            order_id=order.order_id,
            descending=[field.direction is SortDirection.DESC for field in order.fields],
            nulls_last=[field.null_order is NullOrder.NULLS_LAST for field in order.fields],
        )
        self._fields = [
            (field.transform, schema.find_type(field.source_id), source_path(schema, field.source_id))
            for field in order.fields
        ]

    def keys(self, batches: Sequence[pa.RecordBatch]) -> pl.DataFrame:
        columns = {}
        for number, (transform, kind, path) in enumerate(self._fields):
            chunks = [sortable(transform_array(transform, kind, column_at(batch, path))) for batch in batches]
            columns[f"k{number}"] = pa.chunked_array(chunks)
        frame = pl.from_arrow(pa.table(columns))
        assert isinstance(frame, pl.DataFrame)
        return frame


def sortable(array: pa.Array) -> pa.Array:
    """The array as polars sorts it: storage of extension types, one NaN, times as numbers."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return array.view(pa.int64())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), kind), array)
    return array


# -------------------------------------------------------------------------------------------------------- curves


_KEY_BITS = 63
_MOST_BITS = 16


class ZOrder(RowOrder):
    """Sorts batches by the places of some columns' ranks on Hilbert's curve: ranks make all columns count alike, and
    the curve never leaps, so that fewer pages hold a range than in Z order."""

    def __init__(
        self, schema: Schema, field_ids: Sequence[int], sampled: Schema, sample: Iterable[pa.RecordBatch]
    ) -> None:
        super().__init__(order_id=None, descending=[False], nulls_last=[False])
        self._paths = [source_path(schema, field_id) for field_id in field_ids]
        self._bits = min(_MOST_BITS, _KEY_BITS // len(field_ids))
        ranks = np.arange(1 << self._bits)
        spread = [((ranks >> bit) & 1) << (bit * len(field_ids)) for bit in range(self._bits)]
        self._spread = np.bitwise_or.reduce(spread)  # a rank's bits, with room for those of the other columns
        batches = list(sample)
        paths = [source_path(sampled, field_id) for field_id in field_ids]
        self._cuts = [self._cut_points([column_at(batch, path) for batch in batches]) for path in paths]

    def keys(self, batches: Sequence[pa.RecordBatch]) -> pl.DataFrame:
        ranks = []
        for path, cuts in zip(self._paths, self._cuts, strict=True):
            found = _ranks(cuts, _series([column_at(batch, path) for batch in batches]))
            ranks.append((found << self._bits) // (len(cuts) + 2))  # so that the first bit halves every column
        curve = np.zeros(len(ranks[0]), np.int64)
        for number, digits in enumerate(along_hilbert(ranks, self._bits)):
            curve |= self._spread[digits] << (len(ranks) - 1 - number)
        return pl.DataFrame({"k0": curve})

    def _cut_points(self, chunks: Sequence[pa.Array]) -> pl.Series:
        """Values that part the sample into ranges of about the same number of rows."""
        if not chunks:
            return pl.Series([], dtype=pl.Null)
        values = _series(chunks).drop_nulls().sort()
        places = np.linspace(0, max(len(values) - 1, 0), min(len(values), (1 << self._bits) - 2)).astype(np.int64)
        return values.gather(places.tolist()).unique(maintain_order=True)


def along_hilbert(cells: list[np.ndarray], bits: int) -> list[np.ndarray]:
    """Coordinates of so many bits changed so that their interleaved bits are the place on Hilbert's curve. Source: John
    Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004)."""
    first, *others = (each.astype(np.int32) for each in cells)
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        first ^= -((first >> bit) & 1) & below
        for each in others:
            is_set = -((each >> bit) & 1)
            swapped = (first ^ each) & ~is_set & below
            first ^= swapped | (is_set & below)
            each ^= swapped
    changed = list(accumulate([first, *others], np.bitwise_xor))
    last = changed[-1]
    flips = np.zeros_like(last)
    for bit in range(bits - 1, 0, -1):
        flips ^= -((last >> bit) & 1) & ((1 << bit) - 1)
    return [each ^ flips for each in changed]


def _ranks(cuts: pl.Series, values: pl.Series) -> np.ndarray:
    """The rank of each value by cut points: 0 for null, otherwise one more than the number of cut points up to the
    value."""
    if not len(cuts):
        return np.zeros(len(values), np.int64)
    nulls = values.is_null().to_numpy()
    found = cuts.search_sorted(values.fill_null(cuts[0]), side="right").to_numpy().astype(np.int64)
    return np.where(nulls, 0, found + 1)


def _series(chunks: Sequence[pa.Array]) -> pl.Series:
    series = pl.from_arrow(pa.chunked_array([sortable(chunk) for chunk in chunks]))
    assert isinstance(series, pl.Series)
    return series.cast(pl.Int8) if series.dtype == pl.Boolean else series
