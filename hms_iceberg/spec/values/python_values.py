"""Values as Python users write them (datetime, Decimal, ISO text ...) to stored values."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from hms_iceberg.errors import IcebergError, NullValueError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
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
from hms_iceberg.spec.values.json_values import INT_RANGE, LONG_RANGE, check_integer, check_precision

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.timezone.utc)
_EPOCH_DATE = _EPOCH.date()
_MICROSECOND = dt.timedelta(microseconds=1)


def _boolean(value: Any, _: IcebergType) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("expected True or False")
    return value


def _integer(limits: tuple[int, int]) -> Callable[[Any, IcebergType], int]:
    def convert(value: Any, _: IcebergType) -> int:
        return check_integer(int(value) if isinstance(value, str) else value, limits)

    return convert


def _double(value: Any, _: IcebergType) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        raise ValueError("expected a number")
    return float(value)


def _float(value: Any, kind: IcebergType) -> float:
    number = _double(value, kind)
    if not math.isfinite(number):
        return number
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


def _decimal(value: Any, kind: DecimalType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        raise ValueError("expected a decimal.Decimal, an integer or text")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return check_precision(number, kind)


def _date(value: Any, _: IcebergType) -> int:
    if isinstance(value, str):
        return check_integer(datetimes.parse_date(value), INT_RANGE)
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time():
            raise ValueError("it has a time of day or a zone; expected a date")
        return (value.date() - _EPOCH_DATE).days
    if isinstance(value, dt.date):
        return (value - _EPOCH_DATE).days
    return check_integer(value, INT_RANGE)


def _time(value: Any, _: IcebergType) -> int:
    if isinstance(value, str):
        return datetimes.parse_time(value)
    if isinstance(value, dt.time):
        if value.tzinfo is not None:
            raise ValueError("it has a zone; times of day have none")
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return check_integer(value, (0, datetimes.MICROS_PER_DAY - 1))


def _timestamp(unit: int, zoned: bool) -> Callable[[Any, IcebergType], int]:
    """A converter to counts of `unit` nanoseconds."""

    def convert(value: Any, _: IcebergType) -> int:
        if isinstance(value, (str, dt.date)):
            count, rest = divmod(_epoch_nanos(value, zoned), unit)
            if rest:
                raise ValueError("it is finer than microseconds")
            return check_integer(count, LONG_RANGE)
        return check_integer(value, LONG_RANGE)

    return convert


def _epoch_nanos(value: str | dt.date, zoned: bool) -> int:
    nanos, offset = datetimes.parse_timestamp(value) if isinstance(value, str) else _datetime_nanos(value)
    if not zoned and offset is not None:
        raise ValueError("it has a zone, and the column has none; leave the zone out or convert it first")
    return nanos - (offset or 0) * 1_000_000_000


def _datetime_nanos(value: dt.date) -> tuple[int, int | None]:
    if not isinstance(value, dt.datetime):
        return (value - _EPOCH_DATE).days * datetimes.NANOS_PER_DAY, None
    below_micro = int(getattr(value, "nanosecond", 0))  # pandas.Timestamp is a datetime and has nanoseconds too
    epoch, offset = (_EPOCH, None) if value.tzinfo is None else (_EPOCH_UTC, 0)
    return (value - epoch) // _MICROSECOND * 1_000 + below_micro, offset


def _string(value: Any, _: IcebergType) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value


def _uuid(value: Any, _: IcebergType) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, (bytes, bytearray)):
        return UUID(bytes=bytes(value))
    if not isinstance(value, str):
        raise ValueError("expected a uuid.UUID, 16 bytes or text")
    return UUID(value)


def _binary(value: Any, kind: IcebergType) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ValueError("expected bytes")
    if isinstance(kind, FixedType) and len(value) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(value)}")
    return bytes(value)


_FROM_PYTHON: dict[type[IcebergType], Callable[[Any, Any], Any]] = {
    BooleanType: _boolean,
    IntegerType: _integer(INT_RANGE),
    LongType: _integer(LONG_RANGE),
    FloatType: _float,
    DoubleType: _double,
    DecimalType: _decimal,
    DateType: _date,
    TimeType: _time,
    TimestampType: _timestamp(1_000, zoned=False),
    TimestamptzType: _timestamp(1_000, zoned=True),
    TimestampNanoType: _timestamp(1, zoned=False),
    TimestamptzNanoType: _timestamp(1, zoned=True),
    StringType: _string,
    UUIDType: _uuid,
    FixedType: _binary,
    BinaryType: _binary,
    GeometryType: _binary,
    GeographyType: _binary,
}


def from_python(kind: IcebergType, value: Any) -> Any:
    """The stored value of a Python value.

    Text is read for every type but fixed and binary: ISO 8601 for dates and times, digits for numbers. For a column
    with time zone, a timestamp without zone is taken as UTC. Integers for dates and times are taken as stored. Numpy
    scalars and pandas timestamps are understood.

    Args:
        kind: the type of the column.
        value: a Python value, or None.

    Returns:
        The stored value; a struct as dict by field id, a map as list of (key, value) pairs.

    Raises:
        TypeMismatchError: the value does not fit the type exactly.
        NullValueError: a required nested field is null or missing.
        UnsupportedError: Python values of the type cannot be taken (variant).
    """
    if value is None:
        return None
    try:
        if isinstance(kind, StructType):
            return _struct(kind, value)
        if isinstance(kind, ListType):
            return [_child(kind.element_field.required, "element", kind.element_type, each) for each in list(value)]
        if isinstance(kind, MapType):
            pairs = value.items() if isinstance(value, Mapping) else value
            return [
                (
                    _child(True, "key", kind.key_type, key),
                    _child(kind.value_required, "value", kind.value_type, each),
                )
                for key, each in pairs
            ]
        convert = _FROM_PYTHON.get(type(kind))
        if convert is None:
            raise UnsupportedError(f"Cannot take {value!r} as {kind}: values of this type cannot be given in Python")
        return convert(_without_numpy(value), kind)
    except IcebergError:
        raise
    except (TypeError, ValueError, InvalidOperation, OverflowError, struct.error) as error:
        raise TypeMismatchError(f"{value!r} ({type(value).__name__}) is no value of type {kind}: {error}") from error


def _child(required: bool, name: str, kind: IcebergType, value: Any) -> Any:
    if value is None and required:
        raise NullValueError(f"Field {name!r} is required ({kind}), but its value is null")
    return from_python(kind, value)


def _struct(kind: StructType, value: Any) -> dict[int, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of field names to values")
    extra = sorted(str(name) for name in set(value) - {field.name for field in kind.fields})
    if extra:
        raise ValueError(f"the struct has no field {', '.join(map(repr, extra))}")
    return {
        field.field_id: _child(field.required, field.name, field.field_type, value.get(field.name))
        for field in kind.fields
    }


def _without_numpy(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "item"):
        return value
    return str(value) if dtype.kind == "M" else value.item()
