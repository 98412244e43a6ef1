"""The rows that Spark writes, compared with the table's columns, which may be named in another case."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import child_fields, to_arrow
from hms_iceberg.arrow.columns.nested import children_of, with_children, without_nulls
from hms_iceberg.arrow.formats.file_layout import sanitized
from hms_iceberg.errors import InvalidSchemaError, SchemaMismatchError, TypeMismatchError, UnsupportedError
from hms_iceberg.spark.nanoseconds import shown_type
from hms_iceberg.spark.schemas import FIELD_ID, ICEBERG_PRIMITIVES, KIND, shape_of
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StringType,
    StructType,
    TimeType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.spec.promotion import can_promote
from hms_iceberg.spec.schema import Schema


def from_spark(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch of Spark's rows as plain columns: UUIDs as 16 bytes, times in microseconds, shapes as bytes."""
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
    if isinstance(kind, (GeometryType, GeographyType)) and pa.types.is_struct(array.type):
        return pc.struct_field(array, "wkb").cast(target)
    if isinstance(kind, NestedType):
        fields = child_fields(target)
        children = [
            _converted(child, known.field_type, field.type)
            for child, known, field in zip(children_of(array), kind.children(), fields, strict=True)
        ]
        if isinstance(kind, StructType):
            children = [_required(*each, array) for each in zip(children, kind.fields, strict=True)]
        return with_children(array, children, fields)
    return array.cast(target)


def _required(child: Any, field: NestedField, struct: Any) -> Any:
    """A field of a struct; one that is required is null only where the struct is, which Parquet's writer refuses."""
    if field.optional or not child.null_count:
        return child
    if pc.any(pc.and_(child.is_null(), struct.is_valid())).as_py():
        raise ValueError(f"the field {field.name!r} within it is required, and null")
    return without_nulls(child)


NESTED = "iceberg.nested"
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True)
class Checks:
    table: str
    case_sensitive: bool = False  # whether columns are named in their case
    nullability: bool = True  # whether columns that may have nulls are refused if the table's may not
    ordering: bool = True  # whether columns must stand in the table's order
    nanoseconds: str | None = None  # what the session takes timestamps in nanoseconds for


@dataclass(frozen=True)
class RowSchema:
    """Columns of rows as the bridge's class WriteRules takes them."""

    fields: tuple[NestedField, ...]  # the table's columns in the order of the rows
    rows: dict[str, Any]  # in Spark's JSON, with field ids and what else a writer must know
    files: dict[str, Any]  # the same under the names in files, without those that are not stored
    stored: tuple[int, ...] | None  # positions in the rows of those in files; None for all

    @classmethod
    def of(cls, incoming: Mapping[str, Any], schema: Schema, checks: Checks) -> RowSchema:
        """The columns (in Spark's JSON) of rows that go into a table; an error tells all that does not fit."""
        problems: list[str] = []
        matched = list(_matched(incoming["fields"], schema.fields, "", checks, problems))
        if problems:
            raise SchemaMismatchError(
                f"Cannot write incompatible data to the table {checks.table}. Nothing was written. Problems: "
                + "; ".join(problems)
            )
        rows = [_row_field(each, field) for each, field in matched]
        files = _file_fields([row for row in rows if row["type"] != "void"], checks.table)
        if not files:
            raise UnsupportedError(f"Cannot write to the table {checks.table}: none of the columns is stored in files.")
        positions = tuple(position for position, row in enumerate(rows) if row["type"] != "void")
        return cls(
            tuple(field for _, field in matched),
            {"type": "struct", "fields": rows},
            {"type": "struct", "fields": files},
            None if len(positions) == len(rows) else positions,
        )

    def path_to(self, schema: Schema, field_id: int) -> list[tuple[int, int]] | None:
        """Positions of a value in a row from the outside in, each with the number of fields; None if rows lack it."""
        ids = [*reversed(tuple(schema.ancestor_ids(field_id))), field_id]
        path, struct = [], self.rows
        for each in ids:
            fields = struct["fields"]
            position = next((at for at, field in enumerate(fields) if field["metadata"][FIELD_ID] == each), None)
            if position is None:
                return None
            struct = fields[position]["type"]
            path.append((position, len(struct["fields"]) if isinstance(struct, dict) and "fields" in struct else 0))
        return path

    def type_of(self, path: Sequence[tuple[int, int]]) -> Any:
        """The Spark type of what is at a path."""
        kind: Any = self.rows
        for position, _ in path:
            kind = kind["fields"][position]["type"]
        return kind


def _matched(
    incoming: Sequence[Mapping[str, Any]],
    fields: Sequence[NestedField],
    prefix: str,
    checks: Checks,
    problems: list[str],
) -> Iterator[tuple[Mapping[str, Any], NestedField]]:
    """Each incoming field with the table's field of that name, by which nested ones are found too."""

    def key(name: str) -> str:
        return name if checks.case_sensitive else name.lower()

    own = {key(field.name): (position, field) for position, field in enumerate(fields)}
    seen, last = set(), -1
    for each in incoming:
        name = prefix + each["name"]
        found = own.get(key(each["name"]))
        if found is None:
            problems.append(f"{name} is not found in the table")
            continue
        position, field = found
        if checks.ordering and position < last:
            problems.append(f"{name} is out of order, before {prefix}{fields[last].name}")
        last = max(last, position)
        seen.add(field.field_id)
        if checks.nullability and field.required and each["nullable"]:
            problems.append(f"{name} should be required, but is optional")
        yield each, _typed(each["type"], field, name, checks, problems)
    for field in fields:
        if field.field_id not in seen and field.required and field.write_default is None:
            problems.append(f"{prefix}{field.name} is required, but is missing")


def _typed(kind: Any, field: NestedField, name: str, checks: Checks, problems: list[str]) -> NestedField:
    """The table's field, restricted to the nested fields that the rows have."""
    own = _typed_kind(kind, field.field_type, name, checks, problems)
    return NestedField(field.field_id, field.name, own, field.required)


def _typed_kind(kind: Any, own: IcebergType, name: str, checks: Checks, problems: list[str]) -> IcebergType:
    if isinstance(kind, dict) and kind["type"] == "struct" and isinstance(own, StructType):
        pairs = _matched(kind["fields"], own.fields, f"{name}.", checks, problems)
        return StructType(*(field for _, field in pairs))
    if isinstance(kind, dict) and kind["type"] == "array" and isinstance(own, ListType):
        if checks.nullability and own.element_required and kind["containsNull"]:
            problems.append(f"{name}: elements should be required, but are optional")
        element = _typed_kind(kind["elementType"], own.element_type, f"{name}.element", checks, problems)
        return ListType(own.element_id, element, own.element_required)
    if isinstance(kind, dict) and kind["type"] == "map" and isinstance(own, MapType):
        if checks.nullability and own.value_required and kind["valueContainsNull"]:
            problems.append(f"{name}: values should be required, but are optional")
        key = _typed_kind(kind["keyType"], own.key_type, f"{name}.key", checks, problems)
        value = _typed_kind(kind["valueType"], own.value_type, f"{name}.value", checks, problems)
        return MapType(own.key_id, key, own.value_id, value, own.value_required)
    incoming = None if isinstance(kind, dict) else primitive(kind)
    if incoming is None or not _fits(incoming, shown_type(own, checks.nanoseconds)):
        shown = kind["type"] if isinstance(kind, dict) else kind
        problems.append(f"{name}: {shown} cannot be written as {own}")
    return own


def primitive(kind: str) -> IcebergType | None:
    """Iceberg's type for a simple type in Spark's JSON; None if there is none."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        return DecimalType(int(decimal[1]), int(decimal[2]))
    if kind.startswith("time("):
        return TimeType()
    if kind.startswith(("string", "char(", "varchar(")):
        return StringType()
    return ICEBERG_PRIMITIVES.get(kind) or shape_of(kind)


def _fits(incoming: IcebergType, own: IcebergType) -> bool:
    if isinstance(own, UUIDType):
        return isinstance(incoming, StringType)
    if isinstance(own, FixedType):
        return isinstance(incoming, BinaryType)
    return incoming == own or can_promote(incoming, own, 2)


def _row_field(each: Mapping[str, Any], field: NestedField) -> dict[str, Any]:
    """A field in Spark's JSON with the ids of everything in it."""
    nested: dict[str, Any] = {}
    kind = _row_type(each["type"], field.field_type, "", nested, field.name)
    metadata: dict[str, Any] = {FIELD_ID: field.field_id}
    if nested:
        metadata[NESTED] = json.dumps(nested)
    if isinstance(field.field_type, UUIDType):
        metadata[KIND] = "uuid"
    return {"name": field.name, "type": kind, "nullable": not field.required, "metadata": metadata}


def _row_type(kind: Any, own: IcebergType, path: str, nested: dict[str, Any], name: str) -> Any:
    if isinstance(own, StructType):
        pairs = zip(kind["fields"], own.fields, strict=True)
        return {"type": "struct", "fields": [_row_field(each, field) for each, field in pairs]}
    if isinstance(own, ListType):
        nested[path + "e"] = {"id": own.element_id}
        element = _row_type(kind["elementType"], own.element_type, path + "e", nested, name)
        return {"type": "array", "elementType": element, "containsNull": not own.element_required}
    if isinstance(own, MapType):
        nested[path + "k"], nested[path + "v"] = {"id": own.key_id}, {"id": own.value_id}
        return {
            "type": "map",
            "keyType": _row_type(kind["keyType"], own.key_type, path + "k", nested, name),
            "valueType": _row_type(kind["valueType"], own.value_type, path + "v", nested, name),
            "valueContainsNull": not own.value_required,
        }
    if isinstance(own, UnknownType) and path:
        raise UnsupportedError(f"Cannot write column {name!r}: lists and maps of type unknown have no form in files.")
    if isinstance(own, UUIDType):
        nested.setdefault(path, {})["length"] = -1
    elif isinstance(own, FixedType):
        nested.setdefault(path, {})["length"] = own.length
    return kind


def _file_fields(rows: Sequence[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    names: dict[str, str] = {}
    for row in rows:
        other = names.setdefault(sanitized(row["name"]), row["name"])
        if other != row["name"]:
            raise InvalidSchemaError(
                f"Cannot write to the table {table}: its columns {other!r} and {row['name']!r} would have the same "
                f"name in files, {sanitized(other)!r}. Rename one of them. Nothing was written."
            )
    return [
        {**row, "name": sanitized(row["name"]), "type": _file_type(row["type"], row["name"], table)} for row in rows
    ]


def _file_type(kind: Any, name: str, table: str) -> Any:
    if not isinstance(kind, dict):
        if kind == "void":
            raise UnsupportedError(f"Cannot write column {name!r}: Spark cannot leave a field of type void out of it.")
        return kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": _file_fields(kind["fields"], table)}
    inner = ("elementType",) if kind["type"] == "array" else ("keyType", "valueType")
    return {**kind, **{each: _file_type(kind[each], name, table) for each in inner}}
