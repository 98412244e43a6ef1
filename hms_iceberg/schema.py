"""PyIceberg's module path of schemas: `hms_iceberg.spec.schema`."""

from __future__ import annotations

from collections.abc import Collection

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.schema import (
    Schema,
)
from hms_iceberg.spec.schema import (
    assign_fresh_ids as assign_fresh_schema_ids,
)


def index_by_id(schema: Schema) -> dict[int, NestedField]:
    """The fields of a schema by id, nested ones included."""
    return dict(schema.index_by_id)


def index_by_name(schema: Schema) -> dict[str, int]:
    """The id of every field by its dotted name."""
    return dict(schema.index_by_name)


def prune_columns(schema: Schema, selected: Collection[int], select_full_types: bool = True) -> Schema:
    """The schema of the selected fields, and of what encloses them.

    Args:
        schema: the table's schema.
        selected: ids of the fields.
        select_full_types: whether a selected field is kept whole.

    Raises:
        UnsupportedError: structs are wanted without their fields.
    """
    if not select_full_types:
        raise UnsupportedError("prune_columns: a field is kept with all that is in it. Leave select_full_types True.")
    return schema.select_ids(selected)


__all__ = [
    "Schema",
    "assign_fresh_schema_ids",
    "index_by_id",
    "index_by_name",
    "prune_columns",
]
