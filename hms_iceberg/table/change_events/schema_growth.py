"""Columns of events that a table lacks become columns of it, and columns of it take wider types."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import from_arrow
from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, NestedField, StructType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.schema.schema_changes import UnionByName
from hms_iceberg.updates.schema.schema_update import SchemaUpdate


def grow(transaction: Transaction, incoming: pa.Schema, control: Collection[str]) -> None:
    """Makes the growth that some columns need part of a transaction; nothing is dropped, nor made optional. The
    `control` columns of events do not become columns. An InvalidSchemaChangeError if a type cannot become the other."""
    metadata = transaction.metadata
    known = metadata.schema()
    names = {field.name for field in known.fields}
    wanted = [
        field
        for field in incoming
        if (field.name in names and not _fits(field, known)) or (field.name not in names and field.name not in control)
    ]
    if not wanted:
        return
    theirs = from_arrow(pa.schema(wanted), metadata.format_version)
    own = {field.name: field for field in known.fields}
    schema = Schema(*(_like(own.get(field.name), field) for field in theirs.fields))
    transaction.add(SchemaUpdate((UnionByName(schema),)))


def _fits(incoming: pa.Field, schema: Schema) -> bool:
    field = schema.find_field(incoming.name)
    try:
        SchemaFit(pa.schema([incoming]), Schema(field))
    except InvalidInputError:
        return False
    return True


def _like(own: NestedField | None, theirs: NestedField) -> NestedField:
    """A field that leaves what is required as it is, at any depth; new fields are optional."""
    kind = _type_like(None if own is None else own.field_type, theirs.field_type)
    return replace(theirs, field_type=kind, required=own is not None, doc=None)


def _type_like(own: IcebergType | None, theirs: IcebergType) -> IcebergType:
    if isinstance(theirs, StructType):
        fields = own.fields if isinstance(own, StructType) else ()
        known = {field.name: field for field in fields}
        return StructType(*(_like(known.get(field.name), field) for field in theirs.fields))
    if isinstance(theirs, ListType):
        element = own.element_field if isinstance(own, ListType) else None
        made = _like(element, theirs.element_field)
        return ListType(theirs.element_id, made.field_type, made.required)
    if isinstance(theirs, MapType):
        value = own.value_field if isinstance(own, MapType) else None
        key = own.key_field.field_type if isinstance(own, MapType) else None
        made = _like(value, theirs.value_field)
        return MapType(theirs.key_id, _type_like(key, theirs.key_type), theirs.value_id, made.field_type, made.required)
    return theirs
