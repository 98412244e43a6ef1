"""Arrow columns as Spark makes them, in the types that files are written from."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.nested import (
    list_parts,
    list_values,
    make_list,
    make_map,
    make_struct,
    map_entries,
    struct_children,
)
from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType


def from_spark(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch of Spark's rows as plain columns of a table: UUIDs as 16 bytes, times in microseconds.

    Args:
        batch: the rows.
        schema: their columns.

    Raises:
        TypeMismatchError: a value does not fit its column.
    """
    columns = [_plain(column, field) for column, field in zip(batch.columns, schema.fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[field.name for field in schema.fields])


def _plain(array: Any, field: NestedField) -> Any:
    try:
        return _converted(array, field.field_type, _arrow_type(field))
    except (pa.ArrowInvalid, ValueError) as error:
        raise TypeMismatchError(
            f"Cannot write column {field.name!r} of type {field.field_type}: {error}. Correct the values, or cast them."
        ) from error


def _arrow_type(field: NestedField) -> Any:
    return to_arrow(Schema(field)).field(0).type


def _converted(array: Any, kind: IcebergType, target: Any) -> Any:
    if isinstance(kind, UUIDType):
        return pa.array([None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()], pa.binary(16))
    if isinstance(kind, StructType):
        children = [
            _converted(child, field.field_type, target.field(position).type)
            for position, (child, field) in enumerate(zip(struct_children(array), kind.fields, strict=True))
        ]
        fields = [target.field(position).with_type(child.type) for position, child in enumerate(children)]
        return make_struct(array, children, fields)
    if isinstance(kind, ListType):
        offsets, start, length = list_parts(array)
        values = _converted(list_values(array, start, length), kind.element_type, target.value_type)
        return make_list(array, offsets, values, target.value_field.with_type(values.type))
    if isinstance(kind, MapType):
        offsets, start, length = list_parts(array)
        keys, items = map_entries(array, start, length)
        keys = _converted(keys, kind.key_type, target.key_type)
        items = _converted(items, kind.value_type, target.item_type)
        key_field, item_field = target.key_field.with_type(keys.type), target.item_field.with_type(items.type)
        return make_map(array, offsets, keys, items, key_field, item_field)
    return array.cast(target)
