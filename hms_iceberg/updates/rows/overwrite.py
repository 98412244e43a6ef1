"""Removing whole files, and replacing data: by a filter that all rows of a file match, file by file, or by partitions.

Partitions are those that new data falls into: the dynamic overwrite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.manifest_values import DataFile, PartitionKey
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.former_partitions import former_partitions
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.conflicts import Concurrent
from hms_iceberg.updates.machinery.content import ContentChange, Isolation, always, commit_content, overwriting
from hms_iceberg.updates.machinery.file_matching import FileMatcher
from hms_iceberg.updates.machinery.files_to_remove import FilesOfPartitions, WholeFiles
from hms_iceberg.updates.machinery.held_partitions import HeldPartitions
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.rows.append import check_data


@dataclass(frozen=True)
class DeleteFiles(Update):
    """Removes data files: `files`, and every file all of whose rows match `row_filter`. A delete by filter can always
    be replayed, on whatever files are there then; files by name must still be there."""

    files: tuple[DataFile, ...] = ()
    row_filter: BooleanExpression | None = None
    branch: str = MAIN_BRANCH
    case_sensitive: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    snapshot_id: int = field(default_factory=new_snapshot_id)

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: `apply` checks that the files are there."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        matcher = None if self.row_filter is None else FileMatcher(base, self.row_filter, self.case_sensitive)
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="delete from",
            operation=always(Operation.DELETE),
            removed=self.files,
            paths=_whole_files(base, self.row_filter, self.case_sensitive, self.files, workspace),
            may_match=None if matcher is None else matcher.may_match_manifest,
            branch=None if self.stage_only else self.branch,
            properties=self.properties,
        )
        return commit_content(base, change, workspace)


@dataclass(frozen=True)
class Overwrite(Update):
    """Removes files, or all files that a filter covers, and adds data files, in one snapshot."""

    added: tuple[DataFile, ...] = ()  # data files to add
    removed: tuple[DataFile, ...] = ()  # data files to remove, whose rows that stay are in `added`
    # removes every file all of whose rows match; a file with some rows that match is refused
    row_filter: BooleanExpression | None = None
    conflict_filter: BooleanExpression | None = None  # which rows the change has read, if that is not `row_filter`
    isolation: Isolation = Isolation.NONE  # what must hold of concurrent commits
    added_must_match: bool = False  # refuses added files with rows that do not match `row_filter`
    branch: str = MAIN_BRANCH  # the branch to change
    case_sensitive: bool = True  # whether filters name columns in their case
    properties: Mapping[str, str] = field(default_factory=dict)  # the caller's keys for the snapshot's summary
    stage_only: bool = False
    action: str = "overwrite"  # what the caller does, to complete 'cannot … the table'
    snapshot_id: int = field(default_factory=new_snapshot_id)  # drawn once

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        return self.added

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses concurrent commits that the isolation level does not allow."""
        if self.isolation is Isolation.NONE:
            return
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None, base, self.branch, reader, self.action, self.case_sensitive
        )
        read = self.conflict_filter or self.row_filter or AlwaysTrue()
        if self.isolation is Isolation.SERIALIZABLE:
            concurrent.check_nothing_read_changed(read)
        elif self.row_filter is not None:
            concurrent.check_no_new_deletes(read)
            concurrent.check_no_removed_data(read)
        concurrent.check_no_new_deletes_for(self.removed)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        check_data(self.added, base)
        matcher = None
        if self.row_filter is not None:
            matcher = FileMatcher(base, self.row_filter, self.case_sensitive)
            if self.added_must_match:
                self._check_added(matcher, base)
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what=self.action,
            operation=overwriting(self.row_filter),
            added=self.added,
            removed=self.removed,
            paths=_whole_files(base, self.row_filter, self.case_sensitive, self.removed, workspace),
            may_match=None if matcher is None else matcher.may_match_manifest,
            branch=None if self.stage_only else self.branch,
            properties=self.properties,
        )
        return commit_content(base, change, workspace)

    def _check_added(self, matcher: FileMatcher, base: TableMetadata) -> None:
        for file, must in zip(self.added, matcher.must_match(self.added), strict=True):
            if not must:
                raise InvalidInputError(
                    f"Cannot overwrite {self.row_filter} of the table at {base.location} with {file.file_path}: not "
                    "all of its rows match the filter. Overwrite with rows that match, or append them."
                )


def _whole_files(
    base: TableMetadata,
    row_filter: BooleanExpression | None,
    case_sensitive: bool,
    removed: Sequence[DataFile],
    reader: FileReader,
) -> WholeFiles | None:
    return None if row_filter is None else WholeFiles(base, row_filter, case_sensitive, removed, reader)


@dataclass(frozen=True)
class ReplacePartitions(Update):
    """Removes everything in the partitions of `files` (of their spec), and adds the files. A file of a spec that
    makes no partitions replaces all data of the table, that of other specs too, as in Apache Iceberg
    (`BaseReplacePartitions`)."""

    files: tuple[DataFile, ...]  # data files, already written
    # `SERIALIZABLE` refuses data that was added to one of the partitions meanwhile, `SNAPSHOT` deletes; without
    # isolation whatever is there when it is committed is replaced
    isolation: Isolation = Isolation.NONE
    append_only: bool = False  # refuses to replace a partition that is not empty
    branch: str = MAIN_BRANCH
    properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    snapshot_id: int = field(default_factory=new_snapshot_id)

    def _partitions(self, base: TableMetadata) -> frozenset[PartitionKey]:
        """The keys of the partitions of the files, in all forms in which they may be stored."""
        return frozenset(file.partition_key for file in self._stored(base))

    def _stored(self, base: TableMetadata) -> Iterator[DataFile]:
        """The files in the partition that they have, and in every other form in which that may be stored."""
        for file in self.files:
            yield file
            for form in former_partitions(base.spec_by_id(file.spec_id), base.schema(), file.partition):
                yield replace(file, partition=form)

    def _replaces_all(self, base: TableMetadata) -> bool:
        return any(base.spec_by_id(file.spec_id).is_unpartitioned() for file in self.files)

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        return self.files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses concurrent commits that the isolation level does not allow."""
        if self.isolation is Isolation.NONE:
            return
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None, base, self.branch, reader, "replace partitions of"
        )
        if self._replaces_all(base):
            if self.isolation is Isolation.SERIALIZABLE:
                concurrent.check_no_new_data(AlwaysTrue())
            concurrent.check_no_removed_data(AlwaysTrue())
            concurrent.check_no_new_deletes(AlwaysTrue())
            return
        partitions = self._partitions(base)
        if self.isolation is Isolation.SERIALIZABLE:
            concurrent.check_no_new_data_in(partitions)
        concurrent.check_no_removed_data_in(partitions)
        concurrent.check_no_new_deletes_in(partitions)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot in which the files take the place of their partitions."""
        check_data(self.files, base)
        partitions = self._partitions(base)
        everything = self._replaces_all(base)
        replaced_in = HeldPartitions(((each.spec_id, each.partition) for each in self._stored(base)), base)

        def replaced(file: DataFile) -> bool:
            if not everything and file.partition_key not in partitions:
                return False
            if self.append_only:
                raise InvalidInputError(
                    f"Cannot append to the table at {base.location}: partition {file.partition} has data already "
                    f"({file.file_path}). Replace it, or append elsewhere."
                )
            return True

        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="replace partitions of",
            operation=always(Operation.OVERWRITE),
            added=self.files,
            paths=FilesOfPartitions(partition_columns(base), replaced),
            may_match=lambda manifest: everything or replaced_in.may_be_in(manifest),
            drops_deletes=replaced,
            branch=None if self.stage_only else self.branch,
            properties={"replace-partitions": "true", **self.properties},
        )
        return commit_content(base, change, workspace)
