"""Arrow columns as Spark makes them, in the types that files are written from."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import child_fields, to_arrow
from hms_iceberg.arrow.columns.nested import children_of, with_children
from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import IcebergType, NestedField, NestedType, UUIDType
from hms_iceberg.spec.schema import Schema


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
    if isinstance(kind, NestedType):
        fields = child_fields(target)
        children = [
            _converted(child, known.field_type, field.type)
            for child, known, field in zip(children_of(array), kind.children(), fields, strict=True)
        ]
        return with_children(array, children, fields)
    return array.cast(target)
