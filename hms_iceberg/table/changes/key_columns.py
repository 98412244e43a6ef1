"""Key columns: those by which rows of a source and of a table are the same, and a filter for rows of some keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import to_stored
from hms_iceberg.arrow.columns.nested import combine
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.literals import Literal, stored_literal
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThanOrEqual,
    Or,
)
from hms_iceberg.scan.manifests.manifest_source import named_table
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.changes.row_change import RowChange

# Larger batches where keys are looked up, since each look-up has a cost of its own.
KEY_BATCH_ROWS = 1 << 20
_IN_LIMIT = 200
_BOUNDED = (IntegerType, LongType, StringType, BinaryType, DateType, DecimalType, TimestampType, TimestamptzType)


@dataclass(frozen=True)
class KeyColumn:
    """One column of the key, by its dotted name: at the top level, or within structs."""

    name: str
    path: tuple[str, ...]
    field: NestedField

    def values(self, rows: pa.Table | pa.RecordBatch, names: Sequence[str] | None = None) -> Any:
        """The column of some rows; null if a struct around it is. `names` are of their columns, if not the table's."""
        column = rows.column((names or rows.schema.names).index(self.path[0]))
        for name in self.path[1:]:
            column = pc.struct_field(column, name)
        return column


def key_columns(change: RowChange, names: Sequence[str], argument: str) -> list[KeyColumn]:
    """The columns that make up the key of a change; `argument` is what names them, for messages."""
    schema = change.metadata.schema()
    with named_table(change.metadata.location, change.table):
        fields = [schema.find_field(name, change.options.case_sensitive) for name in names]
    keys = []
    for name, field in zip(names, fields, strict=True):
        path = _path(schema, field)
        if not field.field_type.is_primitive or path is None:
            raise InvalidInputError(
                f"Cannot {change.action} table {change.table} by column {name!r} of type {field.field_type}: keys are "
                "columns of primitive types, at the top level or in structs."
            )
        keys.append(KeyColumn(".".join(path), path, field))
    if len({field.field_id for field in fields}) != len(fields):
        raise InvalidInputError(
            f"Cannot {change.action} table {change.table}: {argument} names a column twice: {list(names)}."
        )
    return keys


def _path(schema: Schema, field: NestedField) -> tuple[str, ...] | None:
    """The names that lead to a field through structs; None if a list or map is on the way."""
    path: tuple[str, ...] = (field.name,)
    parent = schema.parent_ids.get(field.field_id)
    while parent is not None:
        above = schema.index_by_id[parent]
        if not isinstance(above.field_type, StructType):
            return None
        path, parent = (above.name, *path), schema.parent_ids.get(parent)
    return path


def key_of(keys: Sequence[KeyColumn], rows: pa.Table, row: int) -> dict[str, Any]:
    """The key of a row, for messages; times that Python does not have are integers."""
    found = {}
    for key in keys:
        one = combine(key.values(rows).slice(row, 1))
        try:
            found[key.name] = one[0].as_py()
        except (OverflowError, ValueError):
            (found[key.name],) = to_stored(one, key.field.field_type)
    return found


def keys_filter(keys: Sequence[KeyColumn], columns: Sequence[pa.ChunkedArray]) -> BooleanExpression:
    """A filter for the rows of the table that may have one of some keys, which come column by column."""
    expression: BooleanExpression = AlwaysTrue()
    for key, column in zip(keys, columns, strict=True):
        # Not every writer counts the nulls of a field whose struct is null.
        if not column.null_count or len(key.path) == 1:
            expression = And(expression, _key_filter(key.name, key.field, column))
    return expression


def _key_filter(name: str, field: NestedField, column: pa.ChunkedArray) -> BooleanExpression:
    """A filter for one key column: equal to one of a few values, or within their bounds."""
    if not isinstance(field.field_type, _BOUNDED):
        return AlwaysTrue()
    if column.null_count == len(column):
        return IsNull(name) if column.null_count else AlwaysFalse()
    expression: BooleanExpression
    unique = pc.unique(column.drop_null()) if len(column) <= 100_000 else None
    if unique is not None and len(unique) <= _IN_LIMIT:
        expression = In(name, _literals(unique, field))
    else:
        bounds = pc.min_max(column)
        low, high = _literals(pa.array([bounds["min"], bounds["max"]], column.type), field)
        expression = And(GreaterThanOrEqual(name, low), LessThanOrEqual(name, high))
    return Or(expression, IsNull(name)) if column.null_count else expression


def _literals(values: pa.Array, field: NestedField) -> list[Literal]:
    """Values as literals; by their stored form, since Python has no dates beyond the year 9999."""
    return [stored_literal(each, field.field_type) for each in to_stored(values, field.field_type)]
