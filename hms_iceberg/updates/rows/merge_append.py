"""Appending files, with small manifests merged into larger ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.content import ContentChange, commit_content
from hms_iceberg.updates.machinery.operations import always
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.rows.append import check_data


@dataclass(frozen=True)
class MergeAppend(Update):
    """Adds data files, and merges manifests by the table's `commit.manifest.*` properties. Always replays.

    Attributes as of `FastAppend`.
    """

    files: tuple[DataFile, ...]
    branch: str = MAIN_BRANCH
    properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False
    snapshot_id: int = field(default_factory=new_snapshot_id)

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The files that it adds."""
        return self.files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """An append has no requirements."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with a snapshot that appends the files."""
        check_data(self.files, base)
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="append to",
            operation=always(Operation.APPEND),
            added=self.files,
            branch=None if self.stage_only else self.branch,
            properties=self.properties,
        )
        return commit_content(base, change, workspace)
