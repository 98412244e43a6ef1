"""Changes with a condition: that a table is as it was read, or that a stream's epoch was not committed before.

A change that a client of the REST protocol asks for has conditions too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.changes.requirements import TableRequirement, check_all
from hms_iceberg.spec.changes.table_changes import TableChange, changed_table
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot
from hms_iceberg.updates.machinery.conflicts import Concurrent
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class SinceSnapshot(Update):
    """Validates another update against everything that was committed after a snapshot."""

    update: Update  # the change, on main
    snapshot_id: int

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The data files that the wrapped update adds."""
        return self.update.new_files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: `apply` validates each time."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The change, if nothing since the snapshot is against it."""
        if base.snapshot_by_id(self.snapshot_id) is None:
            raise InvalidInputError(
                f"Cannot validate a change of the table at {base.location} from snapshot {self.snapshot_id}: it has no "
                "such snapshot."
            )
        branch = getattr(self.update, "branch", "main")
        refs = {
            name: replace(ref, snapshot_id=self.snapshot_id) if name == branch else ref
            for name, ref in base.refs.items()
        }
        start = replace(base, refs=refs, current_snapshot_id=self.snapshot_id)
        self.update.validate(start, base, workspace)
        return self.update.apply(base, workspace)


@dataclass(frozen=True)
class RequireUnchanged(Update):
    """Changes nothing, but makes its transaction fail if rows that match a filter were changed by others since. A
    transaction of such updates alone is a read, which is never refused."""

    row_filter: BooleanExpression  # the rows that were read
    branch: str = MAIN_BRANCH  # where
    case_sensitive: bool = True  # whether the filter names columns in their case

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if rows that may match the filter were added, removed or deleted."""
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None,
            base,
            self.branch,
            reader,
            "commit, after a read without a match, to",
            self.case_sensitive,
        )
        concurrent.check_nothing_read_changed(self.row_filter)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        return base


_QUERY_ID, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


@dataclass(frozen=True)
class Epoch:
    """An epoch of a stream, as the snapshots of its commits name it."""

    query_id: str  # of the stream, the same after a restart
    number: int
    branch: str  # what the stream writes to

    @property
    def properties(self) -> dict[str, str]:
        """The epoch as entries of the snapshot's summary."""
        return {_QUERY_ID: self.query_id, _EPOCH: str(self.number)}

    def is_in(self, metadata: TableMetadata) -> bool:
        """Whether the stream's last commit in the branch's history is this epoch, or one after it."""
        head = parent_on(metadata, self.branch)
        for snapshot in metadata.ancestors_of(head.snapshot_id if head else None):
            summary = snapshot.summary
            if summary.get(_QUERY_ID) == self.query_id and _EPOCH in summary:
                return self.number <= int(summary[_EPOCH])
        return False


@dataclass(frozen=True)
class OnceAnEpoch(Update):
    """Another update, unless the table has its epoch: each attempt looks, since two commits of one epoch may race."""

    update: Update
    epoch: Epoch  # of the change

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The data files that the wrapped update adds."""
        return self.update.new_files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Validates the wrapped change, unless its epoch is committed already."""
        if not self.epoch.is_in(base):
            self.update.validate(start, base, reader)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The change; of an epoch that is there, nothing, and its files are not needed."""
        if not self.epoch.is_in(base):
            return self.update.apply(base, workspace)
        for file in self.new_files:
            workspace.release(file.file_path)
        return base


@dataclass(frozen=True)
class RequestedChanges(Update):
    """Changes with the requirements of the client, who has validated them against a version that it has seen. The
    requirements are all that a replay must check: a client that relies on more says more."""

    requirements: tuple[TableRequirement, ...]  # requirements, changes: what was asked for
    changes: tuple[TableChange, ...]
    # those that the changes add. A table that has them all has all of the changes: they are made together. So a request
    # that is repeated since its answer was lost, maybe at another server, is answered as made.
    snapshots: tuple[Snapshot, ...] = ()

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: `apply` checks the requirements."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata after the changes; the same object if they change nothing."""
        if self.snapshots and all(_has(base, each) for each in self.snapshots):
            return base
        check_all(self.requirements, base)
        return changed_table(self.changes, base, workspace.now_ms())


def _has(metadata: TableMetadata, snapshot: Snapshot) -> bool:
    found = metadata.snapshots_by_id.get(snapshot.snapshot_id)
    # Clients name the manifest list of every attempt anew, and may keep the id.
    return found is not None and found.manifest_list == snapshot.manifest_list
