"""Types of values in events, as a schema of Kafka Connect or Avro tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count

from hms_iceberg.spec.data_types import (
    DateType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

DAY, SECOND, MILLI, MICRO, NANO = 86_400 * 10**9, 10**9, 10**6, 10**3, 1  # in nanoseconds


class Form(Enum):
    """How a value is written in an event."""

    PLAIN = "plain"  # as JSON or Avro have it; times as text
    COUNT = "count"  # a number of units of time since the epoch, or since midnight
    UNSCALED = "unscaled"  # a decimal as the bytes of an integer (big-endian), in JSON in Base64
    VARIABLE = "variable"  # a struct of a decimal's scale and those bytes


@dataclass(frozen=True, eq=False)
class SourceType:
    """The type of values in events."""

    column: IcebergType | None  # the type of a column that is made for them; None if only the values can tell
    form: Form = Form.PLAIN  # the form in which values are written
    unit: int = 0  # nanoseconds of one count
    scale: int = 0  # of decimals in bytes
    # the types within structs, lists and maps; a map's values are its `element`
    fields: Mapping[str, SourceType] | None = None
    element: SourceType | None = None
    key: SourceType | None = None


UNTYPED = SourceType(None)
"""Values of JSON without a schema."""


def dates() -> SourceType:
    """Days since 1970-01-01."""
    return SourceType(DateType(), Form.COUNT, DAY)


def times(unit: int) -> SourceType:
    """Units since midnight."""
    return SourceType(TimeType(), Form.COUNT, unit)


def timestamps(unit: int, zoned: bool) -> SourceType:
    """Units since 1970-01-01; a point in time if `zoned`, else what a clock on the wall shows."""
    return SourceType(TimestamptzType() if zoned else TimestampType(), Form.COUNT, unit)


def struct_of(fields: Mapping[str, SourceType], optional: Mapping[str, bool]) -> SourceType:
    """A struct; fields of unknown types are left out of the column that is made for it."""
    known = [
        NestedField(number, name, kind.column, required=not optional[name])
        for number, (name, kind) in zip(count(1), fields.items(), strict=False)
        if kind.column is not None
    ]
    return SourceType(StructType(*known) if known else None, fields=fields)


def list_of(element: SourceType) -> SourceType:
    return SourceType(None if element.column is None else ListType(1, element.column, False), element=element)


def map_of(key: SourceType, value: SourceType) -> SourceType:
    kind = None
    if value.column is not None:
        kind = MapType(1, key.column or StringType(), 2, value.column, False)
    return SourceType(kind, key=key, element=value)
