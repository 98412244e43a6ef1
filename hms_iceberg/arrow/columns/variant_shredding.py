"""Variants taken apart into typed columns, as Parquet files hold them. Only those at the top level of a file are.

A field gets a column of its own if a tenth of the rows have it and all its values are of one type, as in Java. Types
that Spark does not read from such columns get none: time, UUID, and timestamps with nanoseconds.

Source: Apache Parquet, "Variant Shredding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.arrow.columns.nested import make_struct, struct_children
from hms_iceberg.spec.values.decimals import decimal_value
from hms_iceberg.spec.variant.layout import (
    ARRAY,
    OBJECT,
    SHORT_STRING,
    Kind,
    container_of,
    end_of,
    fields_of,
    names_of,
    object_bytes,
    unsigned,
)

_LEAST_SHARE = 0.1
_MOST_FIELDS = 300
_MOST_OBSERVED = 1000
_MOST_LEVELS = 20  # pyarrow reads schemas of 100 levels, of which each level of a variant takes up to four

_INTEGERS = {Kind.INT8: pa.int8(), Kind.INT16: pa.int16(), Kind.INT32: pa.int32(), Kind.INT64: pa.int64()}
_DECIMALS = (Kind.DECIMAL4, Kind.DECIMAL8, Kind.DECIMAL16)
_COUNTED = {
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
_OTHERS = {
    Kind.TRUE: pa.bool_(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.BINARY: pa.binary(),
    Kind.STRING: pa.string(),
}
_Names = Sequence[str]
_OPTIONS_OF_COLUMNS = ("use_dictionary", "write_statistics")
_PARTS = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]


@dataclass
class _Seen:
    """Statistics of the values at one place; a family is a type, or a group of types with one typed column."""

    rows: int = 0
    families: set[Any] = field(default_factory=set)
    widest: int = 0
    fields: dict[str, _Seen] = field(default_factory=dict)
    elements: _Seen | None = None


def shredded_type(column: pa.StructArray) -> pa.DataType | None:
    """The type of a column of variants with typed columns that suit some rows; None if nothing can be typed."""
    root = _Seen()
    for names, value in _values(column):
        if value is not None:
            _observe(root, value, names, 0)
    typed = _typed(root, root.rows)
    if typed is None:
        return None
    group = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())]
    return pa.struct([*group, pa.field("typed_value", typed)])


def shredded(column: pa.StructArray, kind: pa.DataType) -> pa.StructArray:
    """A column of variants in a type that `shredded_type` gave for it or for other rows."""
    rows = _values(column)
    values, typed = _group(kind.field("typed_value").type, [value for _, value in rows], [names for names, _ in rows])
    return make_struct(column, [struct_children(column)[0], values, typed], list(kind))


def _values(column: pa.StructArray) -> list[tuple[_Names, bytes | None]]:
    metadata, values = struct_children(column)
    coded = metadata.dictionary_encode()
    names = [names_of(each) if valid else [] for each, valid in _used(coded, column)]
    places = coded.indices.to_pylist()
    valid = column.is_valid().to_pylist()
    rows = zip(places, values.to_pylist(), valid, strict=True)
    return [(names[place], value) if present else ((), None) for place, value, present in rows]


def _used(coded: pa.DictionaryArray, column: pa.StructArray) -> Iterable[tuple[bytes, bool]]:
    """The different metadata, and whether a row that is no null has them."""
    used = set(coded.indices.filter(column.is_valid()).to_pylist())
    return ((each, place in used) for place, each in enumerate(coded.dictionary.to_pylist()))


# ------------------------------------------------------------------------------------------------ choosing columns


def _observe(seen: _Seen, value: bytes, names: _Names, level: int) -> None:
    seen.rows += 1
    first = unsigned(value, 0, 1)
    basic = first & 3
    if basic == OBJECT:
        seen.families.add(OBJECT)
        for name, below in fields_of(value, names).items() if level < _MOST_LEVELS else ():
            if name in seen.fields or len(seen.fields) < _MOST_OBSERVED:
                _observe(seen.fields.setdefault(name, _Seen()), below, names, level + 1)
    elif basic == ARRAY:
        seen.families.add(ARRAY)
        if seen.elements is None:
            seen.elements = _Seen()
        for below in _elements(value) if level < _MOST_LEVELS else ():
            _observe(seen.elements, below, names, level + 1)
    elif basic == SHORT_STRING:
        seen.families.add(Kind.STRING.name)
    else:
        kind = Kind(first >> 2)
        if kind in _INTEGERS:
            seen.families.add("integer")
            seen.widest = max(seen.widest, kind)
        elif kind in _DECIMALS:
            seen.families.add(("decimal", value[1]))
            seen.widest = max(seen.widest, len(str(abs(_number(value, 2)))), value[1], 1)
        elif kind is not Kind.NULL:
            seen.families.add((Kind.TRUE if kind is Kind.FALSE else kind).name)


def _typed(seen: _Seen, rows: int) -> pa.DataType | None:
    """The type of the values that were seen; None if they have none in common, or are all null."""
    if len(seen.families) != 1:
        return None
    (family,) = seen.families
    if family == OBJECT:
        often = [(name, each) for name, each in seen.fields.items() if each.rows >= rows * _LEAST_SHARE]
        often = sorted(often, key=lambda each: (-each[1].rows, each[0]))[:_MOST_FIELDS]
        kinds = {name: kind for name, each in often if (kind := _typed(each, rows)) is not None}
        return pa.struct([pa.field(name, _pair(kinds[name]), False) for name in sorted(kinds)]) if kinds else None
    if family == ARRAY:
        kind = None if seen.elements is None else _typed(seen.elements, rows)
        return None if kind is None else pa.list_(pa.field("element", _pair(kind), False))
    if family == "integer":
        return _INTEGERS[Kind(seen.widest)]
    if isinstance(family, tuple):
        return pa.decimal128(seen.widest, family[1]) if seen.widest <= 38 else None
    return {**_COUNTED, **_OTHERS}.get(Kind[family])


def _pair(kind: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", kind)])


# ------------------------------------------------------------------------------------------------ filling them


def _group(kind: pa.DataType, values: Sequence[bytes | None], names: Sequence[_Names]) -> tuple[pa.Array, pa.Array]:
    """Splits values into those that stay as they are and those that go into a column of a type."""
    if pa.types.is_struct(kind):
        return _objects(kind, values, names)
    if pa.types.is_list(kind):
        return _arrays(kind, values, names)
    read, stored = _reader(kind)
    typed = [None if value is None else read(value) for value in values]
    rest = [None if found is not None else value for found, value in zip(typed, values, strict=True)]
    column = pa.array(typed, stored)
    return pa.array(rest, pa.binary()), column if stored == kind else column.view(kind)


def _objects(kind: pa.DataType, values: Sequence[bytes | None], names: Sequence[_Names]) -> tuple[pa.Array, pa.Array]:
    columns: dict[str, list[bytes | None]] = {each.name: [] for each in kind}
    rest: list[bytes | None] = []
    is_object = []
    for value, known in zip(values, names, strict=True):
        fields: dict[str, bytes] = {}
        is_object.append(value is not None and value[0] & 3 == OBJECT)
        if value is None or not is_object[-1]:
            rest.append(value)
        else:
            fields = fields_of(value, known)
            others = {name: below for name, below in fields.items() if name not in columns}
            rest.append(_object(others, known) if others else None)
        for name, column in columns.items():
            column.append(fields.get(name))
    children = [_struct(each.type, columns[each.name], names) for each in kind]
    like = pa.array([True if each else None for each in is_object], pa.bool_())
    return pa.array(rest, pa.binary()), make_struct(like, children, list(kind))


def _struct(kind: pa.DataType, values: Sequence[bytes | None], names: Sequence[_Names]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(_group(kind.field("typed_value").type, values, names)), fields=list(kind))


def _object(fields: dict[str, bytes], names: _Names) -> bytes:
    ids = {name: place for place, name in enumerate(names)}
    return object_bytes([ids[name] for name in fields], list(fields.values()))


def _arrays(kind: pa.DataType, values: Sequence[bytes | None], names: Sequence[_Names]) -> tuple[pa.Array, pa.Array]:
    offsets: list[int | None] = []
    elements: list[bytes] = []
    names_of_elements: list[_Names] = []
    rest: list[bytes | None] = []
    for value, known in zip(values, names, strict=True):
        is_array = value is not None and value[0] & 3 == ARRAY
        offsets.append(len(elements) if is_array else None)
        rest.append(None if is_array else value)
        if value is not None and is_array:
            found = _elements(value)
            elements += found
            names_of_elements += [known] * len(found)
    column = _struct(kind.value_type, elements, names_of_elements)
    places = pa.array([*offsets, len(elements)], pa.int32())
    return pa.array(rest, pa.binary()), pa.ListArray.from_arrays(places, column, type=kind)


def _elements(value: bytes) -> list[bytes]:
    return [value[at : end_of(value, at)] for at in container_of(value)[1]]


def _reader(kind: pa.DataType) -> tuple[Callable[[bytes], Any], pa.DataType]:
    """A function that reads values of a type, None for those of another one, and the Arrow type of its results."""
    if pa.types.is_string(kind):
        return _text, kind
    if pa.types.is_boolean(kind):
        return {Kind.TRUE.header: True, Kind.FALSE.header: False}.get, kind
    if pa.types.is_decimal(kind):
        return _decimal_reader(kind.precision, kind.scale), pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_integer(kind):
        integers = {of.header[0] for of, each in _INTEGERS.items() if each.bit_width <= kind.bit_width}
        return lambda value: _number(value, 1) if value[0] in integers else None, kind
    of = next(of for of, each in {**_COUNTED, **_OTHERS}.items() if each == kind)
    if of in _COUNTED:
        stored = pa.int32() if of is Kind.DATE else pa.int64()
        return lambda value: _number(value, 1) if value[0] == of.header[0] else None, stored
    start = 5 if of is Kind.BINARY else 1
    if pa.types.is_floating(kind):
        form = "<f" if of is Kind.FLOAT else "<d"
        return lambda value: struct.unpack(form, value[1:])[0] if value[0] == of.header[0] else None, kind
    return lambda value: value[start:] if value[0] == of.header[0] else None, kind


def _text(value: bytes) -> bytes | None:
    if value[0] & 3 == SHORT_STRING:
        return value[1:]
    return value[5:] if value[0] == Kind.STRING.header[0] else None


def _decimal_reader(precision: int, scale: int) -> Callable[[bytes], Any]:
    headers = {of.header[0] for of in _DECIMALS}

    def read(value: bytes) -> Any:
        if value[0] not in headers or value[1] != scale:
            return None
        unscaled = _number(value, 2)
        return decimal_value(unscaled, scale) if abs(unscaled) < 10**precision else None

    return read


def _number(value: bytes, at: int) -> int:
    return int.from_bytes(value[at:], "little", signed=True)


# ------------------------------------------------------------------------------------------------ files


def with_shredded_variants(
    schema: pa.Schema, options: Mapping[str, Any], batches: Sequence[pa.RecordBatch], rows: int
) -> tuple[pa.Schema, Mapping[str, Any]]:
    """The schema of a file whose variants are shredded as its first rows suggest, and the options of its writer. The
    options of a variant's value count for its other columns too; `rows` of the batches are looked at."""
    if not batches:
        return schema, options
    fields = list(schema)
    changed = dict(options)
    for place, column_field in enumerate(schema):
        if not is_variant(column_field.type):
            continue
        column = pa.concat_batches(batches).column(place).slice(0, rows)
        kind = shredded_type(column)
        if kind is None:
            continue
        fields[place] = column_field.with_type(kind)
        for name in _OPTIONS_OF_COLUMNS:
            listed = changed.get(name)
            if isinstance(listed, list) and f"{column_field.name}.value" in listed:
                changed[name] = [*listed, *_paths(kind.field("typed_value"), column_field.name)]
    return pa.schema(fields), changed


def shredded_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == field.type else shredded(column, field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_variant(kind: pa.DataType) -> bool:
    """Whether a column of a file's layout holds variants; no struct of a table has fields without ids."""
    fields = child_fields(kind)
    return pa.types.is_struct(kind) and fields == _PARTS and not any(field.metadata for field in fields)


def _paths(field: pa.Field, prefix: str) -> Iterator[str]:
    """The dotted paths of the Parquet columns of a field."""
    path = f"{prefix}.{field.name}"
    children = child_fields(field.type)
    if not children:
        yield path
    for child in children:
        yield from _paths(child, f"{path}.list" if pa.types.is_list(field.type) else path)
