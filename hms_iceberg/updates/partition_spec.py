"""Evolving the partition spec: fields are added, removed and renamed by name.

Source: Iceberg specification, "Partition Evolution".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hms_iceberg.errors import CommitConflictError, InvalidPartitionSpecError, UnknownColumnError
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.metadata.metadata_definition import set_default_spec
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    Transform,
    VoidTransform,
)
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class AddPartitionField:
    """Partitions by `transform` of a column, from the next write on; the name is made of both if it is None."""

    source: str
    transform: Transform
    name: str | None = None

    def __str__(self) -> str:
        return f"add partition field {self.transform}({self.source})"


@dataclass(frozen=True)
class RemovePartitionField:
    """Removes a field by its name, or by its column and transform."""

    name: str | None = None
    source: str | None = None
    transform: Transform | None = None

    def __str__(self) -> str:
        return f"remove partition field {self.name or f'{self.transform}({self.source})'!r}"


@dataclass(frozen=True)
class RenamePartitionField:
    """Renames a field."""

    name: str
    new_name: str

    def __str__(self) -> str:
        return f"rename partition field {self.name!r} to {self.new_name!r}"


PartitionChange = AddPartitionField | RemovePartitionField | RenamePartitionField


@dataclass(frozen=True)
class PartitionSpecUpdate(Update):
    """Changes of the default spec. Data that is written already keeps the spec that it was written with. Two updates
    commute if they change different fields and the source columns are unchanged."""

    changes: tuple[PartitionChange, ...]
    case_sensitive: bool = True

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses fields and source columns that were changed since `start`."""
        for change in self.changes:
            if isinstance(change, AddPartitionField):
                self._check_source(change, start, base)
                self._check_new(change, start, base)
            else:
                self._check_field(change, start, base)

    def _check_source(self, change: AddPartitionField, start: TableMetadata, base: TableMetadata) -> None:
        before = _column(change.source, start.schema(), self.case_sensitive)
        if before is None:
            return  # a column of an earlier update of the transaction
        after = base.schema().index_by_id.get(before.field_id)
        if after is None or after.field_type != before.field_type:
            fate = "dropped it" if after is None else f"made it {after}"
            raise CommitConflictError(
                f"Cannot {change} in ",
                base.location,
                f": column {before} was changed, a concurrent commit {fate}. Refresh the table and decide again.",
            )

    def _check_new(self, change: AddPartitionField, start: TableMetadata, base: TableMetadata) -> None:
        name = change.name or default_name(change.source, change.transform)
        source = _column(change.source, start.schema(), self.case_sensitive)
        known = {field.field_id for field in start.spec().fields}
        for field in base.spec().fields:
            same = source is not None and field.source_id == source.field_id and field.transform == change.transform
            if field.field_id not in known and (same or field.name == name):
                raise CommitConflictError(
                    f"Cannot {change} in ",
                    base.location,
                    f": a concurrent commit added partition field {field}. Refresh the table and decide again.",
                )

    def _check_field(
        self, change: RemovePartitionField | RenamePartitionField, start: TableMetadata, base: TableMetadata
    ) -> None:
        before = _found(change, start.spec(), start.schema(), self.case_sensitive)
        if before is None:
            return  # a field of an earlier update of the transaction
        after = next((field for field in base.spec().fields if field.field_id == before.field_id), None)
        if after != before:
            fate = "removed it" if after is None or after.transform.is_void else f"made it {after}"
            raise CommitConflictError(
                f"Cannot {change} of ",
                base.location,
                f": it was {before} when the change was made, and a concurrent commit {fate}. Refresh the table and "
                "decide again.",
            )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the changed spec as default; the same object if nothing changes."""
        schema, fields = base.schema(), list(base.spec().fields)
        last_id = max(base.last_partition_id, PARTITION_FIELD_ID_START - 1)
        for change in self.changes:
            if isinstance(change, AddPartitionField):
                field, last_id = self._new_field(change, base, fields, last_id)
                fields = [*_name_freed(fields, field.name), field]
                continue
            found = _found(change, PartitionSpec(*fields), schema, self.case_sensitive)
            if found is None:
                raise InvalidPartitionSpecError(
                    f"Cannot {change} of the table at {base.location}: there is no such field; its fields are "
                    f"{', '.join(str(field) for field in fields) or 'none'}."
                )
            position = fields.index(found)
            if isinstance(change, RenamePartitionField):
                fields[position] = replace(found, name=change.new_name)
            elif base.format_version == 1 and found.field_id in {each.field_id for each in base.spec().fields}:
                fields[position] = replace(found, transform=VoidTransform())
            else:
                del fields[position]
        if tuple(fields) == base.spec().fields:
            return base
        return set_default_spec(base, PartitionSpec(*fields))

    def _new_field(
        self, change: AddPartitionField, base: TableMetadata, fields: list[PartitionField], last_id: int
    ) -> tuple[PartitionField, int]:
        source = base.schema().find_field(change.source, self.case_sensitive)
        same = (source.field_id, change.transform)
        for field in fields:
            if (field.source_id, field.transform) == same:
                raise InvalidPartitionSpecError(
                    f"Cannot {change} to the table at {base.location}: it has the partition field {field} already."
                )
        name = change.name or default_name(base.schema().find_column_name(source.field_id) or "", change.transform)
        former = _former(same, base.partition_specs, change.name) if base.format_version > 1 else None
        if former is not None and former.field_id not in {field.field_id for field in fields}:
            return replace(former, name=change.name or former.name), last_id
        return PartitionField(source.field_id, last_id + 1, change.transform, name), last_id + 1


def _former(same: tuple[int, Transform], specs: Iterable[PartitionSpec], name: str | None) -> PartitionField | None:
    """A field of an earlier spec with the same source and transform: its id is used again."""
    found = [field for spec in specs for field in spec.fields if (field.source_id, field.transform) == same]
    return next((field for field in found if field.name == name), found[-1] if found else None)


def _name_freed(fields: list[PartitionField], name: str) -> list[PartitionField]:
    """A void field that is in the way of a new field's name gets another name (v1 keeps removed fields)."""
    return [
        replace(field, name=f"{field.name}_{field.field_id}")
        if field.name == name and field.transform.is_void
        else field
        for field in fields
    ]


def _found(
    change: RemovePartitionField | RenamePartitionField, spec: PartitionSpec, schema: Schema, case_sensitive: bool
) -> PartitionField | None:
    if isinstance(change, RenamePartitionField) or change.name is not None:
        return next((field for field in spec.fields if field.name == change.name and not field.transform.is_void), None)
    source_id = schema.find_id(change.source or "", case_sensitive)
    return next(
        (field for field in spec.fields if (field.source_id, field.transform) == (source_id, change.transform)), None
    )


def _column(name: str, schema: Schema, case_sensitive: bool) -> NestedField | None:
    try:
        return schema.find_field(name, case_sensitive)
    except UnknownColumnError:
        return None


def default_name(column: str, transform: Transform) -> str:
    """The name of a partition field that was given none: `ts_day`, `id_bucket_16`, `city_trunc_4`, `region`."""
    if transform.is_identity:
        return column
    argument = "" if transform.argument is None else f"_{transform.argument}"
    return f"{column}_{transform.suffix}{argument}"
