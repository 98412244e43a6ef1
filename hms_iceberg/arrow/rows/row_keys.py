"""Rows told apart by key columns, as joins need it: null equals null, NaN equals NaN, -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.lazy import pl


def key_frame(columns: Iterable[pa.Array | pa.ChunkedArray]) -> pl.DataFrame:
    """Key columns in a form in which equal values mean equal keys.

    Args:
        columns: arrays of primitive types, equally long.

    Returns:
        Columns `k0`, `k1` …; joins on them must be told that nulls are equal.
    """
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
    kind, types = column.type, pa.types
    if types.is_floating(kind):
        plain = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), kind), pc.add(column, pa.scalar(0.0, kind)))
        return plain.view(pa.int32() if types.is_float32(kind) else pa.int64())
    if types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    if types.is_decimal(kind):
        return column.view(pa.binary(16)).cast(pa.binary())
    if types.is_timestamp(kind) or types.is_time(kind):
        return column.view(pa.int64())
    if types.is_date(kind):
        return column.view(pa.int32())
    return column.cast(pa.int8()) if types.is_null(kind) else column
