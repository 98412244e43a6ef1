"""Stored values to Arrow arrays and back.

A stored value is what partition tuples, defaults and literals hold: days for dates, micro- or nanoseconds for times,
``uuid.UUID``, ``bytes``, ``decimal.Decimal`` … Arrays here are plain: a uuid is 16 bytes.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.spec.data_types import (
    IcebergType,
    NestedField,
    PrimitiveType,
    StructType,
    UUIDType,
)


def to_stored(array: pa.Array, kind: IcebergType) -> list[Any]:
    """The stored values of a plain array of a primitive type, null as None."""
    if integers := integer_type(kind):
        return array.view(integers).to_pylist()
    values: list[Any] = array.to_pylist()
    if isinstance(kind, UUIDType):
        return [None if value is None else UUID(bytes=value) for value in values]
    return values


def integer_type(kind: IcebergType) -> pa.DataType | None:
    """The Arrow type of the integers that stand for values of a type; None if none do."""
    bits = kind.integer_bits if isinstance(kind, PrimitiveType) else 0
    return {32: pa.int32(), 64: pa.int64()}.get(bits)


def from_stored(values: list[Any], kind: IcebergType) -> pa.Array:
    """A plain array of stored values of a primitive type (or of a struct, whose values are None or ``{}``)."""
    target = to_arrow_type(kind, field_ids=False, extensions=False)
    if integers := integer_type(kind):
        return pa.array(values, integers).view(target)
    if isinstance(kind, UUIDType):
        return pa.array([None if value is None else value.bytes for value in values], target)
    return pa.array(values, target)


def constant(value: Any, kind: IcebergType, length: int, *, for_write: bool = False) -> pa.Array:
    """A plain array that holds one stored value ``length`` times; a struct of ``{}`` holds its fields' defaults.

    Args:
        value: a stored value, or None.
        kind: its type.
        length: number of rows.
        for_write: whether fields of ``{}`` take their write default rather than their initial default.
    """
    if value is None:
        return pa.nulls(length, to_arrow_type(kind, field_ids=False, extensions=False))
    if isinstance(kind, StructType):
        children = [
            constant(_child(value, field, for_write), field.field_type, length, for_write=for_write)
            for field in kind.fields
        ]
        fields = [
            pa.field(field.name, child.type, field.optional) for field, child in zip(kind.fields, children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=fields)
    return pa.repeat(from_stored([value], kind)[0], length)


def _child(value: Any, field: NestedField, for_write: bool) -> Any:
    given = value.get(field.field_id, value.get(field.name)) if isinstance(value, dict) else None
    if given is not None:
        return given
    return field.write_default if for_write else field.initial_default
