"""Transforms of dates and timestamps: year, month, day and hour.

Source: Iceberg specification, "Partition Transforms".
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hms_iceberg.spec.data_types import NANO_TIMESTAMPS, TIMESTAMPS, DateType, IcebergType, IntegerType
from hms_iceberg.spec.transforms.transform import BoundTransform, Transform
from hms_iceberg.spec.values import datetimes

_EPOCH_YEAR = 1970


@dataclass(frozen=True)
class TimeTransform(Transform, ABC):
    """A transform to a unit of time: year, month, day or hour."""

    _granularity: ClassVar[int] = 0  # coarse to fine
    redundant_as: ClassVar[str | None] = "time"
    same_of_promoted_date: ClassVar[bool] = True
    preserves_order: ClassVar[bool] = True

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for dates and timestamps."""
        return isinstance(source_type, (DateType, *TIMESTAMPS))

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """int."""
        return IntegerType()

    def satisfies_order_of(self, other: Transform) -> bool:
        """True for this and any coarser unit of time."""
        return isinstance(other, TimeTransform) and other._granularity <= self._granularity


def _days_of(source_type: IcebergType) -> Callable[[int], int]:
    if isinstance(source_type, DateType):
        return lambda value: value
    per_day = _per_day(source_type)
    return lambda value: value // per_day


def _per_day(source_type: IcebergType) -> int:
    if isinstance(source_type, DateType):
        return 1
    return datetimes.NANOS_PER_DAY if isinstance(source_type, NANO_TIMESTAMPS) else datetimes.MICROS_PER_DAY


def _per_hour(source_type: IcebergType) -> int:
    nanos = isinstance(source_type, NANO_TIMESTAMPS)
    return datetimes.MICROS_PER_HOUR * (datetimes.NANOS_PER_MICRO if nanos else 1)


@dataclass(frozen=True)
class YearTransform(TimeTransform):
    """The transform to years from 1970."""

    _granularity: ClassVar[int] = 1
    spellings: ClassVar[tuple[str, ...]] = ("years", "year")

    def _function(self, source_type: IcebergType) -> BoundTransform:
        days_of = _days_of(source_type)
        return lambda value: datetimes.civil_from_days(days_of(value))[0] - _EPOCH_YEAR

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The first instant of the year that is n years after 1970 began."""
        per_day = _per_day(source_type)
        return lambda n: datetimes.days_from_civil(_EPOCH_YEAR + n, 1, 1) * per_day

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """The year as text, such as "2017"."""
        return "null" if value is None else f"{_EPOCH_YEAR + value:04d}"

    def __str__(self) -> str:
        return "year"


@dataclass(frozen=True)
class MonthTransform(TimeTransform):
    """The transform to months from 1970-01."""

    _granularity: ClassVar[int] = 2
    spellings: ClassVar[tuple[str, ...]] = ("months", "month")

    def _function(self, source_type: IcebergType) -> BoundTransform:
        days_of = _days_of(source_type)

        def months(value: int) -> int:
            year, month, _ = datetimes.civil_from_days(days_of(value))
            return (year - _EPOCH_YEAR) * 12 + month - 1

        return months

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The first instant of the month that is n months after 1970 began."""
        per_day = _per_day(source_type)
        return lambda n: datetimes.days_from_civil(_EPOCH_YEAR + n // 12, n % 12 + 1, 1) * per_day

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """The month as text, such as "2017-11"."""
        return "null" if value is None else f"{_EPOCH_YEAR + value // 12:04d}-{value % 12 + 1:02d}"

    def __str__(self) -> str:
        return "month"


@dataclass(frozen=True)
class DayTransform(TimeTransform):
    """The transform to days from 1970-01-01, as a date."""

    _granularity: ClassVar[int] = 3
    spellings: ClassVar[tuple[str, ...]] = ("days", "day", "date")

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """date."""
        return DateType()

    def _function(self, source_type: IcebergType) -> BoundTransform:
        return _days_of(source_type)

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The first instant of the day that is n days after 1970 began."""
        per_day = _per_day(source_type)
        return lambda n: n * per_day

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """The day as text, such as "2017-11-16"."""
        return "null" if value is None else _plain_date(value)

    def __str__(self) -> str:
        return "day"


@dataclass(frozen=True)
class HourTransform(TimeTransform):
    """The transform to hours from 1970-01-01T00."""

    _granularity: ClassVar[int] = 4
    spellings: ClassVar[tuple[str, ...]] = ("hours", "hour", "date_hour")
    same_of_promoted_date: ClassVar[bool] = False

    def can_transform(self, source_type: IcebergType) -> bool:
        """True for timestamps."""
        return isinstance(source_type, TIMESTAMPS)

    def _function(self, source_type: IcebergType) -> BoundTransform:
        per_hour = _per_hour(source_type)
        return lambda value: value // per_hour

    def first_source(self, source_type: IcebergType) -> Callable[[int], int] | None:
        """The first instant of the hour that is n hours after 1970 began."""
        per_hour = _per_hour(source_type)
        return lambda n: n * per_hour

    def to_human_string(self, source_type: IcebergType, value: Any) -> str:
        """The hour as text, such as "2017-11-16-22"."""
        return "null" if value is None else f"{_plain_date(value // 24)}-{value % 24:02d}"

    def __str__(self) -> str:
        return "hour"


def _plain_date(days: int) -> str:
    year, month, day = datetimes.civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"
