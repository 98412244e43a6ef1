"""Values of events as values of a table's columns: counts of time, decimals, bytes, and what cannot be lost."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from hms_iceberg.ingest.values.source_types import DAY, MICRO, NANO, UNTYPED, Form, SourceType
from hms_iceberg.spec.data_types import (
    LOCAL_TIMESTAMPS,
    NANO_TIMESTAMPS,
    TIMESTAMPS,
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
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.datetimes import parse_date, parse_time, parse_timestamp

Fit = Callable[[Any], Any]
"""Makes a value, which is not None, one that Arrow takes for a column; ValueError says why it cannot be one."""

_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT = struct.Struct("<f")  # refuses what is too large; the native form does not
_DIGITS_OF_LONG = 19
_DATE_LENGTH = len("2026-01-31")
_EPOCH = date(1970, 1, 1).toordinal()
_BITS: dict[type[IcebergType], int] = {IntegerType: 32, LongType: 64}


def fit(target: IcebergType, source: SourceType, time_unit: int | None = None) -> Fit:
    """Makes values of a source fit a column, or refuses; nothing is rounded, cut off or guessed. `time_unit`
    (nanoseconds) is that of numbers without a type in columns of times, None refuses them."""
    if source is UNTYPED and isinstance(target, (TimeType, *TIMESTAMPS)) and time_unit is not None:
        return _either(_counts(target, time_unit), _times(target))
    if source is UNTYPED and isinstance(target, DateType):
        return _either(_counts(target, DAY), _times(target))
    if isinstance(target, StructType):
        return _structs(target, source, time_unit)
    if isinstance(target, ListType):
        return _lists(fit(target.element_type, source.element or UNTYPED, time_unit), target)
    if isinstance(target, MapType):
        return _maps(target, source, time_unit)
    if isinstance(target, (DateType, TimeType, *TIMESTAMPS)):
        return _counts(target, source.unit) if source.form is Form.COUNT else _times(target)
    if source.form is Form.COUNT and not isinstance(target, (IntegerType, LongType)):
        return _never(target)
    if isinstance(target, DecimalType):
        return _decimals(target, source)
    if isinstance(target, StringType) and source.form in (Form.UNSCALED, Form.VARIABLE):
        return lambda value: format(_decimal(value, source), "f")
    make = _SIMPLE.get(type(target))
    return _never(target) if make is None or source.form in (Form.UNSCALED, Form.VARIABLE) else make(target)


def _never(target: IcebergType) -> Fit:
    def refuse(value: Any) -> Any:
        raise _not_of(value, target)

    return refuse


def _not_of(value: Any, target: IcebergType) -> ValueError:
    text = repr(value)
    shown = text if len(text) <= 100 else f"{text[:100]}…"
    return ValueError(f"{shown} is no value of type {target}")


def _either(of_number: Fit, of_text: Fit) -> Fit:
    return lambda value: of_text(value) if isinstance(value, str) else of_number(value)


# ---------------------------------------------------------------------------------------------- simple


def _boolean(target: IcebergType) -> Fit:
    def convert(value: Any) -> bool:
        if value is True or value is False:
            return bool(value)
        raise _not_of(value, target)

    return convert


def _integer(target: IcebergType) -> Fit:
    low, high = -(1 << (_BITS[type(target)] - 1)), (1 << (_BITS[type(target)] - 1)) - 1

    def convert(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        if (
            isinstance(value, Decimal)
            and value.is_finite()
            and value.adjusted() < _DIGITS_OF_LONG
            and value == int(value)
        ):
            return convert(int(value))
        raise _not_of(value, target)

    return convert


def _double(target: IcebergType) -> Fit:
    def convert(value: Any) -> float:
        if isinstance(value, float):
            return value
        if isinstance(value, str) and value in _NUMBERS:
            return _NUMBERS[value]
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        raise _not_of(value, target)

    return convert


def _float(target: IcebergType) -> Fit:
    double = _double(target)

    def convert(value: Any) -> float:
        number = double(value)
        try:
            _FLOAT.pack(number)
        except OverflowError:
            raise _not_of(value, target) from None
        return number

    return convert


def _string(target: IcebergType) -> Fit:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            return value
        raise _not_of(value, target)

    return convert


def _bytes(value: Any, target: IcebergType) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{value[:100]!r} is no Base64, as bytes in JSON are written: {error}") from None
    raise _not_of(value, target)


def _binary(target: IcebergType) -> Fit:
    length = target.length if isinstance(target, FixedType) else None

    def convert(value: Any) -> bytes:
        found = _bytes(value, target)
        if length is not None and len(found) != length:
            raise ValueError(f"{len(found)} bytes are no value of type {target}")
        return found

    return convert


def _uuid(target: IcebergType) -> Fit:
    def convert(value: Any) -> bytes:
        if isinstance(value, bytes) and len(value) == 16:
            return value
        if isinstance(value, str):
            try:
                return UUID(value).bytes
            except ValueError:
                pass
        raise _not_of(value, target)

    return convert


_SIMPLE: dict[type[IcebergType], Callable[[IcebergType], Fit]] = {
    BooleanType: _boolean,
    IntegerType: _integer,
    LongType: _integer,
    FloatType: _float,
    DoubleType: _double,
    StringType: _string,
    BinaryType: _binary,
    FixedType: _binary,
    UUIDType: _uuid,
}

# --------------------------------------------------------------------------------------------- decimals


def _decimal(value: Any, source: SourceType) -> Decimal:
    """A decimal that is written as bytes, of the source's scale or of its own."""
    scale, digits = source.scale, value
    if source.form is Form.VARIABLE:
        if not isinstance(value, dict) or type(value.get("scale")) is not int or "value" not in value:
            raise ValueError(f"{value!r} is no struct of scale and value")
        scale, digits = value["scale"], value["value"]
    raw = _bytes(digits, BinaryType())
    if not raw:
        raise ValueError("no bytes are no decimal")
    unscaled = int.from_bytes(raw, "big", signed=True)
    sign = 1 if unscaled < 0 else 0
    return Decimal((sign, tuple(map(int, str(abs(unscaled)))), -scale))  # exact, whatever the context's precision


def _decimals(target: DecimalType, source: SourceType) -> Fit:
    is_bytes = source.form in (Form.UNSCALED, Form.VARIABLE)

    def convert(value: Any) -> Decimal:
        try:
            if is_bytes:
                number = _decimal(value, source)
            elif isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
                raise _not_of(value, target)
            else:
                number = Decimal(str(value) if isinstance(value, float) else value)
        except InvalidOperation:
            raise ValueError(
                f"{value!r} is no value of type {target}; bytes of a decimal need a schema that tells their scale, or "
                "Debezium's decimal.handling.mode=string"
            ) from None
        return _exact(number, target, value)

    return convert


def _exact(number: Decimal, target: DecimalType, value: Any) -> Decimal:
    """The number with the digits of a type; ValueError if any would be lost."""
    if not number.is_finite():
        raise _not_of(value, target)
    sign, digits, exponent = number.as_tuple()
    shift = int(exponent) + target.scale
    whole = int("".join(map(str, digits)) or "0")
    if shift < 0:
        whole, rest = divmod(whole, 10 ** min(-shift, 10_000))
        if rest:
            raise _not_of(value, target)
    elif whole:
        whole = whole * 10**shift if shift <= target.precision else 10**target.precision
    if whole >= 10**target.precision:
        raise _not_of(value, target)
    return Decimal((sign, tuple(map(int, str(whole))), -target.scale))


# ------------------------------------------------------------------------------------------------ times


def _counts(target: IcebergType, unit: int) -> Fit:
    """Counts of a unit as counts of the column's: days, microseconds or nanoseconds."""
    own, limit = MICRO, 1 << 63
    if isinstance(target, DateType):
        own, limit = DAY, 1 << 31
    elif isinstance(target, NANO_TIMESTAMPS):
        own = NANO
    is_time = isinstance(target, TimeType)

    def convert(value: Any) -> int:
        if type(value) is not int:
            raise _not_of(value, target)
        count, rest = (value, 0) if unit == own else divmod(value * unit, own)
        if rest or not -limit <= count < limit:
            raise ValueError(f"{value} units of {unit:,} ns are no value of type {target}")
        if is_time and not 0 <= count < DAY // MICRO:
            raise ValueError(f"{value} units of {unit:,} ns since midnight are no time of a day")
        return count

    return convert


def _times(target: IcebergType) -> Fit:
    """Times that are written as text."""
    if isinstance(target, DateType):
        return _text(target, _days)
    if isinstance(target, TimeType):
        return _text(target, parse_time)
    is_local, own = isinstance(target, LOCAL_TIMESTAMPS), NANO if isinstance(target, NANO_TIMESTAMPS) else MICRO

    def parse(text: str) -> int:
        nanos, offset = parse_timestamp(text)
        if is_local and offset is not None:
            raise ValueError(f"{text!r} has a zone, and the column's type {target} has none")
        if not is_local and offset is None:
            raise ValueError(f"{text!r} has no zone, and the column's type {target} needs one, such as Z")
        count, rest = divmod(nanos - (offset or 0) * 10**9, own)
        if rest:
            raise ValueError(f"{text!r} is finer than type {target}")
        return count

    return _text(target, parse)


def _days(text: str) -> int:
    """Days since 1970-01-01; by the standard library where it knows the form, which takes a tenth of the time."""
    if len(text) == _DATE_LENGTH and text[4] == text[7] == "-":
        return date.fromisoformat(text).toordinal() - _EPOCH
    return parse_date(text)


def _text(target: IcebergType, parse: Callable[[str], int]) -> Fit:
    def convert(value: Any) -> int:
        if not isinstance(value, str):
            raise ValueError(f"{_not_of(value, target)}; numbers need a schema that tells their unit, or --time-unit")
        return parse(value)

    return convert


# --------------------------------------------------------------------------------------------- nested


def _structs(target: StructType, source: SourceType, time_unit: int | None) -> Fit:
    fields = source.fields or {}
    children = {
        each.name: (fit(each.field_type, fields.get(each.name, UNTYPED), time_unit), each.required)
        for each in target.fields
    }

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _not_of(value, target)
        for name in value.keys() - children.keys():
            if value[name] is not None:
                raise ValueError(f"the column has no field {name!r}; add it, or let --evolve do so")
        made = {}
        for name, (make, required) in children.items():
            found = value.get(name)
            if found is None and required:
                raise ValueError(f"its field {name!r} is required, and null")
            made[name] = None if found is None else make(found)
        return made

    return convert


def _lists(element: Fit, target: ListType) -> Fit:
    def convert(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)) or (target.element_required and None in value):
            raise _not_of(value, target)
        return [None if each is None else element(each) for each in value]

    return convert


def _maps(target: MapType, source: SourceType, time_unit: int | None) -> Fit:
    key = fit(target.key_type, source.key or UNTYPED, time_unit)
    item = fit(target.value_type, source.element or UNTYPED, time_unit)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        pairs = list(value.items()) if isinstance(value, dict) else value
        if not isinstance(pairs, list) or not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in pairs):
            raise _not_of(value, target)
        if any(name is None or (each is None and target.value_required) for name, each in pairs):
            raise _not_of(value, target)
        return [(key(name), None if each is None else item(each)) for name, each in pairs]

    return convert
