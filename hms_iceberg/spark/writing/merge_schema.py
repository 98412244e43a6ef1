"""Columns of rows that a table lacks become columns of it, before the rows are written.

Source: Iceberg documentation, "Spark Writes", "Schema Merge": the option `merge-schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from hms_iceberg.spark.ddl.column_json import iceberg_type
from hms_iceberg.spark.targets import Targets
from hms_iceberg.spark.writing.write_questions import BeginWrite
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage


def merges_schema(question: Mapping[str, Any]) -> bool:
    """Whether a write that begins is to change the table's columns."""
    settings = WriteSettings("", question["options"], question["session"], {})
    return settings.switch("merge-schema", settings.switch("mergeSchema", False), of_session=True)


def merge_schema(question: Mapping[str, Any], targets: Targets, storage: Storage) -> str:
    """Adds the columns that the rows have and the table has not, and widens types; nothing is dropped or narrowed.

    Args:
        question: see `BeginWrite`.
        targets: what is changed.
        storage: for tables by path.

    Returns:
        The metadata location of the table with these columns.

    Raises:
        InvalidSchemaChangeError: a column's type cannot become that of the rows.
        UnsupportedError: Iceberg has no type for a column of the rows.
    """
    asked = msgspec.convert(question, BeginWrite)
    with targets.transaction(question, storage) as transaction:
        own = transaction.metadata.schema()
        incoming = iceberg_type(asked.schema, asked.name, "row", count(1))
        assert isinstance(incoming, StructType)
        named = _named_as(own, incoming, asked.case_sensitive)
        transaction.update_schema(case_sensitive=asked.case_sensitive).union_by_name(named).commit()
    if "staged" in question:
        return asked.metadata_location
    return targets.catalogs.table(question, storage).metadata_location


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
