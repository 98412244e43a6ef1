"""Columns and types as Spark names them in JSON, as Iceberg's."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import count
from typing import Any

import msgspec

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spark.schemas import ICEBERG_PRIMITIVES, shape_of
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimeType,
    UnknownType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_TEXT = re.compile(r"(char|varchar)\(\d+\)")
_TIME = re.compile(r"time\(([0-6])\)")
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATIONS = "__COLLATIONS"


class ColumnDefinition(msgspec.Struct, frozen=True):
    name: str
    type: Any  # in Spark's JSON
    nullable: bool = True
    comment: str | None = None
    # a list of its one default value, as the bridge's class Defaults gives it; None if there is none
    default: list[Any] | None = None


def schema_of(columns: Sequence[ColumnDefinition], table: str) -> Schema:
    """The schema of a new table; ids are only those by which its parts know each other."""
    ids = count(1)
    return Schema(*(field_of(column, table, ids) for column in columns))


def field_of(column: ColumnDefinition, table: str, ids: Iterator[int]) -> NestedField:
    """A column of Spark's as one of Iceberg's, whose ids the caller gives."""
    kind = iceberg_type(column.type, table, column.name, ids)
    default = stored_default(column, kind, table)
    return NestedField(
        next(ids),
        column.name,
        kind,
        not column.nullable,
        column.comment,
        initial_default=default,
        write_default=default,
    )


def iceberg_type(kind: Any, table: str, column: str, ids: Iterator[int]) -> IcebergType:
    """A type in Spark's JSON as Iceberg's; an UnsupportedError names the table and the column."""
    if isinstance(kind, str):
        return _primitive(kind, table, column)
    if kind["type"] == "struct":
        return StructType(*(_field(field, table, column, ids) for field in kind["fields"]))
    if kind["type"] == "array":
        element = iceberg_type(kind["elementType"], table, f"{column}.element", ids)
        return ListType(next(ids), element, element_required=not kind["containsNull"])
    if kind["type"] == "map":
        key = iceberg_type(kind["keyType"], table, f"{column}.key", ids)
        value = iceberg_type(kind["valueType"], table, f"{column}.value", ids)
        return MapType(next(ids), key, next(ids), value, value_required=not kind["valueContainsNull"])
    raise _unsupported(kind["type"], table, column)


def _field(field: dict[str, Any], table: str, column: str, ids: Iterator[int]) -> NestedField:
    metadata, name = field.get("metadata") or {}, f"{column}.{field['name']}"
    if any(not each.endswith("UTF8_BINARY") for each in metadata.get(_COLLATIONS, {}).values()):
        raise _unsupported("string with a collation", table, name)
    kind = iceberg_type(metadata.get(_CHAR_TYPE) or field["type"], table, name, ids)
    return NestedField(next(ids), field["name"], kind, not field["nullable"], metadata.get("comment"))


def _primitive(name: str, table: str, column: str) -> IcebergType:
    known = ICEBERG_PRIMITIVES.get(name) or shape_of(name)
    if known is not None:
        return known
    if match := _DECIMAL.fullmatch(name):
        return DecimalType(int(match[1]), int(match[2]))
    if _TEXT.fullmatch(name):
        return StringType()
    if _TIME.fullmatch(name):
        return TimeType()
    raise _unsupported(name, table, column)


def _unsupported(kind: str, table: str, column: str) -> UnsupportedError:
    return UnsupportedError(
        f"Unsupported type {kind} of the column {column} of the Iceberg table {table}: Iceberg cannot hold it. Nothing "
        "was changed. Use another type, such as string or long."
    )


def stored_default(column: ColumnDefinition, kind: IcebergType, table: str) -> Any:
    """The default of a column as tables store it; None if it has none. Nested types cannot have one."""
    if column.default is None or column.default[0] is None:
        return None
    if not kind.is_primitive or isinstance(kind, (UnknownType, VariantType)):
        raise UnsupportedError(
            f"Unsupported default of the column {column.name} of the Iceberg table {table}: a default of type {kind} "
            "cannot be stored. Nothing was changed. Leave the default out."
        )
    return _stored(kind, column.default[0])


def _stored(kind: IcebergType, value: Any) -> Any:
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if isinstance(kind, BinaryType):
        return bytes.fromhex(value)
    if isinstance(kind, (FloatType, DoubleType)):
        return float(value) if isinstance(value, str) else math.fsum((value,))
    return value // 1000 if isinstance(kind, TimeType) else value
