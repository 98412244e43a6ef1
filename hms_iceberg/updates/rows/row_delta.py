"""Changing single rows: new data, and deletes of rows in files that stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, new_snapshot_id
from hms_iceberg.updates.machinery.conflicts import Concurrent
from hms_iceberg.updates.machinery.content import ContentChange, Isolation, commit_content, row_delta_operation
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RowDelta(Update):
    """Adds data files, delete files and deletion vectors in one snapshot."""

    added: tuple[DataFile, ...] = ()  # data files, position and equality delete files, deletion vectors
    # delete files or vectors that others in `added` take the place of, and data files that go
    removed: tuple[DataFile, ...] = ()
    # data files that position deletes in `added` point at; those of files and vectors that name their data file are
    # known without it
    referenced: frozenset[str] = frozenset()
    conflict_filter: BooleanExpression | None = None  # which rows the change has read; None stands for all
    # `SERIALIZABLE` refuses rows that may match the filter and were added or removed meanwhile; both levels refuse
    # deletes of such rows
    isolation: Isolation = Isolation.NONE
    branch: str = MAIN_BRANCH
    case_sensitive: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    action: str = "change rows of"  # what the caller does, to complete 'cannot … the table'
    snapshot_id: int = field(default_factory=new_snapshot_id)

    @property
    def _referenced(self) -> frozenset[str]:
        named = (file.only_data_file for file in self.added if file.content is DataFileContent.POSITION_DELETES)
        return self.referenced | {path for path in named if path is not None}

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        return self.added

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if a data file that the deletes point at was removed, and on conflicts that the isolation level rules
        out."""
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None, base, self.branch, reader, self.action, self.case_sensitive
        )
        concurrent.check_still_there(self._referenced)
        vectors = {file.referenced_data_file for file in self.added if file.is_deletion_vector}
        concurrent.check_no_new_vectors_for(frozenset(path for path in vectors if path is not None))
        concurrent.check_no_new_deletes_for([file for file in self.removed if file.is_data])
        if self.isolation is Isolation.NONE:
            return
        read = self.conflict_filter or AlwaysTrue()
        if self.isolation is Isolation.SERIALIZABLE:
            concurrent.check_nothing_read_changed(read)
        else:
            concurrent.check_no_new_deletes(read)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what=self.action,
            operation=row_delta_operation,
            added=self.added,
            removed=self.removed,
            branch=None if self.stage_only else self.branch,
            properties=self.properties,
        )
        return commit_content(base, change, workspace)
