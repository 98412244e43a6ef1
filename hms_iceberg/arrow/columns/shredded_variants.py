"""Shredded variants of Parquet files as plain ones: metadata and value.

Column by column: rows that have the same fields are put together at once.

Source: Apache Parquet, "Variant Shredding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_list_like, is_text
from hms_iceberg.arrow.columns.nested import list_parts, list_values, struct_children
from hms_iceberg.spec.variant.layout import (
    MOST_SHORT_STRING,
    NULL_VALUE,
    SHORT_STRING,
    Kind,
    array_bytes,
    fields_of,
    names_of,
    number_size,
    object_bytes,
    object_head,
)

# Fewer rows that have the same fields are put together one by one.
_LEAST_ROWS = 16


class _Rows:
    """The metadata of rows, each different one taken apart once; `numbers` tells which of them each row has."""

    def __init__(self, metadata: Sequence[bytes], numbers: Any) -> None:
        self.numbers = numbers
        self._metadata = metadata
        self._ids: dict[int, dict[str, int]] = {}

    @classmethod
    def of(cls, column: pa.Array) -> _Rows:
        coded = column.cast(pa.binary()).dictionary_encode()
        return cls(coded.dictionary.to_pylist(), coded.indices.fill_null(0).to_numpy(zero_copy_only=False))

    def repeated(self, lengths: Any) -> _Rows:
        """The metadata of the elements of lists of these lengths."""
        return _Rows(self._metadata, np.repeat(self.numbers, lengths))

    def ids(self, row: int) -> dict[str, int]:
        """Name to its number in a row, in the order of the numbers."""
        number = int(self.numbers[row])
        found = self._ids.get(number)
        if found is None:
            found = self._ids[number] = {name: place for place, name in enumerate(names_of(self._metadata[number]))}
        return found


_Group = Callable[[pa.Array, _Rows], pa.BinaryArray]
_Typed = Callable[[pa.Array, _Rows, "pa.BinaryArray | None"], pa.BinaryArray]
_Primitive = Callable[[pa.Array], pa.BinaryArray]


def unshredding(kind: pa.DataType) -> Callable[[pa.Array], tuple[pa.Array, pa.Array]]:
    """A function from a shredded column (a struct of `metadata`, `value` and `typed_value`) to metadata and values
    without nulls. It raises ValueError for a column that is damaged."""
    names = [field.name for field in child_fields(kind)]
    if "metadata" not in names or not {"value", "typed_value"} & set(names):
        raise ValueError(f"it has the fields {', '.join(names) or 'none'}")
    place = names.index("metadata")
    value = _group(kind)

    def convert(array: pa.Array) -> tuple[pa.Array, pa.Array]:
        metadata = struct_children(array)[place].cast(pa.binary())
        rows = _Rows.of(metadata) if "typed_value" in names else _Rows((), ())
        return metadata.fill_null(b""), value(array, rows).fill_null(NULL_VALUE)

    return convert


def _group(kind: pa.DataType) -> _Group:
    """The values of a struct of ``value`` and ``typed_value``; null where there is none."""
    children = {field.name: (index, field.type) for index, field in enumerate(child_fields(kind))}
    value_at = children["value"][0] if "value" in children else None
    typed_at, typed = (None, None) if "typed_value" not in children else _placed(*children["typed_value"])

    def convert(array: pa.Array, rows: _Rows) -> pa.BinaryArray:
        below = struct_children(array)
        plain = None if value_at is None else below[value_at].cast(pa.binary())
        if typed_at is None or typed is None or below[typed_at].null_count == len(array):
            return pa.nulls(len(array), pa.binary()) if plain is None else plain
        return typed(below[typed_at], rows, None if plain is None or plain.null_count == len(array) else plain)

    return convert


def _placed(index: int, kind: pa.DataType) -> tuple[int, _Typed]:
    if pa.types.is_struct(kind):
        return index, _object(kind)
    if is_list_like(kind):
        return index, _array(kind)
    primitive = _primitive(kind)
    return index, lambda array, _rows, plain: _either(primitive(array), plain)


def _either(typed: pa.BinaryArray, plain: pa.BinaryArray | None) -> pa.BinaryArray:
    if plain is None:
        return typed
    if pc.any(pc.and_(typed.is_valid(), plain.is_valid())).as_py():
        raise ValueError("a variant has both a value and a shredded value that is no object")
    return pc.coalesce(typed, plain)


# ------------------------------------------------------------------------------------------------ objects


def _object(kind: pa.DataType) -> _Typed:
    named = sorted(enumerate(child_fields(kind)), key=lambda each: each[1].name.encode())
    fields = [(index, _group(field.type)) for index, field in named]
    names = [field.name for _, field in named]

    def typed(array: pa.Array, rows: _Rows, plain: pa.BinaryArray | None) -> pa.BinaryArray:
        below = struct_children(array)
        columns = [convert(below[index], rows) for index, convert in fields]
        is_object = array.is_valid().to_numpy(zero_copy_only=False)
        has_rest = np.zeros(len(array), bool) if plain is None else plain.is_valid().to_numpy(zero_copy_only=False)
        whole = np.flatnonzero(is_object & ~has_rest)
        made: list[pa.BinaryArray] = []
        places = []
        singly = [np.flatnonzero(is_object & has_rest)]
        for group in _alike(columns, rows, whole):
            if len(group) < _LEAST_ROWS:
                singly.append(group)
            else:
                chosen_columns = [each if len(group) == len(each) else each.take(group) for each in columns]
                made.append(_objects(chosen_columns, names, rows.ids(group[0])))
                places.append(group)
        chosen = np.concatenate(singly)
        made.append(pa.array(_objects_singly(columns, names, rows, plain, chosen), pa.binary()))
        others = np.flatnonzero(~is_object)
        made.append(pa.nulls(len(others), pa.binary()) if plain is None else plain.take(pa.array(others)))
        order = np.concatenate([*places, chosen, others])
        if places and len(places[0]) == len(array):
            return made[0]
        back = np.empty(len(array), np.int64)
        back[order] = np.arange(len(array))
        return pa.concat_arrays(made).take(pa.array(back))

    return typed


def _alike(columns: Sequence[pa.BinaryArray], rows: _Rows, whole: Any) -> Iterator[Any]:
    """Groups some rows: those of one group have the same metadata, the same fields, and offsets of one size."""
    codes = rows.numbers[whole].astype(np.int64)
    bytes_of_all = np.zeros(len(whole), np.int64)
    for column in columns:
        valid = column.is_valid().to_numpy(zero_copy_only=False)[whole]
        if not valid.all():  # numbered anew, so that the codes of many fields stay small
            codes = np.unique(codes * 2 + valid, return_inverse=True)[1]
        bytes_of_all += pc.binary_length(column).fill_null(0).to_numpy()[whole]
    codes = codes * 4 + np.searchsorted([1 << 8, 1 << 16, 1 << 24], bytes_of_all, side="right")
    if len(codes) and (codes == codes[0]).all():
        yield whole
        return
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order])) + 1
    yield from (whole[each] for each in np.split(order, starts) if len(each))


def _objects(columns: Sequence[pa.BinaryArray], names: Sequence[str], ids: dict[str, int]) -> pa.BinaryArray:
    """Objects that all have the same fields, and offsets of one size; see ``layout.object_bytes``."""
    present = [(name, column) for name, column in zip(names, columns, strict=True) if not column.null_count]
    lengths = [pc.binary_length(column).to_numpy().astype(np.int64) for _, column in present]
    count = len(columns[0])
    ends = np.zeros((count, len(present) + 1), np.int64)
    if present:
        ends[:, 1:] = np.cumsum(np.stack(lengths, axis=1), axis=1)
    numbers = [_id(ids, name) for name, _ in present]
    size = number_size(int(ends[:, -1].max()))
    head = object_head(numbers, size)
    offsets = ends.astype("<u4").view(np.uint8).reshape(count, -1, 4)[:, :, :size].reshape(count, -1)
    prefix = _joined(head, offsets)
    return pc.binary_join_element_wise(prefix, *(column for _, column in present), b"")


def _objects_singly(
    columns: Sequence[pa.BinaryArray], names: Sequence[str], rows: _Rows, plain: pa.BinaryArray | None, chosen: Any
) -> Iterator[bytes]:
    shredded = frozenset(names)
    taken = pa.array(chosen)
    values = [column.take(taken).to_pylist() for column in columns]
    rests = [None] * len(chosen) if plain is None else plain.take(taken).to_pylist()
    for at, (row, rest) in enumerate(zip(chosen.tolist(), rests, strict=True)):
        ids = rows.ids(row)
        present = {name: column[at] for name, column in zip(names, values, strict=True) if column[at] is not None}
        if rest is not None:  # an object with the other fields; one that is shredded counts as missing here
            others = {name: of for name, of in fields_of(rest, list(ids)).items() if name not in shredded}
            merged = others | present
            present = {name: merged[name] for name in sorted(merged, key=str.encode)}
        yield object_bytes([_id(ids, name) for name in present], list(present.values()))


def _id(ids: dict[str, int], name: str) -> int:
    if name not in ids:
        raise ValueError(f"the metadata of a variant lack the name {name!r} of a shredded field")
    return ids[name]


# ------------------------------------------------------------------------------------------------ arrays


def _array(kind: pa.DataType) -> _Typed:
    plain_list = pa.list_(kind.value_field)
    elements = _group(kind.value_type)

    def typed(array: pa.Array, rows: _Rows, plain: pa.BinaryArray | None) -> pa.BinaryArray:
        offsets, start, length = list_parts(array if array.type == plain_list else array.cast(plain_list))
        places = offsets.to_numpy()
        found = elements(list_values(array, start, length), rows.repeated(np.diff(places)))
        values = found.fill_null(NULL_VALUE).to_pylist()
        bounds = places.tolist()
        made = [
            array_bytes(values[bounds[row] : bounds[row + 1]]) if is_valid else None
            for row, is_valid in enumerate(array.is_valid().to_pylist())
        ]
        return _either(pa.array(made, pa.binary()), plain)

    return typed


# ------------------------------------------------------------------------------------------------ primitive types


def _primitive(kind: pa.DataType) -> _Primitive:
    types = pa.types
    if types.is_dictionary(kind):
        inner = _primitive(kind.value_type)
        return lambda array: inner(array.dictionary_decode())
    if types.is_boolean(kind):
        return _booleans
    if is_text(kind) or is_bytes(kind):
        return _texts if is_text(kind) else _binaries
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return lambda array: _with_nulls(_joined(Kind.UUID.header, _raw(array, 16)), array)
    if types.is_decimal(kind):
        return _decimals(kind)
    fixed = _FIXED.get(kind) or (_TIMES.get((kind.unit, kind.tz is not None)) if types.is_timestamp(kind) else None)
    if fixed is None:
        raise ValueError(f"variants have no shredded values of type {kind}")
    header, width = fixed.header, kind.bit_width // 8
    return lambda array: _with_nulls(_joined(header, _raw(array, width)), array)


_FIXED = {
    pa.int8(): Kind.INT8,
    pa.int16(): Kind.INT16,
    pa.int32(): Kind.INT32,
    pa.int64(): Kind.INT64,
    pa.float32(): Kind.FLOAT,
    pa.float64(): Kind.DOUBLE,
    pa.date32(): Kind.DATE,
    pa.time64("us"): Kind.TIME,
}
_TIMES = {
    ("us", True): Kind.TIMESTAMPTZ,
    ("us", False): Kind.TIMESTAMP,
    ("ns", True): Kind.TIMESTAMPTZ_NS,
    ("ns", False): Kind.TIMESTAMP_NS,
}


def _booleans(array: pa.Array) -> pa.BinaryArray:
    true, false = (pa.scalar(kind.header, pa.binary()) for kind in (Kind.TRUE, Kind.FALSE))
    return pc.if_else(array, true, false)


def _texts(array: pa.Array) -> pa.BinaryArray:
    array = array.cast(pa.binary())
    lengths = pc.binary_length(array).fill_null(0).to_numpy()
    short = _joined(b"", (lengths.clip(0, MOST_SHORT_STRING) << 2 | SHORT_STRING).astype(np.uint8).reshape(-1, 1))
    if len(lengths) and lengths.max() > MOST_SHORT_STRING:
        long = _joined(Kind.STRING.header, _sizes(lengths))
        short = pc.if_else(pa.array(lengths <= MOST_SHORT_STRING), short, long)
    return pc.binary_join_element_wise(short, array, b"")


def _binaries(array: pa.Array) -> pa.BinaryArray:
    array = array.cast(pa.binary())
    lengths = pc.binary_length(array).fill_null(0).to_numpy()
    return pc.binary_join_element_wise(_joined(Kind.BINARY.header, _sizes(lengths)), array, b"")


def _decimals(kind: pa.DataType) -> _Primitive:
    precision, scale = kind.precision, kind.scale
    if precision > 38 or scale < 0:
        raise ValueError(f"variants have no shredded values of type {kind}")
    form, width = next(
        (form, width)
        for most, form, width in ((9, Kind.DECIMAL4, 4), (18, Kind.DECIMAL8, 8), (38, Kind.DECIMAL16, 16))
        if precision <= most
    )
    header = form.header + bytes((scale,))
    wide = pa.decimal128(precision, scale)
    # The low bytes of a number in two's complement are the number in fewer bytes.
    return lambda array: _with_nulls(_joined(header, _raw(pc.cast(array, wide), 16)[:, :width]), array)


def _raw(array: pa.Array, width: int) -> Any:
    data = array.buffers()[1]
    if data is None:
        return np.zeros((len(array), width), np.uint8)
    return np.frombuffer(data, np.uint8, len(array) * width, array.offset * width).reshape(len(array), width)


def _sizes(lengths: Any) -> Any:
    return lengths.astype("<u4").view(np.uint8).reshape(-1, 4)


def _joined(header: bytes, rows: Any) -> pa.BinaryArray:
    """The header and the bytes of each row, as one value a row."""
    count, width = rows.shape[0], rows.shape[1] + len(header)
    whole = np.empty((count, width), np.uint8)
    whole[:, : len(header)] = np.frombuffer(header, np.uint8)
    whole[:, len(header) :] = rows
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32) if width else np.zeros(count + 1, np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(whole)])


def _with_nulls(values: pa.BinaryArray, array: pa.Array) -> pa.BinaryArray:
    if not array.null_count:
        return values
    return pc.if_else(array.is_valid(), values, pa.scalar(None, pa.binary()))
