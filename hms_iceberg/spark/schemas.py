"""Iceberg schemas as Spark's, in Spark's JSON, with what the reader must know in the metadata of each field."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spark.nanoseconds import chosen, has_nanoseconds
from hms_iceberg.spec.data_types import (
    DEFAULT_CRS,
    DEFAULT_EDGE_ALGORITHM,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    NestedType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    fold_type,
    leaves,
    parse_primitive,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POSITION,
    ROW_ID,
    SPEC_ID,
    partition_column,
)
from hms_iceberg.spec.schema import Schema

FIELD_ID = "parquet.field.id"
_UNKNOWN = "iceberg:"
KIND = "iceberg.type"
INITIAL_DEFAULT = "iceberg.initial-default"
WRITE_DEFAULT = "iceberg.write-default"

_PRIMITIVES: Mapping[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "time(6)",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
    StringType: "string",
    UUIDType: "string",
    BinaryType: "binary",
    FixedType: "binary",
    UnknownType: "void",
    VariantType: "variant",
}
# Among the types that Spark lacks (the bridge's class UnsupportedTypes): it knows no Parquet files of shapes.
SHAPES_IN_PARQUET = "shapes in parquet"
# The coordinate reference systems that Spark knows.
_SYSTEMS = (DEFAULT_CRS, "EPSG:3857", "SRID:0")
# What the simple types of Spark's JSON are in Iceberg.
ICEBERG_PRIMITIVES: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "byte": IntegerType(),
    "short": IntegerType(),
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "string collate UTF8_BINARY": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "void": UnknownType(),
    "variant": VariantType(),
}


def spark_schema(schema: Schema, table: str) -> dict[str, Any]:
    """A schema in Spark's JSON. The bridge's class UnsupportedTypes knows what to do with a type that Spark cannot
    hold: "iceberg:" and its name."""
    return {"type": "struct", "fields": [spark_field(field, table, True) for field in schema.fields]}


def is_held(field_type: IcebergType, lacking_types: Collection[str] = ()) -> bool:
    """Whether Spark, but for the types that this version lacks, can hold the values of a type."""
    return all(
        not _leaf_type(each).startswith(_UNKNOWN) and str(each).partition("(")[0] not in lacking_types
        for each in leaves(field_type)
    )


def spark_type(field_type: IcebergType, table: str, column: str, keep_unsupported: bool = False) -> Any:
    """A type in Spark's JSON: a name or an object; one that Spark cannot hold is refused, or kept by its name."""
    if not keep_unsupported:
        _check_held(field_type, table, column)
    return fold_type(
        field_type,
        leaf=_leaf_type,
        struct=lambda each, types: {"type": "struct", "fields": list(map(_described, each.fields, types))},
        list=lambda each, element: {"type": "array", "elementType": element, "containsNull": not each.element_required},
        map=lambda each, key, value: {
            "type": "map",
            "keyType": key,
            "valueType": value,
            "valueContainsNull": not each.value_required,
        },
    )


def _leaf_type(kind: IcebergType) -> str:
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, GeometryType) and kind.crs.upper() in _SYSTEMS:
        return f"geometry({kind.crs.upper()})"
    if kind == GeographyType():
        return f"geography({DEFAULT_CRS}, {DEFAULT_EDGE_ALGORITHM.upper()})"
    return _PRIMITIVES.get(type(kind)) or f"{_UNKNOWN}{kind}"


def shape_of(name: str) -> IcebergType | None:
    """Iceberg's type for one of Spark's types of shapes, in Spark's JSON; None for others, and for mixed systems."""
    if not name.startswith(("geometry(", "geography(")) or "SRID:ANY" in name.upper():
        return None
    return parse_primitive(name)


def needs_python(schema: Schema, lacking_types: Collection[str]) -> bool:
    """Whether Python reads and writes the Parquet files of a table in place of Spark, which would fail on them."""
    kinds = (
        [type(field.field_type) for field in schema.index_by_id.values()] if SHAPES_IN_PARQUET in lacking_types else ()
    )
    if GeometryType in kinds or GeographyType in kinds:
        return True
    return chosen(lacking_types) is not None and has_nanoseconds(schema)


def is_read_by_spark(metadata: TableMetadata, lacking_types: Collection[str]) -> bool:
    """Whether no file that a table can have is one that only Python workers read, whatever its format."""
    if metadata.encryption_keys or "encryption.key-id" in metadata.properties:
        return False
    return not any(
        has_nanoseconds(schema)
        or any(
            isinstance(field.field_type, (VariantType, GeometryType, GeographyType))
            or not is_held(field.field_type, lacking_types)
            for field in schema.index_by_id.values()
        )
        for schema in metadata.schemas
    )


def _check_held(kind: IcebergType, table: str, column: str) -> None:
    if isinstance(kind, NestedType):
        for child in kind.children():
            _check_held(child.field_type, table, f"{column}.{child.name}")
    elif not is_held(kind):
        raise UnsupportedError(
            f"Cannot read the table {table} from Spark: its column {column} has the type {kind}, which Spark "
            "cannot hold. Read the table with the Python API (load_table(...).scan().to_arrow())."
        )


def spark_field(field: NestedField, table: str, keep_unsupported: bool = False) -> dict[str, Any]:
    """A column in Spark's JSON; see `spark_type`."""
    described = _described(field, spark_type(field.field_type, table, field.name, keep_unsupported))
    if field.write_default is not None and field.field_type.is_primitive and is_held(field.field_type):
        described["metadata"][WRITE_DEFAULT] = json.dumps(spark_value(field.field_type, field.write_default))
    return described


def _described(field: NestedField, kind: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {FIELD_ID: field.field_id}
    if field.doc:
        metadata["comment"] = field.doc
    if isinstance(field.field_type, UUIDType):
        metadata[KIND] = "uuid"
    if field.initial_default is not None and is_held(field.field_type):
        metadata[INITIAL_DEFAULT] = json.dumps(spark_value(field.field_type, field.initial_default))
    return {"name": field.name, "type": kind, "nullable": not field.required, "metadata": metadata}


def metadata_schema(metadata: TableMetadata, schema: Schema) -> dict[str, Any]:
    """The metadata columns that can be asked for, in Spark's JSON; a column of the table hides its namesake."""
    columns = [FILE, POSITION, DELETED, SPEC_ID, partition_column(metadata.partition_specs, schema)]
    if metadata.format_version >= 3:
        columns += [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]
    fields = []
    for column in columns:
        field = spark_field(column, "", keep_unsupported=True)
        field["metadata"][KIND] = "metadata"
        fields.append({**field, "nullable": True})
    return {"type": "struct", "fields": fields}


def key_schema(field_ids: Sequence[int], schema: Schema, metadata: TableMetadata, table: str) -> dict[str, Any]:
    """The key columns of equality deletes in Spark's JSON, nested ones as a path of structs, of the schema that is
    read, or else the newest that had them. Keys inside of lists and maps are refused."""
    newest_first = sorted(metadata.schemas, key=lambda each: each.schema_id, reverse=True)
    top: dict[int, NestedField] = {}
    for field_id in field_ids:
        owner = next((each for each in (schema, *newest_first) if field_id in each.index_by_id), None)
        if owner is None:
            raise UnsupportedError(
                f"Cannot read the table {table}: rows of it are deleted by the column with id {field_id}, which no "
                "schema of the table has any more. Compact the table with an engine that wrote it."
            )
        path = _path(owner, field_id, table)
        known = top.get(path.field_id)
        top[path.field_id] = path if known is None else _merged(known, path)
    return {"type": "struct", "fields": [spark_field(field, table) for field in top.values()]}


def _path(schema: Schema, field_id: int, table: str) -> NestedField:
    field = schema.index_by_id[field_id]
    current = NestedField(field.field_id, field.name, field.field_type, False, initial_default=field.initial_default)
    parent = schema.parent_ids.get(field_id)
    while parent is not None:
        owner = schema.index_by_id[parent]
        if not isinstance(owner.field_type, StructType):
            raise UnsupportedError(
                f"Cannot read the table {table}: rows of it are deleted by {schema.find_column_name(field_id)}, a "
                "field inside of a list or map."
            )
        current = NestedField(owner.field_id, owner.name, StructType(current), False)
        parent = schema.parent_ids.get(parent)
    return current


def _merged(left: NestedField, right: NestedField) -> NestedField:
    assert isinstance(left.field_type, StructType) and isinstance(right.field_type, StructType)
    fields = {field.field_id: field for field in left.field_type.fields}
    for field in right.field_type.fields:
        known = fields.get(field.field_id)
        fields[field.field_id] = field if known is None else _merged(known, field)
    return NestedField(left.field_id, left.name, StructType(*fields.values()), False)


def spark_value(field_type: IcebergType, value: Any) -> Any:
    """A stored value as JSON that the bridge's class Values reads as Spark's internal form of it. Text for decimals,
    UUIDs, bytes (hexadecimal) and floats that JSON lacks; nanoseconds for times."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray)):
        if isinstance(field_type, UUIDType):
            text = bytes(value).hex()
            return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        return bytes(value).hex()
    if isinstance(field_type, TimeType):
        return value * 1000
    return value if isinstance(value, int) else str(value)
