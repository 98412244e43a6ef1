"""Iceberg schemas to Arrow schemas and back, with field ids in the fields' metadata.

Arrow fields carry their id under ``PARQUET:field_id``, the key that Arrow's Parquet reader and writer use. Source:
Iceberg specification, "Appendix A: Format-specific Requirements" (Parquet).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any
from uuid import UUID

import pyarrow as pa

from hms_iceberg.arrow.columns import geoarrow
from hms_iceberg.arrow.columns.arrow_types import is_list_like, plain_type, primitive_from_arrow, primitive_to_arrow
from hms_iceberg.errors import InvalidSchemaError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    PrimitiveType,
    StructType,
    UnknownType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import ARROW_SCHEMA, Schema, assign_fresh_ids

FIELD_ID_KEY = b"PARQUET:field_id"
ORC_FIELD_ID_KEY = b"iceberg.id"
DOC_KEY = b"doc"


def to_arrow(schema: Schema, field_ids: bool = True, extensions: bool = True) -> pa.Schema:
    """The Arrow schema of an Iceberg schema.

    Args:
        schema: the Iceberg schema.
        field_ids: whether fields carry ``PARQUET:field_id`` (and their doc) as metadata.
        extensions: whether a uuid becomes Arrow's extension type ``arrow.uuid`` rather than 16 bytes, and a shape
            ``geoarrow.wkb`` rather than bytes.

    Returns:
        An Arrow schema of the same columns; required columns are not nullable.

    Raises:
        UnsupportedError: a column has a type that Arrow has no form for.
    """
    return pa.schema([to_arrow_field(field, field_ids, extensions) for field in schema.fields])


def to_arrow_field(field: NestedField, field_ids: bool = True, extensions: bool = True) -> pa.Field:
    metadata: dict[bytes, bytes] | None = None
    if field_ids:
        metadata = {FIELD_ID_KEY: str(field.field_id).encode()}
        if field.doc:
            metadata[DOC_KEY] = field.doc.encode()
    kind = to_arrow_type(field.field_type, field_ids, extensions)
    return pa.field(field.name, kind, nullable=field.optional, metadata=metadata)


def to_arrow_type(kind: IcebergType, field_ids: bool = True, extensions: bool = True) -> pa.DataType:
    """The Arrow type of an Iceberg type; see `to_arrow`."""
    primitive = primitive_to_arrow(kind, extensions)
    if primitive is not None:
        return primitive
    if isinstance(kind, NestedType):
        return nested_arrow_type(kind, [to_arrow_field(child, field_ids, extensions) for child in kind.children()])
    if isinstance(kind, VariantType):
        return pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    raise UnsupportedError(f"Arrow has no type for Iceberg's {kind}. Leave such columns out of selected_fields.")


def nested_arrow_type(kind: NestedType, children: Sequence[pa.Field]) -> pa.DataType:
    if isinstance(kind, StructType):
        return pa.struct(children)
    return pa.list_(*children) if isinstance(kind, ListType) else pa.map_(*children)


def field_id_of(field: pa.Field) -> int | None:
    """The field id that an Arrow field carries (from Parquet or ORC), or None."""
    metadata = field.metadata
    if not metadata:
        return None
    text = metadata.get(FIELD_ID_KEY) or metadata.get(ORC_FIELD_ID_KEY)
    if text is None:
        return None
    try:
        field_id = int(text)
    except ValueError:
        return None
    return field_id if field_id >= 0 else None


def child_fields(kind: pa.DataType) -> list[pa.Field]:
    """The fields below an Arrow type: a struct's fields, a list's element, a map's key and value."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if not kind.num_fields:
        return []
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    if is_list_like(kind):
        return [kind.value_field]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return []


_INDEX_LEVEL = re.compile(r"__index_level_\d+__")


def unnamed_index(schema: pa.Schema) -> frozenset[str]:
    """The names that pyarrow gave to what a frame of pandas numbers its rows by, which are no columns of the frame."""
    described = (schema.metadata or {}).get(b"pandas")
    if described is None:
        return frozenset()
    found = json.loads(described).get("index_columns", [])
    return frozenset(name for name in found if isinstance(name, str) and _INDEX_LEVEL.fullmatch(name))


def has_field_ids(schema: pa.Schema) -> bool:
    """Whether any field of an Arrow schema, at any depth, carries a field id."""
    return any(field_id_of(field) is not None for field in _walk(list(schema)))


def _walk(fields: list[pa.Field]) -> Iterator[pa.Field]:
    for field in fields:
        yield field
        yield from _walk(child_fields(field.type))


def from_arrow(schema: pa.Schema, format_version: int = 2) -> Schema:
    """The Iceberg schema for Arrow data.

    Args:
        schema: the Arrow schema; if every field carries ``PARQUET:field_id`` the ids are kept, otherwise all
            fields are numbered anew from 1.
        format_version: the table's format version: nanosecond timestamps and columns of nulls need 3; before it,
            nanosecond timestamps become microseconds (data that this would change is refused when it is written).

    Returns:
        An Iceberg schema; not nullable Arrow fields become required, and an unnamed index of pandas is left out.

    Raises:
        TypeMismatchError: a column has an Arrow type that Iceberg has no form for; the message names it.
    """
    left_out = unnamed_index(schema)
    schema = pa.schema([field for field in schema if field.name not in left_out])
    fields = list(_walk(list(schema)))
    numbered = [field_id_of(field) for field in fields]
    keep = bool(fields) and all(field_id is not None for field_id in numbered)
    numbers = count(1)

    def identify(field: pa.Field) -> int:
        field_id = field_id_of(field)
        return field_id if keep and field_id is not None else next(numbers)

    converted = [_from_field(field, field.name, identify, format_version) for field in schema]
    result = Schema(*converted)
    return result if keep else assign_fresh_ids(result)


def _from_field(field: pa.Field, path: str, identify: Callable[[pa.Field], int], version: int) -> NestedField:
    field_id = identify(field)
    doc = (field.metadata or {}).get(DOC_KEY)
    kind = _shape(field, path, version) or _from_type(field.type, path, identify, version)
    if isinstance(kind, UnknownType) and not field.nullable:
        raise TypeMismatchError(
            f"Cannot use column {path!r}: it has Arrow type null but is declared not nullable. Make it nullable or "
            f"give it a type."
        )
    return NestedField(field_id, field.name, kind, not field.nullable, doc.decode() if doc else None)


def _shape(field: pa.Field, path: str, version: int) -> IcebergType | None:
    """The type of a field of shapes, bytes in tables of versions that have none; None for other fields."""
    if not geoarrow.is_shape(field):
        return None
    try:
        kind = geoarrow.shape_of(field)
        return kind if version >= kind.min_format_version else BinaryType()
    except ValueError as error:
        raise TypeMismatchError(f"Cannot use column {path!r}: {error}. {geoarrow.ADVICE}") from error


def _from_type(kind: pa.DataType, path: str, identify: Callable[[pa.Field], int], version: int) -> IcebergType:
    types = pa.types
    kind = plain_type(kind)
    if types.is_struct(kind):
        children = child_fields(kind)
        names = [child.name for child in children]
        if len(set(names)) != len(names):
            raise InvalidSchemaError(f"Cannot use column {path!r}: its struct has two fields of the same name: {names}")
        return StructType(*(_from_field(child, f"{path}.{child.name}", identify, version) for child in children))
    if types.is_list(kind):
        element = kind.value_field
        converted = _from_field(element, f"{path}.element", identify, version)
        return ListType(converted.field_id, converted.field_type, converted.required)
    if types.is_map(kind):
        key = _from_field(kind.key_field, f"{path}.key", identify, version)
        value = _from_field(kind.item_field, f"{path}.value", identify, version)
        return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)
    converted_type = primitive_from_arrow(kind, version)
    if converted_type is None:
        raise TypeMismatchError(f"Cannot use column {path!r}: Iceberg has no type for Arrow's {kind}.{_hint(kind)}")
    return converted_type


def _hint(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_uint64(kind):
        return " Cast it to int64 or decimal128(20, 0)."
    if types.is_time(kind):
        return " Cast it to time64('us')."
    if types.is_decimal(kind):
        return " Iceberg's decimals have up to 38 digits and no negative scale."
    if types.is_null(kind):
        return " Columns of nulls need a table of format version 3; give the column a type."
    if types.is_duration(kind) or types.is_interval(kind):
        return " Store it as int64."
    return " Cast it to a type that Iceberg has."


ARROW_SCHEMA.set(to_arrow)


def to_stored(array: pa.Array, kind: IcebergType) -> list[Any]:
    """The stored values of a plain array of a primitive type, null as None."""
    if integers := integer_type(kind):
        return array.view(integers).to_pylist()
    values: list[Any] = array.to_pylist()
    if isinstance(kind, UUIDType):
        return [None if value is None else UUID(bytes=value) for value in values]
    return values


def integer_type(kind: IcebergType) -> pa.DataType | None:
    """The Arrow integer type in which values of a type are stored; None if they are not stored as integers."""
    bits = kind.integer_bits if isinstance(kind, PrimitiveType) else 0
    return {32: pa.int32(), 64: pa.int64()}.get(bits)


def from_stored(values: list[Any], kind: IcebergType) -> pa.Array:
    """A plain array of stored values of a primitive type (or of a struct, whose values are None or `{}`)."""
    target = to_arrow_type(kind, field_ids=False, extensions=False)
    if integers := integer_type(kind):
        return pa.array(values, integers).view(target)
    if isinstance(kind, UUIDType):
        return pa.array([None if value is None else value.bytes for value in values], target)
    return pa.array(values, target)


def constant(value: Any, kind: IcebergType, length: int, *, for_write: bool = False) -> pa.Array:
    """A plain array of one stored value; a struct's `{}` holds its fields' initial defaults, or write defaults
    `for_write`."""
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
