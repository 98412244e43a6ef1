"""Rows that are equal: by key columns, by single values, and as wholes, at any depth of nesting.

Null equals null, NaN equals NaN, -0.0 differs from 0.0; a map whose entries are in another order is another map.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.nested import list_parts, list_values, make_list, map_entries
from hms_iceberg.lazy import pl


def differs(left: pa.Array, right: pa.Array) -> Any:
    """Compares two columns of one type row by row, as booleans; names and nullability of nested fields do not matter. A
    list in another order is another list; so is a map with its entries in another order. -0.0 equals 0.0."""
    if isinstance(left, pa.ExtensionArray):
        left = left.storage
    if isinstance(right, pa.ExtensionArray):
        right = right.storage
    nulls = _numpy(pc.xor(left.is_null(), right.is_null()))
    both = _numpy(pc.and_(left.is_valid(), right.is_valid()))
    kind = left.type
    if pa.types.is_null(kind):
        return nulls
    if pa.types.is_struct(kind):
        inside = np.zeros(len(left), np.bool_)
        for place in range(kind.num_fields):
            inside |= differs(left.field(place), right.field(place))
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        inside = _lists_differ(left, right)
    else:
        inside = _values_differ(left, right)
    return nulls | (both & inside)


def _values_differ(left: pa.Array, right: pa.Array) -> Any:
    if left.type != right.type:
        right = right.cast(left.type)
    different = _numpy(pc.not_equal(left, right).fill_null(False))
    if pa.types.is_floating(left.type):
        nans = pc.and_(pc.is_nan(left), pc.is_nan(right)).fill_null(False)
        different &= ~_numpy(nans)
    return different


def _lists_differ(left: pa.Array, right: pa.Array) -> Any:
    """Compares the elements of those lists that are equally long; the others differ."""
    different = _numpy(pc.not_equal(_lengths(left), _lengths(right)))
    same = np.flatnonzero(~different & (_numpy(_lengths(left)) > 0))
    if not len(same):
        return different
    chosen = pa.array(same)
    left, right = left.take(chosen), right.take(chosen)
    offsets, start, length = list_parts(left)
    _, other_start, other_length = list_parts(right)
    if pa.types.is_map(left.type):
        keys, items = map_entries(left, start, length)
        other_keys, other_items = map_entries(right, other_start, other_length)
        inside = differs(keys, other_keys) | differs(items, other_items)
    else:
        inside = differs(list_values(left, start, length), list_values(right, other_start, other_length))
    bounds = _numpy(offsets)
    different[same] = np.logical_or.reduceat(inside, bounds[:-1])
    return different


def _lengths(array: pa.Array) -> pa.Array:
    """Numbers of elements of a list column; 0 for null."""
    offsets = array.offsets
    lengths = pc.subtract(offsets[1:], offsets[:-1])
    return pc.if_else(array.is_valid(), lengths, pa.scalar(0, lengths.type))


def _numpy(array: pa.Array) -> Any:
    return array.to_numpy(zero_copy_only=False)


def key_frame(columns: Iterable[pa.Array | pa.ChunkedArray]) -> pl.DataFrame:
    """Key columns `k0`, `k1` … in a form in which equal values mean equal keys; joins on them must be told that nulls
    are equal."""
    found = {f"k{place}": _comparable(column) for place, column in enumerate(columns)}
    frame = pl.from_arrow(pa.table(found))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        chunks = [_comparable(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks) if chunks else _comparable(pa.array([], column.type))
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
    return comparable(column)


def identity_frame(rows: pa.Table) -> pl.DataFrame:
    """The columns of a table in a form in which polars finds equal what is the same."""
    frames: list[pl.DataFrame] = []
    for batch in rows.to_batches():
        columns = {f"v{place}": comparable(column) for place, column in enumerate(batch.columns)}
        frames.append(pl.DataFrame(pa.table(columns)))
    return pl.concat(frames) if frames else pl.DataFrame()


def unmatched(left: pa.Table, right: pa.Table) -> tuple[Any, Any]:
    """Masks of the rows of two bags that are left over when equal rows are paired off."""
    remain = np.ones(left.num_rows, np.bool_), np.ones(right.num_rows, np.bool_)
    if not left.num_rows or not right.num_rows:
        return remain
    ours, theirs = identity_frame(left), identity_frame(right)
    columns = ours.columns
    # Equal rows are numbered, so that each is taken away once.
    ours, theirs = (
        each.with_columns(number=pl.int_range(pl.len()).over(columns)).with_row_index("row") for each in (ours, theirs)
    )
    pairs = ours.join(theirs, on=[*columns, "number"], nulls_equal=True).select("row", "row_right")
    remain[0][pairs["row"].to_numpy()] = False
    remain[1][pairs["row_right"].to_numpy()] = False
    return remain


def net_changes(rows: pa.Table, signs: Any) -> Any:
    """A mask of the rows of a history that are left over when inserted (1) and deleted (-1) ones are paired off. Rows
    come oldest first; of each row the latest of what is left over is True."""
    if not rows.num_rows:
        return np.empty(0, np.bool_)
    frame = identity_frame(rows)
    columns = frame.columns
    sign, net = pl.col("sign"), pl.col("sign").sum().over(columns)
    from_end = pl.int_range(pl.len(), 0, -1).over([*columns, "sign"])
    kept = (sign * net > 0) & (from_end <= net.abs())
    return frame.with_columns(sign=pl.Series(signs, dtype=pl.Int64)).select(kept=kept)["kept"].to_numpy()


def comparable(array: pa.Array) -> pa.Array:
    """Values that are equal if the rows are: null equals null, NaN equals NaN, and -0.0 is not 0.0."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind, types = array.type, pa.types
    if types.is_struct(kind):
        fields = [(f"f{place}", comparable(child)) for place, child in enumerate(array.flatten())]
        names, children = [name for name, _ in fields], [child for _, child in fields]
        return pa.StructArray.from_arrays([*children, array.is_valid()], names=[*names, "valid"])
    if types.is_map(kind):
        offsets, start, length = list_parts(array)
        keys, items = (comparable(each) for each in map_entries(array, start, length))
        entries = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
        return make_list(array, offsets, entries, pa.field("entry", entries.type))
    if types.is_list(kind):
        offsets, start, length = list_parts(array)
        values = comparable(list_values(array, start, length))
        return make_list(array, offsets, values, pa.field("element", values.type))
    if types.is_floating(kind):
        plain = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), kind), array)
        return plain.view(pa.int32() if types.is_float32(kind) else pa.int64())
    if types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    if types.is_decimal(kind):
        return array.view(pa.binary(16)).cast(pa.binary())
    if types.is_timestamp(kind) or types.is_time(kind):
        return array.view(pa.int64())
    if types.is_date(kind):
        return array.view(pa.int32())
    return array.cast(pa.int8()) if types.is_null(kind) else array
