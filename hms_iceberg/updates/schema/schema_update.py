"""Evolving the schema: a pending update of named changes."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.errors import CommitConflictError, InvalidSchemaChangeError, UnknownColumnError
from hms_iceberg.spec.field_mapping import NAME_MAPPING_PROPERTY, update_name_mapping
from hms_iceberg.spec.metadata.metadata_definition import remove_properties, set_current_schema, set_properties
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.promotion import keeps_results
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import (
    COLUMN_METRICS_MODE,
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_NDV,
    PARQUET_STATISTICS,
)
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.schema.schema_changes import SchemaChange, touched
from hms_iceberg.updates.schema.schema_editor import SchemaEditor

# Properties that end with a column's name follow the column when it is renamed or dropped.
COLUMN_PROPERTY_PREFIXES = (
    COLUMN_METRICS_MODE.name,
    PARQUET_BLOOM_ENABLED.name,
    PARQUET_BLOOM_FPP.name,
    PARQUET_BLOOM_NDV.name,
    PARQUET_STATISTICS.name,
)


@dataclass(frozen=True)
class SchemaUpdate(Update):
    """Changes of columns by name; field ids of new columns are drawn at each replay. Updates commute if they touch
    different columns: what this one relies on, or a name that both bring, is a conflict."""

    changes: tuple[SchemaChange, ...]
    case_sensitive: bool = True
    allow_incompatible_changes: bool = False

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses columns that were changed, and names that were taken, since `start`."""
        old, new = start.schema(), base.schema()
        for change, path in touched(self.changes):
            self._check_unchanged(change, ".".join(path), old, new, base)
        for change in self.changes:
            for path in change.adds():
                name = ".".join(path)
                if self._find(name, new) is not None and self._find(name, old) is None:
                    raise CommitConflictError(
                        f"Cannot {change} in ",
                        base.location,
                        f": a concurrent commit brought a column of that name "
                        f"({new.find_field(name, self.case_sensitive)}). Refresh the table and decide again.",
                    )

    def _check_unchanged(self, change: SchemaChange, name: str, old: Schema, new: Schema, base: TableMetadata) -> None:
        field_id = self._find(name, old)
        if field_id is None:
            return  # a column that this transaction adds itself
        before = old.find_field(field_id)
        after = new.index_by_id.get(field_id)
        if after != before or new.find_column_name(field_id) != old.find_column_name(field_id):
            fate = "dropped it" if after is None else f"made it {new.find_column_name(field_id)!r}, {after}"
            raise CommitConflictError(
                f"Cannot {change} in ",
                base.location,
                f": the column was {before} when the change was made, and a concurrent commit {fate}. Refresh the "
                "table and decide again.",
            )

    def _find(self, name: str, schema: Schema) -> int | None:
        try:
            return schema.find_id(name, self.case_sensitive)
        except UnknownColumnError:
            return None

    def edited(self, base: TableMetadata) -> SchemaEditor:
        """The schema of `base` with all changes made, not checked as a whole."""
        editor = SchemaEditor(
            base.schema(),
            base.last_column_id,
            base.format_version,
            self.case_sensitive,
            self.allow_incompatible_changes,
        )
        for change in self.changes:
            change.edit(editor)
        return editor

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """See :meth:`edited_metadata`; no file is written."""
        return self.edited_metadata(base)

    def edited_metadata(self, base: TableMetadata) -> TableMetadata:
        """The metadata with a new current schema; the same object if nothing changes."""
        old = base.schema()
        new = self.edited(base).build()
        if new.same_as(old):
            return base
        check_sources(base, old, new)
        return _follow_columns(set_current_schema(base, new), old, new)


def check_sources(base: TableMetadata, old: Schema, new: Schema) -> None:
    """Refuses to drop columns that the current partition spec or sort order needs, and to retype columns so that
    partition values which are written already would mean something else."""
    uses = [(field.source_id, field.transform, f"partition field {field.name!r}") for field in base.spec().fields]
    uses += [(field.source_id, field.transform, "the table's sort order") for field in base.sort_order().fields]
    for source_id, transform, use in uses:
        if transform.is_void or not old.has_field(source_id):
            continue
        name = old.find_column_name(source_id)
        if not new.has_field(source_id):
            raise InvalidSchemaChangeError(
                f"Cannot drop column {name!r} of the table at {base.location}: {use} is made from it. Remove it from "
                "the partition spec or sort order first."
            )
        if not transform.can_transform(new.find_type(source_id)):
            raise InvalidSchemaChangeError(
                f"Cannot change column {name!r} of the table at {base.location} to {new.find_type(source_id)}: {use} "
                f"({transform}) cannot be made from it. Remove it first."
            )
    for field in (field for spec in base.partition_specs for field in spec.fields):
        if not (old.has_field(field.source_id) and new.has_field(field.source_id)):
            continue
        before, after = old.find_type(field.source_id), new.find_type(field.source_id)
        if not keeps_results(field.transform, before, after):
            raise InvalidSchemaChangeError(
                f"Cannot change column {old.find_column_name(field.source_id)!r} of the table at {base.location} from "
                f"{before} to {after}: files were partitioned by {field.name!r} ({field.transform}), whose values "
                "would mean something else. Add a new column of that type instead."
            )


def _follow_columns(metadata: TableMetadata, old: Schema, new: Schema) -> TableMetadata:
    """Keeps the name mapping and the properties of single columns in step with the schema."""
    updates: dict[str, str] = {}
    removals: set[str] = set()
    mapping = metadata.name_mapping()
    if mapping is not None:
        updates[NAME_MAPPING_PROPERTY] = update_name_mapping(mapping, old, new).to_json()
    for before, field_id in old.index_by_name.items():
        name = new.find_column_name(field_id)
        if name == old.find_column_name(field_id):
            continue
        for prefix in COLUMN_PROPERTY_PREFIXES:
            value = metadata.properties.get(prefix + before)
            if value is not None:
                removals.add(prefix + before)
                if name is not None:
                    updates[prefix + name] = value
    return remove_properties(set_properties(metadata, updates), removals - updates.keys())
