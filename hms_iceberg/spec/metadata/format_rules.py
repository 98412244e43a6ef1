"""What a table of a format version may have.

Source: Iceberg specification, "Primitive Types" (added by version), "Default values", Appendix E.
"""

from __future__ import annotations

from hms_iceberg.errors import InvalidSchemaError, UnsupportedError
from hms_iceberg.spec.data_types import GeographyType, GeometryType, NestedField, StructType, UnknownType, VariantType
from hms_iceberg.spec.metadata.table_metadata import SUPPORTED_FORMAT_VERSIONS
from hms_iceberg.spec.schema import Schema, check_field_ids

_ONLY_NULL = (UnknownType, VariantType, GeometryType, GeographyType)


def check_format_version(version: int) -> None:
    """Refuse a format version that this package does not write; raises UnsupportedError."""
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedError(
            f"Format version {version} is not supported; choose one of {', '.join(map(str, SUPPORTED_FORMAT_VERSIONS))}"
        )


def check_schema_version(schema: Schema, format_version: int) -> None:
    """Refuse a schema that a table of a format version cannot have.

    Raises:
        InvalidSchemaError: a type or a default value needs a newer format version; a default is given to a type that
            can only default to null, or a struct's default is not empty; or a field id is reserved.
    """
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
