"""The parts of a test: its operator and its literals.

A literal is a stored value with the type it was written in. `1`, `1.0`, `true` and `date'1970-01-02'` are different
literals, although Python calls some of them equal. What type a literal becomes is decided when it meets a column, in
`binding`. Source for text: Iceberg specification, "JSON single-value serialization", and Spark's typed literals.
"""

from __future__ import annotations

import builtins
import math
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import (
    LOCAL_TIMESTAMPS,
    MAX_DECIMAL_PRECISION,
    ZONED_TIMESTAMPS,
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
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.datetimes import (
    format_date,
    format_time,
    format_timestamp,
    format_timestamp_nanos,
    parse_date,
    parse_time,
    parse_timestamp,
)
from hms_iceberg.spec.values.floats import java_text
from hms_iceberg.spec.values.shapes import Box
from hms_iceberg.spec.values.single_values import is_null


class Operator(Enum):
    """The operation of a predicate; its value is its spelling in a filter string."""

    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"
    LT = "<"
    LT_EQ = "<="
    GT = ">"
    GT_EQ = ">="
    EQ = "="
    NOT_EQ = "!="
    STARTS_WITH = "like"
    NOT_STARTS_WITH = "not like"
    INTERSECTS_BOX = "intersects_box"
    NOT_INTERSECTS_BOX = "not intersects_box"
    IN = "in"
    NOT_IN = "not in"

    @property
    def negated(self) -> Operator:
        """The operation that is true if this one is false."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Operator:
        """The comparison with its sides exchanged: `5 < a` is `a > 5`."""
        return _FLIPPED[self]


_PAIRS = (
    (Operator.IS_NULL, Operator.NOT_NULL),
    (Operator.IS_NAN, Operator.NOT_NAN),
    (Operator.LT, Operator.GT_EQ),
    (Operator.LT_EQ, Operator.GT),
    (Operator.EQ, Operator.NOT_EQ),
    (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH),
    (Operator.IN, Operator.NOT_IN),
    (Operator.INTERSECTS_BOX, Operator.NOT_INTERSECTS_BOX),
)
_NEGATED = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LT_EQ: Operator.GT_EQ,
    Operator.GT: Operator.LT,
    Operator.GT_EQ: Operator.LT_EQ,
    Operator.EQ: Operator.EQ,
    Operator.NOT_EQ: Operator.NOT_EQ,
}


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
        type: boolean, long, float, double, decimal, date, time, one of the timestamps, string, uuid or binary; geometry
            for a box.
    """

    value: Any
    type: IcebergType

    def __class_getitem__(cls, types: Any) -> builtins.type[Literal]:
        """The class itself, so that annotations such as PyIceberg's `Literal[int]` work."""
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
    """The literal of a Python object: bool, int, float, Decimal, str, bytes, UUID, date, time, datetime (with a zone: a
    point in time), a numpy scalar, or a `Literal`; None is refused."""
    if isinstance(value, Literal):
        return value
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if is_null(value):
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
    """The literal of a stored value, not None, of a primitive type."""
    if isinstance(kind, IntegerType):
        return Literal(value, LongType())
    if isinstance(kind, DecimalType):
        return _decimal(value)
    if isinstance(kind, FixedType):
        return Literal(value, BinaryType())
    if isinstance(kind, (GeometryType, GeographyType)):
        return Literal(value, GeometryType())
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
    (Box, lambda value: Literal(value, GeometryType())),
)


def literal_sql(value: Literal) -> str:
    """The literal as text that the parser reads back as an equal literal."""
    return _SQL[type(value.type)](value.value)


def _float_sql(value: float, name: str, suffix: str) -> str:
    if math.isfinite(value):
        return f"{value!r}{suffix}"
    return f"{name}('{java_text(value, single=False)}')"


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
    GeometryType: lambda value: ", ".join(_float_sql(each, "double", "D") for each in value.edges),
}


MAX_DIGITS = 400  # more than any number column holds; a bound on the work that a hostile exponent can cause

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SHORT_DATE = re.compile(r"([+-]?\d{4,})-(\d{1,2})-(\d{1,2})(?!\d)")
_FINE_FRACTION = re.compile(r"\.\d{7,9}(?!\d)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SPECIAL_FLOATS = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}


def literal_from_text(text: str, kind: IcebergType) -> Literal:
    """The value of a type that a text stands for, perhaps of a finer type (a timestamp for a date); texts without a
    zone are UTC where a point in time is expected. ValueError says what was expected."""
    for kinds, read in _READERS:
        if isinstance(kind, kinds):
            return read(text, kind)
    raise ValueError(f"a string cannot be compared with {kind}")


def number_from_text(text: str) -> Decimal:
    """The exact number that a text is; one with hundreds of digits is refused."""
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a number")
    value = Decimal(text.strip())
    if abs(value.adjusted()) > MAX_DIGITS and value:
        raise ValueError(f"{text!r} has more than {MAX_DIGITS} digits")
    return value


def _number(text: str, kind: IcebergType) -> Literal:
    value = number_from_text(text)
    if isinstance(kind, (IntegerType, LongType)) and value == value.to_integral_value():
        return literal(int(value))
    return literal(value)


def _float(text: str, kind: IcebergType) -> Literal:
    special = _SPECIAL_FLOATS.get(text.strip().lower().lstrip("+"))
    return Literal(float(special if special is not None else number_from_text(text)), DoubleType())


def _boolean(text: str, kind: IcebergType) -> Literal:
    value = {"true": True, "false": False}.get(text.strip().lower())
    if value is None:
        raise ValueError(f"{text!r} is not a boolean; expected 'true' or 'false'")
    return literal(value)


def _date(text: str, kind: IcebergType) -> Literal:
    padded = _padded(text)
    if ":" not in padded:
        return Literal(parse_date(padded), DateType())
    return timestamp_from_text(padded, zone=False)


def _time_of_day(text: str, kind: IcebergType) -> Literal:
    return Literal(parse_time(text), TimeType())


def _timestamp(text: str, kind: IcebergType) -> Literal:
    return timestamp_from_text(text, zone=isinstance(kind, ZONED_TIMESTAMPS))


def timestamp_from_text(text: str, zone: bool | None) -> Literal:
    """Reads a timestamp's text in microseconds, or nanoseconds if it has more than six digits of fraction; `zone` is
    True for a point in time, False for none, None for what the text says."""
    padded = re.sub(r"\s*(UTC|GMT)$", "Z", _padded(text), flags=re.IGNORECASE)
    nanos, offset = parse_timestamp(padded)
    if zone is False and offset is not None:
        raise ValueError(f"{text!r} has a zone, but the value it is for has none; leave the zone out")
    zoned = offset is not None if zone is None else zone
    nanos -= (offset or 0) * 1_000_000_000
    if _FINE_FRACTION.search(padded):
        return Literal(nanos, TimestamptzNanoType() if zoned else TimestampNanoType())
    return Literal(nanos // 1000, TimestamptzType() if zoned else TimestampType())


def _padded(text: str) -> str:
    """`2024-1-3` with the zeros that ISO wants."""
    return _SHORT_DATE.sub(lambda match: f"{match[1]}-{match[2]:0>2}-{match[3]:0>2}", text.strip(), count=1)


def _string(text: str, kind: IcebergType) -> Literal:
    return literal(text)


def _uuid(text: str, kind: IcebergType) -> Literal:
    if not _UUID.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a UUID; expected for example 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")
    return Literal(UUID(text.strip()), UUIDType())


def _bytes(text: str, kind: IcebergType) -> Literal:
    raise ValueError(f"a string cannot be compared with {kind}; write bytes as X'0AFF'")


_READERS = (
    ((IntegerType, LongType, DecimalType), _number),
    ((FloatType, DoubleType), _float),
    (BooleanType, _boolean),
    (DateType, _date),
    (TimeType, _time_of_day),
    ((*LOCAL_TIMESTAMPS, *ZONED_TIMESTAMPS), _timestamp),
    (StringType, _string),
    (UUIDType, _uuid),
    ((BinaryType, FixedType), _bytes),
)
