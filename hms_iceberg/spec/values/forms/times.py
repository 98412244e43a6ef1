"""Values of date, time and the timestamps.

Source: Iceberg specification, Appendices A (Avro), B (hashes) and D (bytes, JSON), and "Schema Evolution" for values
written before a column was promoted.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from hms_iceberg.spec.data_types import (
    DateType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)
from hms_iceberg.spec.values import datetimes
from hms_iceberg.spec.values.forms.form import (
    INT_RANGE,
    LONG_RANGE,
    ValueForms,
    check_integer,
    parsed_text,
)
from hms_iceberg.spec.values.forms.numbers import INT, LONG, hash_long, number_reader, number_writer

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.timezone.utc)
_EPOCH_DATE = _EPOCH.date()
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY_RANGE = (0, datetimes.MICROS_PER_DAY - 1)


def _timestamp_from_json(value: Any, nanos_per_unit: int, zoned: bool) -> int:
    nanos, offset = datetimes.parse_timestamp(parsed_text(value))
    if zoned and offset != 0:
        raise ValueError("the zone offset must be +00:00")
    if not zoned and offset is not None:
        raise ValueError("there must be no zone offset")
    count, rest = divmod(nanos, nanos_per_unit)
    if rest:
        raise ValueError("it is finer than microseconds")
    return check_integer(count, LONG_RANGE)


def _date(_: IcebergType, value: Any) -> int:
    if isinstance(value, str):
        return check_integer(datetimes.parse_date(value), INT_RANGE)
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time():
            raise ValueError("it has a time of day or a zone; expected a date")
        return (value.date() - _EPOCH_DATE).days
    if isinstance(value, dt.date):
        return (value - _EPOCH_DATE).days
    return check_integer(value, INT_RANGE)


def _time(_: IcebergType, value: Any) -> int:
    if isinstance(value, str):
        return datetimes.parse_time(value)
    if isinstance(value, dt.time):
        if value.tzinfo is not None:
            raise ValueError("it has a zone; times of day have none")
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return check_integer(value, (0, datetimes.MICROS_PER_DAY - 1))


def _timestamp(unit: int, zoned: bool) -> Callable[[IcebergType, Any], int]:
    """A converter to counts of `unit` nanoseconds."""

    def convert(_: IcebergType, value: Any) -> int:
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


def _shortest(text: str, end: str = "") -> str:
    """Text without zeros at the end of the fraction: Java's digits, of which it makes the hash of encrypted tables."""
    return text.rstrip("0").removesuffix(".") + end


def _short_clock(text: str) -> str:
    """Text without trailing groups of three zeros in the fraction and without seconds of zero, as Java has it."""
    while "." in text and text.endswith("000"):
        text = text[:-3].removesuffix(".")
    return text[:-3] if len(text) == 8 and text.endswith(":00") else text


_DATE = ValueForms(
    to_bytes=number_writer(INT),
    from_bytes=number_reader(INT),
    to_json=lambda _, value: datetimes.format_date(check_integer(value, INT_RANGE)),
    from_json=lambda _, value: check_integer(datetimes.parse_date(parsed_text(value)), INT_RANGE),
    from_python=_date,
    text=lambda _, value: datetimes.format_date(value),
    hash=hash_long,
    avro={"type": "int", "logicalType": "date"},
)
_TIME = ValueForms(
    to_bytes=number_writer(LONG),
    from_bytes=number_reader(LONG),
    to_json=lambda _, value: _shortest(datetimes.format_time(check_integer(value, _DAY_RANGE))),
    from_json=lambda _, value: datetimes.parse_time(parsed_text(value)),
    from_python=_time,
    text=lambda _, value: _short_clock(datetimes.format_time(value)),
    hash=hash_long,
    avro={"type": "long", "logicalType": "time-micros"},
)


def timestamp_forms(unit: int, name: str, zoned: bool) -> ValueForms:
    """The forms of a timestamp that counts `unit` nanoseconds; `name` is Avro's ("micros")."""

    def to_json(_: IcebergType, value: Any) -> str:
        nanos = check_integer(value, LONG_RANGE) * unit
        return _shortest(datetimes.format_timestamp_nanos(nanos), "+00:00" if zoned else "")

    return ValueForms(
        to_bytes=number_writer(LONG),
        from_bytes=number_reader(LONG, None if zoned else (INT, datetimes.NANOS_PER_DAY // unit)),
        to_json=to_json,
        from_json=lambda _, value: _timestamp_from_json(value, unit, zoned),
        from_python=_timestamp(unit, zoned),
        text=to_json,
        hash=lambda kind, value: hash_long(kind, value * unit // datetimes.NANOS_PER_MICRO),
        avro={"type": "long", "logicalType": f"timestamp-{name}", "adjust-to-utc": zoned},
    )


_TIMESTAMP = timestamp_forms(1_000, "micros", zoned=False)
_TIMESTAMPTZ = timestamp_forms(1_000, "micros", zoned=True)
_TIMESTAMP_NANO = timestamp_forms(1, "nanos", zoned=False)
_TIMESTAMPTZ_NANO = timestamp_forms(1, "nanos", zoned=True)
FORMS: Mapping[type[IcebergType], ValueForms] = {
    DateType: _DATE,
    TimeType: _TIME,
    TimestampType: _TIMESTAMP,
    TimestamptzType: _TIMESTAMPTZ,
    TimestampNanoType: _TIMESTAMP_NANO,
    TimestamptzNanoType: _TIMESTAMPTZ_NANO,
}
