"""Lower and upper bounds as typed columns.

Bounds are stored as bytes (Iceberg specification, Appendix D "Binary single-value serialization"). Here a whole column
of them becomes a column that compares as the values do: numbers for numbers, bytes for text, binary and UUIDs, and an
order-preserving text for decimals of any precision. Bounds that were written before the column was promoted are
widened. What is no bound of the type becomes null: nothing is known then.
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.errors import CorruptFileError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import polars_dtype
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    TIMESTAMPS,
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    PrimitiveType,
    StringType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.spec.values.single_values import decimal_value, from_bytes, unscaled_value

_MICROS_PER_DAY = 86_400_000_000
_UUID_BYTES = 16
_BYTES = (StringType, BinaryType, FixedType, UUIDType)
# Enough hexadecimal digits for 16 bytes, the widest decimal.
_DECIMAL_DIGITS = 32


def has_bounds(field_type: IcebergType) -> bool:
    """True for types whose bounds can be compared with a value."""
    return field_type.is_primitive and not isinstance(field_type, UnknownType | GeometryType | GeographyType)


def decode_bounds(stored: pl.Series, field_type: IcebergType) -> pl.Series:
    """A column of stored bounds as a column that compares as values of the type do.

    Args:
        stored: single-value bytes, null if there is no bound.
        field_type: the type that the column has now.

    Returns:
        A column to compare with what :func:`comparable` makes of a value; null if no bound is known.
    """
    if isinstance(field_type, StringType):
        return as_text(stored).cast(pl.Binary)
    if isinstance(field_type, UUIDType):
        return stored.set(stored.bin.size() != _UUID_BYTES, None)
    if isinstance(field_type, FixedType):
        return stored.set(stored.bin.size() > field_type.length, None)  # shorter ones were truncated
    if isinstance(field_type, BinaryType):
        return stored
    if isinstance(field_type, DecimalType):
        return _decimals(stored)
    if isinstance(field_type, FloatType | DoubleType):
        single, double = _numbers(stored, pl.Float32), _numbers(stored, pl.Float64)
        return single.cast(pl.Float64).zip_with(single.is_not_null(), double).fill_nan(None)
    if isinstance(field_type, BooleanType):
        return _numbers(stored, pl.UInt8)
    if isinstance(field_type, PrimitiveType) and field_type.integer_bits == 32:
        return _numbers(stored, pl.Int32).cast(pl.Int64)
    long = _numbers(stored, pl.Int64)
    if long.null_count() == stored.null_count():
        return long
    short = _numbers(stored, pl.Int32).cast(pl.Int64)
    if isinstance(field_type, TIMESTAMPS):
        # Four bytes are days: the column was promoted from a date.
        short = short * (_MICROS_PER_DAY * (1000 if isinstance(field_type, NANO_TIMESTAMPS) else 1))
    return long.zip_with(long.is_not_null(), short)


def stored_bounds(stored: pl.Series, field_type: IcebergType) -> pl.Series:
    """A column of stored bounds as stored values of the type; null if there is no bound of the type.

    Args:
        stored: single-value bytes, null if there is no bound.
        field_type: the type that the column has now.
    """
    dtype = polars_dtype(field_type)
    if isinstance(field_type, StringType):
        return as_text(stored)
    if isinstance(field_type, DecimalType):
        unscaled = (None if each is None else int.from_bytes(each, "big", signed=True) for each in stored)
        values = [None if each is None else decimal_value(each, field_type.scale) for each in unscaled]
        return pl.Series(values, dtype=dtype)
    if has_bounds(field_type):
        return decode_bounds(stored, field_type).cast(dtype)
    return pl.Series([None] * len(stored), dtype=dtype)


def stored_value(field_type: IcebergType, bound: bytes | None) -> Any:
    """A bound as a stored value; None if there is none, or bytes that are none of the type."""
    try:
        return None if bound is None else from_bytes(field_type, bound)
    except CorruptFileError:
        return None


def as_text(stored: pl.Series) -> pl.Series:
    """Bytes as text; null if they are not UTF-8."""
    try:
        return stored.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(stored.name, [_decoded(each) for each in stored], dtype=pl.String)


def _decoded(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def bound_dtype(field_type: IcebergType) -> Any:
    """The polars type of decoded bounds of a type."""
    if isinstance(field_type, _BYTES):
        return pl.Binary
    if isinstance(field_type, DecimalType):
        return pl.String
    if isinstance(field_type, FloatType | DoubleType):
        return pl.Float64
    return pl.UInt8 if isinstance(field_type, BooleanType) else pl.Int64


def comparable(field_type: IcebergType, value: Any) -> Any:
    """A stored value in the form that decoded bounds are compared with."""
    if isinstance(field_type, StringType):
        return value.encode("utf-8")
    if isinstance(field_type, UUIDType):
        return value.bytes
    if isinstance(field_type, DecimalType):
        return decimal_text(unscaled_value(value, field_type.scale))
    if isinstance(field_type, BooleanType):
        return int(value)
    return value


def decimal_text(unscaled: int) -> str:
    """An unscaled decimal as text that sorts as the numbers do: its sign, then its two's complement."""
    sign = "0" if unscaled < 0 else "1"
    return f"{sign}{unscaled % (1 << 4 * _DECIMAL_DIGITS):0{_DECIMAL_DIGITS}x}"


def _numbers(stored: pl.Series, dtype: Any) -> pl.Series:
    """Little-endian numbers; null if the bytes have another length."""
    return stored.bin.reinterpret(dtype=dtype, endianness="little")


def _decimals(stored: pl.Series) -> pl.Series:
    digits = pl.col("b").bin.encode("hex")
    negative = digits.str.slice(0, 1) >= "8"
    text = (
        pl.when(negative)
        .then(pl.lit("0") + digits.str.pad_start(_DECIMAL_DIGITS, "f"))
        .otherwise(pl.lit("1") + digits.str.pad_start(_DECIMAL_DIGITS, "0"))
    )
    size = pl.col("b").bin.size()
    known = (size > 0) & (size <= _DECIMAL_DIGITS // 2)
    return stored.alias("b").to_frame().select(pl.when(known).then(text).alias("b"))["b"]
