"""Values of boolean, int, long, float, double and decimal.

Source: Iceberg specification, Appendices A (Avro), B (hashes) and D (bytes, JSON), and "Schema Evolution" for values
written before a column was promoted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from struct import Struct
from typing import Any

import mmh3

from hms_iceberg.spec.data_types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
)
from hms_iceberg.spec.values.decimals import (
    check_precision,
    decimal_bytes,
    decimal_to_bytes,
    decimal_value,
)
from hms_iceberg.spec.values.floats import java_text, nearest_single, shortest_single
from hms_iceberg.spec.values.forms.form import (
    INT_RANGE,
    LONG_RANGE,
    ValueForms,
    check_integer,
    parsed_text,
)

INT, LONG, FLOAT, DOUBLE = Struct("<i"), Struct("<q"), Struct("<f"), Struct("<d")
_MAX_DECIMAL_BYTES = 32


# ----------------------------------------------------------------------------------------------- bytes, hashes


def number_writer(packer: Struct) -> Callable[[IcebergType, Any], bytes]:
    return lambda _, value: packer.pack(value)


def number_reader(packer: Struct, short: tuple[Struct, int] | None = None) -> Callable[[IcebergType, bytes], Any]:
    """The function from bytes to a number; `short` is the width before a promotion, and its factor."""

    def read(_: IcebergType, data: bytes) -> Any:
        if len(data) == packer.size:
            return packer.unpack(data)[0]
        if short is not None and len(data) == short[0].size:
            return short[0].unpack(data)[0] * short[1]
        expected = f"{packer.size}" if short is None else f"{packer.size} (or {short[0].size})"
        raise ValueError(f"expected {expected} bytes")

    return read


def hash_long(_: IcebergType, value: int) -> int:
    return int(mmh3.hash(LONG.pack(int(value))))


def _hash_double(kind: IcebergType, value: float) -> int:
    canonical = math.nan if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    bits = 0x7FF8000000000000 if math.isnan(canonical) else LONG.unpack(DOUBLE.pack(canonical))[0]
    return hash_long(kind, bits)


def _boolean_reader(_: IcebergType, data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError("expected 1 byte")
    return data != b"\x00"


def _decimal_writer(kind: DecimalType, value: Any) -> bytes:
    if not isinstance(value, Decimal):
        raise TypeError("expected a decimal.Decimal")
    return decimal_to_bytes(value, kind.scale)


def _decimal_reader(kind: DecimalType, data: bytes) -> Decimal:
    if not 0 < len(data) <= _MAX_DECIMAL_BYTES:
        raise ValueError(f"expected 1 to {_MAX_DECIMAL_BYTES} bytes")
    return decimal_value(int.from_bytes(data, "big", signed=True), kind.scale)


def _hash_decimal(kind: DecimalType, value: Decimal) -> int:
    return int(mmh3.hash(decimal_to_bytes(value, kind.scale)))


def _decimal_avro(kind: DecimalType) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": f"decimal_{kind.precision}_{kind.scale}",
        "size": decimal_bytes(kind.precision),
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


# -------------------------------------------------------------------------------------------------------- JSON


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("JSON has no NaN and no infinity")
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("expected a number")
    return _finite(value)


def _boolean_from_json(_: IcebergType, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _decimal_from_json(kind: DecimalType, value: Any) -> Decimal:
    number = Decimal(parsed_text(value))
    if number.is_finite() and -int(number.as_tuple().exponent) != kind.scale:
        raise ValueError(f"expected {kind.scale} digits after the point")
    return check_precision(number, kind)


# ------------------------------------------------------------------------------------------------------ Python


def _boolean(_: IcebergType, value: Any) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("expected True or False")
    return value


def _integer(limits: tuple[int, int]) -> Callable[[IcebergType, Any], int]:
    def convert(_: IcebergType, value: Any) -> int:
        return check_integer(int(value) if isinstance(value, str) else value, limits)

    return convert


def _double(_: IcebergType, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        raise ValueError("expected a number")
    return float(value)


def _float(kind: IcebergType, value: Any) -> float:
    number = _double(kind, value)
    if not math.isfinite(number):
        return number
    return nearest_single(number)


def _decimal(kind: DecimalType, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        raise ValueError("expected a decimal.Decimal, an integer or text")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return check_precision(number, kind)


# ------------------------------------------------------------------------------------------------------ records

_BOOLEAN = ValueForms(
    to_bytes=lambda _, value: b"\x01" if value else b"\x00",
    from_bytes=_boolean_reader,
    to_json=lambda _, value: bool(value),
    from_json=_boolean_from_json,
    from_python=_boolean,
    text=lambda _, value: "true" if value else "false",
    hash=hash_long,
    avro="boolean",
)
_INTEGER = ValueForms(
    to_bytes=number_writer(INT),
    from_bytes=number_reader(INT),
    to_json=lambda _, value: check_integer(value, INT_RANGE),
    from_json=lambda _, value: check_integer(value, INT_RANGE),
    from_python=_integer(INT_RANGE),
    hash=hash_long,
    avro="int",
)
_LONG_INTEGER = ValueForms(
    to_bytes=number_writer(LONG),
    from_bytes=number_reader(LONG, (INT, 1)),
    to_json=lambda _, value: check_integer(value, LONG_RANGE),
    from_json=lambda _, value: check_integer(value, LONG_RANGE),
    from_python=_integer(LONG_RANGE),
    hash=hash_long,
    avro="long",
)
_SINGLE = ValueForms(
    to_bytes=number_writer(FLOAT),
    from_bytes=number_reader(FLOAT),
    to_json=lambda _, value: shortest_single(nearest_single(_finite(value))),
    from_json=lambda _, value: nearest_single(_number(value)),
    from_python=_float,
    text=lambda _, value: java_text(value, single=True),
    hash=_hash_double,
    avro="float",
)
_DOUBLE_NUMBER = ValueForms(
    to_bytes=number_writer(DOUBLE),
    from_bytes=number_reader(DOUBLE, (FLOAT, 1)),
    to_json=lambda _, value: _finite(value),
    from_json=lambda _, value: _number(value),
    from_python=_double,
    text=lambda _, value: java_text(value, single=False),
    hash=_hash_double,
    avro="double",
)
_DECIMAL = ValueForms(
    to_bytes=_decimal_writer,
    from_bytes=_decimal_reader,
    to_json=lambda kind, value: f"{check_precision(value, kind):f}",
    from_json=_decimal_from_json,
    from_python=_decimal,
    text=lambda _, value: f"{value:f}",
    hash=_hash_decimal,
    avro=_decimal_avro,
)
FORMS: Mapping[type[IcebergType], ValueForms] = {
    BooleanType: _BOOLEAN,
    IntegerType: _INTEGER,
    LongType: _LONG_INTEGER,
    FloatType: _SINGLE,
    DoubleType: _DOUBLE_NUMBER,
    DecimalType: _DECIMAL,
}
