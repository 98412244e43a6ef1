"""Single values as bytes, as bounds in manifests hold them.

Source: Iceberg specification, Appendix D, "Binary single-value serialization" and "Bound serialization"; for values
written before a column was promoted, "Schema Evolution".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from struct import Struct
from typing import Any
from uuid import UUID

from hms_iceberg.errors import CorruptFileError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
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
from hms_iceberg.spec.values.datetimes import MICROS_PER_DAY, NANOS_PER_DAY

_INT, _LONG, _FLOAT, _DOUBLE = Struct("<i"), Struct("<q"), Struct("<f"), Struct("<d")
# Enough digits for any decimal(38, s); the thread's own context would round at 28.
DECIMAL_CONTEXT = Context(prec=100)
_MAX_DECIMAL_BYTES = 32


def unscaled_value(value: Decimal, scale: int) -> int:
    """The integer that stands for a decimal at a scale: 14.20 at scale 2 is 1420.

    Raises:
        TypeMismatchError: the value has more digits after the point than `scale`, or is not finite.
    """
    if not value.is_finite():
        raise TypeMismatchError(f"Cannot store {value} as a decimal: it is not a finite number")
    scaled = value.scaleb(scale, DECIMAL_CONTEXT)
    unscaled = int(scaled)
    if unscaled != scaled:
        raise TypeMismatchError(
            f"Cannot store {value} as a decimal of scale {scale}: it has more digits after the point"
        )
    return unscaled


def decimal_value(unscaled: int, scale: int) -> Decimal:
    """The decimal that an unscaled integer stands for at a scale: 1420 at scale 2 is 14.20."""
    return Decimal(unscaled).scaleb(-scale, DECIMAL_CONTEXT)


def integer_to_bytes(value: int) -> bytes:
    """Big-endian two's complement in as few bytes as possible, at least one."""
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def decimal_to_bytes(value: Decimal, scale: int) -> bytes:
    """The unscaled value as big-endian two's complement in as few bytes as possible."""
    return integer_to_bytes(unscaled_value(value, scale))


def point_to_bytes(x: float, y: float, z: float | None = None, m: float | None = None) -> bytes:
    """A corner of a bounding box, as bounds of geometry and geography columns hold it."""
    values = [x, y]
    if m is not None:
        values += [math.nan if z is None else z, m]
    elif z is not None:
        values.append(z)
    return b"".join(_DOUBLE.pack(each) for each in values)


def point_from_bytes(data: bytes) -> tuple[float, float, float | None, float | None]:
    """x, y, z and m of a corner of a bounding box; z and m are None if they are not set.

    Raises:
        CorruptFileError: the length is not that of two to four coordinates.
    """
    if len(data) not in (16, 24, 32):
        raise CorruptFileError(f"Cannot read a bounding-box corner from {len(data)} bytes: expected 16, 24 or 32")
    values: list[float | None] = [_DOUBLE.unpack_from(data, offset)[0] for offset in range(0, len(data), 8)]
    x, y, z, m = (*values, None, None)[:4]
    if len(data) == 32 and z is not None and math.isnan(z):
        z = None
    assert x is not None and y is not None
    return x, y, z, m


def _decimal_writer(kind: DecimalType, value: Any) -> bytes:
    if not isinstance(value, Decimal):
        raise TypeError("expected a decimal.Decimal")
    return decimal_to_bytes(value, kind.scale)


def _fixed_writer(kind: FixedType, value: Any) -> bytes:
    if len(value) != kind.length:
        raise ValueError(f"expected {kind.length} bytes, got {len(value)}")
    return bytes(value)


def _bytes_writer(kind: IcebergType, value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("expected bytes")
    return bytes(value)


def _number_writer(packer: Struct) -> Callable[[IcebergType, Any], bytes]:
    return lambda _, value: packer.pack(value)


_WRITERS: dict[type[IcebergType], Callable[[Any, Any], bytes]] = {
    BooleanType: lambda _, value: b"\x01" if value else b"\x00",
    IntegerType: _number_writer(_INT),
    DateType: _number_writer(_INT),
    LongType: _number_writer(_LONG),
    TimeType: _number_writer(_LONG),
    TimestampType: _number_writer(_LONG),
    TimestamptzType: _number_writer(_LONG),
    TimestampNanoType: _number_writer(_LONG),
    TimestamptzNanoType: _number_writer(_LONG),
    FloatType: _number_writer(_FLOAT),
    DoubleType: _number_writer(_DOUBLE),
    StringType: lambda _, value: value.encode("utf-8"),
    UUIDType: lambda _, value: value.bytes,
    FixedType: _fixed_writer,
    BinaryType: _bytes_writer,
    GeometryType: _bytes_writer,
    GeographyType: _bytes_writer,
    DecimalType: _decimal_writer,
}


def to_bytes(kind: IcebergType, value: Any) -> bytes:
    """A stored value as bytes.

    Args:
        kind: the primitive type of the column.
        value: the stored value, such as days for a date; not None.

    Returns:
        The bytes that a manifest holds as bound.

    Raises:
        UnsupportedError: values of the type have no binary form (nested types, variant, unknown).
        TypeMismatchError: the value is none of the type.
    """
    writer = _WRITERS.get(type(kind))
    if writer is None:
        raise UnsupportedError(f"Values of type {kind} have no binary form; only primitive types have bounds")
    try:
        return writer(kind, value)
    except (struct.error, OverflowError, TypeError, ValueError, AttributeError) as error:
        raise TypeMismatchError(f"Cannot store {value!r} ({type(value).__name__}) as {kind}: {error}") from error


def _number_reader(packer: Struct, **narrower: tuple[Struct, int]) -> Callable[[IcebergType, bytes], Any]:
    """Reads one width, or the width of the type that the column had before it was promoted."""
    short = narrower.get("short")

    def read(_: IcebergType, data: bytes) -> Any:
        if len(data) == packer.size:
            return packer.unpack(data)[0]
        if short is not None and len(data) == short[0].size:
            return short[0].unpack(data)[0] * short[1]
        expected = f"{packer.size}" if short is None else f"{packer.size} (or {short[0].size})"
        raise ValueError(f"expected {expected} bytes")

    return read


def _decimal_reader(kind: DecimalType, data: bytes) -> Decimal:
    if not 0 < len(data) <= _MAX_DECIMAL_BYTES:
        raise ValueError(f"expected 1 to {_MAX_DECIMAL_BYTES} bytes")
    return decimal_value(int.from_bytes(data, "big", signed=True), kind.scale)


def _boolean_reader(_: IcebergType, data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError("expected 1 byte")
    return data != b"\x00"


def _fixed_reader(kind: FixedType, data: bytes) -> bytes:
    # Bounds may be truncated, as those of strings are.
    if len(data) > kind.length:
        raise ValueError(f"expected at most {kind.length} bytes")
    return bytes(data)


_READERS: dict[type[IcebergType], Callable[[Any, bytes], Any]] = {
    BooleanType: _boolean_reader,
    IntegerType: _number_reader(_INT),
    DateType: _number_reader(_INT),
    LongType: _number_reader(_LONG, short=(_INT, 1)),
    TimeType: _number_reader(_LONG),
    TimestampType: _number_reader(_LONG, short=(_INT, MICROS_PER_DAY)),
    TimestamptzType: _number_reader(_LONG),
    TimestampNanoType: _number_reader(_LONG, short=(_INT, NANOS_PER_DAY)),
    TimestamptzNanoType: _number_reader(_LONG),
    FloatType: _number_reader(_FLOAT),
    DoubleType: _number_reader(_DOUBLE, short=(_FLOAT, 1)),
    StringType: lambda _, data: bytes(data).decode("utf-8"),
    UUIDType: lambda _, data: UUID(bytes=bytes(data)),
    FixedType: _fixed_reader,
    BinaryType: lambda _, data: bytes(data),
    GeometryType: lambda _, data: bytes(data),
    GeographyType: lambda _, data: bytes(data),
    DecimalType: _decimal_reader,
}


def from_bytes(kind: IcebergType, data: bytes) -> Any:
    """The stored value in the bytes of a bound.

    Bounds written before the column was promoted are read too: 4-byte ints for long, floats for double, dates for
    timestamp, decimals of any smaller precision.

    Args:
        kind: the primitive type of the column today.
        data: the bytes.

    Returns:
        The stored value.

    Raises:
        UnsupportedError: values of the type have no binary form.
        CorruptFileError: the bytes hold no value of the type.
    """
    reader = _READERS.get(type(kind))
    if reader is None:
        raise UnsupportedError(f"Values of type {kind} have no binary form; only primitive types have bounds")
    try:
        return reader(kind, data)
    except ValueError as error:
        shown = bytes(data[:16]).hex() + ("..." if len(data) > 16 else "")
        raise CorruptFileError(f"Cannot read a {kind} from {len(data)} bytes ({shown}): {error}") from error
