"""The place of a literal among the values of a column's type.

A literal need not be a value of the column's type: 2.5 lies between the ints 2 and 3, 3000000000 above all of them. A
`LiteralPlace` says so exactly, so that comparisons keep their meaning: `i > 2.5` is `i > 2`, `i = 2.5` is false.

Only floating point rounds: a literal becomes the nearest float or double, as in Java, so that `f = 0.1` finds the
float 0.1. A plain integer stands for the days of a date and for the microseconds of a time or timestamp (also of one in
nanoseconds). A time without zone is UTC if the column has one. Source for what converts to what: Iceberg Java's
literals, plus dates for timestamps, decimals for integers and numbers in strings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from hms_iceberg.expressions.literals import Literal, literal_from_text
from hms_iceberg.spec.data_types import (
    LOCAL_TIMESTAMPS,
    NANO_TIMESTAMPS,
    TIMESTAMPS,
    ZONED_TIMESTAMPS,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.datetimes import MICROS_PER_DAY, NANOS_PER_DAY, NANOS_PER_MICRO
from hms_iceberg.spec.values.decimals import decimal_value
from hms_iceberg.spec.values.floats import nearest_single
from hms_iceberg.spec.values.forms.form import INT_RANGE, LONG_RANGE

MAX_FLOAT = (2 - 2**-23) * 2.0**127
MAX_DOUBLE = math.ldexp(1 - 2**-53, 1024)

_NUMBERS = (LongType, FloatType, DoubleType, DecimalType)


@dataclass(frozen=True, slots=True)
class LiteralPlace:
    """A point in the order of a type's values: at `value` (side 0), between it and the next (1) or the one before (-1);
    beyond all values if it is None. `nan` equals itself and is above every other number."""

    value: Any
    side: int = 0
    nan: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether a value of the type is at this point."""
        return self.side == 0 and not self.nan


ABOVE_ALL = LiteralPlace(None, 1)
BELOW_ALL = LiteralPlace(None, -1)
NAN = LiteralPlace(None, 0, nan=True)


def place(value: Literal, kind: IcebergType) -> LiteralPlace:
    """The place of a literal among the values of a primitive type; ValueError if they do not compare."""
    if isinstance(value.type, StringType) and not isinstance(kind, StringType):
        value = literal_from_text(value.value, kind)
    converter = _CONVERTERS.get(type(kind))
    result = converter(value, kind) if converter is not None else None
    if result is None:
        raise ValueError(_why_not(value, kind))
    return result


def _why_not(value: Literal, kind: IcebergType) -> str:
    if isinstance(kind, StringType):
        return f"expected a string, got {value} ({value.type}); write it in single quotes"
    if isinstance(kind, LOCAL_TIMESTAMPS) and isinstance(value.type, ZONED_TIMESTAMPS):
        return f"expected a timestamp without zone, got {value}; leave the zone out"
    return f"expected a value that compares with {kind}, got {value} ({value.type})"


@lru_cache(maxsize=64)
def value_range(kind: IcebergType) -> tuple[Any, Any]:
    """The smallest and the largest stored value of a type; None if there is none. Floating-point types have neither,
    because of infinities and NaN."""
    if isinstance(kind, TimeType):
        return 0, MICROS_PER_DAY - 1
    if isinstance(kind, PrimitiveType) and kind.integer_bits:
        return INT_RANGE if kind.integer_bits == 32 else LONG_RANGE
    if isinstance(kind, DecimalType):
        largest = 10**kind.precision - 1
        return decimal_value(-largest, kind.scale), decimal_value(largest, kind.scale)
    if isinstance(kind, BooleanType):
        return False, True
    if isinstance(kind, FixedType):
        return bytes(kind.length), b"\xff" * kind.length
    if isinstance(kind, UUIDType):
        return None, None
    if isinstance(kind, StringType):
        return "", None
    return (b"" if isinstance(kind, BinaryType) else None), None


def integer_place(value: int, remainder: bool, kind: IcebergType) -> LiteralPlace:
    """The place of an integer in a type stored as integers; `remainder` says that the literal is a little above it."""
    low, high = value_range(kind)
    if value > high or (value == high and remainder):
        return ABOVE_ALL
    if value < low:
        return BELOW_ALL
    return LiteralPlace(value, 1 if remainder else 0)


# ------------------------------------------------------------------------------------------------ converters


def _to_integer(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    number = value.value
    if not isinstance(value.type, _NUMBERS):
        return None
    if isinstance(number, float):
        if not math.isfinite(number):
            return BELOW_ALL if number == -math.inf else ABOVE_ALL
        number = Decimal(number)
    whole = math.floor(number)
    return integer_place(whole, whole != number, kind)


def _to_floating(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    if not isinstance(value.type, _NUMBERS):
        return None
    largest = MAX_FLOAT if isinstance(kind, FloatType) else MAX_DOUBLE
    number = value.value
    if isinstance(number, float) and not math.isfinite(number):
        return NAN if math.isnan(number) else LiteralPlace(number)
    if abs(number) > largest:
        return LiteralPlace(largest, 1) if number > 0 else LiteralPlace(-largest, -1)
    result = float(number)
    if isinstance(kind, FloatType):
        result = nearest_single(result)
    return LiteralPlace(result + 0.0)  # -0.0 + 0.0 is 0.0


def _to_decimal(value: Literal, kind: DecimalType) -> LiteralPlace | None:
    if not isinstance(value.type, _NUMBERS):
        return None
    number = value.value
    if isinstance(number, float):
        if not math.isfinite(number):
            return BELOW_ALL if number == -math.inf else ABOVE_ALL
        number = Decimal(repr(number))
    unscaled, remainder = _floor_unscaled(Decimal(number), kind.scale)
    largest = 10**kind.precision - 1
    if unscaled > largest or (unscaled == largest and remainder):
        return ABOVE_ALL
    if unscaled < -largest:
        return BELOW_ALL
    return LiteralPlace(decimal_value(unscaled, kind.scale), 1 if remainder else 0)


def _floor_unscaled(number: Decimal, scale: int) -> tuple[int, bool]:
    """The greatest integer u with u / 10**scale <= number, and whether they differ."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    coefficient = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = exponent + scale
    if shift >= 0:
        return coefficient * 10**shift, False
    whole, rest = divmod(coefficient, 10**-shift)
    return whole, rest != 0


def _to_date(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    if isinstance(value.type, (DateType, LongType)):
        return integer_place(value.value, False, kind)
    if isinstance(value.type, TIMESTAMPS):
        days, rest = divmod(value.value, NANOS_PER_DAY if isinstance(value.type, NANO_TIMESTAMPS) else MICROS_PER_DAY)
        return integer_place(days, rest != 0, kind)
    return None


def _to_time(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    if isinstance(value.type, (TimeType, LongType)):
        return integer_place(value.value, False, kind)
    return None


def _to_timestamp(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    nanos = isinstance(kind, NANO_TIMESTAMPS)
    if isinstance(value.type, DateType):
        return integer_place(value.value * (NANOS_PER_DAY if nanos else MICROS_PER_DAY), False, kind)
    if isinstance(value.type, ZONED_TIMESTAMPS) and isinstance(kind, LOCAL_TIMESTAMPS):
        return None
    if isinstance(value.type, NANO_TIMESTAMPS):
        if nanos:
            return integer_place(value.value, False, kind)
        micros, rest = divmod(value.value, NANOS_PER_MICRO)
        return integer_place(micros, rest != 0, kind)
    if isinstance(value.type, (LongType, *TIMESTAMPS)):
        return integer_place(value.value * (NANOS_PER_MICRO if nanos else 1), False, kind)
    return None


def _to_boolean(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    return LiteralPlace(value.value) if isinstance(value.type, BooleanType) else None


def _to_string(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    return LiteralPlace(value.value) if isinstance(value.type, StringType) else None


def _to_uuid(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    if isinstance(value.type, UUIDType):
        return LiteralPlace(value.value)
    if isinstance(value.type, BinaryType) and len(value.value) == 16:
        return LiteralPlace(UUID(bytes=value.value))
    return None


def _to_binary(value: Literal, kind: IcebergType) -> LiteralPlace | None:
    return LiteralPlace(value.value) if isinstance(value.type, BinaryType) else None


def _to_fixed(value: Literal, kind: FixedType) -> LiteralPlace | None:
    if not isinstance(value.type, BinaryType):
        return None
    data, length = value.value, kind.length
    if len(data) > length:
        return LiteralPlace(data[:length], 1)
    if len(data) < length:
        return LiteralPlace(data + bytes(length - len(data)), -1)
    return LiteralPlace(data)


_CONVERTERS: dict[type[IcebergType], Callable[[Literal, Any], LiteralPlace | None]] = {
    BooleanType: _to_boolean,
    IntegerType: _to_integer,
    LongType: _to_integer,
    FloatType: _to_floating,
    DoubleType: _to_floating,
    DecimalType: _to_decimal,
    DateType: _to_date,
    TimeType: _to_time,
    TimestampType: _to_timestamp,
    TimestamptzType: _to_timestamp,
    TimestampNanoType: _to_timestamp,
    TimestamptzNanoType: _to_timestamp,
    StringType: _to_string,
    UUIDType: _to_uuid,
    BinaryType: _to_binary,
    FixedType: _to_fixed,
}
