"""Variants of Python values and of JSON.

Source: Apache Parquet, "Variant Binary Encoding".
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.values.decimals import unscaled_value
from hms_iceberg.spec.variant.layout import (
    NULL_VALUE,
    Kind,
    array_bytes,
    binary_bytes,
    metadata_bytes,
    object_bytes,
    string_bytes,
)
from hms_iceberg.spec.variant.variant import Variant

_INTEGERS = ((Kind.INT8, 1), (Kind.INT16, 2), (Kind.INT32, 4), (Kind.INT64, 8))
_DECIMALS = ((9, Kind.DECIMAL4, 4), (18, Kind.DECIMAL8, 8), (38, Kind.DECIMAL16, 16))
_MOST_DIGITS = 38
_EPOCH = dt.datetime(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)


def variant_of(value: Any) -> Variant:
    """A variant of a Python value.

    Args:
        value: None, bool, int, float, Decimal, str, bytes, date, time, datetime (with a zone or without), UUID, or a
            list, tuple or mapping of such values. Integers take the smallest type that holds them; those beyond 64
            bits become decimals.

    Raises:
        InvalidInputError: the value, or one in it, has no form in variants.
    """
    try:
        names = sorted(set(_names(value)), key=str.encode)
        ids = {name: number for number, name in enumerate(names)}
        return Variant(metadata_bytes(names), _value(value, ids))
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise InvalidInputError(f"Cannot make a variant: {error}.") from error


def parse_json(text: str) -> Variant:
    """A variant of JSON text.

    A number with a fraction and no exponent is a decimal if it has at most 38 digits, any other a double, as in Spark.

    Args:
        text: one JSON value.

    Raises:
        InvalidInputError: the text is no JSON, or an object has a name twice.
    """
    try:
        parsed = json.loads(
            text, parse_float=_number, parse_int=_whole, parse_constant=_refused, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"Cannot make a variant of {text[:60]!r}: it is no JSON ({error}).") from error
    return variant_of(parsed)


def _number(text: str) -> Decimal | float:
    if "e" not in text and "E" not in text:
        number = Decimal(text)
        digits, exponent = number.as_tuple()[1:]
        if isinstance(exponent, int) and max(len(digits), -exponent) <= _MOST_DIGITS:
            return number
    return float(text)


def _whole(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= _MOST_DIGITS else float(text)


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, below in value.items():
            if not isinstance(name, str):
                raise TypeError(f"names of fields are text, not {name!r}")
            yield name
            yield from _names(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from _names(below)


def _value(value: Any, ids: Mapping[str, int]) -> bytes:
    if value is None:
        return NULL_VALUE
    if isinstance(value, bool):
        return (Kind.TRUE if value else Kind.FALSE).header
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return Kind.DOUBLE.header + struct.pack("<d", value)
    if isinstance(value, str):
        return string_bytes(value.encode())
    if isinstance(value, Mapping):
        names = sorted(value, key=ids.__getitem__)  # names are numbered in their order
        return object_bytes([ids[name] for name in names], [_value(value[name], ids) for name in names])
    if isinstance(value, (list, tuple)):
        return array_bytes([_value(each, ids) for each in value])
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binary_bytes(bytes(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, UUID):
        return Kind.UUID.header + value.bytes
    return _time(value)


def _integer(value: int) -> bytes:
    for kind, size in _INTEGERS:
        if -(1 << size * 8 - 1) <= value < 1 << size * 8 - 1:
            return kind.header + value.to_bytes(size, "little", signed=True)
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> bytes:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is no finite decimal")
    scale = max(-exponent, 0)
    unscaled = unscaled_value(value, scale)
    digits = max(len(str(abs(unscaled))), scale)
    for most, kind, size in _DECIMALS:
        if digits <= most:
            return kind.header + bytes((scale,)) + unscaled.to_bytes(size, "little", signed=True)
    raise ValueError(f"{value} has more than {_MOST_DIGITS} digits")


def _time(value: Any) -> bytes:
    if isinstance(value, dt.datetime):
        zoned = value.tzinfo is not None
        at = value.astimezone(dt.timezone.utc).replace(tzinfo=None) if zoned else value
        micros = (at - _EPOCH) // _MICRO
        return (Kind.TIMESTAMPTZ if zoned else Kind.TIMESTAMP).header + micros.to_bytes(8, "little", signed=True)
    if isinstance(value, dt.date):
        days = value.toordinal() - _EPOCH.toordinal()
        return Kind.DATE.header + days.to_bytes(4, "little", signed=True)
    if isinstance(value, dt.time) and value.tzinfo is None:
        micros = (dt.datetime.combine(_EPOCH, value) - _EPOCH) // _MICRO
        return Kind.TIME.header + micros.to_bytes(8, "little")
    raise TypeError(f"a value of type {type(value).__name__} has no form in variants: {value!r}")
