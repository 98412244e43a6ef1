"""Timestamps in nanoseconds, for which Spark has no type (but a preview in 4.3): what a session takes them for.

The session's setting ``spark.hms_iceberg.nanoseconds`` says ``micros``, for timestamps of microseconds, or ``bigint``,
for nanoseconds since 1970. Without it, such columns are refused where they are used. The bridge's class
UnsupportedTypes hands the choice on among the types that Spark lacks, and Python reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from hms_iceberg.errors import TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    fold_type,
)
from hms_iceberg.spec.schema import Schema

SETTING = "spark.hms_iceberg.nanoseconds"
MICROS, BIGINT = "micros", "bigint"
_PREFIX = "nanoseconds as "


def chosen(lacking_types: Collection[str]) -> str | None:
    """The type that nanoseconds are taken for: `micros`, `bigint`, or None if such columns are refused."""
    return next((each[len(_PREFIX) :] for each in lacking_types if each.startswith(_PREFIX)), None)


def has_nanoseconds(schema: Schema) -> bool:
    """Whether a column, at any depth, is a timestamp in nanoseconds."""
    return any(isinstance(field.field_type, NANO_TIMESTAMPS) for field in schema.index_by_id.values())


def shown(schema: Schema, choice: str | None, table: str = "") -> Schema:
    """The columns with the types that they have in Spark by a choice of `chosen`; the same without one."""
    if choice is None or not has_nanoseconds(schema):
        return schema
    fields = (_field(field, shown_type(field.field_type, choice), choice, table) for field in schema.fields)
    return Schema(*fields, schema_id=schema.schema_id)


def shown_type(kind: IcebergType, choice: str | None) -> IcebergType:
    """The type that a column's values have in Spark by a choice of `chosen`."""

    def leaf(each: IcebergType) -> IcebergType:
        if choice is None or not isinstance(each, NANO_TIMESTAMPS):
            return each
        if choice == BIGINT:
            return LongType()
        return TimestampType() if isinstance(each, TimestampNanoType) else TimestamptzType()

    return fold_type(
        kind,
        leaf=leaf,
        struct=lambda each, kinds: StructType(
            *(_field(field, kind, choice, "") for field, kind in zip(each.fields, kinds, strict=True))
        ),
        list=lambda each, element: ListType(each.element_id, element, each.element_required),
        map=lambda each, key, value: MapType(each.key_id, key, each.value_id, value, each.value_required),
    )


def _field(field: NestedField, kind: IcebergType, choice: str | None, table: str) -> NestedField:
    defaults = (field.initial_default, field.write_default)
    if isinstance(field.field_type, NANO_TIMESTAMPS) and choice == MICROS:
        if any(each is not None and each % 1000 for each in defaults):
            raise UnsupportedError(
                f"Cannot show the column {field.name} of the table {table} in microseconds: its default has parts of "
                f"one. Set {SETTING} to {BIGINT}."
            )
        defaults = tuple(None if each is None else each // 1000 for each in defaults)  # type: ignore[assignment]
    return NestedField(field.field_id, field.name, kind, field.required, field.doc, *defaults)


def to_spark(array: Any, kind: IcebergType) -> Any:
    """A column of nanoseconds as numbers, or in microseconds; TypeMismatchError for parts of a microsecond."""
    if isinstance(kind, LongType):
        return array.cast(pa.int64())
    try:
        return array.cast(pa.timestamp("us", array.type.tz))
    except pa.ArrowInvalid as error:
        raise TypeMismatchError(
            f"Cannot read a column of nanoseconds in microseconds: {error}. Set {SETTING} to {BIGINT}, or leave the "
            "column out."
        ) from None


def stored(value: int, choice: str) -> int:
    """A value of Spark's, in microseconds or nanoseconds as chosen, as nanoseconds."""
    return value * 1000 if choice == MICROS else value
