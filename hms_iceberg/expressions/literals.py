"""Literals: a stored value together with the type it was written in.

`1`, `1.0`, `true` and `date'1970-01-02'` are four different literals, although Python calls some of them equal. What
type a literal becomes is decided when it meets a column, in `binding`.
"""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import (
    MAX_DECIMAL_PRECISION,
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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.datetimes import format_date, format_time, format_timestamp, format_timestamp_nanos

# Far more than any column holds; bounds the work that one literal can cause.
MAX_EXPONENT = 1000

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in its stored form and the type that the text or the Python object had.

    Args:
        value: the stored value (a date is the days since 1970-01-01, and so on); never None.
        type: boolean, long, float, double, decimal, date, time, one of the timestamps, string, uuid or binary.
    """

    value: Any
    type: IcebergType

    def __class_getitem__(cls, types: Any) -> builtins.type[Literal]:
        """The class itself: annotations such as PyIceberg's `Literal[int]` mean nothing more."""
        return cls

    def __str__(self) -> str:
        return literal_sql(self)

    @property
    def is_nan(self) -> bool:
        """True for the floating-point NaN."""
        return isinstance(self.value, float) and math.isnan(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        same_value = self.value == other.value or (self.is_nan and other.is_nan)
        return self.type == other.type and same_value

    def __hash__(self) -> int:
        return hash((self.type, "NaN" if self.is_nan else self.value))


def literal(value: Any) -> Literal:
    """The literal of a Python object.

    Args:
        value: bool, int, float, Decimal, str, bytes, UUID, date, time, datetime (with a zone: a point in time),
            a numpy scalar, or a `Literal`.

    Raises:
        TypeMismatchError: None (use IsNull), or an object that no Iceberg type holds.
    """
    if isinstance(value, Literal):
        return value
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None:
        raise TypeMismatchError(
            "A null cannot be compared with: the result would always be unknown; use IsNull or NotNull "
            '("is null", "is not null" in a filter string)'
        )
    for kind, make in _MAKERS:
        if isinstance(value, kind):
            return make(value)
    raise TypeMismatchError(
        f"Cannot make a literal of {value!r} ({type(value).__name__}): expected bool, int, float, Decimal, str, bytes, "
        "UUID, date, time or datetime"
    )


def stored_literal(value: Any, kind: IcebergType) -> Literal:
    """The literal of a stored value of a column's type.

    Args:
        value: a stored value, not None.
        kind: the primitive type that it is stored in.
    """
    if isinstance(kind, IntegerType):
        return Literal(value, LongType())
    if isinstance(kind, DecimalType):
        return _decimal(value)
    if isinstance(kind, FixedType):
        return Literal(value, BinaryType())
    return Literal(value, kind)


def _text(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TypeMismatchError(
            f"Cannot make a literal of {value!r}: character {error.start + 1} is half of a surrogate pair, which no "
            f"text in UTF-8 holds"
        ) from error
    return str(value)


def _decimal(value: Decimal) -> Literal:
    if not value.is_finite():
        return Literal(float(value), DoubleType())
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if abs(exponent) > MAX_EXPONENT:
        raise TypeMismatchError(f"Cannot make a literal of {value!r}: its exponent is beyond {MAX_EXPONENT}")
    if exponent > 0:
        value = Decimal(int(value))
        digits, exponent = value.as_tuple().digits, 0
    scale = min(-exponent, MAX_DECIMAL_PRECISION)
    precision = min(max(len(digits), scale, 1), MAX_DECIMAL_PRECISION)
    return Literal(value, DecimalType(precision, scale))


def _datetime(value: datetime) -> Literal:
    zoned = value.tzinfo is not None
    micros = (value - (_EPOCH_UTC if zoned else _EPOCH)) // timedelta(microseconds=1)
    nanosecond = getattr(value, "nanosecond", 0)  # pandas' Timestamp is a datetime with more digits
    if nanosecond:
        return Literal(micros * 1000 + nanosecond, TimestamptzNanoType() if zoned else TimestampNanoType())
    return Literal(micros, TimestamptzType() if zoned else TimestampType())


def _time(value: time) -> Literal:
    if value.tzinfo is not None:
        raise TypeMismatchError(f"Cannot make a literal of {value!r}: a time of day has no zone; remove its tzinfo")
    micros = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return Literal(micros // timedelta(microseconds=1), TimeType())


# bool comes before int and datetime before date: the first is a kind of the second in Python.
_MAKERS: tuple[tuple[Any, Any], ...] = (
    (bool, lambda value: Literal(value, BooleanType())),
    (int, lambda value: Literal(int(value), LongType())),
    (float, lambda value: Literal(float(value), DoubleType())),
    (Decimal, _decimal),
    (str, lambda value: Literal(_text(value), StringType())),
    ((bytes, bytearray, memoryview), lambda value: Literal(bytes(value), BinaryType())),
    (UUID, lambda value: Literal(value, UUIDType())),
    (datetime, _datetime),
    (date, lambda value: Literal((value - _EPOCH_DAY).days, DateType())),
    (time, _time),
)


def literal_sql(value: Literal) -> str:
    """The literal as text that the parser reads back as an equal literal."""
    return _SQL[type(value.type)](value.value)


def _float_sql(value: float, name: str, suffix: str) -> str:
    if math.isfinite(value):
        return f"{value!r}{suffix}"
    return f"{name}('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}')"


def _decimal_sql(value: Decimal) -> str:
    text = format(value, "f")
    return text if "." in text else text + "BD"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_SQL: dict[type[IcebergType], Any] = {
    BooleanType: lambda value: "true" if value else "false",
    LongType: str,
    FloatType: lambda value: _float_sql(value, "float", "F"),
    DoubleType: lambda value: _float_sql(value, "double", "D"),
    DecimalType: _decimal_sql,
    DateType: lambda value: f"date'{format_date(value)}'",
    TimeType: lambda value: f"time'{format_time(value)}'",
    TimestampType: lambda value: f"timestamp'{format_timestamp(value)}'",
    TimestamptzType: lambda value: f"timestamp'{format_timestamp(value, utc=True)}'",
    TimestampNanoType: lambda value: f"timestamp'{format_timestamp_nanos(value)}'",
    TimestamptzNanoType: lambda value: f"timestamp'{format_timestamp_nanos(value, utc=True)}'",
    StringType: _quoted,
    UUIDType: lambda value: f"uuid'{value}'",
    BinaryType: lambda value: f"X'{value.hex().upper()}'",
}
