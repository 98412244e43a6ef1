"""Moving main to a snapshot that the table has: back in its history, or anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.spec.metadata.metadata_changes import require_ref, require_snapshot, set_branch_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.values.datetimes import format_milliseconds
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.snapshots.snapshot_refs import check_ref_unchanged


@dataclass(frozen=True)
class SetCurrentSnapshot(Update):
    """Makes a snapshot, given by its id or by a ref, the current one. It need not be an ancestor.

    Commits that came meanwhile would be lost, so that they are a conflict.
    """

    snapshot_id: int | None = None
    ref: str | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if main moved meanwhile."""
        check_ref_unchanged(MAIN_BRANCH, start, base, "set the current snapshot")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with main at the snapshot.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: nothing of that id or name.
        """
        if (self.snapshot_id is None) == (self.ref is None):
            raise InvalidInputError("Set the current snapshot either by its id or by the name of a branch or tag.")
        target = self.snapshot_id if self.ref is None else require_ref(base, self.ref).snapshot_id
        assert target is not None
        require_snapshot(base, target)
        return set_branch_snapshot(base, target, MAIN_BRANCH, workspace.now_ms())


@dataclass(frozen=True)
class Rollback(Update):
    """Moves main back to an ancestor of the current snapshot: by its id, or to the last one before a time.

    Commits that came meanwhile would be rolled back without having been seen, so that they are a conflict.
    """

    snapshot_id: int | None = None
    before_ms: int | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if main moved meanwhile."""
        check_ref_unchanged(MAIN_BRANCH, start, base, "roll back")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with main at the ancestor.

        Raises:
            NoSuchSnapshotError: no such snapshot, or none before the time.
            InvalidInputError: it is not an ancestor of the current one.
        """
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
