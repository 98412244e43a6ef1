"""Appending files: the fast append, which rewrites no manifest, and the merging one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, new_snapshot_id
from hms_iceberg.updates.machinery.content import ContentChange, always, commit_content
from hms_iceberg.updates.machinery.manifest_files import check_specs, write_added
from hms_iceberg.updates.machinery.new_snapshot import SnapshotDraft, SummaryBuilder, write_snapshot
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class FastAppend(Update):
    """Adds data files in new manifests and keeps every manifest of the parent; it relies on nothing, so that it always
    replays, and a retry writes a manifest list only."""

    files: tuple[DataFile, ...]  # data files, already written
    branch: str = MAIN_BRANCH  # the branch to append to; a new one starts at the current snapshot of main
    properties: Mapping[str, str] = field(default_factory=dict)  # the caller's keys for the snapshot's summary
    stage_only: bool = False  # adds the snapshot without moving the branch (write-audit-publish)
    snapshot_id: int = field(default_factory=new_snapshot_id)  # drawn once, the key by which the commit is recognised

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        return self.files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """An append has no requirements (specification, "Commit Conflict Resolution and Retry")."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        check_data(self.files, base)
        added = workspace.once(
            (self.snapshot_id, "added manifests", base.format_version),
            lambda: write_added(self.files, base, self.snapshot_id, workspace),
        )
        draft = SnapshotDraft(
            snapshot_id=self.snapshot_id,
            operation=Operation.APPEND,
            manifests=added,
            keeps_parent=True,
            summary=SummaryBuilder(base).added(self.files).build(self.properties),
            branch=None if self.stage_only else self.branch,
        )
        return write_snapshot(base, draft, workspace)


def check_data(files: Iterable[DataFile], base: TableMetadata) -> None:
    """Refuses delete files, and files of a partition spec that the table does not have."""
    files = tuple(files)
    for file in files:
        if not file.is_data:
            raise InvalidInputError(
                f"Cannot append {file.file_path} to the table at {base.location}: it holds "
                f"{file.content.name.lower().replace('_', ' ')}, not data. Commit it with a row delta."
            )
    check_specs(files, base, base.location)


@dataclass(frozen=True)
class MergeAppend(FastAppend):
    """Adds data files, and merges manifests by the table's `commit.manifest.*` properties. Always replays."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
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
