"""Removing whole files: by a filter that all of their rows match, or one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.content import ContentChange, always, commit_content
from hms_iceberg.updates.machinery.file_matching import FileMatcher
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.rows.overwrite import WholeFileTest


@dataclass(frozen=True)
class DeleteFiles(Update):
    """Removes data files: `files`, and every file all of whose rows match `row_filter`.

    A delete by filter can always be replayed, on whatever files are there then; files by name must still be there.
    """

    files: tuple[DataFile, ...] = ()
    row_filter: BooleanExpression | None = None
    branch: str = MAIN_BRANCH
    case_sensitive: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    snapshot_id: int = field(default_factory=new_snapshot_id)

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing: that the files are there is told when they are removed."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot without the files.

        Raises:
            CommitConflictError: a file is not there.
            InvalidInputError: some, but not all, rows of a file match the filter.
        """
        matcher = None if self.row_filter is None else FileMatcher(base, self.row_filter, self.case_sensitive)
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="delete from",
            operation=always(Operation.DELETE),
            removed=self.files,
            matches=None if matcher is None else WholeFileTest(matcher, self.row_filter, self.files, base),
            may_match=None if matcher is None else matcher.may_match_manifest,
            branch=None if self.stage_only else self.branch,
            properties=self.properties,
        )
        return commit_content(base, change, workspace)
