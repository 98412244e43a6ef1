"""Decimals as unscaled integers and as bytes.

Source: Iceberg specification, Appendix D, "Binary single-value serialization".
"""

from __future__ import annotations

from decimal import Context, Decimal

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import DecimalType

# Enough digits for any decimal(38, s); the thread's own context would round at 28.
DECIMAL_CONTEXT = Context(prec=100)


def unscaled_value(value: Decimal, scale: int) -> int:
    """The integer that stands for a decimal at a scale: 14.20 at scale 2 is 1420."""
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


def check_precision(value: Decimal, kind: DecimalType) -> Decimal:
    """The value at the type's scale, if its digits fit; raises ValueError or TypeMismatchError."""
    unscaled = unscaled_value(value, kind.scale)
    if abs(unscaled) >= 10**kind.precision:
        raise ValueError(f"it has more than {kind.precision} digits")
    return decimal_value(unscaled, kind.scale)


def decimal_bytes(precision: int) -> int:
    """The number of bytes that an unscaled decimal of this precision needs, sign included."""
    return ((10**precision - 1).bit_length() + 8) // 8
