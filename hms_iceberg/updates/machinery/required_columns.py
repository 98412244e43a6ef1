"""Files whose nulls meet a column that became required after they were written.

Readers trust that a required column holds no null: that `c is null` is never true. If one commit makes a column
required and another adds rows written before that, only one of both may happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestEntryStatus
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Operation
from hms_iceberg.updates.machinery.conflicts import files_since
from hms_iceberg.updates.machinery.update import FileReader

_ADDS_ROWS = frozenset({Operation.APPEND, Operation.OVERWRITE})


def check_added_nulls(files: Iterable[DataFile], written: Schema, now: Schema, what: str) -> None:
    """Refuses files that may hold nulls in a column which became required since they were written.

    Args:
        files: data and delete files; asked for only if there is such a column.
        written: the schema that they were written with.
        now: the table's schema.
        what: the change, to complete 'cannot …'.

    Raises:
        CommitConflictError: names the file and the column.
    """
    required = list(_became_required(written, now))
    for file in files if required else ():
        for field_id, nulls in _nulls(file, required):
            raise CommitConflictError(
                f"Cannot {what}: {file.file_path} {nulls} in column {now.find_column_name(field_id)!r}, which was not "
                f"required when the file was written, and a concurrent commit made the column required. Write the rows "
                f"again without nulls in it, or make the column optional first."
            )


def check_nulls_added_since(
    start: TableMetadata, base: TableMetadata, replayed: Schema, reader: FileReader, table: str
) -> None:
    """Refuses to make a column required if files added since may hold nulls in it.

    Args:
        start: the table that the change was made on.
        base: the committed table that it is applied to.
        replayed: the schema after the change.
        reader: reads manifest lists and manifests.
        table: its name, for messages.

    Raises:
        CommitConflictError: names the column and the file.
    """
    required = list(_became_required(base.schema(), replayed))
    if not required:
        return
    known = {snapshot.snapshot_id for snapshot in start.snapshots}
    since = [snapshot for snapshot in base.snapshots if snapshot.snapshot_id not in known]
    for snapshot, file in files_since(since, ManifestContent.DATA, ManifestEntryStatus.ADDED, reader, _ADDS_ROWS):
        for field_id, nulls in _nulls(file, required):
            raise CommitConflictError(
                f"Cannot make column {replayed.find_column_name(field_id)!r} of table {table} required: a concurrent "
                f"{snapshot.operation} (snapshot {snapshot.snapshot_id}) added {file.file_path}, which {nulls} in it. "
                f"Refresh the table, see to these rows, and repeat the change."
            )


def _became_required(old: Schema, new: Schema) -> Iterator[int]:
    """Fields that are required now and were not; of new ones those that rows written before have no value for."""
    for field_id, field in new.index_by_id.items():
        if field.optional:
            continue
        if old.has_field(field_id):
            if old.find_field(field_id).optional:
                yield field_id
        elif field.initial_default is None and not _in_new_optional(field_id, old, new):
            yield field_id


def _in_new_optional(field_id: int, old: Schema, new: Schema) -> bool:
    """Whether a field lies in a new optional column, which is null as a whole in rows written before."""
    above = (each for each in new.ancestor_ids(field_id) if not old.has_field(each))
    return any(new.find_field(each).optional for each in above)


def _nulls(file: DataFile, field_ids: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The fields of which a data file may hold nulls, with what is known of them."""
    if not file.is_data or file.record_count == 0:
        return
    for field_id in field_ids:
        nulls = (file.null_value_counts or {}).get(field_id)
        if nulls is None:
            yield field_id, "may hold nulls (its metrics do not tell)"
        elif nulls:
            yield field_id, "holds nulls"
