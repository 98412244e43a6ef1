"""What happened on a branch between two versions of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestEntryStatus
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot
from hms_iceberg.updates.machinery.manifests.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.machinery.snapshot_writer import parent_on
from hms_iceberg.updates.machinery.update import FileReader


def snapshots_since(base: TableMetadata, branch: str, start_snapshot_id: int | None, what: str) -> list[Snapshot]:
    """Snapshots of the branch after `start_snapshot_id`, newest first.

    Raises:
        CommitConflictError: `start_snapshot_id` is not in the branch's history any more: it was rolled back, or the
            snapshots between have expired.
    """
    head = parent_on(base, branch)
    since: list[Snapshot] = []
    for snapshot in base.ancestors_of(head.snapshot_id if head else None):
        if snapshot.snapshot_id == start_snapshot_id:
            return since
        since.append(snapshot)
    if start_snapshot_id is None and (not since or since[-1].parent_snapshot_id is None):
        return since
    raise CommitConflictError(
        f"Cannot {what} the table at {base.location}: it was begun on snapshot {start_snapshot_id}, which is not in "
        f"the history of branch {branch!r} any more (head {head.snapshot_id if head else None}). The branch was rolled "
        "back, or its snapshots expired. Refresh the table and repeat the change."
    )


def files_since(
    snapshots: list[Snapshot],
    content: ManifestContent,
    status: ManifestEntryStatus,
    reader: FileReader,
    operations: frozenset[Operation],
    test: Callable[[Sequence[DataFile]], Sequence[bool]] | None = None,
) -> Iterator[tuple[Snapshot, DataFile]]:
    """Files that the snapshots of these operations added or removed, each with its snapshot.

    Args:
        snapshots: the snapshots.
        content: data files or delete files.
        status: whether they were added or removed.
        reader: reads manifests.
        operations: those of the snapshots that matter.
        test: says of the files of a manifest which are wanted; None wants all.
    """
    for snapshot in snapshots:
        if snapshot.operation not in {str(operation) for operation in operations}:
            continue
        for manifest in manifest_list_of(snapshot, reader):
            if manifest.added_snapshot_id != snapshot.snapshot_id or manifest.content is not content:
                continue
            if status is ManifestEntryStatus.DELETED and not manifest.has_deleted_files():
                continue
            if status is ManifestEntryStatus.ADDED and not manifest.has_added_files():
                continue
            own = (entry for entry in entries_of(manifest, reader) if entry.snapshot_id == snapshot.snapshot_id)
            files = [entry.data_file for entry in own if entry.status is status]
            wanted = [True] * len(files) if test is None else test(files)
            yield from ((snapshot, file) for file, each in zip(files, wanted, strict=True) if each)
