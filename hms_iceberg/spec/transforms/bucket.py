"""The bucket transform.

Source: Iceberg specification, "Bucket Transform Details" and Appendix B (hash requirements).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hms_iceberg.spec.data_types import (
    BooleanType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    UnknownType,
)
from hms_iceberg.spec.transforms.transform import BoundTransform, Transform, check_number
from hms_iceberg.spec.values.single_values import hash_function


@dataclass(frozen=True)
class BucketTransform(Transform):
    """A hash of the value, modulo `num_buckets`."""

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
