"""Raw values of Parquet's footers as stored values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_text
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    NANO_TIMESTAMPS,
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
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values.single_values import decimal_value

_UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def bound_decoder(arrow: pa.DataType, kind: IcebergType) -> Callable[[Any, bool], Any] | None:
    """How to turn a raw minimum or maximum of a Parquet footer into a stored value.

    Args:
        arrow: the column's Arrow type, which says what the raw value means.
        kind: the table's type for the column.

    Returns:
        A function of the raw value and whether it is an upper bound (then digits that are lost round up), giving None
        for a value that is no use; or None if the two types do not go together.
    """
    types = pa.types
    if isinstance(kind, (IntegerType, LongType)) and types.is_integer(arrow):
        if types.is_unsigned_integer(arrow):
            mask = (1 << max(arrow.bit_width, 32)) - 1
            return lambda raw, _upper: _within(raw & mask, kind)
        return lambda raw, _upper: raw
    if isinstance(kind, (FloatType, DoubleType)) and types.is_floating(arrow):
        return None if types.is_float16(arrow) else lambda raw, _upper: raw
    if isinstance(kind, DecimalType) and types.is_decimal(arrow):
        return _decimal_decoder(arrow.scale, kind)
    if isinstance(kind, TimeType) and types.is_time(arrow):
        return _unit_decoder(arrow.unit, 1_000)
    if isinstance(kind, MICRO_TIMESTAMPS) and types.is_timestamp(arrow):
        return _unit_decoder(arrow.unit, 1_000)
    if isinstance(kind, NANO_TIMESTAMPS) and types.is_timestamp(arrow):
        return _unit_decoder(arrow.unit, 1)
    if isinstance(kind, StringType) and (is_text(arrow) or is_bytes(arrow)):
        return _decode_text
    if isinstance(kind, UUIDType) and (types.is_fixed_size_binary(arrow) or isinstance(arrow, pa.UuidType)):
        return lambda raw, _upper: UUID(bytes=bytes(raw))
    plain: tuple[tuple[type[IcebergType], bool], ...] = (
        (BooleanType, types.is_boolean(arrow)),
        (DateType, types.is_date32(arrow)),
        (BinaryType, is_bytes(arrow) or is_text(arrow) or types.is_fixed_size_binary(arrow)),
        (FixedType, types.is_fixed_size_binary(arrow)),
    )
    if any(isinstance(kind, known) and fits for known, fits in plain):
        return lambda raw, _upper: raw
    return None


def _within(value: int, kind: IcebergType) -> int | None:
    bits = 31 if isinstance(kind, IntegerType) else 63
    return value if value < 1 << bits else None


def _decode_text(raw: Any, _upper: bool) -> str | None:
    try:
        return raw if isinstance(raw, str) else bytes(raw).decode()
    except UnicodeDecodeError:
        return None


def _decimal_decoder(file_scale: int, kind: DecimalType) -> Callable[[Any, bool], Any] | None:
    if file_scale > kind.scale:
        return None
    factor = 10 ** (kind.scale - file_scale)

    def decode(raw: Any, _upper: bool) -> Any:
        unscaled = raw if isinstance(raw, int) else int.from_bytes(bytes(raw), "big", signed=True)
        return decimal_value(unscaled * factor, kind.scale)

    return decode


def _unit_decoder(unit: str, target_nanos: int) -> Callable[[Any, bool], Any]:
    nanos = _UNIT_NANOS[unit]
    if nanos >= target_nanos:
        factor = nanos // target_nanos
        return lambda raw, _upper: _long(raw * factor)
    divisor = target_nanos // nanos
    return lambda raw, upper: -(-raw // divisor) if upper else raw // divisor


def _long(value: int) -> int | None:
    return value if -(1 << 63) <= value < 1 << 63 else None
