"""How every operation on data becomes a snapshot: manifest list, summary, branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.spec.metadata.metadata_changes import add_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Operation, Snapshot, Summary
from hms_iceberg.updates.machinery.manifests.manifest_files import manifest_list_of, metadata_file
from hms_iceberg.updates.machinery.manifests.manifest_lists import ListFacts, extend_manifest_list
from hms_iceberg.updates.machinery.snapshot_summary import with_totals
from hms_iceberg.updates.machinery.update import Workspace

ENGINE_NAME = "hms_iceberg"


def parent_on(base: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that the next one on `branch` follows: the branch's head, or main's if the branch is new.

    Raises:
        InvalidInputError: `branch` is a tag.
    """
    ref = base.refs.get(branch)
    if ref is None:
        return base.current_snapshot()
    if not ref.is_branch:
        raise InvalidInputError(
            f"Cannot write to {branch!r} of the table at {base.location}: it is a tag, and tags do not move. "
            "Write to a branch."
        )
    return base.snapshot_by_id(ref.snapshot_id)


@dataclass(frozen=True)
class SnapshotDraft:
    """What an operation has decided about its snapshot, before the base gives it a number and a parent.

    Attributes:
        snapshot_id: drawn once for the operation.
        operation: what it did.
        manifests: the content of the manifest list, new manifests first; without the parent's if `keeps_parent`.
        summary: changes, without totals.
        branch: the branch to move; None stages the snapshot without moving any.
        replaced_manifests: how many manifests of the parent are not in the list any more.
        keeps_parent: the list is `manifests` and all manifests of the parent.
    """

    snapshot_id: int
    operation: Operation
    manifests: Sequence[ManifestFile]
    summary: Mapping[str, str] = field(default_factory=dict)
    branch: str | None = MAIN_BRANCH
    replaced_manifests: int = 0
    keeps_parent: bool = False


def write_snapshot(base: TableMetadata, draft: SnapshotDraft, workspace: Workspace) -> TableMetadata:
    """Writes the manifest list and returns the metadata with the snapshot added, its branch moved to it."""
    parent = parent_on(base, draft.branch or MAIN_BRANCH)
    sequence_number = base.last_sequence_number + 1 if base.format_version > 1 else 0
    attempt = workspace.next_number("manifest list") + 1
    location = metadata_file(base, f"snap-{draft.snapshot_id}-{attempt}-{workspace.commit_id}.avro")
    first_row_id = (base.next_row_id or 0) if base.format_version >= 3 else None
    facts = ListFacts(
        format_version=base.format_version,
        snapshot_id=draft.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=sequence_number,
        next_row_id=first_row_id,
    )
    if draft.keeps_parent and parent is not None and parent.manifest_list is not None:
        old = workspace.read(parent.manifest_list)
        data, next_row_id, kept = extend_manifest_list(old, parent.manifest_list, draft.manifests, facts)
    else:
        manifests = draft.manifests
        if draft.keeps_parent:
            manifests = [*manifests, *manifest_list_of(parent, workspace)]
        data, next_row_id = facts.encode(manifests)
        kept = sum(1 for manifest in manifests if manifest.added_snapshot_id != draft.snapshot_id)
    workspace.create(location, data)
    created = sum(1 for manifest in draft.manifests if manifest.added_snapshot_id == draft.snapshot_id)
    summary = {
        "operation": str(draft.operation),
        "engine-name": ENGINE_NAME,
        **with_totals(draft.summary, None if parent is None else parent.summary),
        "manifests-created": str(created),
        "manifests-kept": str(kept),
        "manifests-replaced": str(draft.replaced_manifests),
    }
    newest = max((snapshot.timestamp_ms for snapshot in base.snapshots), default=0)
    snapshot = Snapshot(
        snapshot_id=draft.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=sequence_number,
        timestamp_ms=max(workspace.now_ms(), newest, base.last_updated_ms),
        manifest_list=location,
        summary=Summary.of(summary),
        schema_id=base.current_schema_id,
        first_row_id=first_row_id,
        added_rows=None if first_row_id is None else (next_row_id or 0) - first_row_id,
    )
    return add_snapshot(base, snapshot, branch=draft.branch)
