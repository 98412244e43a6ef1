"""Branches and tags: created, replaced, renamed, removed, fast-forwarded, and their retention.

Source: Iceberg specification, "Snapshot References".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hms_iceberg.errors import (
    CommitConflictError,
    InvalidInputError,
    NoSuchSnapshotError,
    RefAlreadyExistsError,
)
from hms_iceberg.spec.metadata.metadata_snapshots import remove_ref, require_ref, set_branch_snapshot, set_ref
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


def check_ref_unchanged(name: str, start: TableMetadata, base: TableMetadata, what: str) -> None:
    """Refuses if a branch or tag was created, moved or removed since `start`."""
    before, now = start.refs.get(name), base.refs.get(name)
    if now != before:
        raise CommitConflictError(
            f"Cannot {what} of ",
            base.location,
            f": {name!r} was {_place(before)} when the change was made, and a concurrent commit left it {_place(now)}. "
            "Refresh the table and decide again.",
        )


def _place(ref: SnapshotRef | None) -> str:
    return "not there" if ref is None else f"a {ref.snapshot_ref_type} at snapshot {ref.snapshot_id}"


@dataclass(frozen=True)
class CreateRef(Update):
    """Creates a branch or tag."""

    name: str  # of the new ref, which nothing else may have
    snapshot_id: int | None = None  # where it points; None for the current snapshot of main at the time of the commit
    kind: SnapshotRefType = SnapshotRefType.TAG  # branch or tag
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses a name that another writer took since."""
        check_ref_unchanged(self.name, start, base, f"create {self.kind} {self.name!r}")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        if self.name in base.refs:
            raise RefAlreadyExistsError(
                f"Cannot create {self.kind} {self.name!r} of the table at {base.location}: there is "
                f"{_place(base.refs[self.name])} of that name. Replace it, or choose another name."
            )
        snapshot_id = base.current_snapshot_id if self.snapshot_id is None else self.snapshot_id
        if snapshot_id is None:
            raise NoSuchSnapshotError(
                f"Cannot create {self.kind} {self.name!r} of the table at {base.location}: it has no snapshot yet. "
                "Write to it first."
            )
        ref = SnapshotRef(
            snapshot_id, self.kind, self.min_snapshots_to_keep, self.max_snapshot_age_ms, self.max_ref_age_ms
        )
        return set_ref(base, self.name, ref, workspace.now_ms())


@dataclass(frozen=True)
class RemoveRef(Update):
    """Removes a branch or tag; main cannot be removed."""

    name: str
    kind: SnapshotRefType

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if the ref moved since: the snapshot it points at now would be lost."""
        check_ref_unchanged(self.name, start, base, f"remove {self.kind} {self.name!r}")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        if self.name == MAIN_BRANCH:
            raise InvalidInputError(f"Cannot remove branch 'main' of the table at {base.location}: a table needs it.")
        _require_kind(base, self.name, self.kind, "remove")
        return remove_ref(base, self.name, workspace.now_ms())


def _require_kind(base: TableMetadata, name: str, kind: SnapshotRefType, what: str) -> SnapshotRef:
    ref = require_ref(base, name)
    if ref.snapshot_ref_type is not kind:
        raise InvalidInputError(
            f"Cannot {what} {kind} {name!r} of the table at {base.location}: it is a {ref.snapshot_ref_type}."
        )
    return ref


@dataclass(frozen=True)
class RenameBranch(Update):
    """Gives a branch another name; main keeps its own."""

    name: str
    new_name: str

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if the branch was removed or the new name taken since. A branch that moved is fine."""
        if self.name in start.refs and self.name not in base.refs:
            check_ref_unchanged(self.name, start, base, f"rename branch {self.name!r}")
        check_ref_unchanged(self.new_name, start, base, f"rename branch {self.name!r}")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        if self.name == MAIN_BRANCH:
            raise InvalidInputError(f"Cannot rename branch 'main' of the table at {base.location}: a table needs it.")
        ref = _require_kind(base, self.name, SnapshotRefType.BRANCH, "rename")
        if self.new_name in base.refs:
            raise RefAlreadyExistsError(
                f"Cannot rename branch {self.name!r} of the table at {base.location} to {self.new_name!r}: there is "
                f"{_place(base.refs[self.new_name])} of that name."
            )
        return set_ref(remove_ref(base, self.name), self.new_name, ref, workspace.now_ms())


@dataclass(frozen=True)
class ReplaceRef(Update):
    """Points a branch or tag at another snapshot, given by id or by another ref."""

    name: str
    kind: SnapshotRefType
    snapshot_id: int | None = None
    source: str | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if the ref moved since: the snapshot it points at now would be lost."""
        check_ref_unchanged(self.name, start, base, f"replace {self.kind} {self.name!r}")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        ref = _require_kind(base, self.name, self.kind, "replace")
        target = self.snapshot_id
        if target is None:
            target = require_ref(base, self.source or "").snapshot_id
        return set_ref(base, self.name, replace(ref, snapshot_id=target), workspace.now_ms())


@dataclass(frozen=True)
class FastForward(Update):
    """Moves a branch forward to where another ref is, which must be a descendant; a new branch is created there."""

    branch: str
    source: str

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: `apply` checks that the source is ahead."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        target = require_ref(base, self.source).snapshot_id
        ref = base.refs.get(self.branch)
        if ref is not None:
            _require_kind(base, self.branch, SnapshotRefType.BRANCH, "fast-forward")
            if all(snapshot.snapshot_id != ref.snapshot_id for snapshot in base.ancestors_of(target)):
                raise InvalidInputError(
                    f"Cannot fast-forward branch {self.branch!r} of the table at {base.location} to {self.source!r}: "
                    f"its head {ref.snapshot_id} is not an ancestor of {target}. Replace the branch, or cherry-pick."
                )
        return set_branch_snapshot(base, target, self.branch, workspace.now_ms())


@dataclass(frozen=True)
class SetRetention(Update):
    """Changes how long a ref and its snapshots are kept; None leaves a setting."""

    name: str
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: retention and position of a ref are independent."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        names = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
        wanted = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return set_ref(base, self.name, replace(require_ref(base, self.name), **wanted), workspace.now_ms())
