"""Conflicts: checks that no commit since an operation's start on the branch took away what it relies on.

Serializable isolation: nothing that was read changed, neither by new rows nor by rows that went, so that write skew is
refused. Snapshot isolation: no new deletes touch the files that are replaced.

Source: Iceberg specification, "Commit Conflict Resolution and Retry"; the checks are those of Iceberg Java's
validations, by name of what they protect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    PartitionKey,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot
from hms_iceberg.updates.machinery.file_matching import FileMatcher
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import FileReader


def snapshots_since(base: TableMetadata, branch: str, start_snapshot_id: int | None, what: str) -> list[Snapshot]:
    """The branch's snapshots after a start (None: the beginning), newest first; a conflict if that is not in its
    history any more."""
    head = parent_on(base, branch)
    since: list[Snapshot] = []
    for snapshot in base.ancestors_of(head.snapshot_id if head else None):
        if snapshot.snapshot_id == start_snapshot_id:
            return since
        since.append(snapshot)
    if start_snapshot_id is None and (not since or since[-1].parent_snapshot_id is None):
        return since
    raise CommitConflictError(
        f"Cannot {what} ",
        base.location,
        f": it was begun on snapshot {start_snapshot_id}, which is not in the history of branch {branch!r} any more "
        f"(head {head.snapshot_id if head else None}). The branch was rolled back, or its snapshots expired. Refresh "
        "the table and repeat the change.",
    )


def files_since(
    snapshots: list[Snapshot],
    content: ManifestContent,
    status: ManifestEntryStatus,
    reader: FileReader,
    operations: frozenset[Operation],
    test: Callable[[Sequence[DataFile]], Sequence[bool]] | None = None,
) -> Iterator[tuple[Snapshot, DataFile]]:
    """Files that the snapshots of these operations added or removed, each with its snapshot."""
    for snapshot in snapshots:
        if snapshot.operation not in {str(operation) for operation in operations}:
            continue
        for manifest in manifest_list_of(snapshot, reader):
            if manifest.added_snapshot_id != snapshot.snapshot_id or manifest.content is not content:
                continue
            if status is ManifestEntryStatus.DELETED and not manifest.has_deleted_files():
                continue
            if status is ManifestEntryStatus.ADDED and not manifest.has_added_files():
                continue
            own = (entry for entry in entries_of(manifest, reader) if entry.snapshot_id == snapshot.snapshot_id)
            files = [entry.data_file for entry in own if entry.status is status]
            wanted = [True] * len(files) if test is None else test(files)
            yield from ((snapshot, file) for file, each in zip(files, wanted, strict=True) if each)


_ADDS_DATA = frozenset({Operation.APPEND, Operation.OVERWRITE})
_ADDS_DELETES = frozenset({Operation.OVERWRITE, Operation.DELETE})
_REMOVES_DATA = frozenset({Operation.OVERWRITE, Operation.DELETE, Operation.REPLACE})
_ADDS_VECTORS = frozenset({Operation.OVERWRITE, Operation.DELETE, Operation.REPLACE})


@dataclass(frozen=True)
class Concurrent:
    """The commits to a branch since a change was begun."""

    what: str  # the change, to complete 'cannot … the table'
    base: TableMetadata  # the committed metadata that the change is to be applied to
    snapshots: list[Snapshot]  # the branch's snapshots since, newest first
    reader: FileReader  # reads manifests
    case_sensitive: bool  # whether filters name columns in their case

    @classmethod
    def between(
        cls,
        start_snapshot_id: int | None,
        base: TableMetadata,
        branch: str,
        reader: FileReader,
        what: str,
        case_sensitive: bool = True,
    ) -> Concurrent:
        """The commits after a snapshot (None: the beginning); a conflict if the branch's history lacks it."""
        return cls(what, base, snapshots_since(base, branch, start_snapshot_id, what), reader, case_sensitive)

    def _files(
        self,
        content: ManifestContent,
        status: ManifestEntryStatus,
        operations: frozenset[Operation],
        test: Callable[[Sequence[DataFile]], Sequence[bool]] | None = None,
    ) -> Iterator[tuple[Snapshot, DataFile]]:
        return files_since(self.snapshots, content, status, self.reader, operations, test)

    def _conflict(self, snapshot: Snapshot, did: str, file: DataFile, hint: str) -> CommitConflictError:
        return CommitConflictError(
            f"Cannot {self.what} ",
            self.base.location,
            f": a concurrent {snapshot.operation} (snapshot {snapshot.snapshot_id}) {did} {file.file_path}. {hint}",
        )

    def check_nothing_read_changed(self, row_filter: BooleanExpression) -> None:
        """Refuses if rows that may match `row_filter` were added, removed or deleted since (serializable)."""
        self.check_no_new_data(row_filter)
        self.check_no_removed_data(row_filter)
        self.check_no_new_deletes(row_filter)

    def check_no_new_data(self, row_filter: BooleanExpression) -> None:
        """Refuses data files added since that may hold rows of `row_filter` (serializable isolation)."""
        matcher = FileMatcher(self.base, row_filter, self.case_sensitive)
        added = self._files(ManifestContent.DATA, ManifestEntryStatus.ADDED, _ADDS_DATA, matcher.may_match)
        for snapshot, file in added:
            raise self._conflict(
                snapshot,
                f"added data that may match {row_filter}:",
                file,
                "Refresh the table and repeat the change, so that it sees this data; or use snapshot isolation.",
            )

    def check_no_new_data_in(self, partitions: frozenset[PartitionKey]) -> None:
        """Refuses data files added since to one of these partitions, by their keys."""
        added = self._files(ManifestContent.DATA, ManifestEntryStatus.ADDED, _ADDS_DATA)
        self._refuse_in(partitions, added, "added data to a partition that is replaced:")

    def check_no_new_deletes_in(self, partitions: frozenset[PartitionKey]) -> None:
        """Refuses delete files added since to one of these partitions, by their keys."""
        added = self._files(ManifestContent.DELETES, ManifestEntryStatus.ADDED, _ADDS_DELETES)
        self._refuse_in(partitions, added, "deleted rows of a partition that is replaced:")

    def _refuse_in(
        self, partitions: frozenset[PartitionKey], found: Iterable[tuple[Snapshot, DataFile]], what: str
    ) -> None:
        for snapshot, file in found:
            if file.partition_key in partitions:
                raise self._conflict(snapshot, what, file, "Repeat the change.")

    def check_no_new_deletes(self, row_filter: BooleanExpression) -> None:
        """Refuses delete files added since that may delete rows of `row_filter`."""
        matcher = FileMatcher(self.base, row_filter, self.case_sensitive)
        for snapshot, file in self._files(ManifestContent.DELETES, ManifestEntryStatus.ADDED, _ADDS_DELETES):
            if matcher.may_match_partition(file):
                raise self._conflict(
                    snapshot,
                    f"deleted rows that may match {row_filter}:",
                    file,
                    "Refresh the table and repeat the change.",
                )

    def check_no_new_deletes_for(self, files: Collection[DataFile], ignore_equality_deletes: bool = False) -> None:
        """Refuses delete files added since that may apply to one of `files`; equality deletes may be ignored where they
        still apply to the new files, of the same data sequence number (compaction)."""
        paths = {file.file_path for file in files}
        homes = {file.partition_key for file in files}
        if not paths:
            return
        unpartitioned = {spec.spec_id for spec in self.base.partition_specs if spec.is_unpartitioned()}
        for snapshot, file in self._files(ManifestContent.DELETES, ManifestEntryStatus.ADDED, _ADDS_DELETES):
            if file.content is DataFileContent.EQUALITY_DELETES:
                applies = not ignore_equality_deletes and (file.spec_id in unpartitioned or file.partition_key in homes)
            elif file.only_data_file is not None:
                applies = file.only_data_file in paths
            else:
                applies = file.partition_key in homes
            if applies:
                raise self._conflict(
                    snapshot,
                    "deleted rows of a data file that is replaced:",
                    file,
                    "Refresh the table and repeat the change.",
                )

    def check_still_there(self, paths: frozenset[str]) -> None:
        """Refuses if a data file that the change relies on (its deletes point at it) was removed since."""
        if not paths:
            return
        for snapshot, file in self._files(ManifestContent.DATA, ManifestEntryStatus.DELETED, _REMOVES_DATA):
            if file.file_path in paths:
                raise self._conflict(
                    snapshot,
                    "removed a data file that the change refers to:",
                    file,
                    "Refresh the table and repeat the change.",
                )

    def check_no_removed_data(self, row_filter: BooleanExpression) -> None:
        """Refuses if rows that may match `row_filter` were removed since; a compaction removes none."""
        matcher = FileMatcher(self.base, row_filter, self.case_sensitive)
        removed = self._files(ManifestContent.DATA, ManifestEntryStatus.DELETED, _ADDS_DELETES, matcher.may_match)
        for snapshot, file in removed:
            raise self._conflict(snapshot, f"removed data that may match {row_filter}:", file, "Repeat the change.")

    def check_no_removed_data_in(self, partitions: frozenset[PartitionKey]) -> None:
        """Refuses if rows of one of these partitions, by their keys, were removed since; a compaction removes none."""
        removed = self._files(ManifestContent.DATA, ManifestEntryStatus.DELETED, _ADDS_DELETES)
        self._refuse_in(partitions, removed, "removed data of a partition that is replaced:")

    def check_no_new_vectors_for(self, paths: frozenset[str]) -> None:
        """Refuses deletes added since for one of these data files: readers look at a file's vector alone."""
        if not paths:
            return
        for snapshot, file in self._files(ManifestContent.DELETES, ManifestEntryStatus.ADDED, _ADDS_VECTORS):
            if file.only_data_file in paths:
                raise self._conflict(
                    snapshot,
                    f"deleted rows of {file.only_data_file}:",
                    file,
                    "Refresh the table and repeat the change, so that the deletes are merged.",
                )


# ---------------------------------------------------------------------------------------------- required columns

# Readers trust that a required column holds no null: that `c is null` is never true. If one commit makes a column
# required and another adds rows written before that, only one of both may happen.


_ADDS_ROWS = frozenset({Operation.APPEND, Operation.OVERWRITE})


def check_same_history(files: Sequence[DataFile], start: TableMetadata, base: TableMetadata, table: str) -> None:
    """Refuses positions of deleted rows if snapshots that were there read other files now, as after an erasure."""
    if not any(file.content is DataFileContent.POSITION_DELETES for file in files):
        return
    now = base.snapshots_by_id
    for snapshot in start.snapshots:
        same = now.get(snapshot.snapshot_id)
        if same is not None and same.manifest_list != snapshot.manifest_list:
            raise CommitConflictError(
                f"Cannot commit to table {table}: rows were forgotten meanwhile, and files that it deletes rows of "
                f"may have been written anew (snapshot {snapshot.snapshot_id} has another manifest list). "
                "Refresh the table and repeat the change."
            )


def check_added_nulls(files: Iterable[DataFile], written: Schema, now: Schema, what: str) -> None:
    """Refuses files (asked for only if needed) that may hold nulls in a column which became required since."""
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
    """Refuses to make a column required if files added since may hold nulls in it."""
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
