"""Columns of rows that a table lacks become columns of it, in the commit of the rows.

Source: Iceberg documentation, "Spark Writes", "Schema Merge": the option `merge-schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from hms_iceberg.spark.ddl.column_json import iceberg_type
from hms_iceberg.spark.writing.write_questions import BeginWrite, MergedColumns
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.transaction.workspace import check_new_ids
from hms_iceberg.updates.schema.schema_changes import UnionByName
from hms_iceberg.updates.schema.schema_update import SchemaUpdate


def _merges_schema(question: Mapping[str, Any]) -> bool:
    settings = WriteSettings("", question["options"], question["session"], {})
    return settings.switch("merge-schema", settings.switch("mergeSchema", False), of_session=True)


def merged_columns(question: Mapping[str, Any], metadata: TableMetadata) -> MergedColumns | None:
    """The columns and wider types that a write is to bring; None if the table is to stay as it is. Nothing is committed
    before the rows are: a write that fails leaves the table as it was."""
    if not _merges_schema(question):
        return None
    asked = msgspec.convert(question, BeginWrite)
    incoming = iceberg_type(asked.schema, asked.name, "row", count(1))
    assert isinstance(incoming, StructType)
    named = _named_as(metadata.schema(), incoming, asked.case_sensitive)
    columns = MergedColumns(schema_to_json(named), asked.case_sensitive)
    return None if with_columns(metadata, columns) is metadata else columns


def with_columns(metadata: TableMetadata, columns: MergedColumns) -> TableMetadata:
    """A table with such columns; the same object if it has them."""
    update = SchemaUpdate((UnionByName(schema_from_json(columns.schema)),), columns.case_sensitive)
    return update.edited_metadata(metadata)


def add_columns(target: TableTransaction, table: str, start: TableMetadata, columns: MergedColumns) -> TableMetadata:
    """Makes the columns part of the transaction that commits the rows, and returns the table that they were written
    for. Another commit that took the columns' ids since `start` is a conflict, as the files have them."""
    written = with_columns(start, columns)
    update = target.update_schema(case_sensitive=columns.case_sensitive)
    update.union_by_name(schema_from_json(columns.schema)).commit()
    check_new_ids(start, written, target.metadata, table)
    return written


def _named_as(own: Schema, incoming: StructType, case_sensitive: bool) -> Schema:
    """The rows' columns by the names that the table has for them."""
    names = {} if case_sensitive else {field.name.lower(): field.name for field in own.fields}
    return Schema(
        *(
            NestedField(
                field.field_id, names.get(field.name.lower(), field.name), field.field_type, field.required, field.doc
            )
            for field in incoming.fields
        )
    )
