"""One value of type variant, as Python values and JSON.

Source: Apache Parquet, "Variant Binary Encoding". The text of JSON is that of
Spark's ``to_json`` but for exponents, which it writes as 1.0E300.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.values.datetimes import (
    MICROS_PER_DAY,
    format_date,
    format_time,
    format_timestamp,
    format_timestamp_nanos,
)
from hms_iceberg.spec.values.decimals import DECIMAL_CONTEXT, decimal_value
from hms_iceberg.spec.values.floats import java_text, shortest_single
from hms_iceberg.spec.variant.layout import (
    ARRAY,
    OBJECT,
    SHORT_STRING,
    SIZES,
    Kind,
    container_of,
    end_of,
    kind_of,
    name_at,
    names_of,
    unsigned,
)

_Leaf = Callable[[Kind, bytes], Any]
_Nested = Callable[[Any], Any]

_EPOCH = dt.datetime(1970, 1, 1)
_LEAST_DAY, _MOST_DAY = (day.toordinal() - _EPOCH.toordinal() for day in (dt.date.min, dt.date.max))
_INTEGERS = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)
_DECIMALS = (Kind.DECIMAL4, Kind.DECIMAL8, Kind.DECIMAL16)
_ZONED = (Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ_NS)
_NANOS = (Kind.TIMESTAMPTZ_NS, Kind.TIMESTAMP_NS)


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of type variant.

    Args:
        metadata: the names of its fields, in their binary form.
        value: the value, in its binary form.
    """

    metadata: bytes
    value: bytes

    def to_python(self) -> Any:
        """The value: None, bool, int, float, Decimal, str, bytes, date, time, datetime, UUID, list or dict.

        Times with nanoseconds are `numpy.datetime64`, in UTC if the type has a zone; so are dates and times of years
        that Python's datetime does not reach.

        Raises:
            InvalidInputError: the bytes are damaged, or of a type that is not known.
        """
        return self._read(_to_python, _same)

    def to_json(self) -> str:
        """The value as JSON.

        Binary values are text in base64, dates, times and UUIDs text as well; NaN and the infinities, which JSON lacks,
        are text too.

        Raises:
            InvalidInputError: the bytes are damaged, or of a type that is not known.
        """
        return str(self._read(_to_json, _joined))

    def _read(self, leaf: _Leaf, nested: _Nested) -> Any:
        try:
            return _read(self.value, 0, names_of(self.metadata), leaf, nested)
        except (ValueError, OverflowError, RecursionError) as error:
            raise InvalidInputError(f"Cannot read a variant of {len(self.value):,} bytes: {error}.") from error

    def __str__(self) -> str:
        return self.to_json()


def _read(value: bytes, at: int, names: Sequence[str], leaf: _Leaf, nested: _Nested) -> Any:
    first = unsigned(value, at, 1)
    if first & 3 in (OBJECT, ARRAY):
        ids, starts, _, _ = container_of(value, at)
        below = [_read(value, start, names, leaf, nested) for start in starts]
        if first & 3 == ARRAY:
            return nested(below)
        return nested({name_at(names, each): field for each, field in zip(ids, below, strict=True)})
    end = end_of(value, at)
    if first & 3 == SHORT_STRING:
        return leaf(Kind.STRING, value[at + 1 : end])
    kind = kind_of(first)
    return leaf(kind, value[at + 1 + (0 if kind in SIZES else 4) : end])


# ------------------------------------------------------------------------------------------------ Python values


def _same(below: Any) -> Any:
    return below


def _to_python(kind: Kind, data: bytes) -> Any:
    if kind in (Kind.NULL, Kind.TRUE, Kind.FALSE):
        return None if kind == Kind.NULL else kind == Kind.TRUE
    if kind == Kind.STRING:
        return data.decode()
    if kind == Kind.UUID:
        return UUID(bytes=data)
    if kind in _DECIMALS:
        return decimal_value(int.from_bytes(data[1:], "little", signed=True), data[0])
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return struct.unpack("<f" if kind == Kind.FLOAT else "<d", data)[0]
    if kind == Kind.BINARY:
        return data
    number = int.from_bytes(data, "little", signed=True)
    return number if kind in _INTEGERS else _time(kind, number)


def _time(kind: Kind, number: int) -> Any:
    if kind == Kind.TIME:
        return (_EPOCH + dt.timedelta(microseconds=_of_a_day(number))).time()
    days = number if kind == Kind.DATE else number // MICROS_PER_DAY
    if kind in _NANOS or not _LEAST_DAY <= days <= _MOST_DAY:
        import numpy as np  # only for what Python's own types cannot hold

        if kind == Kind.DATE:
            return np.int64(number).view("datetime64[D]")
        return np.int64(number).view("datetime64[ns]" if kind in _NANOS else "datetime64[us]")
    if kind == Kind.DATE:
        return (_EPOCH + dt.timedelta(days=number)).date()
    at = _EPOCH + dt.timedelta(microseconds=number)
    return at.replace(tzinfo=dt.timezone.utc) if kind in _ZONED else at


def _of_a_day(micros: int) -> int:
    if not 0 <= micros < MICROS_PER_DAY:
        raise ValueError(f"{micros} microseconds are no time of day")
    return micros


# ------------------------------------------------------------------------------------------------ JSON


def _joined(below: dict[str, str] | list[str]) -> str:
    if isinstance(below, dict):
        return "{" + ",".join(f"{_text(name)}:{value}" for name, value in below.items()) + "}"
    return "[" + ",".join(below) + "]"


def _to_json(kind: Kind, data: bytes) -> str:
    if kind == Kind.BINARY:
        return _text(base64.b64encode(data).decode())
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        number = _to_python(kind, data)
        if not math.isfinite(number):
            return _text(java_text(number, single=False))
        return repr(shortest_single(number) if kind == Kind.FLOAT else number)
    if kind in (Kind.NULL, Kind.TRUE, Kind.FALSE, Kind.STRING, *_INTEGERS):
        return _text(_to_python(kind, data))
    if kind in _DECIMALS:
        return f"{_to_python(kind, data).normalize(DECIMAL_CONTEXT):f}"
    if kind == Kind.UUID:
        return _text(str(UUID(bytes=data)))
    number = int.from_bytes(data, "little", signed=True)
    if kind == Kind.DATE:
        return _text(format_date(number))
    if kind == Kind.TIME:
        return _text(format_time(_of_a_day(number)))
    write = format_timestamp_nanos if kind in _NANOS else format_timestamp
    text, zone = write(number), "+00:00" if kind in _ZONED else ""
    return _text(text.replace("T", " ").rstrip("0").rstrip(".") + zone)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
