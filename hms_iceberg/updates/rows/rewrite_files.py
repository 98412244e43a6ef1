"""Replacing files by others with the same rows: compaction, and the rewriting of deletes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.conflicts import Concurrent
from hms_iceberg.updates.machinery.content import ContentChange, always, commit_content
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RewriteFiles(Update):
    """Removes data and delete files, and adds files that hold the same rows. Deletes added to a removed data file
    meanwhile are a conflict, but equality deletes where the new files keep a data sequence number."""

    removed: tuple[DataFile, ...]  # data files, delete files and vectors to remove
    added: tuple[DataFile, ...] = ()  # the files that take their place
    # data files that must still be there, as deletes that go were written anew for them
    referenced: frozenset[str] = frozenset()
    data_sequence_number: int | None = None  # for the added data files; not above that of the rows they hold
    branch: str = MAIN_BRANCH
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int = field(default_factory=new_snapshot_id)

    def __post_init__(self) -> None:
        if not self.removed:
            raise InvalidInputError("Cannot rewrite files: there is no file to replace. Name at least one.")
        removes_data = any(file.is_data for file in self.removed)
        adds_data = any(file.is_data for file in self.added)
        if adds_data and not removes_data:
            raise InvalidInputError(
                "Cannot rewrite files: data would be added and none removed, which changes the table's rows. Append it."
            )
        if any(not file.is_data for file in self.added) and all(file.is_data for file in self.removed):
            raise InvalidInputError(
                "Cannot rewrite files: deletes would be added and none removed, which changes the table's rows. Commit "
                "them with a row delta."
            )

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        return self.added

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if replaced data files got new deletes since, or if new deletes need files that are gone. A deletion
        vector is the only one of its data file: one that came meanwhile would be lost."""
        replaced = [file for file in self.removed if file.is_data]
        vectors = frozenset(
            file.referenced_data_file for file in self.added if file.is_deletion_vector and file.referenced_data_file
        )
        if not (replaced or vectors or self.referenced):
            return
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None, base, self.branch, reader, "rewrite files of"
        )
        concurrent.check_no_new_deletes_for(replaced, ignore_equality_deletes=self.data_sequence_number is not None)
        concurrent.check_still_there(self.referenced | vectors)
        concurrent.check_no_new_vectors_for(vectors)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="rewrite files of",
            operation=always(Operation.REPLACE),
            added=self.added,
            removed=self.removed,
            branch=self.branch,
            properties=self.properties,
            data_sequence_number=self.data_sequence_number,
        )
        return commit_content(base, change, workspace)
