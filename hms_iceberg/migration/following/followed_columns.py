"""The columns of a Hive table under the field ids that the table which follows it has for them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import count

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.metadata.metadata_changes import set_current_schema
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace

_IDS = re.compile(r"\b\d+: ")


def numbered_as(metadata: TableMetadata, schema: Schema, renewed: Collection[str] = ()) -> Schema:
    """A schema with the ids that a table has for the same columns; others get ids that the table never had.

    A column is the same by its name and type, whatever kind of timestamps it holds.

    Args:
        metadata: the table.
        schema: the columns, with any ids.
        renewed: columns that get new ids in any case.
    """
    known = {field.name: field for field in metadata.schema().fields}
    same = (
        known[field.name]
        for field in schema.fields
        if field.name in known
        and field.name not in renewed
        and _shape(known[field.name].field_type) == _shape(field.field_type)
    )
    return assign_fresh_ids(schema, count(metadata.last_column_id + 1).__next__, Schema(*same))


def retyped(metadata: TableMetadata, schema: Schema) -> frozenset[str]:
    """Columns of a schema that have the id of a table's column, and not its type."""
    now = metadata.schema()
    return frozenset(
        field.name
        for field in schema.fields
        if now.has_field(field.field_id) and now.find_type(field.field_id) != field.field_type
    )


def _shape(kind: IcebergType) -> str:
    return _IDS.sub("", str(kind)).replace("timestamptz", "timestamp")


@dataclass(frozen=True)
class TakeColumns(Update):
    """Gives a table the columns of its source, numbered already.

    Attributes:
        schema: the columns.
    """

    schema: Schema

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses a schema that was changed concurrently."""
        if not base.schema().same_as(start.schema()):
            raise CommitConflictError(f"The columns of the table at {base.location} were changed meanwhile.")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with these columns; the same object if it has them."""
        if base.schema().same_as(self.schema):
            return base
        changed = set_current_schema(base, self.schema)
        return replace(changed, last_column_id=max(base.last_column_id, self.schema.highest_field_id))
