"""Shredded variants of Parquet files as plain ones: metadata and value.

Column by column as far as types go; objects and arrays are put together row by row.

Source: Apache Parquet, "Variant Shredding".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import child_fields, is_list_like
from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_text
from hms_iceberg.arrow.columns.nested import list_parts, list_values, struct_children
from hms_iceberg.spec.variant.layout import (
    NULL_VALUE,
    Kind,
    array_bytes,
    binary_bytes,
    fields_of,
    names_of,
    object_bytes,
    string_bytes,
)

Values = Sequence[bytes | None]
"""The value of each row; None where there is none."""


class _Rows:
    """The metadata of rows, each different one taken apart once.

    Args:
        metadata: the different ones.
        numbers: which of them each row has.
    """

    def __init__(self, metadata: Sequence[bytes], numbers: Any) -> None:
        self._metadata = metadata
        self._numbers = numbers
        self._ids: dict[int, dict[str, int]] = {}

    @classmethod
    def of(cls, column: pa.Array) -> _Rows:
        coded = column.cast(pa.binary()).dictionary_encode()
        return cls(coded.dictionary.to_pylist(), coded.indices.fill_null(0).to_numpy(zero_copy_only=False))

    @cached_property
    def numbers(self) -> list[int]:
        return list(self._numbers.tolist())

    def repeated(self, lengths: Any) -> _Rows:
        """The metadata of the elements of lists of such lengths."""
        return _Rows(self._metadata, np.repeat(self._numbers, lengths))

    def ids(self, row: int) -> dict[str, int]:
        """Name to its number in a row, in the order of the numbers."""
        number = self.numbers[row]
        found = self._ids.get(number)
        if found is None:
            found = self._ids[number] = {name: place for place, name in enumerate(names_of(self._metadata[number]))}
        return found


_Typed = Callable[[pa.Array, _Rows, Values | None], Values]


def unshredding(kind: pa.DataType) -> Callable[[pa.Array], tuple[pa.Array, pa.Array]]:
    """How a shredded column becomes metadata and values.

    Args:
        kind: the column's type: a struct of ``metadata`` and ``value``, ``typed_value`` or both.

    Returns:
        A function of the column that returns metadata and values, without nulls where the column has none; it raises
        ValueError for a column that is damaged.

    Raises:
        ValueError: variants have no such form.
    """
    names = [field.name for field in child_fields(kind)]
    if "metadata" not in names or not {"value", "typed_value"} & set(names):
        raise ValueError(f"it has the fields {', '.join(names) or 'none'}")
    place = names.index("metadata")
    if "typed_value" not in names:  # not shredded
        value_at = names.index("value")

        def plain(array: pa.Array) -> tuple[pa.Array, pa.Array]:
            below = [child.cast(pa.binary()) for child in struct_children(array)]
            return below[place].fill_null(b""), below[value_at].fill_null(NULL_VALUE)

        return plain
    value = _group(kind)

    def convert(array: pa.Array) -> tuple[pa.Array, pa.Array]:
        metadata = struct_children(array)[place]
        values = [NULL_VALUE if each is None else each for each in value(array, _Rows.of(metadata))]
        return metadata.cast(pa.binary()).fill_null(b""), pa.array(values, pa.binary())

    return convert


def _group(kind: pa.DataType) -> Callable[[pa.Array, _Rows], Values]:
    """The values of a struct of ``value`` and ``typed_value``."""
    children = {field.name: (index, field.type) for index, field in enumerate(child_fields(kind))}
    value_at = children["value"][0] if "value" in children else None
    typed_at, typed = (None, None) if "typed_value" not in children else _placed(children["typed_value"])

    def convert(array: pa.Array, rows: _Rows) -> Values:
        below = struct_children(array)
        plain: Values | None = None
        if value_at is not None and below[value_at].null_count < len(array):
            plain = below[value_at].cast(pa.binary()).to_pylist()
        if typed_at is None or typed is None or below[typed_at].null_count == len(array):
            return plain or [None] * len(array)
        return typed(below[typed_at], rows, plain)

    return convert


def _placed(child: tuple[int, pa.DataType]) -> tuple[int, _Typed]:
    index, kind = child
    if pa.types.is_struct(kind):
        return index, _object(kind)
    if is_list_like(kind):
        return index, _array(kind)
    primitive = _primitive(kind)

    def typed(array: pa.Array, rows: _Rows, plain: Values | None) -> Values:
        values = primitive(array)
        return values if plain is None else list(map(_either, values, plain))

    return index, typed


def _object(kind: pa.DataType) -> _Typed:
    named = sorted(enumerate(child_fields(kind)), key=lambda each: each[1].name.encode())
    fields = [(index, field.name, _group(field.type)) for index, field in named]
    names = [name for _, name, _ in fields]
    shredded = frozenset(names)

    def typed(array: pa.Array, rows: _Rows, plain: Values | None) -> Values:
        below = struct_children(array)
        columns = [convert(below[index], rows) for index, _, convert in fields]
        given = zip(*columns, strict=True) if columns else iter([()] * len(array))
        made: list[bytes | None] = []
        for row, (values, is_valid) in enumerate(zip(given, array.is_valid().to_pylist(), strict=True)):
            rest = None if plain is None else plain[row]
            if not is_valid:
                made.append(rest)
                continue
            ids = rows.ids(row)
            present = {name: value for name, value in zip(names, values, strict=True) if value is not None}
            if rest is not None:  # an object with the other fields; one that is shredded counts as missing here
                others = {name: of for name, of in fields_of(rest, list(ids)).items() if name not in shredded}
                merged = others | present
                present = {name: merged[name] for name in sorted(merged, key=str.encode)}
            made.append(object_bytes([_id(ids, name) for name in present], list(present.values())))
        return made

    return typed


def _either(typed: bytes | None, plain: bytes | None) -> bytes | None:
    if typed is not None and plain is not None:
        raise ValueError("a variant has both a value and a shredded value that is no object")
    return plain if typed is None else typed


def _id(ids: dict[str, int], name: str) -> int:
    if name not in ids:
        raise ValueError(f"the metadata of a variant lack the name {name!r} of a shredded field")
    return ids[name]


def _array(kind: pa.DataType) -> _Typed:
    plain_list = pa.list_(kind.value_field)
    elements = _group(kind.value_type)

    def typed(array: pa.Array, rows: _Rows, plain: Values | None) -> Values:
        offsets, start, length = list_parts(array if array.type == plain_list else array.cast(plain_list))
        places = offsets.to_numpy()
        found = elements(list_values(array, start, length), rows.repeated(np.diff(places)))
        values = [NULL_VALUE if each is None else each for each in found]
        bounds = places.tolist()
        made = [
            array_bytes(values[bounds[row] : bounds[row + 1]]) if is_valid else None
            for row, is_valid in enumerate(array.is_valid().to_pylist())
        ]
        return made if plain is None else list(map(_either, made, plain))

    return typed


def _primitive(kind: pa.DataType) -> Callable[[pa.Array], Values]:
    types = pa.types
    if types.is_dictionary(kind):
        inner = _primitive(kind.value_type)
        return lambda array: inner(array.dictionary_decode())
    if types.is_boolean(kind):
        forms = {True: Kind.TRUE.header, False: Kind.FALSE.header, None: None}
        return lambda array: [forms[each] for each in array.to_pylist()]
    if is_text(kind) or is_bytes(kind):
        make = string_bytes if is_text(kind) else binary_bytes
        return lambda array: [None if each is None else make(each) for each in array.cast(pa.binary()).to_pylist()]
    if types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        header = Kind.UUID.header
        return lambda array: [None if each is None else header + each for each in array.to_pylist()]
    if types.is_decimal(kind):
        return _decimals(kind)
    fixed = _FIXED.get(kind) or (_TIMES.get((kind.unit, kind.tz is not None)) if types.is_timestamp(kind) else None)
    if fixed is None:
        raise ValueError(f"variants have no shredded values of type {kind}")
    return _numbers(fixed.header, kind.bit_width // 8)


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


def _numbers(header: bytes, width: int) -> Callable[[pa.Array], Values]:
    """Values whose bytes stand in the array as they stand in variants."""

    def convert(array: pa.Array) -> Values:
        data = array.buffers()[1]
        begin = array.offset * width
        raw = b"" if data is None else data.slice(begin, len(array) * width).to_pybytes()
        values = [header + raw[at : at + width] for at in range(0, len(raw), width)]
        return _with_nulls(values, array)

    return convert


def _decimals(kind: pa.DataType) -> Callable[[pa.Array], Values]:
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

    def convert(array: pa.Array) -> Values:
        array = pc.cast(array, wide)
        raw = array.buffers()[1].slice(array.offset * 16, len(array) * 16).to_pybytes()
        # The low bytes of a number in two's complement are the number in fewer bytes.
        values = [header + raw[at : at + width] for at in range(0, len(raw), 16)]
        return _with_nulls(values, array)

    return convert


def _with_nulls(values: list[bytes], array: pa.Array) -> Values:
    if not array.null_count:
        return values
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]
