"""Stored values as text for people and for partition paths, spelled as Iceberg's Java implementation spells them."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

from hms_iceberg.spec.data_types import (
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
    TimeType,
)
from hms_iceberg.spec.values import datetimes


def human_string(kind: IcebergType, value: Any) -> str:
    """Text of a stored value as Iceberg writes it in partition paths: ISO dates, base64 for bytes."""
    if value is None:
        return "null"
    if isinstance(kind, BooleanType):
        return "true" if value else "false"
    if isinstance(kind, DateType):
        return datetimes.format_date(value)
    if isinstance(kind, TimeType):
        return _short_clock(datetimes.format_time(value))
    if isinstance(kind, TIMESTAMPS):
        nanos = value if isinstance(kind, NANO_TIMESTAMPS) else value * datetimes.NANOS_PER_MICRO
        text = datetimes.format_timestamp_nanos(nanos).rstrip("0").removesuffix(".")
        return text + ("+00:00" if isinstance(kind, ZONED_TIMESTAMPS) else "")
    if isinstance(kind, (FixedType, BinaryType)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(kind, DecimalType):
        return f"{value:f}"
    if isinstance(kind, (FloatType, DoubleType)):
        return _java_float(value, single=isinstance(kind, FloatType))
    return str(value)


def _short_clock(text: str) -> str:
    """Without trailing groups of three zeros in the fraction, and without seconds of zero, as Java prints times."""
    while "." in text and text.endswith("000"):
        text = text[:-3].removesuffix(".")
    return text[:-3] if len(text) == 8 and text.endswith(":00") else text


def _java_float(value: float, single: bool) -> str:
    """Digits as Java's Float and Double print them: plain from 0.001 to 10,000,000, else with an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest_digits(abs(value), single)
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_digits(value: float, single: bool) -> tuple[str, int]:
    """The shortest digits that read back as the value, and the decimal exponent of the first one."""
    if single:
        packed = struct.pack("<f", value)
        texts = (f"{value:.{precision}e}" for precision in range(9))
        text = next(each for each in texts if _packed(float(each)) == packed)
    else:
        text = next(each for each in (f"{value:.{p}e}" for p in range(17)) if float(each) == value)
    mantissa, exponent = text.split("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _packed(value: float) -> bytes | None:
    """A number in 32 bits; None if it is too large for them, as the largest rounded to fewer digits is."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return None
