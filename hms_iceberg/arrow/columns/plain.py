"""Arrow arrays of any layout as equal ones of the plain layout that `arrow_types.plain_type` names; and dictionaries.

pyarrow's own casts and kernels are not relied on here: that of list views takes ranges for neighbours and reads beyond
its buffers, and few kernels know views, or dictionaries and runs of anything but plain values. What an array says of
itself (offsets, sizes, ends of runs) is checked before it is followed, since other libraries and other processes made
it.

Source: Arrow's columnar format, "Physical memory layout".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns import nested
from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_text, plain_type
from hms_iceberg.spec.json_model import column_names

_MOST_ELEMENTS = (1 << 31) - 1


def to_plain(array: pa.Array) -> pa.Array:
    """The values in the plain form of their type; see `plain_type`."""
    kind = array.type
    types = pa.types
    if types.is_dictionary(kind):
        return _taken(array.dictionary, array.indices)
    if types.is_run_end_encoded(kind):
        return _taken(array.values, _runs(array))
    if types.is_fixed_size_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        return _list(array)
    if types.is_nested(kind) and not types.is_union(kind):
        if not types.is_struct(kind):
            _check_offsets(array.offsets.to_numpy(), len(array.values))
        children = [to_plain(child) for child in nested.children_of(array)]
        return nested.with_children(array, children, child_fields(kind))
    if isinstance(kind, (pa.Bool8Type, pa.JsonType)):
        storage = to_plain(array.storage)
        wanted = plain_type(kind)
        return storage.cast(wanted) if types.is_boolean(wanted) else pa.ExtensionArray.from_storage(wanted, storage)
    if isinstance(kind, pa.BaseExtensionType):
        return array
    _check_values(array)
    wanted = plain_type(kind)
    return array if kind == wanted else array.cast(wanted)


def _check_values(array: pa.Array) -> None:
    """Refuses text that is none, digits that a decimal has not, times of no day."""
    if not _is_ascii(array):
        array.validate(full=True)


def _is_ascii(array: pa.Array) -> bool:
    """Whether it is text of ASCII alone, which is told in a tenth of the time that Arrow takes to look at each value of
    its own; what it says of offsets is checked first."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)) or not len(array):
        return False
    is_large = pa.types.is_large_string(array.type)
    array.view(pa.large_binary() if is_large else pa.binary()).validate(full=True)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    first, last = ends[array.offset], ends[array.offset + len(array)]
    return data is None or bool(np.frombuffer(data, np.int8)[first:last].min(initial=0) >= 0)


def _taken(values: pa.Array, places: pa.Array) -> pa.Array:
    """Values by their places, null for a null place; only the part of them that is needed is looked at."""
    bounds = pc.min_max(places)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is None:
        return pa.nulls(len(places), plain_type(values.type))
    if first < 0 or last >= len(values):
        raise pa.ArrowInvalid(f"it points at value {first if first < 0 else last} of {len(values)}")
    return to_plain(values.slice(first, last - first + 1)).take(pc.subtract(places.cast(pa.int64()), first))


def _runs(array: pa.RunEndEncodedArray) -> pa.Array:
    """The run that each value of an array is in."""
    ends = array.run_ends.to_numpy().astype(np.int64)
    stop = array.offset + len(array)
    if len(array) and (len(ends) == 0 or ends[-1] < stop or ends[0] < 1 or (np.diff(ends) < 1).any()):
        raise pa.ArrowInvalid(f"its runs do not end after one another, or before value {stop}")
    return pa.array(np.searchsorted(ends, np.arange(array.offset, stop), side="right"))


def _list(array: pa.Array) -> pa.ListArray:
    starts, sizes = _ranges(array)
    values = array.values
    if array.null_count:
        sizes = np.where(array.is_null().to_numpy(zero_copy_only=False), 0, sizes)
    filled = sizes > 0
    if (starts[filled] < 0).any() or (sizes < 0).any() or (starts[filled] > len(values) - sizes[filled]).any():
        raise pa.ArrowInvalid(f"a list is outside of its {len(values)} values")
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    total = int(offsets[-1])
    if total > _MOST_ELEMENTS:
        raise pa.ArrowInvalid(f"its lists have {total:,} values, more than {_MOST_ELEMENTS:,}: pass fewer rows at once")
    first = int(starts[filled].min()) if total else 0
    starts = starts - first
    neighbours = bool((starts[filled] == offsets[:-1][filled]).all())
    needed = total if neighbours else int((starts + sizes)[filled].max())
    found = to_plain(values.slice(first, needed))
    if not neighbours:
        found = found.take(pa.array(np.repeat(starts - offsets[:-1], sizes) + np.arange(total)))
    (element,) = child_fields(array.type)
    return nested.make_list(array, pa.array(offsets, pa.int32()), found, element)


def _ranges(array: pa.Array) -> tuple[Any, Any]:
    """First value and length of each list of a view, or of lists of one size."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return np.arange(array.offset, array.offset + len(array)) * size, np.full(len(array), size)
    return array.offsets.to_numpy().astype(np.int64), array.sizes.to_numpy().astype(np.int64)


def _check_offsets(offsets: Any, length: int) -> None:
    if len(offsets) and (offsets[0] < 0 or offsets[-1] > length or (np.diff(offsets) < 0).any()):
        raise pa.ArrowInvalid(f"a list is outside of its {length} values")


def with_dictionaries(rows: pa.RecordBatchReader, columns: Sequence[str]) -> pa.RecordBatchReader:
    """The rows with columns of text or bytes as dictionaries, which take less memory where values repeat."""
    names = column_names(columns, "dictionary_columns")
    places = [
        place
        for place, field in enumerate(rows.schema)
        if field.name in names and (is_text(field.type) or is_bytes(field.type))
    ]
    if not places:
        return rows
    schema = rows.schema
    for place in places:
        field = schema.field(place)
        schema = schema.set(place, field.with_type(pa.dictionary(pa.int32(), field.type)))

    def encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = batch.columns
        for place in places:
            arrays[place] = arrays[place].dictionary_encode()
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(encoded, rows))
