"""Literals from text: `date'2024-01-01'`, and strings that meet a column of another type.

Source: Iceberg specification, "JSON single-value serialization", and Spark's typed literals.
"""

from __future__ import annotations

import re
from decimal import Decimal
from uuid import UUID

from hms_iceberg.expressions.literals import Literal, literal
from hms_iceberg.spec.data_types import (
    LOCAL_TIMESTAMPS,
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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.datetimes import parse_date, parse_time, parse_timestamp

MAX_DIGITS = 400  # more than any number column holds; a bound on the work that a hostile exponent can cause

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SHORT_DATE = re.compile(r"([+-]?\d{4,})-(\d{1,2})-(\d{1,2})(?!\d)")
_FINE_FRACTION = re.compile(r"\.\d{7,9}(?!\d)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SPECIAL_FLOATS = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}


def literal_from_text(text: str, kind: IcebergType) -> Literal:
    """The value of a type that a text stands for.

    The literal may be of a finer type than asked for: a timestamp for a date, nanoseconds for microseconds, a decimal
    for an integer. Texts without a zone are UTC where a point in time is expected.

    Raises:
        ValueError: the text is no such value; the message says what was expected.
    """
    for kinds, read in _READERS:
        if isinstance(kind, kinds):
            return read(text, kind)
    raise ValueError(f"a string cannot be compared with {kind}")


def number_from_text(text: str) -> Decimal:
    """The exact number that a text is.

    Raises:
        ValueError: it is no number, or one with hundreds of digits.
    """
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


def _time(text: str, kind: IcebergType) -> Literal:
    return Literal(parse_time(text), TimeType())


def _timestamp(text: str, kind: IcebergType) -> Literal:
    return timestamp_from_text(text, zone=isinstance(kind, ZONED_TIMESTAMPS))


def timestamp_from_text(text: str, zone: bool | None) -> Literal:
    """The literal of a timestamp's text; more than six digits of fraction make it one in nanoseconds.

    Args:
        text: such as "2024-01-01", "2024-01-01 10:30:00.5" or "2024-01-01T10:30:00+01:00".
        zone: True for a point in time (UTC if the text has no zone), False for a timestamp without zone, None for
            what the text says.

    Raises:
        ValueError: it is no timestamp, or has a zone where none can be.
    """
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
    (TimeType, _time),
    ((*LOCAL_TIMESTAMPS, *ZONED_TIMESTAMPS), _timestamp),
    (StringType, _string),
    (UUIDType, _uuid),
    ((BinaryType, FixedType), _bytes),
)
