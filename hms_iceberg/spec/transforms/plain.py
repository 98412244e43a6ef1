"""Transforms that compute nothing: identity, void, and those that this package does not know.

Source: Iceberg specification, "Partition Transforms".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import GeographyType, GeometryType, IcebergType, StringType
from hms_iceberg.spec.transforms.transform import BoundTransform, Transform


@dataclass(frozen=True)
class IdentityTransform(Transform):
    """The value itself."""

    spellings: ClassVar[tuple[str, ...]] = ("identity",)

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for every primitive type but geometry and geography."""
        return source_type.is_primitive and not isinstance(source_type, (GeometryType, GeographyType))

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source type."""
        return source_type

    def _function(self, source_type: IcebergType) -> BoundTransform:
        return lambda value: value

    @property
    def preserves_order(self) -> bool:
        """True."""
        return True

    @property
    def is_identity(self) -> bool:
        """True."""
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for every transform that preserves order."""
        return other.preserves_order

    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True)
class VoidTransform(Transform):
    """Always null; stands where a partition field was dropped in a v1 table."""

    def can_transform(self, source_type: IcebergType) -> bool:
        """True."""
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source type."""
        return source_type

    def _function(self, source_type: IcebergType) -> BoundTransform:
        return lambda value: None

    @property
    def is_void(self) -> bool:
        """True."""
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        """Only of itself: nulls are in no other order."""
        return other.is_void

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """Always "null"."""
        return "null"

    def __str__(self) -> str:
        return "void"

    @property
    def suffix(self) -> str:
        """The end of a partition field's default name, as Apache Iceberg has it."""
        return "null"


@dataclass(frozen=True)
class UnknownTransform(Transform):
    """A transform that the specification (as of this package) does not have: readers ignore it."""

    text: str

    def can_transform(self, source_type: IcebergType) -> bool:
        """True: the table was written so, and it must be readable."""
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """string, as Java assumes."""
        return StringType()

    def _function(self, source_type: IcebergType) -> BoundTransform:
        raise UnsupportedError(
            f"Cannot apply the transform {self.text!r}: it is not one of identity, bucket[N], truncate[W], year, "
            "month, day, hour and void. The table can be read, but not written with this partition spec or sort order"
        )

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """The value as text."""
        return "null" if value is None else str(value)

    def __str__(self) -> str:
        return self.text
