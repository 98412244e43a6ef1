"""Nested Arrow arrays taken apart and put together again, with nulls and slices kept, and rows selected from batches.

A slice of a list array shares the whole values array of its parent; the parts here hold only the slice's own values,
so that work on a batch never costs more than the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.spec.data_types import IcebergType, NestedField, NestedType


def rows_only(count: int) -> pa.StructArray:
    """A struct array without fields: nothing but a number of rows."""
    return pa.StructArray.from_buffers(pa.struct([]), count, [None])


def null_mask(array: pa.Array) -> pa.Array | None:
    """A mask of the nulls of an array, or None if it has none."""
    return array.is_null() if array.null_count else None


def leaf_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """The arrays of an array's leaves, in the order of `file_leaves`."""
    if not child_fields(array.type):
        yield array
        return
    for child in children_of(array):
        yield from leaf_arrays(child)


def struct_children(array: pa.StructArray) -> list[pa.Array]:
    """The fields of a struct array, as long as it, without the struct's own nulls."""
    return [array.field(index) for index in range(array.type.num_fields)]


def make_struct(like: pa.Array, children: Sequence[pa.Array], fields: Sequence[pa.Field]) -> pa.StructArray:
    """A struct array with new children and the length and nulls of `like`."""
    mask = null_mask(like)
    if not children:
        validity = None if mask is None else pc.invert(mask).buffers()[1]
        return pa.Array.from_buffers(pa.struct([]), len(like), [validity], children=[])
    return pa.StructArray.from_arrays(list(children), fields=list(fields), mask=mask)


def list_parts(array: pa.Array) -> tuple[pa.Array, int, int]:
    """The offsets of a list or map array (32-bit, beginning at 0), and where its values begin and how many they are."""
    if not len(array):
        return pa.array([0], pa.int32()), 0, 0
    offsets = array.offsets
    start = offsets[0].as_py()
    stop = offsets[-1].as_py()
    if start or offsets.offset:
        offsets = pc.subtract(offsets, pa.scalar(start, offsets.type))
    return offsets.cast(pa.int32()), start, stop - start


def list_values(array: pa.Array, start: int, length: int) -> pa.Array:
    """The values of a list array between the bounds that `list_parts` gave."""
    return array.values.slice(start, length)


def make_list(like: pa.Array, offsets: pa.Array, values: pa.Array, element: pa.Field) -> pa.ListArray:
    """A list array with new values and the length and nulls of `like`."""
    if element.type != values.type:
        element = element.with_type(values.type)
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(element), mask=null_mask(like))


def map_entries(array: pa.MapArray, start: int, length: int) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a map array between the bounds that `list_parts` gave."""
    entries = array.values.slice(start, length)  # `keys` and `items` disregard where the entries begin
    return entries.field(0), entries.field(1)


def make_map(
    like: pa.Array, offsets: pa.Array, keys: pa.Array, items: pa.Array, key: pa.Field, item: pa.Field
) -> pa.MapArray:
    """A map array with new entries and the length and nulls of `like`; a null key is refused, as pyarrow would end the
    process."""
    if keys.null_count:
        raise pa.ArrowInvalid("a key of a map is null")
    entries = pa.StructArray.from_arrays([keys, items], fields=[key.with_nullable(False), item])
    mask = null_mask(like)
    validity = None if mask is None else pc.invert(mask).buffers()[1]
    buffers = [validity, offsets.buffers()[1]]
    return pa.Array.from_buffers(pa.map_(key, item), len(like), buffers, children=[entries])


def children_of(array: pa.Array) -> list[pa.Array]:
    """The arrays below a nested one: a struct's fields, a list's elements, a map's keys and values."""
    if pa.types.is_struct(array.type):
        return struct_children(array)
    _, start, length = list_parts(array)
    return (
        list(map_entries(array, start, length)) if pa.types.is_map(array.type) else [list_values(array, start, length)]
    )


def with_children(like: pa.Array, children: Sequence[pa.Array], fields: Sequence[pa.Field]) -> pa.Array:
    """A nested array with the length and nulls of `like`; children in the order of `children_of`."""
    fields = [field.with_type(child.type) for field, child in zip(fields, children, strict=True)]
    if pa.types.is_struct(like.type):
        return make_struct(like, children, fields)
    offsets, _, _ = list_parts(like)
    if pa.types.is_map(like.type):
        return make_map(like, offsets, *children, *fields)
    return make_list(like, offsets, *children, *fields)


def combine(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of a column that may be chunked."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def pruned(arrays: Sequence[pa.Array], fields: Sequence[NestedField], wanted: Sequence[NestedField]) -> list[pa.Array]:
    """The wanted columns by field id, and of structs in them the wanted fields."""
    places = {field.field_id: place for place, field in enumerate(fields)}
    return [
        _pruned(arrays[place], fields[place].field_type, field.field_type)
        for field in wanted
        for place in (places[field.field_id],)
    ]


def _pruned(array: pa.Array, kind: IcebergType, wanted: IcebergType) -> pa.Array:
    if kind == wanted or not isinstance(kind, NestedType) or not isinstance(wanted, NestedType):
        return array
    children = pruned(children_of(array), kind.children(), wanted.children())
    made = zip(wanted.children(), children, strict=True)
    return with_children(array, children, [pa.field(each.name, child.type, each.optional) for each, child in made])


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Gives an array another type that differs only in names, field metadata, nullability or extensions. Children are
    taken by position. Buffers are shared, unless values have to be cast."""
    if array.type.equals(kind, check_metadata=True):
        return array
    if isinstance(kind, pa.BaseExtensionType):
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        return pa.ExtensionArray.from_storage(kind, conform(storage, kind.storage_type))
    if isinstance(array, pa.ExtensionArray):
        return conform(array.storage, kind)
    if pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_map(kind):
        fields = child_fields(kind)
        children = [conform(child, field.type) for child, field in zip(children_of(array), fields, strict=True)]
        return with_children(array, children, fields)
    return array if array.type.equals(kind) else array.cast(kind)


def without_nulls(array: pa.Array) -> pa.Array:
    """Removes the validity bitmap, so that nulls become arbitrary values, for slots that a null parent hides: Parquet's
    writer refuses nulls in a required field even there."""
    if not array.null_count:
        return array
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(struct_children(array), fields=fields)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        offsets, start, length = list_parts(array)
        if pa.types.is_map(kind):
            keys, items = map_entries(array, start, length)
            return pa.MapArray.from_arrays(offsets, keys, items, type=kind)
        return pa.ListArray.from_arrays(offsets, list_values(array, start, length), type=kind)
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], 0, array.offset)


# With fewer gaps, runs of rows are copied sooner than row after row.
_FEWEST_GAPS = 0.02


class RowSelection:
    """The rows of a batch that a mask chooses, which must not change any more."""

    def __init__(self, chosen: Any) -> None:
        self._chosen = chosen
        self.rows = int(np.count_nonzero(chosen))

    def of(self, column: pa.Array) -> pa.Array:
        if self.rows > len(column) * (1 - _FEWEST_GAPS):
            return column.filter(self._mask)
        return pc.take(column, self._numbers, boundscheck=False)  # up to ten times as fast as a filter

    @cached_property
    def _mask(self) -> pa.BooleanArray:
        return pa.array(self._chosen)

    @cached_property
    def _numbers(self) -> pa.Array:
        return pa.array(np.flatnonzero(self._chosen).astype(np.uint32))  # half the bytes to go through, a column each
