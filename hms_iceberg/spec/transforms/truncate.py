"""The truncate transform.

Source: Iceberg specification, "Truncate Transform Details".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hms_iceberg.spec.data_types import BinaryType, DecimalType, IcebergType, IntegerType, LongType, StringType
from hms_iceberg.spec.transforms.transform import BoundTransform, Transform, check_number
from hms_iceberg.spec.values.decimals import decimal_value, unscaled_value


def wrapped(value: int, bits: int) -> int:
    """The value in two's complement: below the type's minimum it wraps around, as it does in Java.

    Args:
        value: the integer.
        bits: size of the type in bits.
    """
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


@dataclass(frozen=True)
class TruncateTransform(Transform):
    """Numbers rounded down to a multiple of `width`; text and bytes cut off after `width` code points or bytes."""

    width: int
    spellings: ClassVar[tuple[str, ...]] = ("truncate",)
    takes_number: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("truncate", "width", self.width)

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for int, long, decimal, string and binary."""
        return isinstance(source_type, (IntegerType, LongType, DecimalType, StringType, BinaryType))

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source type."""
        return source_type

    def _function(self, source_type: IcebergType) -> BoundTransform:
        width = self.width
        if isinstance(source_type, (IntegerType, LongType)):
            bits = 32 if isinstance(source_type, IntegerType) else 64
            return lambda value: wrapped(value - value % width, bits)
        if isinstance(source_type, DecimalType):
            scale = source_type.scale

            def truncate_decimal(value: Any) -> Any:
                unscaled = unscaled_value(value, scale)
                return decimal_value(unscaled - unscaled % width, scale)

            return truncate_decimal
        return lambda value: value[:width]

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The first multiple of the width that is not below n; None for strings and binary."""
        if not isinstance(source_type, (IntegerType, LongType, DecimalType)):
            return None
        width = self.width
        return lambda n: -(-n // width) * width

    @property
    def preserves_order(self) -> bool:
        """True."""
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for a truncation to a width that divides this one's order: the same, or one that both types accept."""
        return self == other or (isinstance(other, TruncateTransform) and other.width <= self.width)

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    @property
    def argument(self) -> int:
        """The width."""
        return self.width

    @property
    def suffix(self) -> str:
        """The end of a partition field's default name, as Apache Iceberg has it."""
        return "trunc"
