"""Single values as JSON, as default values in schemas are written.

Stored values of nested types: a struct is a dict of field id to value, a list is a list, a map is a list of
(key, value) pairs. Source: Iceberg specification, Appendix D, "JSON single-value serialization".
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from hms_iceberg.errors import IcebergError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values import datetimes
from hms_iceberg.spec.values.binary_values import decimal_value, unscaled_value

_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
INT_RANGE = (-(2**31), 2**31 - 1)
LONG_RANGE = (-(2**63), 2**63 - 1)


def check_integer(value: int, limits: tuple[int, int]) -> int:
    """The value, if it is an integer within the limits; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected an integer")
    if not limits[0] <= value <= limits[1]:
        raise ValueError(f"expected an integer from {limits[0]} to {limits[1]}")
    return value


def check_precision(value: Decimal, kind: DecimalType) -> Decimal:
    """The value at the type's scale, if its digits fit; raises ValueError or TypeMismatchError."""
    unscaled = unscaled_value(value, kind.scale)
    if abs(unscaled) >= 10**kind.precision:
        raise ValueError(f"it has more than {kind.precision} digits")
    return decimal_value(unscaled, kind.scale)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("JSON has no NaN and no infinity")
    return number


def _single(value: Any) -> float:
    """The nearest 32-bit float, as the double that holds it exactly."""
    number: float = struct.unpack("<f", struct.pack("<f", _finite(value)))[0]
    return number


def _shortest_single(value: Any) -> float:
    """A number with as few digits as read back to the same 32-bit float: 1.1 rather than 1.100000023841858."""
    number = _single(value)
    return next(short for digits in range(1, 18) if _reads_back(short := float(f"{number:.{digits}g}"), number))


def _reads_back(short: float, number: float) -> bool:
    """Whether fewer digits are the same 32-bit float; those of the largest may be too large for any."""
    try:
        return _single(short) == number
    except OverflowError:
        return False


def _decimal_text(value: Decimal, kind: DecimalType) -> str:
    return f"{check_precision(value, kind):f}"


def _fixed_hex(value: bytes, kind: FixedType) -> str:
    if len(value) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(value)}")
    return value.hex()


_WRITERS: dict[type[IcebergType], Callable[[Any, Any], Any]] = {
    BooleanType: lambda value, _: bool(value),
    IntegerType: lambda value, _: check_integer(value, INT_RANGE),
    LongType: lambda value, _: check_integer(value, LONG_RANGE),
    FloatType: lambda value, _: _shortest_single(value),
    DoubleType: lambda value, _: _finite(value),
    DateType: lambda value, _: datetimes.format_date(check_integer(value, INT_RANGE)),
    TimeType: lambda value, _: datetimes.format_time(check_integer(value, (0, datetimes.MICROS_PER_DAY - 1))),
    TimestampType: lambda value, _: datetimes.format_timestamp(check_integer(value, LONG_RANGE)),
    TimestamptzType: lambda value, _: datetimes.format_timestamp(check_integer(value, LONG_RANGE), utc=True),
    TimestampNanoType: lambda value, _: datetimes.format_timestamp_nanos(check_integer(value, LONG_RANGE)),
    TimestamptzNanoType: lambda value, _: datetimes.format_timestamp_nanos(check_integer(value, LONG_RANGE), utc=True),
    StringType: lambda value, _: str(value),
    UUIDType: lambda value, _: str(value),
    FixedType: _fixed_hex,
    BinaryType: lambda value, _: value.hex(),
    DecimalType: _decimal_text,
}


def to_json(kind: IcebergType, value: Any) -> Any:
    """A stored value as JSON-ready Python: dates as ISO text, decimals as text, bytes as hexadecimal digits.

    Args:
        kind: the type of the value.
        value: the stored value, or None.

    Returns:
        What `json.dumps` takes.

    Raises:
        UnsupportedError: the specification has no JSON form for the type (variant, unknown, geometry as bytes).
        TypeMismatchError: the value is none of the type.
    """
    if value is None:
        return None
    if isinstance(kind, StructType):
        present = ((field, value.get(field.field_id)) for field in kind.fields)
        return {str(field.field_id): to_json(field.field_type, each) for field, each in present if each is not None}
    if isinstance(kind, ListType):
        return [to_json(kind.element_type, each) for each in value]
    if isinstance(kind, MapType):
        keys = [to_json(kind.key_type, key) for key, _ in value]
        return {"keys": keys, "values": [to_json(kind.value_type, each) for _, each in value]}
    writer = _WRITERS.get(type(kind))
    if writer is None:
        raise UnsupportedError(f"Values of type {kind} have no JSON form; their default can only be null")
    try:
        return writer(value, kind)
    except IcebergError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TypeMismatchError(f"Cannot write {value!r} ({type(value).__name__}) as {kind}: {error}") from error


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("expected a number")
    return _finite(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value


def _boolean(value: Any, _: IcebergType) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _uuid(value: Any, _: IcebergType) -> UUID:
    if not _UUID_TEXT.fullmatch(_text(value)):
        raise ValueError("expected text such as 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")
    return UUID(value)


def _fixed(value: Any, kind: FixedType) -> bytes:
    data = bytes.fromhex(_text(value))
    if len(data) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(data)}")
    return data


def _decimal(value: Any, kind: DecimalType) -> Decimal:
    number = Decimal(_text(value))
    if number.is_finite() and -int(number.as_tuple().exponent) != kind.scale:
        raise ValueError(f"expected {kind.scale} digits after the point")
    return check_precision(number, kind)


def _timestamp(value: Any, nanos_per_unit: int, zoned: bool) -> int:
    nanos, offset = datetimes.parse_timestamp(_text(value))
    if zoned and offset != 0:
        raise ValueError("the zone offset must be +00:00")
    if not zoned and offset is not None:
        raise ValueError("there must be no zone offset")
    count, rest = divmod(nanos, nanos_per_unit)
    if rest:
        raise ValueError("it is finer than microseconds")
    return check_integer(count, LONG_RANGE)


_READERS: dict[type[IcebergType], Callable[[Any, Any], Any]] = {
    BooleanType: _boolean,
    IntegerType: lambda value, _: check_integer(value, INT_RANGE),
    LongType: lambda value, _: check_integer(value, LONG_RANGE),
    FloatType: lambda value, _: _single(_number(value)),
    DoubleType: lambda value, _: _number(value),
    DateType: lambda value, _: check_integer(datetimes.parse_date(_text(value)), INT_RANGE),
    TimeType: lambda value, _: datetimes.parse_time(_text(value)),
    TimestampType: lambda value, _: _timestamp(value, 1000, zoned=False),
    TimestamptzType: lambda value, _: _timestamp(value, 1000, zoned=True),
    TimestampNanoType: lambda value, _: _timestamp(value, 1, zoned=False),
    TimestamptzNanoType: lambda value, _: _timestamp(value, 1, zoned=True),
    StringType: lambda value, _: _text(value),
    UUIDType: _uuid,
    FixedType: _fixed,
    BinaryType: lambda value, _: bytes.fromhex(_text(value)),
    DecimalType: _decimal,
}


def from_json(kind: IcebergType, value: Any) -> Any:
    """The stored value that parsed JSON stands for.

    Args:
        kind: the type of the value.
        value: what `json.loads` gave.

    Returns:
        The stored value, or None for null.

    Raises:
        UnsupportedError: the specification has no JSON form for the type.
        TypeMismatchError: the JSON holds no value of the type.
    """
    if value is None:
        return None
    try:
        if isinstance(kind, StructType):
            return _struct_from_json(kind, value)
        if isinstance(kind, ListType):
            return [from_json(kind.element_type, each) for each in _sequence(value)]
        if isinstance(kind, MapType):
            return _map_from_json(kind, value)
        reader = _READERS.get(type(kind))
        if reader is None:
            raise UnsupportedError(f"Values of type {kind} have no JSON form; their default can only be null")
        return reader(value, kind)
    except IcebergError:
        raise
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise TypeMismatchError(f"Cannot read {value!r} as {kind}: {error}") from error


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value


def _struct_from_json(kind: StructType, value: Any) -> dict[int, Any]:
    if not isinstance(value, dict):
        raise ValueError("expected an object by field id")
    by_id = {str(field.field_id): field for field in kind.fields}
    known = ((by_id[name], each) for name, each in value.items() if name in by_id)
    return {field.field_id: from_json(field.field_type, each) for field, each in known}


def _map_from_json(kind: MapType, value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict) or "keys" not in value or "values" not in value:
        raise ValueError("expected an object with 'keys' and 'values'")
    keys, values = _sequence(value["keys"]), _sequence(value["values"])
    if len(keys) != len(values):
        raise ValueError(f"it has {len(keys)} keys and {len(values)} values")
    pairs = zip(keys, values, strict=True)
    return [(from_json(kind.key_type, key), from_json(kind.value_type, each)) for key, each in pairs]
