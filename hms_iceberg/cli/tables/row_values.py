"""Values of rows as JSON, and back without loss.

Decimals, times and dates are text, binary is text of hexadecimal digits, and numbers that JSON does not have are the
texts "NaN", "Infinity" and "-Infinity". A map is an object if its keys are text, else a list of keys and values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from hms_iceberg.errors import SchemaMismatchError, TypeMismatchError
from hms_iceberg.spec.values.datetimes import parse_date, parse_time, parse_timestamp

Convert = Callable[[Any], Any]

_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def text_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which times and dates of a type, at any depth, are text."""
    return _replaced(kind, lambda leaf: pa.string() if _is_time(leaf) else leaf)


def count_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which times and dates of a type, at any depth, are the counts that Arrow holds."""

    def counted(leaf: pa.DataType) -> pa.DataType:
        if not _is_time(leaf):
            return leaf
        return pa.int32() if leaf.bit_width == 32 else pa.int64()

    return _replaced(kind, counted)


def _replaced(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    def field(each: pa.Field) -> pa.Field:
        return each.with_type(_replaced(each.type, leaf))

    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_struct(kind):
        return pa.struct([field(each) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field))
    if is_list(kind):
        return pa.list_(field(kind.value_field))
    return leaf(kind)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text_in_csv(kind: pa.DataType) -> bool:
    """Whether CSV has no form of its own for an Arrow type, so that its values are written as text or JSON."""
    return (
        isinstance(kind, pa.BaseExtensionType)
        or bool(pa.types.is_nested(kind) or pa.types.is_decimal(kind))
        or _is_binary(kind)
    )


def json_values(column: pa.Array) -> list[Any]:
    """The values of a column as the JSON module takes them."""
    kind = column.type
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    text = text_type(storage.type)
    convert = _nullable(to_json(kind))
    return [convert(value) for value in (storage if text == storage.type else storage.cast(text)).to_pylist()]


def to_json(kind: pa.DataType) -> Convert:
    """How values of an Arrow type, with times as text, become JSON."""
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name != "arrow.uuid":
            return to_json(kind.storage_type)
        return lambda value: str(UUID(bytes=value) if isinstance(value, bytes) else value)
    if pa.types.is_float32(kind):
        return lambda value: _number(float(str(np.float32(value))))
    if pa.types.is_floating(kind):
        return _number
    if pa.types.is_decimal(kind):
        return lambda value: format(value, "f")
    if _is_binary(kind):
        return lambda value: value.hex()
    if pa.types.is_struct(kind):
        fields = {each.name: _nullable(to_json(each.type)) for each in kind}
        return lambda value: {name: convert(value[name]) for name, convert in fields.items()}
    if pa.types.is_map(kind):
        key, item = _nullable(to_json(kind.key_type)), _nullable(to_json(kind.item_type))
        if pa.types.is_string(text_type(kind.key_type)) or pa.types.is_large_string(kind.key_type):
            return lambda value: {key(k): item(v) for k, v in value}
        return lambda value: [{"key": key(k), "value": item(v)} for k, v in value]
    if is_list(kind):
        element = _nullable(to_json(kind.value_type))
        return lambda value: [element(each) for each in value]
    return lambda value: value


def from_json(kind: pa.DataType, column: str) -> Convert:
    """How JSON becomes values of an Arrow type, with times as counts; `column` is named in the errors of a misfit."""
    return _nullable(_reader(kind, column))


def _reader(kind: pa.DataType, column: str) -> Convert:
    if isinstance(kind, pa.BaseExtensionType):
        is_uuid = kind.extension_name == "arrow.uuid"
        return (
            _fitting(lambda value: UUID(value).bytes, kind, column) if is_uuid else _reader(kind.storage_type, column)
        )
    if pa.types.is_floating(kind):
        return _fitting(lambda value: _NO_NUMBERS[value] if isinstance(value, str) else float(value), kind, column)
    if pa.types.is_decimal(kind):
        return _fitting(Decimal, kind, column)
    if pa.types.is_integer(kind):
        return _fitting(_integer, kind, column)
    if _is_time(kind):
        return _fitting(_time_reader(kind), kind, column)
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        expected = bool if pa.types.is_boolean(kind) else str
        return _fitting(lambda value: _checked(value, expected), kind, column)
    if _is_binary(kind):
        return _fitting(bytes.fromhex, kind, column)
    if pa.types.is_struct(kind):
        return _struct_reader(kind, column)
    if pa.types.is_map(kind):
        key, item = from_json(kind.key_type, f"{column}.key"), from_json(kind.item_type, f"{column}.value")
        return _fitting(lambda value: [(key(k), item(v)) for k, v in _entries(value)], kind, column)
    if is_list(kind):
        element = from_json(kind.value_type, f"{column}.element")
        return _fitting(lambda value: [element(each) for each in _checked(value, list)], kind, column)
    return lambda value: value


def _time_reader(kind: pa.DataType) -> Convert:
    if pa.types.is_date(kind):
        return parse_date
    if pa.types.is_time(kind):
        return parse_time

    def read(value: str) -> int:
        nanos, offset = parse_timestamp(value)
        if (offset is None) != (kind.tz is None):
            raise ValueError("only one of the two has a zone")
        count, rest = divmod(nanos - (offset or 0) * 1_000_000_000, 1000 if kind.unit == "us" else 1)
        if rest:
            raise ValueError("it is finer than the column")
        return count

    return read


def _struct_reader(kind: pa.StructType, column: str) -> Convert:
    readers = {each.name: from_json(each.type, f"{column}.{each.name}") for each in kind}

    def read(value: Any) -> dict[str, Any]:
        unknown = _checked(value, dict).keys() - readers.keys()
        if unknown:
            raise SchemaMismatchError(
                f"Column {column} has no fields {sorted(unknown)}; it has {', '.join(readers)}. Add them to the table "
                "or leave them out."
            )
        return {name: reader(value.get(name)) for name, reader in readers.items()}

    return _fitting(read, kind, column)


def _entries(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return [(each["key"], each["value"]) for each in _checked(value, list)]


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value != int(value):
        raise ValueError("it is no whole number")
    return int(value)


def _checked(value: Any, expected: type) -> Any:
    if not isinstance(value, expected):
        raise ValueError(f"it is no {expected.__name__}")
    return value


def _fitting(convert: Convert, kind: pa.DataType, column: str) -> Convert:
    def fit(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, TypeError, KeyError, ArithmeticError, AttributeError) as error:
            if isinstance(error, (SchemaMismatchError, TypeMismatchError)):
                raise
            raise TypeMismatchError(f"Column {column}: {value!r:.100} does not fit the type {kind}.") from error

    return fit


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))
