"""A change as a client of the REST protocol asks for it: what must hold, and what is to be done then."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.spec.changes.requirements import TableRequirement, check_all
from hms_iceberg.spec.changes.table_changes import TableChange, changed_table
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RequestedChanges(Update):
    """Changes with the requirements of the client, who has validated them against a version that it has seen.

    The requirements are all that a replay must check: a client that relies on more says more.

    Attributes:
        requirements, changes: what was asked for.
        snapshots: those that the changes add. A table that has them all has all of the changes: they are made together.
            So a request that is repeated since its answer was lost, maybe at another server, is answered as made.
    """

    requirements: tuple[TableRequirement, ...]
    changes: tuple[TableChange, ...]
    snapshots: tuple[Snapshot, ...] = ()

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing that `apply` does not check."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata after the changes; the same object if they change nothing.

        Raises:
            CommitConflictError: a requirement does not hold.
            InvalidInputError: a change cannot be made.
        """
        if self.snapshots and all(_has(base, each) for each in self.snapshots):
            return base
        check_all(self.requirements, base)
        return changed_table(self.changes, base, workspace.now_ms())


def _has(metadata: TableMetadata, snapshot: Snapshot) -> bool:
    found = metadata.snapshots_by_id.get(snapshot.snapshot_id)
    # Clients name the manifest list of every attempt anew, and may keep the id.
    return found is not None and found.manifest_list == snapshot.manifest_list
