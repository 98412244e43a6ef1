"""Which rows of two columns differ: null equals null, NaN equals NaN, at any depth of nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.nested import list_parts, list_values, map_entries


def differs(left: pa.Array, right: pa.Array) -> Any:
    """Compares two columns row by row.

    Args:
        left: values.
        right: as many values of the same type; names and nullability of nested fields do not matter.

    Returns:
        A numpy array of booleans: True if the values are not the same. A list in another order is another list;
        so is a map with its entries in another order. -0.0 equals 0.0.
    """
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
    """Numbers of elements; null counts as none, whatever hides behind it."""
    offsets = array.offsets
    lengths = pc.subtract(offsets[1:], offsets[:-1])
    return pc.if_else(array.is_valid(), lengths, pa.scalar(0, lengths.type))


def _numpy(array: pa.Array) -> Any:
    return array.to_numpy(zero_copy_only=False)
