"""Moving main to another snapshot, and publishing a staged snapshot or one of another branch on main."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hms_iceberg.errors import CommitConflictError, InvalidInputError, NoSuchSnapshotError
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestEntryStatus
from hms_iceberg.spec.metadata.metadata_snapshots import require_ref, require_snapshot, set_branch_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, Snapshot, new_snapshot_id
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.updates.machinery.conflicts import Concurrent, check_added_nulls, files_since
from hms_iceberg.updates.machinery.content import ContentChange, always, commit_content
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.snapshots.snapshot_refs import check_ref_unchanged


@dataclass(frozen=True)
class SetCurrentSnapshot(Update):
    """Makes a snapshot, given by its id or by a ref, the current one. It need not be an ancestor. Commits that came
    meanwhile would be lost, so that they are a conflict."""

    snapshot_id: int | None = None
    ref: str | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        check_ref_unchanged(MAIN_BRANCH, start, base, "set the current snapshot")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        if (self.snapshot_id is None) == (self.ref is None):
            raise InvalidInputError("Set the current snapshot either by its id or by the name of a branch or tag.")
        target = self.snapshot_id if self.ref is None else require_ref(base, self.ref).snapshot_id
        assert target is not None
        require_snapshot(base, target)
        return set_branch_snapshot(base, target, MAIN_BRANCH, workspace.now_ms())


@dataclass(frozen=True)
class Rollback(Update):
    """Moves main back to an ancestor of the current snapshot: by its id, or to the last one before a time. Commits that
    came meanwhile would be rolled back without having been seen, so that they are a conflict."""

    snapshot_id: int | None = None
    before_ms: int | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        check_ref_unchanged(MAIN_BRANCH, start, base, "roll back")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        return set_branch_snapshot(base, self._target(base), MAIN_BRANCH, workspace.now_ms())

    def _target(self, base: TableMetadata) -> int:
        ancestors = list(base.ancestors_of(base.current_snapshot_id))
        if self.before_ms is not None:
            for snapshot in ancestors:
                if snapshot.timestamp_ms < self.before_ms:
                    return snapshot.snapshot_id
            raise NoSuchSnapshotError(
                f"Cannot roll back the table at {base.location}: its history has no snapshot before "
                f"{format_milliseconds(self.before_ms)}. Choose a later time."
            )
        if self.snapshot_id is None:
            raise InvalidInputError("Roll back either to the id of a snapshot or to a time.")
        require_snapshot(base, self.snapshot_id)
        if all(snapshot.snapshot_id != self.snapshot_id for snapshot in ancestors):
            raise InvalidInputError(
                f"Cannot roll back the table at {base.location} to snapshot {self.snapshot_id}: it is not an ancestor "
                f"of the current one, {base.current_snapshot_id}. To go there all the same, set it as current."
            )
        return self.snapshot_id


WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"
SOURCE_SNAPSHOT_ID = "source-snapshot-id"
REPLACE_PARTITIONS = "replace-partitions"


@dataclass(frozen=True)
class CherryPick(Update):
    """Makes the change of a snapshot part of main: a child of its head is fast-forwarded to, else an append, or a
    dynamic overwrite of partitions unchanged since, is made again; other operations cannot be."""

    source_id: int
    snapshot_id: int = field(default_factory=new_snapshot_id)

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: `apply` checks the change on the current main."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        source = require_snapshot(base, self.source_id)
        self._check_not_published(base, source)
        added = self._files(source, ManifestEntryStatus.ADDED, workspace)
        what = f"cherry-pick snapshot {source.snapshot_id} of the table at {base.location}"
        check_added_nulls(added, base.schema_for_snapshot(source), base.schema(), what)
        if source.parent_snapshot_id == base.current_snapshot_id:
            return set_branch_snapshot(base, source.snapshot_id, MAIN_BRANCH, workspace.now_ms())
        if source.operation == Operation.APPEND.value:
            return self._append(base, source, workspace)
        if source.operation == Operation.OVERWRITE.value and source.summary.get(REPLACE_PARTITIONS) == "true":
            return self._replace_partitions(base, source, workspace)
        raise InvalidInputError(
            f"Cannot cherry-pick snapshot {source.snapshot_id} of the table at {base.location}: it is a "
            f"{source.operation}, whose parent {source.parent_snapshot_id} is not main's head "
            f"{base.current_snapshot_id}. Only appends and dynamic overwrites can be made again; repeat the change."
        )

    def _check_not_published(self, base: TableMetadata, source: Snapshot) -> None:
        wap_id = source.summary.get(WAP_ID)
        for snapshot in base.ancestors_of(base.current_snapshot_id):
            same = snapshot.snapshot_id == source.snapshot_id
            picked = snapshot.summary.get(SOURCE_SNAPSHOT_ID) == str(source.snapshot_id)
            published = wap_id is not None and wap_id in (
                snapshot.summary.get(PUBLISHED_WAP_ID),
                snapshot.summary.get(WAP_ID),
            )
            if same or picked or published:
                raise InvalidInputError(
                    f"Cannot cherry-pick snapshot {source.snapshot_id} of the table at {base.location}: snapshot "
                    f"{snapshot.snapshot_id} of main has it already" + (f" (wap.id {wap_id})." if published else ".")
                )

    def _properties(self, source: Snapshot) -> dict[str, str]:
        properties = {SOURCE_SNAPSHOT_ID: str(source.snapshot_id)}
        if WAP_ID in source.summary:
            properties[PUBLISHED_WAP_ID] = source.summary[WAP_ID]
        return properties

    def _files(self, source: Snapshot, status: ManifestEntryStatus, reader: FileReader) -> Iterator[DataFile]:
        operations = frozenset(Operation)
        return (file for _, file in files_since([source], ManifestContent.DATA, status, reader, operations))

    def _append(self, base: TableMetadata, source: Snapshot, workspace: Workspace) -> TableMetadata:
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="cherry-pick an append to",
            operation=always(Operation.APPEND),
            added=tuple(self._files(source, ManifestEntryStatus.ADDED, workspace)),
            properties=self._properties(source),
        )
        return commit_content(base, change, workspace)

    def _replace_partitions(self, base: TableMetadata, source: Snapshot, workspace: Workspace) -> TableMetadata:
        added = tuple(self._files(source, ManifestEntryStatus.ADDED, workspace))
        parent = source.parent_snapshot_id
        if parent is not None and all(
            snapshot.snapshot_id != parent for snapshot in base.ancestors_of(base.current_snapshot_id)
        ):
            raise CommitConflictError(
                f"Cannot cherry-pick snapshot {source.snapshot_id} of ",
                base.location,
                f": it replaces partitions on top of snapshot {parent}, which is not an ancestor of main. Repeat the "
                "change.",
            )
        concurrent = Concurrent.between(parent, base, MAIN_BRANCH, workspace, "cherry-pick a dynamic overwrite of")
        partitions = frozenset(file.partition_key for file in added)
        concurrent.check_no_new_data_in(partitions)
        concurrent.check_no_new_deletes_in(partitions)
        change = ContentChange(
            snapshot_id=self.snapshot_id,
            what="cherry-pick a dynamic overwrite of",
            operation=always(Operation.OVERWRITE),
            added=added,
            removed=tuple(self._files(source, ManifestEntryStatus.DELETED, workspace)),
            properties={REPLACE_PARTITIONS: "true", **self._properties(source)},
        )
        return commit_content(base, change, workspace)
