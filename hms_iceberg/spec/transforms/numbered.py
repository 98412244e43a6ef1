"""The transforms that take a number: truncate and bucket.

Source: Iceberg specification, "Truncate Transform Details", "Bucket Transform Details" and Appendix B (hash
requirements).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    UnknownType,
)
from hms_iceberg.spec.transforms.transform import BoundTransform, Transform, check_number
from hms_iceberg.spec.values.decimals import decimal_value, unscaled_value
from hms_iceberg.spec.values.forms.form import INT_RANGE
from hms_iceberg.spec.values.single_values import hash_function


def wrapped(value: int, bits: int) -> int:
    """The value in two's complement: beyond the limits of the type it wraps around, as in Java."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


@dataclass(frozen=True)
class TruncateTransform(Transform):
    """The transform that rounds numbers down to a multiple of `width`, and cuts text and bytes off after `width` code
    points or bytes.
    """

    width: int
    spellings: ClassVar[tuple[str, ...]] = ("truncate",)
    preserves_order: ClassVar[bool] = True
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

    def before_promotion(self, source_type: IcebergType) -> tuple[int, int] | None:
        """The one result that was another one before a column was promoted to a type, and that other one.

        Below the smallest int an int's result wraps around, a long's does not. What it wraps to is no long's result.

        Args:
            source_type: the column's type now.

        Returns:
            both; None if every type gives the same results.
        """
        if not isinstance(source_type, LongType):
            return None
        result = INT_RANGE[0] - INT_RANGE[0] % self.width
        return None if result == INT_RANGE[0] else (result, wrapped(result, 32))

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The first multiple of the width that is not below n; None for strings and binary."""
        if not isinstance(source_type, (IntegerType, LongType, DecimalType)):
            return None
        width = self.width
        return lambda n: -(-n // width) * width

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for truncations to no greater width."""
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


@dataclass(frozen=True)
class BucketTransform(Transform):
    """The transform to a hash of the value, modulo `num_buckets`."""

    num_buckets: int
    spellings: ClassVar[tuple[str, ...]] = ("bucket",)
    takes_number: ClassVar[bool] = True
    _unsupported: ClassVar[tuple[type[IcebergType], ...]] = (
        BooleanType,
        FloatType,
        DoubleType,
        UnknownType,
        GeometryType,
        GeographyType,
    )

    def __post_init__(self) -> None:
        check_number("bucket", "number of buckets", self.num_buckets)

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for every primitive type but boolean, float, double, unknown, geometry and geography."""
        return source_type.is_primitive and not isinstance(source_type, self._unsupported)

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """int."""
        return IntegerType()

    def _function(self, source_type: IcebergType) -> BoundTransform:
        hash_of, buckets = hash_function(source_type), self.num_buckets
        return lambda value: (hash_of(value) & 0x7FFFFFFF) % buckets

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"

    @property
    def argument(self) -> int:
        """The number of buckets."""
        return self.num_buckets

    @property
    def suffix(self) -> str:
        """The end of a partition field's default name, as Apache Iceberg has it."""
        return "bucket"
