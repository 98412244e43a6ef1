"""The features that a format version allows, and the properties that may be set.

Source: Iceberg specification, "Primitive Types" (added by version), "Default values", Appendix E; Iceberg
documentation, "Configuration", reserved table properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError, InvalidSchemaError, UnsupportedError
from hms_iceberg.spec.data_types import GeographyType, GeometryType, NestedField, StructType, UnknownType, VariantType
from hms_iceberg.spec.metadata.table_metadata import SUPPORTED_FORMAT_VERSIONS
from hms_iceberg.spec.schema import Schema, check_field_ids
from hms_iceberg.spec.table_properties import PARQUET_CODEC

_ONLY_NULL = (UnknownType, VariantType, GeometryType, GeographyType)


def check_format_version(version: int) -> None:
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedError(
            f"Format version {version} is not supported; choose one of {', '.join(map(str, SUPPORTED_FORMAT_VERSIONS))}"
        )


def check_schema_version(schema: Schema, format_version: int) -> None:
    """Refuses types, defaults and reserved ids that a table of the format version cannot have."""
    check_field_ids(schema)
    for field_id, field in schema.index_by_id.items():
        name = schema.find_column_name(field_id)
        needed = field.field_type.min_format_version
        if needed > format_version:
            raise InvalidSchemaError(
                f"Column {name!r} has type {field.field_type}, which needs format version {needed}; the table has "
                f"{format_version}. Set the table property 'format-version' to {needed} or choose another type"
            )
        _check_defaults(field, name, format_version)


def _check_defaults(field: NestedField, name: str | None, format_version: int) -> None:
    for what, value in (("initial", field.initial_default), ("write", field.write_default)):
        if value is None:
            continue
        if format_version < 3 and what == "initial":
            raise InvalidSchemaError(
                f"Column {name!r} has an initial default, which needs format version 3; the table has "
                f"{format_version}. Set the table property 'format-version' to 3 or leave the default out"
            )
        if isinstance(field.field_type, StructType):
            if value:
                raise InvalidSchemaError(
                    f"The {what} default of struct {name!r} holds field values; it can only be null or empty, give the "
                    "defaults to its fields instead"
                )
        elif isinstance(field.field_type, _ONLY_NULL):
            raise InvalidSchemaError(f"Column {name!r} has type {field.field_type}, whose {what} default must be null")


FORMAT_VERSION_PROPERTY = "format-version"
RESERVED_PROPERTIES = frozenset(
    {
        FORMAT_VERSION_PROPERTY,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that stand for parts of the metadata; they are never kept as properties."""

NEW_TABLE_PROPERTIES = {PARQUET_CODEC.name: PARQUET_CODEC.default}
"""Set in new tables as Java sets them: without the property, older writers would compress with gzip."""


def property_values(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as text: numbers and booleans are written as Java writes them."""
    texts: dict[str, str] = {}
    for name, value in properties.items():
        if not isinstance(name, str) or value is None or not isinstance(value, (str, int, float)):
            raise InvalidInputError(
                f"Invalid table property {name!r}: expected text, got {value!r}; remove a property instead of setting "
                "it to None"
            )
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def split_properties(properties: Mapping[str, Any]) -> tuple[dict[str, str], int | None]:
    """Properties without `format-version`, and the format version that it asks for; reserved names are refused."""
    texts = property_values(properties)
    version = texts.pop(FORMAT_VERSION_PROPERTY, None)
    reserved = sorted(RESERVED_PROPERTIES & texts.keys())
    if reserved:
        raise InvalidInputError(
            f"Table properties must not contain {', '.join(map(repr, reserved))}: these names stand for parts of the "
            "table's metadata; leave them out"
        )
    if version is None:
        return texts, None
    if not version.strip().isdigit():
        raise InvalidInputError(f"Table property 'format-version' is {version!r}, expected 1, 2 or 3")
    return texts, int(version)
