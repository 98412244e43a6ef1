"""Transforms of partition and sort fields.

Source: Iceberg specification, "Partition Transforms", "Bucket Transform Details", "Truncate Transform Details" and
Appendix B (hash requirements).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from hms_iceberg.errors import InvalidInputError, TypeMismatchError, UnsupportedError
from hms_iceberg.hooks import Hook
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    TIMESTAMPS,
    BinaryType,
    BooleanType,
    DateType,
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
from hms_iceberg.spec.json_model import JsonModel, set_json_form
from hms_iceberg.spec.values import datetimes
from hms_iceberg.spec.values.binary_values import decimal_value, unscaled_value
from hms_iceberg.spec.values.hashing import hash_function
from hms_iceberg.spec.values.human_text import human_string

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH_YEAR = 1970

BoundTransform = Callable[[Any], Any]

ARROW_TRANSFORM: Hook[[Transform, IcebergType, pa.Array], pa.Array] = Hook(
    "hms_iceberg.arrow.columns.column_transforms"
)


@dataclass(frozen=True)
class Transform(JsonModel, ABC):
    """A function from a column's values to partition values (or sort keys); null always gives null."""

    def __class_getitem__(cls, types: Any) -> type[Transform]:
        """The class itself: annotations such as PyIceberg's `Transform[int, int]` mean nothing more."""
        return cls

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
        """PyIceberg's name of `bind`."""
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
    def suffix(self) -> str:
        """The end of a partition field's default name, without the argument, such as `day` or `trunc`."""
        return str(self)

    @property
    def preserves_order(self) -> bool:
        """True if a <= b implies transform(a) <= transform(b)."""
        return False

    @property
    def is_identity(self) -> bool:
        """True for the transform that changes nothing."""
        return False

    @property
    def is_void(self) -> bool:
        """True for the transform whose results are all null."""
        return False

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


# --------------------------------------------------------------------------------------------- identity


@dataclass(frozen=True)
class IdentityTransform(Transform):
    """The value itself."""

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


# ----------------------------------------------------------------------------------------------- bucket


@dataclass(frozen=True)
class BucketTransform(Transform):
    """A hash of the value, modulo `num_buckets`."""

    num_buckets: int
    _unsupported: ClassVar[tuple[type[IcebergType], ...]] = (
        BooleanType,
        FloatType,
        DoubleType,
        UnknownType,
        GeometryType,
        GeographyType,
    )

    def __post_init__(self) -> None:
        _check_parameter("bucket", "number of buckets", self.num_buckets)

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
        """As Apache Iceberg has it."""
        return "bucket"


# --------------------------------------------------------------------------------------------- truncate


def wrapped(value: int, bits: int) -> int:
    """The value in two's complement: below the type's minimum it wraps around, as it does in Java."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


@dataclass(frozen=True)
class TruncateTransform(Transform):
    """Numbers rounded down to a multiple of `width`; text and bytes cut off after `width` code points or bytes."""

    width: int

    def __post_init__(self) -> None:
        _check_parameter("truncate", "width", self.width)

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
        """As Apache Iceberg has it."""
        return "trunc"


# ------------------------------------------------------------------------------------------ date and time


@dataclass(frozen=True)
class _TimeTransform(Transform, ABC):
    """What year, month, day and hour share."""

    _granularity: ClassVar[int] = 0  # coarse to fine

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for dates and timestamps."""
        return isinstance(source_type, (DateType, *TIMESTAMPS))

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """int."""
        return IntegerType()

    @property
    def preserves_order(self) -> bool:
        """True."""
        return True

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for the same and any coarser unit of time."""
        return isinstance(other, _TimeTransform) and other._granularity <= self._granularity


def _days_of(source_type: IcebergType) -> Callable[[int], int]:
    if isinstance(source_type, DateType):
        return lambda value: value
    per_day = datetimes.NANOS_PER_DAY if isinstance(source_type, NANO_TIMESTAMPS) else datetimes.MICROS_PER_DAY
    return lambda value: value // per_day


@dataclass(frozen=True)
class YearTransform(_TimeTransform):
    """Years from 1970."""

    _granularity: ClassVar[int] = 1

    def _function(self, source_type: IcebergType) -> BoundTransform:
        days_of = _days_of(source_type)
        return lambda value: datetimes.civil_from_days(days_of(value))[0] - _EPOCH_YEAR

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """Such as "2017"."""
        return "null" if value is None else f"{_EPOCH_YEAR + value:04d}"

    def __str__(self) -> str:
        return "year"


@dataclass(frozen=True)
class MonthTransform(_TimeTransform):
    """Months from 1970-01."""

    _granularity: ClassVar[int] = 2

    def _function(self, source_type: IcebergType) -> BoundTransform:
        days_of = _days_of(source_type)

        def months(value: int) -> int:
            year, month, _ = datetimes.civil_from_days(days_of(value))
            return (year - _EPOCH_YEAR) * 12 + month - 1

        return months

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """Such as "2017-11"."""
        return "null" if value is None else f"{_EPOCH_YEAR + value // 12:04d}-{value % 12 + 1:02d}"

    def __str__(self) -> str:
        return "month"


@dataclass(frozen=True)
class DayTransform(_TimeTransform):
    """Days from 1970-01-01, as a date."""

    _granularity: ClassVar[int] = 3

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """date."""
        return DateType()

    def _function(self, source_type: IcebergType) -> BoundTransform:
        return _days_of(source_type)

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """Such as "2017-11-16"."""
        return "null" if value is None else _plain_date(value)

    def __str__(self) -> str:
        return "day"


@dataclass(frozen=True)
class HourTransform(_TimeTransform):
    """Hours from 1970-01-01T00."""

    _granularity: ClassVar[int] = 4

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for timestamps."""
        return isinstance(source_type, TIMESTAMPS)

    def _function(self, source_type: IcebergType) -> BoundTransform:
        nanos = isinstance(source_type, NANO_TIMESTAMPS)
        per_hour = datetimes.MICROS_PER_HOUR * (datetimes.NANOS_PER_MICRO if nanos else 1)
        return lambda value: value // per_hour

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """Such as "2017-11-16-22"."""
        return "null" if value is None else f"{_plain_date(value // 24)}-{value % 24:02d}"

    def __str__(self) -> str:
        return "hour"


def _plain_date(days: int) -> str:
    year, month, day = datetimes.civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


# ---------------------------------------------------------------------------------------- void, unknown


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
        """As Apache Iceberg has it."""
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


def _check_parameter(name: str, what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 2**31 - 1:
        raise InvalidInputError(f"Invalid transform {name}[{value}]: the {what} must be an integer above 0")


PARAMETERIZED: Mapping[str, Callable[[int], Transform]] = {"bucket": BucketTransform, "truncate": TruncateTransform}
"""The transforms that take a number, by name."""
_WITH_NUMBER = re.compile(rf"\s*({'|'.join(PARAMETERIZED)})\s*\[\s*(\d{{1,10}})\s*\]\s*", re.IGNORECASE)
_PLAIN: dict[str, Transform] = {
    str(each): each
    for each in (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
}


@lru_cache(maxsize=256)
def parse_transform(text: str) -> Transform:
    """The transform that text such as "day" or "bucket[16]" stands for.

    Upper and lower case are the same. Text that is no transform of the specification gives an `UnknownTransform`,
    since tables with such transforms must stay readable.

    Raises:
        InvalidInputError: the width or the number of buckets is 0 or too large.
    """
    if match := _WITH_NUMBER.fullmatch(text):
        number = int(match[2])
        return BucketTransform(number) if match[1].lower() == "bucket" else TruncateTransform(number)
    return _PLAIN.get(text.strip().lower()) or UnknownTransform(text)


set_json_form(Transform, str, parse_transform)  # type: ignore[type-abstract]  # its subclasses are what is made
