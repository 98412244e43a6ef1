"""Values within variants, cast to a column's type as Spark's ``try_variant_get`` casts them in the time zone UTC.

| value                | casts                                                                                  |
|----------------------|----------------------------------------------------------------------------------------|
| integer, decimal     | boolean; numbers (fractions cut off, decimals rounded half up), text, points in time    |
| float, double        | the same; NaN and what does not fit is null                                             |
| boolean              | 0 and 1, text                                                                           |
| text                 | numbers, words for booleans, bytes; ISO's dates and times                               |
| date, times          | one another; a point in time is a number of seconds; text                               |
| bytes                | text                                                                                    |
| object, array        | text in JSON                                                                            |

Everything else, and a variant's null, is null. Source: Apache Spark, ``VariantGet`` and ``Cast`` in ANSI mode.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from uuid import UUID

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.values.datetimes import MICROS_PER_DAY, format_date, format_timestamp, parse_date, parse_timestamp
from hms_iceberg.spec.values.decimals import decimal_value
from hms_iceberg.spec.values.floats import java_text, nearest_single
from hms_iceberg.spec.variant.layout import (
    ARRAY,
    OBJECT,
    SHORT_STRING,
    SIZES,
    Kind,
    container_of,
    end_of,
    kind_of,
    names_of,
    unsigned,
)
from hms_iceberg.spec.variant.paths import Path
from hms_iceberg.spec.variant.variant import Variant

INTEGERS = frozenset((Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64))
DECIMALS = frozenset((Kind.DECIMAL4, Kind.DECIMAL8, Kind.DECIMAL16))
FLOATS = frozenset((Kind.FLOAT, Kind.DOUBLE))
BOOLEANS = frozenset((Kind.TRUE, Kind.FALSE))

Cast = Callable[[Kind, Any], Any]

_NUMBERS = INTEGERS | DECIMALS | FLOATS | BOOLEANS
_BLANKS = "".join(map(chr, range(33))) + "\x7f"
_JAVA_BLANKS = "".join(map(chr, range(33)))
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_EXACT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")  # of any script, as Java's BigDecimal
_SPECIAL = {"nan": "nan"} | {
    sign + word: sign + "inf" for sign in ("", "+", "-") for word in ("inf", "infinity")
}  # in any case
_WORDS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(("f", "false", "n", "no", "0"), False)
_EXACTLY = Context(prec=1000, rounding=ROUND_HALF_UP)
_MOST_EXPONENT = 400


def extractor(path: Path, kind: IcebergType) -> Callable[[bytes, bytes], Any]:
    """A function from a variant's metadata and value to the stored value of `kind` at a path, None without one."""
    cast = caster(kind)

    def extract(metadata: bytes, value: bytes) -> Any:
        try:
            at = _place(metadata, value, path)
            if at is None:
                return None
            if value[at] & 3 in (OBJECT, ARRAY):
                is_text = isinstance(kind, StringType)
                return Variant(metadata, value[at : end_of(value, at)]).to_json() if is_text else None
            return cast(*primitive(value, at))
        except (ValueError, IndexError) as error:
            raise InvalidInputError(f"Cannot read a variant of {len(value):,} bytes: {error}.") from error

    return extract


def primitive(value: bytes, at: int = 0) -> tuple[Kind, Any]:
    """The type and value of a primitive that begins at `at`."""
    first = unsigned(value, at, 1)
    end = end_of(value, at)
    if first & 3 == SHORT_STRING:
        return Kind.STRING, value[at + 1 : end].decode()
    kind = kind_of(first)
    data = value[at + 1 + (0 if kind in SIZES else 4) : end]
    if kind is Kind.STRING:
        return kind, data.decode()
    if kind is Kind.BINARY:
        return kind, data
    if kind is Kind.UUID:
        return kind, UUID(bytes=data)
    if kind in FLOATS:
        return kind, struct.unpack("<f" if kind is Kind.FLOAT else "<d", data)[0]
    if kind in DECIMALS:
        return kind, decimal_value(int.from_bytes(data[1:], "little", signed=True), data[0])
    if kind in BOOLEANS:
        return kind, kind is Kind.TRUE
    return kind, None if kind is Kind.NULL else int.from_bytes(data, "little", signed=True)


def _place(metadata: bytes, value: bytes, path: Path) -> int | None:
    """The offset of the value at the end of a path; None if there is none."""
    at = 0
    for part in path:
        basic = unsigned(value, at, 1) & 3
        if basic != (OBJECT if isinstance(part, str) else ARRAY):
            return None
        ids, starts, _, _ = container_of(value, at)
        if isinstance(part, int):
            if part >= len(starts):
                return None
            at = starts[part]
            continue
        number = _numbers(metadata).get(part)
        if number is None or number not in ids:
            return None
        at = starts[ids.index(number)]
    return at


@lru_cache(maxsize=4096)
def _numbers(metadata: bytes) -> dict[str, int]:
    return {name: number for number, name in enumerate(names_of(metadata))}


def caster(kind: IcebergType) -> Cast:
    """A function of a primitive's type and value that gives the stored value of `kind`, None if it cannot be cast."""
    if isinstance(kind, DecimalType):
        return _to_decimal(kind)
    return _CASTS[type(kind)]


def cast_bounds(lower: bytes | None, upper: bytes | None, kind: IcebergType) -> tuple[Any, Any, bool] | None:
    """Bounds of a field after a cast, and whether its values may be NaN; None if casts may fail or do not keep the
    order."""
    try:
        found = [None if each is None else primitive(each) for each in (lower, upper)]
    except ValueError:
        return None
    families = {_family(each[0]) for each in found if each is not None}
    if families != {_TARGETS[type(kind)]}:
        return None
    cast = caster(kind)
    results = [None if each is None else cast(*each) for each in found]
    if any(each is not None and (value is None or value != value) for each, value in zip(found, results, strict=True)):
        return None
    return results[0], results[1], any(each is not None and each[0] in FLOATS for each in found)


def _family(kind: Kind) -> Any:
    """A key that types of one order share: all numbers, and each other type by itself."""
    if kind in INTEGERS | DECIMALS | FLOATS:
        return "number"
    return "boolean" if kind in BOOLEANS else kind


_TARGETS: dict[type[IcebergType], Any] = {
    **dict.fromkeys((IntegerType, LongType, FloatType, DoubleType, DecimalType), "number"),
    BooleanType: "boolean",
    StringType: Kind.STRING,
    DateType: Kind.DATE,
    TimestamptzType: Kind.TIMESTAMPTZ,
    TimestampType: Kind.TIMESTAMP,
    BinaryType: Kind.BINARY,
}


def _to_boolean(kind: Kind, value: Any) -> bool | None:
    if kind in _NUMBERS:
        return bool(value != 0)
    return _WORDS.get(value.strip(_BLANKS).lower()) if kind is Kind.STRING else None


def _to_integer(bits: int) -> Cast:
    most = (1 << bits - 1) - 1

    def cast(kind: Kind, value: Any) -> int | None:
        if kind in FLOATS:
            if value != value or value in (float("inf"), float("-inf")):
                return None
            number = int(value)
            number -= number == 1 << 63  # Java's comparison in doubles lets it pass
        elif kind in _NUMBERS:
            number = int(value)
        elif kind is Kind.STRING:
            text = value.strip(_BLANKS)
            if not _WHOLE.fullmatch(text) or len(text) > 1000:
                return None
            number = int(text)
        elif kind is Kind.TIMESTAMPTZ:
            number = value // 1_000_000
        else:
            return None
        return number if -most - 1 <= number <= most else None

    return cast


def _to_float(kind: Kind, value: Any) -> float | None:
    if kind is Kind.FLOAT:
        return float(value)
    if kind in INTEGERS and abs(value) > 1 << 53:
        import numpy as np  # rounds once, not first to 64 bits

        return float(np.int64(value).astype(np.float32))
    number = _to_double(kind, value)
    return None if number is None else _single(number)


def _single(number: float) -> float:
    try:
        return nearest_single(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _to_double(kind: Kind, value: Any) -> float | None:
    if kind in _NUMBERS:
        return float(value)
    if kind is Kind.STRING:
        text = value.strip(_JAVA_BLANKS)
        match = _REAL.fullmatch(text)
        special = _SPECIAL.get(text.lower())
        if match is not None:
            return float(match[1])
        return None if special is None else float(special)
    return value / 1_000_000 if kind is Kind.TIMESTAMPTZ else None


def _to_decimal(of: DecimalType) -> Cast:
    most = 10**of.precision

    def cast(kind: Kind, value: Any) -> Decimal | None:
        if kind in FLOATS:
            number = Decimal(repr(value))
        elif kind in _NUMBERS:
            number = Decimal(value)
        elif kind is Kind.STRING:
            text = value.strip(_JAVA_BLANKS)
            if not _EXACT.fullmatch(text):
                return None
            number = Decimal(text)
        elif kind is Kind.TIMESTAMPTZ:
            number = Decimal(repr(value / 1_000_000))
        else:
            return None
        if not number.is_finite() or (number and number.adjusted() > _MOST_EXPONENT):
            return None
        try:
            unscaled = int(number.scaleb(of.scale, _EXACTLY).to_integral_value(ROUND_HALF_UP, _EXACTLY))
        except InvalidOperation:
            return None
        return decimal_value(unscaled, of.scale) if abs(unscaled) < most else None

    return cast


def _to_string(kind: Kind, value: Any) -> str | None:
    if kind in BOOLEANS:
        return "true" if value else "false"
    if kind in FLOATS:
        return java_text(value, kind is Kind.FLOAT)
    if kind in DECIMALS:
        plain = f"{value:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if kind is Kind.BINARY:
        return bytes(value).decode(errors="replace")
    if kind is Kind.DATE:
        return format_date(value)
    if kind in (Kind.TIMESTAMPTZ, Kind.TIMESTAMP):
        return format_timestamp(value).replace("T", " ").rstrip("0").rstrip(".")
    return None if value is None or kind in _UNREAD else str(value)


_UNREAD = frozenset((Kind.TIME, Kind.TIMESTAMPTZ_NS, Kind.TIMESTAMP_NS))  # types that Spark does not know


def _to_date(kind: Kind, value: Any) -> int | None:
    if kind is Kind.DATE:
        return int(value)
    if kind in (Kind.TIMESTAMPTZ, Kind.TIMESTAMP):
        return int(value // MICROS_PER_DAY)
    return _date_of_text(value) if kind is Kind.STRING else None


_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def _date_of_text(text: str) -> int | None:
    match = _DATE.fullmatch(text.strip(_BLANKS))
    if match is None:
        return None
    try:
        return parse_date(f"{match[1]}-{match[2] or '1':0>2}-{match[3] or '1':0>2}")
    except ValueError:
        return None


def _to_timestamp(zoned: bool) -> Cast:
    def cast(kind: Kind, value: Any) -> int | None:
        if kind in (Kind.TIMESTAMPTZ, Kind.TIMESTAMP):
            return int(value)
        if kind is Kind.DATE:
            return _long(value * MICROS_PER_DAY)
        if kind is Kind.STRING:
            return _time_of_text(value, zoned)
        if not zoned or kind not in INTEGERS | DECIMALS | FLOATS:
            return None
        if kind in FLOATS:
            return None if value - value else _long(int(value * 1_000_000))
        return _long(int(value * 1_000_000))

    return cast


def _time_of_text(text: str, zoned: bool) -> int | None:
    text = text.strip(_BLANKS)
    try:
        nanos, offset = parse_timestamp(text)
    except ValueError:
        days = _date_of_text(text) if _WHOLE_DATE.fullmatch(text) else None
        return None if days is None else _long(days * MICROS_PER_DAY)
    # Of a time without a zone, what stands where a zone may stand is left out.
    return _long(nanos // 1000 - (offset or 0) * 1_000_000 * zoned)


_WHOLE_DATE = re.compile(r"[+-]?[0-9]{4,7}(?:-[0-9]{1,2}(?:-[0-9]{1,2})?)?")


def _long(micros: int) -> int | None:
    return micros if -(1 << 63) <= micros < 1 << 63 else None


def _to_binary(kind: Kind, value: Any) -> bytes | None:
    if kind is Kind.STRING:
        return bytes(value.encode())
    return bytes(value) if kind is Kind.BINARY else None


_CASTS: dict[type[IcebergType], Cast] = {
    BooleanType: _to_boolean,
    IntegerType: _to_integer(32),
    LongType: _to_integer(64),
    FloatType: _to_float,
    DoubleType: _to_double,
    StringType: _to_string,
    DateType: _to_date,
    TimestamptzType: _to_timestamp(True),
    TimestampType: _to_timestamp(False),
    BinaryType: _to_binary,
}
