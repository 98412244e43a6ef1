"""Rows in the order that a table's sort order asks for.

Source: Iceberg specification, "Sorting": nulls where the field says, NaN after all other numbers, -0.0 before 0.0 is
not told apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.column_transforms import transform_array
from hms_iceberg.arrow.rows.partition_split import column_at, source_path
from hms_iceberg.lazy import pl
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortOrder

_ROW = "row"


class RowOrder(ABC):
    """Sorts rows by keys.

    Args:
        order_id: of the table's sort order that this is, or None.
        descending: for each key, whether large ones come first.
        nulls_last: for each key, whether nulls come last.
    """

    def __init__(self, order_id: int | None, descending: Sequence[bool], nulls_last: Sequence[bool]) -> None:
        self.order_id = order_id
        self._descending = list(descending)
        self._nulls_last = list(nulls_last)

    @abstractmethod
    def keys(self, batches: Sequence[pa.RecordBatch]) -> pl.DataFrame:
        """The keys of all rows of some batches, a column each."""

    def sort(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        """The rows in order; rows that are equal in it keep theirs."""
        if rows.num_rows < 2:
            return rows
        positions = self.positions(self.keys(rows.to_batches() if isinstance(rows, pa.Table) else [rows]))
        return rows if _ascends(positions) else rows.take(positions.to_arrow())

    def follows(self, last: pa.RecordBatch, first: pa.RecordBatch) -> bool:
        """Whether rows that begin as `first` may come after rows that end as `last`.

        Args:
            last: rows, of which the last one counts.
            first: rows, of which the first one counts.
        """
        return _ascends(self.positions(self.keys([last.slice(last.num_rows - 1), first.slice(0, 1)])))

    def positions(self, keys: pl.DataFrame) -> pl.Series:
        """Row numbers in order, those of equal keys ascending.

        They are the last key: polars takes ten times as long if nulls are last in every one.
        """
        rows = keys.with_row_index(_ROW)
        descending, nulls_last = [*self._descending, False], [*self._nulls_last, False]
        return rows.sort([*rows.columns[1:], _ROW], descending=descending, nulls_last=nulls_last)[_ROW].cast(pl.Int64)


def _ascends(positions: pl.Series) -> bool:
    return bool((positions[1:] > positions[:-1]).all())


class RowSorter(RowOrder):
    """Sorts batches of one schema.

    Args:
        schema: the columns of the batches.
        order: how to sort.
    """

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
        """The transformed columns of the order."""
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
