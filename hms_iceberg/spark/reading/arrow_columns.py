"""Arrow columns in the types that Spark takes from its Python workers."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.nested import children_of, make_struct, struct_children, with_children
from hms_iceberg.spec.data_types import (
    FixedType,
    IcebergType,
    NestedField,
    NestedType,
    TimeType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.metadata_columns import PARTITION_ID
from hms_iceberg.spec.schema import Schema

# How Spark tells a variant from a struct.
_VARIANT = [
    pa.field("value", pa.binary(), False),
    pa.field("metadata", pa.binary(), False, {"variant": "true"}),
]


def for_spark(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch with UUIDs as text, fixed bytes as bytes, times in nanoseconds, and variants marked, at any depth.

    A batch without columns gets one of nulls: between Spark and its workers, rows are counted by their columns.

    Args:
        batch: the rows.
        schema: the table's schema.
    """
    if not schema.fields:
        return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.bool_())], names=["row"])
    columns = [
        pa.nulls(batch.num_rows, pa.struct([])) if _is_no_partition(field) else converted(column, field.field_type)
        for column, field in zip(batch.columns, schema.fields, strict=True)
    ]
    fields = [_field(field, column) for field, column in zip(schema.fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _is_no_partition(field: NestedField) -> bool:
    """Whether the partition is null, as Iceberg's Java gives it for a table that was never partitioned."""
    return field.field_id == PARTITION_ID and not field.field_type.fields  # type: ignore[attr-defined]


def converted(array: Any, kind: IcebergType) -> Any:
    """A column in Spark's type for it."""
    if isinstance(kind, UUIDType):
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in storage.to_pylist()]
        return pa.array(texts, pa.string())
    if isinstance(kind, FixedType):
        return array.cast(pa.binary())
    if isinstance(kind, TimeType):
        return array.cast(pa.time64("ns"))
    if isinstance(kind, VariantType):
        metadata, value = struct_children(array)
        return make_struct(array, [value, metadata], _VARIANT)
    if isinstance(kind, NestedType):
        below = zip(children_of(array), kind.children(), strict=True)
        children = [converted(child, field.field_type) for child, field in below]
        return with_children(array, children, list(map(_field, kind.children(), children)))
    return array


def _field(field: NestedField, column: Any) -> pa.Field:
    return pa.field(field.name, column.type, field.optional)
