"""Expiring snapshots by the retention rules, and the files that nobody needs after that.

Source: Iceberg specification, "Snapshot Retention Policy".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.manifests import ManifestFile
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.spec.metadata_changes import remove_ref, remove_snapshots, require_snapshot
from hms_iceberg.spec.snapshots import MAIN_BRANCH, Snapshot, SnapshotRef
from hms_iceberg.spec.table_properties import (
    GC_ENABLED,
    MAX_REF_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MIN_SNAPSHOTS_TO_KEEP,
    bool_property,
    int_property,
)
from hms_iceberg.updates.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.update import FileReader, Workspace


@dataclass(frozen=True)
class ExpireSnapshots:
    """Removes snapshots that no branch or tag retains, and refs that are too old.

    What is retained is decided anew on each base, so that a snapshot which somebody tagged meanwhile stays.

    Attributes:
        older_than_ms: snapshots older than this go; None for the table's `history.expire.max-snapshot-age-ms`.
        retain_last: how many snapshots a branch keeps whatever their age; None for the table's
            `history.expire.min-snapshots-to-keep`. A branch's own settings go before both.
        snapshot_ids: further snapshots to remove, which no ref may point at.
        at_ms: the time that ages are measured from; None for the time of the commit.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()
    at_ms: int | None = None

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing: what goes is decided on the base."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata without the expired snapshots; the same object where none expires.

        Raises:
            UnsupportedError: the table's property `gc.enabled` is false.
            NoSuchSnapshotError: a snapshot named by its id is not there.
            InvalidInputError: a branch or tag points at a snapshot named by its id.
        """
        if not bool_property(base.properties, GC_ENABLED):
            raise UnsupportedError(
                f"Cannot expire snapshots of the table at {base.location}: its property gc.enabled is false, for its "
                "files may belong to others. Set it to true first, if they do not."
            )
        now = workspace.now_ms() if self.at_ms is None else self.at_ms
        refs = retained_refs(base, now)
        metadata = base
        for name in base.refs.keys() - refs.keys():
            metadata = remove_ref(metadata, name, now)
        for snapshot_id in self.snapshot_ids:
            require_snapshot(base, snapshot_id)
        expired = {snapshot.snapshot_id for snapshot in base.snapshots} - self._retained(base, refs, now)
        return remove_snapshots(metadata, expired | self.snapshot_ids, now)

    def _retained(self, base: TableMetadata, refs: dict[str, SnapshotRef], now: int) -> set[int]:
        default_age = int_property(base.properties, MAX_SNAPSHOT_AGE_MS)
        oldest = now - default_age if self.older_than_ms is None else self.older_than_ms
        last = int_property(base.properties, MIN_SNAPSHOTS_TO_KEEP) if self.retain_last is None else self.retain_last
        kept = {ref.snapshot_id for ref in refs.values()}
        for ref in refs.values():
            if ref.is_branch:
                limit = oldest if ref.max_snapshot_age_ms is None else now - ref.max_snapshot_age_ms
                count = last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
                kept |= _of_branch(base, ref, limit, count)
        in_history = {item.snapshot_id for ref in refs.values() for item in base.ancestors_of(ref.snapshot_id)}
        staged = (item for item in base.snapshots if item.snapshot_id not in in_history)
        return kept | {item.snapshot_id for item in staged if item.timestamp_ms >= oldest}


def _of_branch(base: TableMetadata, ref: SnapshotRef, limit_ms: int, count: int) -> set[int]:
    kept: set[int] = set()
    for position, snapshot in enumerate(base.ancestors_of(ref.snapshot_id)):
        if position >= max(1, count) and snapshot.timestamp_ms < limit_ms:
            break
        kept.add(snapshot.snapshot_id)
    return kept


def retained_refs(base: TableMetadata, now: int) -> dict[str, SnapshotRef]:
    """Refs that are not older than their `max_ref_age_ms`; main always stays, one without its snapshot goes."""
    default = int_property(base.properties, MAX_REF_AGE_MS)
    kept = {}
    for name, ref in base.refs.items():
        snapshot = base.snapshot_by_id(ref.snapshot_id)
        age = default if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        if name == MAIN_BRANCH or (snapshot is not None and now - snapshot.timestamp_ms <= age):
            kept[name] = ref
    return kept


@dataclass(frozen=True)
class UnreachableFiles:
    """Files that an expiry left without any snapshot that uses them, by kind."""

    data_files: tuple[str, ...] = ()
    delete_files: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    statistics_files: tuple[str, ...] = ()

    def all(self) -> tuple[str, ...]:
        """All locations, in an order in which they can be deleted: what others refer to first."""
        return (
            *self.data_files,
            *self.delete_files,
            *self.statistics_files,
            *self.manifests,
            *self.manifest_lists,
        )


def unreachable_files(before: TableMetadata, after: TableMetadata, reader: FileReader) -> UnreachableFiles:
    """Files that a snapshot of `before` uses, and no snapshot of `after` does.

    A file can only have become unreachable with a manifest in which it was live. Those manifests are read, and then
    the ones that are left, until every candidate is found alive or none is left to read.
    """
    kept = {snapshot.snapshot_id for snapshot in after.snapshots}
    expired = [snapshot for snapshot in before.snapshots if snapshot.snapshot_id not in kept]
    if not expired:
        return UnreachableFiles(statistics_files=_statistics(before, after))
    alive = _manifests(after.snapshots, reader)
    gone = {path: manifest for path, manifest in _manifests(expired, reader).items() if path not in alive}
    candidates: dict[str, bool] = {}
    for manifest in gone.values():
        for entry in entries_of(manifest, reader):
            if entry.is_live:
                candidates[entry.data_file.file_path] = entry.data_file.is_data
    for manifest in alive.values():
        if not candidates:
            break
        for entry in entries_of(manifest, reader):
            if entry.is_live:
                candidates.pop(entry.data_file.file_path, None)
    lists = {snapshot.manifest_list for snapshot in after.snapshots}
    return UnreachableFiles(
        data_files=tuple(path for path, is_data in candidates.items() if is_data),
        delete_files=tuple(path for path, is_data in candidates.items() if not is_data),
        manifests=tuple(gone),
        manifest_lists=tuple(
            snapshot.manifest_list
            for snapshot in expired
            if snapshot.manifest_list is not None and snapshot.manifest_list not in lists
        ),
        statistics_files=_statistics(before, after),
    )


def _manifests(snapshots: Iterable[Snapshot], reader: FileReader) -> dict[str, ManifestFile]:
    return {
        manifest.manifest_path: manifest for snapshot in snapshots for manifest in manifest_list_of(snapshot, reader)
    }


def _statistics(before: TableMetadata, after: TableMetadata) -> tuple[str, ...]:
    def paths(metadata: TableMetadata) -> dict[str, None]:
        files = [item.statistics_path for item in metadata.statistics]
        return dict.fromkeys([*files, *(item.statistics_path for item in metadata.partition_statistics)])

    kept = paths(after)
    return tuple(path for path in paths(before) if path not in kept)
