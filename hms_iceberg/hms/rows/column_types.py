"""Iceberg columns as Hive columns, which a table's row shows to readers of the metastore.

Iceberg's own readers take the schema from the metadata file; these columns are for everybody else. Every type has a
Hive type, as Spark refuses a whole row for one type name that it cannot parse.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.spec.data_types import (
    ZONED_TIMESTAMPS,
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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    fold_type,
)
from hms_iceberg.spec.schema import Schema

logger = logging.getLogger(__name__)

MAX_COMMENT_LENGTH = 256  # of COLUMNS_V2.COMMENT, in all versions of Hive

_NAMES: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "string",
    TimestampType: "timestamp",
    TimestampNanoType: "timestamp",
    StringType: "string",
    UUIDType: "string",
    FixedType: "binary",
    BinaryType: "binary",
    # Not of Hive: shown as what comes nearest and every reader of the metastore knows.
    UnknownType: "void",
    VariantType: "binary",
    GeometryType: "binary",
    GeographyType: "binary",
}

_PLAIN_NAME = re.compile(r"\w+", re.ASCII)

_warned: set[tuple[str, int, str]] = set()


@dataclass(frozen=True)
class ColumnOptions:
    """How columns are shown; types longer than `max_type_length` are shown as `string` (0 for no limit).
    `local_time_zone` shows a timestamp with zone as `timestamp with local time zone` rather than `timestamp`."""

    local_time_zone: bool = False
    max_type_length: int = 32672


def hive_type(kind: IcebergType, local_time_zone: bool = False) -> str:
    """The name of the Hive type that shows an Iceberg type, such as `array<struct<a:int,b:decimal(9,2)>>`."""
    return fold_type(
        kind,
        leaf=lambda each: _leaf_type(each, local_time_zone),
        struct=lambda each, types: f"struct<{','.join(map(_member, each.fields, types))}>",
        list=lambda _, element: f"array<{element}>",
        map=lambda _, key, value: f"map<{key},{value}>",
    )


def _leaf_type(kind: IcebergType, local_time_zone: bool) -> str:
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, ZONED_TIMESTAMPS):
        return "timestamp with local time zone" if local_time_zone else "timestamp"
    return _NAMES[type(kind)]


def _member(field: NestedField, kind: str) -> str:
    """A member of a struct; its name is quoted, as Spark reads it, if it is no plain word."""
    name = field.name if _PLAIN_NAME.fullmatch(field.name) else f"`{field.name.replace('`', '``')}`"
    return f"{name}:{kind}"


def check_column_names(before: Schema | None, after: Schema, table: str) -> None:
    """Refuses new names that differ from another column's in case only: names of a metastore's columns have no case.
    Names of fields within a struct are part of its type, whose text the metastore does not read."""
    had = set() if before is None else {field.name for field in before.fields}
    alike: dict[str, str] = {}
    for name in (field.name for field in after.fields):
        other = alike.setdefault(name.lower(), name)
        if other != name and not {name, other} <= had:
            raise InvalidSchemaError(
                f"Table {table} cannot have both the columns {other!r} and {name!r}: they differ in case only, which a "
                "metastore does not tell apart. Nothing was changed. Give one of them another name."
            )


def hive_columns(schema: Schema, options: ColumnOptions, table: str) -> list[ttypes.FieldSchema]:
    """The columns of a row of the metastore. Names that differ in case only are one name to a metastore: all but the
    first get their field id appended. Comments are cut at the metastore's limit."""
    taken: set[str] = set()
    columns = []
    for field in schema.fields:
        name = field.name if field.name.lower() not in taken else f"{field.name}_{field.field_id}"
        taken.add(name.lower())
        comment = field.doc[:MAX_COMMENT_LENGTH] if field.doc else None
        columns.append(ttypes.FieldSchema(name=name, type=_shown_type(field, options, table), comment=comment))
    return columns


def _shown_type(field: NestedField, options: ColumnOptions, table: str) -> str:
    text = hive_type(field.field_type, options.local_time_zone)
    if options.max_type_length and len(text) > options.max_type_length:
        reason = (
            f"its type has {len(text)} characters, and the limit is {options.max_type_length} "
            "(iceberg.hive.table-property-max-size)"
        )
    elif "`" in text:
        # Hive's parser of types knows no quoted names, and Spark's no odd ones without quotes.
        reason = "a field within it has a name that Hive cannot hold"
    else:
        return text
    if (table, field.field_id, reason) in _warned:  # once, and not with every commit
        return "string"
    _warned.add((table, field.field_id, reason))
    logger.warning(
        "Column %r of table %s is shown as `string` in the metastore: %s. The table's own schema is not affected",
        field.name,
        table,
        reason,
    )
    return "string"
