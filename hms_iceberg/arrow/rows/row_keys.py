"""Rows told apart by key columns, as joins need it: null equals null, NaN equals NaN, -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.rows.row_identity import comparable
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
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
    return comparable(column)
