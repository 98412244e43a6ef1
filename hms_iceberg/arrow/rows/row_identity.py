"""Rows compared as wholes: which rows of two bags are the same, at any depth of nesting.

Null equals null, NaN equals NaN, -0.0 differs from 0.0; a map whose entries are in another order is another map.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.nested import list_parts, list_values, make_list, map_entries
from hms_iceberg.lazy import pl


def identity_frame(rows: pa.Table) -> pl.DataFrame:
    """The columns of a table in a form in which polars finds equal what is the same."""
    frames: list[pl.DataFrame] = []
    for batch in rows.to_batches():
        columns = {f"v{place}": comparable(column) for place, column in enumerate(batch.columns)}
        frames.append(pl.DataFrame(pa.table(columns)))
    return pl.concat(frames) if frames else pl.DataFrame()


def unmatched(left: pa.Table, right: pa.Table) -> tuple[Any, Any]:
    """Which rows of two bags remain when every row is taken away together with one same row of the other.

    Args:
        left: rows.
        right: rows of the same columns.

    Returns:
        A numpy array of booleans for each: True for the rows that remain.
    """
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
    """Which of a history's rows remain when equal rows that came and went are taken away.

    Args:
        rows: all rows that came or went, oldest first.
        signs: a numpy array, for each row 1 if it came and -1 if it went.

    Returns:
        A numpy array of booleans: of each row the latest of what is left over.
    """
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
