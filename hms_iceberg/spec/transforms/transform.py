"""The base class of transforms, and those that compute nothing: identity, void, and unknown ones.

Source: Iceberg specification, "Partition Transforms".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from hms_iceberg.errors import InvalidInputError, TypeMismatchError, UnsupportedError
from hms_iceberg.hooks import Hook
from hms_iceberg.spec.data_types import GeographyType, GeometryType, IcebergType, StringType
from hms_iceberg.spec.json_model import JsonModel
from hms_iceberg.spec.values.single_values import human_string

if TYPE_CHECKING:
    import pyarrow as pa


BoundTransform = Callable[[Any], Any]

ARROW_TRANSFORM: Hook[[Transform, IcebergType, pa.Array], pa.Array] = Hook(
    "hms_iceberg.arrow.columns.column_transforms"
)


@dataclass(frozen=True)
class Transform(JsonModel, ABC):
    """A function from a column's values to partition values (or sort keys); null always gives null."""

    def __class_getitem__(cls, types: Any) -> type[Transform]:
        """The class itself, so that annotations such as PyIceberg's `Transform[int, int]` work."""
        return cls

    spellings: ClassVar[tuple[str, ...]] = ()
    """Its names in SQL, in small letters; first that which is shown, such as `years`. None for what SQL cannot say."""
    takes_number: ClassVar[bool] = False
    """Whether it is made with a number of buckets or a width."""
    redundant_as: ClassVar[str | None] = None
    """Two partition fields of one column may not share this word; None: only the transform itself is redundant."""
    same_of_promoted_date: ClassVar[bool] = False
    """Whether a date gives the result that it gives as a timestamp."""
    preserves_order: ClassVar[bool] = False
    """Whether a <= b implies transform(a) <= transform(b)."""
    is_identity: ClassVar[bool] = False
    """Whether it changes nothing."""
    is_void: ClassVar[bool] = False
    """Whether its results are all null."""

    @abstractmethod
    def can_transform(self, source_type: IcebergType) -> bool:
        """True if the specification defines the transform for values of this type."""

    @abstractmethod
    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The type of the results for values of this type."""

    @abstractmethod
    def _function(self, source_type: IcebergType) -> BoundTransform:
        """The function over stored values that are not null."""

    def bind(self, source_type: IcebergType) -> BoundTransform:
        """The transform as a function from stored value (or None) to stored value (or None).

        Raises:
            TypeMismatchError: the transform is not defined for the type.
            UnsupportedError: the transform is not one of the specification's.
        """
        if not self.can_transform(source_type):
            raise TypeMismatchError(f"Transform {self} cannot be applied to values of type {source_type}")
        function = self._function(source_type)
        return lambda value: None if value is None else function(value)

    def transform(self, source: IcebergType) -> BoundTransform:
        """`bind`, under PyIceberg's name."""
        return self.bind(source)

    def pyarrow_transform(self, source: IcebergType) -> Callable[[pa.Array], pa.Array]:
        """The transform as a function from a column in Arrow to one; raises as `bind` does."""
        return partial(ARROW_TRANSFORM, self, source)

    @property
    def name(self) -> str:
        """The name without the argument, such as `bucket`."""
        return str(self).partition("[")[0]

    @property
    def argument(self) -> int | None:
        """The number of buckets or the width; None for a transform that takes none."""
        return None

    @property
    def sql_name(self) -> str:
        """The name that SQL shows, such as `years`."""
        return self.spellings[0] if self.spellings else self.name

    @property
    def suffix(self) -> str:
        """The end of a partition field's default name, without the argument, such as `day` or `trunc`."""
        return str(self)

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The function from n to the first source value (unscaled for decimals) whose result is n or more.

        Returns:
            None if results are no numbers that grow with the source: a test of them is no test of a range then.
        """
        return None

    def satisfies_order_of(self, other: Transform) -> bool:
        """True if values sorted by this transform are sorted by the other one too."""
        return self == other

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """Text of a result for people and for partition paths; "null" for None.

        Args:
            source_type: the type of the source column.
            value: a result of the transform (a stored value), or None.
        """
        return "null" if value is None else human_string(self.result_type(source_type), value)


def check_number(name: str, what: str, value: object) -> None:
    """Refuses a transform's number that is no integer above 0 that an int holds."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 2**31 - 1:
        raise InvalidInputError(f"Invalid transform {name}[{value}]: the {what} must be an integer above 0")


# ----------------------------------------------------------------------------------------- without a computation


@dataclass(frozen=True)
class IdentityTransform(Transform):
    """The transform that gives the value itself."""

    spellings: ClassVar[tuple[str, ...]] = ("identity",)
    preserves_order: ClassVar[bool] = True
    is_identity: ClassVar[bool] = True

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for every primitive type but geometry and geography."""
        return source_type.is_primitive and not isinstance(source_type, (GeometryType, GeographyType))

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source type."""
        return source_type

    def _function(self, source_type: IcebergType) -> BoundTransform:
        return lambda value: value

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for every transform that preserves order."""
        return other.preserves_order

    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True)
class VoidTransform(Transform):
    """The transform that always gives null; it stands where a partition field was dropped in a v1 table."""

    is_void: ClassVar[bool] = True

    def can_transform(self, source_type: IcebergType) -> bool:
        """True."""
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The source type."""
        return source_type

    def _function(self, source_type: IcebergType) -> BoundTransform:
        return lambda value: None

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for void only: nulls are in no other order."""
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
