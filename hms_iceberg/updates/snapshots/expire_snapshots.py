"""Expiring snapshots by the retention rules, and the files that nobody needs after that.

Source: Iceberg specification, "Snapshot Retention Policy".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from hms_iceberg.errors import CommitConflictError, UnsupportedError
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.metadata.metadata_definition import remove_schemas, remove_specs
from hms_iceberg.spec.metadata.metadata_snapshots import remove_refs, remove_snapshots, require_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, SnapshotRef
from hms_iceberg.spec.table_properties import (
    GC_ENABLED,
    MAX_REF_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MIN_SNAPSHOTS_TO_KEEP,
)
from hms_iceberg.updates.machinery.file_matching import live_files
from hms_iceberg.updates.machinery.listed_manifests import manifests_of_all
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExpireSnapshots(Update):
    """Removes snapshots that no branch or tag retains, and refs that are too old. What is retained is decided anew on
    each base, so that a snapshot which somebody tagged meanwhile stays."""

    # snapshots older than this go; None for the table's `history.expire.max-snapshot-age-ms`
    older_than_ms: int | None = None
    # how many snapshots a branch keeps whatever their age; None for the table's `history.expire.min-snapshots-to-keep`.
    # A branch's own settings go before both.
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()  # further snapshots to remove, which no ref may point at
    at_ms: int | None = None  # the time that ages are measured from; None for the time of the commit
    clean_metadata: bool = False  # also removes partition specs and schemas that no snapshot which stays refers to
    of_others_files: bool = False  # also if `gc.enabled` is false; whoever says this deletes no data file

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: `apply` decides on the newest metadata which snapshots expire."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata without the expired snapshots; the same object if none expires. An UnsupportedError if
        `gc.enabled` is false; an InvalidInputError if a ref points at a snapshot named by its id."""
        if not self.of_others_files and not GC_ENABLED.of(base.properties):
            raise UnsupportedError(
                f"Cannot expire snapshots of the table at {base.location}: its property gc.enabled is false, for its "
                "files may belong to others. Set it to true first, if they do not."
            )
        now = workspace.now_ms() if self.at_ms is None else self.at_ms
        refs = retained_refs(base, now)
        old = base.refs.keys() - refs.keys()
        metadata = remove_refs(base, old, now) if old else base
        for snapshot_id in self.snapshot_ids:
            require_snapshot(base, snapshot_id)
        expired = {snapshot.snapshot_id for snapshot in base.snapshots} - self._retained(base, refs, now)
        kept = remove_snapshots(metadata, expired | self.snapshot_ids, now)
        return _without_unused(kept, workspace) if self.clean_metadata else kept

    def _retained(self, base: TableMetadata, refs: dict[str, SnapshotRef], now: int) -> set[int]:
        default_age = MAX_SNAPSHOT_AGE_MS.of(base.properties)
        oldest = now - default_age if self.older_than_ms is None else self.older_than_ms
        last = MIN_SNAPSHOTS_TO_KEEP.of(base.properties) if self.retain_last is None else self.retain_last
        kept = {ref.snapshot_id for ref in refs.values()}
        in_history: set[int] = set()
        young: dict[int, set[int]] = {}
        for ref in refs.values():
            if ref.is_branch:
                limit = oldest if ref.max_snapshot_age_ms is None else now - ref.max_snapshot_age_ms
                count = last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
                _keep_of_branch(base, ref, limit, count, young.setdefault(limit, set()))
                _add_history(base, ref, in_history)
        staged = (item for item in base.snapshots if item.snapshot_id not in in_history)
        return kept.union(*young.values(), (item.snapshot_id for item in staged if item.timestamp_ms >= oldest))


def _without_unused(metadata: TableMetadata, reader: FileReader) -> TableMetadata:
    schemas = {schema.schema_id for schema in metadata.schemas} - {metadata.current_schema_id}
    schemas -= {snapshot.schema_id for snapshot in metadata.snapshots if snapshot.schema_id is not None}
    specs = {spec.spec_id for spec in metadata.partition_specs} - {metadata.default_spec_id}
    for snapshot in metadata.snapshots if specs else ():
        specs -= {manifest.partition_spec_id for manifest in manifest_list_of(snapshot, reader)}
    metadata = remove_specs(metadata, specs) if specs else metadata
    return remove_schemas(metadata, schemas) if schemas else metadata


def _keep_of_branch(base: TableMetadata, ref: SnapshotRef, limit_ms: int, count: int, kept: set[int]) -> None:
    """Adds the snapshots that a branch keeps to those that branches of the same limit keep: what comes before one of
    these is known to be kept, or too old."""
    for position, snapshot in enumerate(base.ancestors_of(ref.snapshot_id)):
        is_needed = position < max(1, count)
        if not is_needed and (snapshot.timestamp_ms < limit_ms or snapshot.snapshot_id in kept):
            break
        kept.add(snapshot.snapshot_id)


def _add_history(base: TableMetadata, ref: SnapshotRef, history: set[int]) -> None:
    for snapshot in base.ancestors_of(ref.snapshot_id):
        if snapshot.snapshot_id in history:
            break
        history.add(snapshot.snapshot_id)


def retained_refs(base: TableMetadata, now: int) -> dict[str, SnapshotRef]:
    """Refs that are not older than their `max_ref_age_ms` at `now` (ms); main stays, one without its snapshot goes."""
    default = MAX_REF_AGE_MS.of(base.properties)
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
    position_delete_files: tuple[str, ...] = ()
    equality_delete_files: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    statistics_files: tuple[str, ...] = ()

    @property
    def delete_files(self) -> tuple[str, ...]:
        """Position delete files, deletion vectors' files and equality delete files."""
        return (*self.position_delete_files, *self.equality_delete_files)

    def all(self) -> tuple[str, ...]:
        """All locations, in an order in which they can be deleted: what others refer to first."""
        return (
            *self.data_files,
            *self.delete_files,
            *self.statistics_files,
            *self.manifests,
            *self.manifest_lists,
        )


def unreachable_files(
    before: TableMetadata, after: TableMetadata, reader: FileReader, same: Callable[[str], Hashable] = str
) -> UnreachableFiles:
    """Files that a snapshot of `before` uses, and none of `after`; `same` makes spellings of a location equal.
    Manifests that went are read, then those that are left, until every candidate is found alive or all are read; what
    cannot be read of an expired snapshot is passed over."""
    if after.table_uuid != before.table_uuid:
        raise CommitConflictError(
            f"Snapshots of the table at {before.location} expired, and no file was deleted: its name belongs to the "
            f"table at {after.location} by now. Remove the orphan files of the renamed table."
        )
    kept = {snapshot.snapshot_id for snapshot in after.snapshots}
    expired = [snapshot for snapshot in before.snapshots if snapshot.snapshot_id not in kept]
    needed = {same(path) for path in _metadata_files(after)}
    if not expired and needed.issuperset(map(same, _statistics(before))):
        return UnreachableFiles()
    alive = {same(path): each for path, each in manifests_of_all(after.snapshots, reader).items()}
    gone = manifests_of_all(expired, reader, _pass_over)
    lists = (snapshot.manifest_list for snapshot in expired if snapshot.manifest_list is not None)
    candidates: dict[Hashable, tuple[str, object]]
    candidates = {same(path): (path, "statistics") for path in _statistics(before)}
    candidates |= {same(path): (path, "list") for path in lists}
    candidates |= {same(path): (path, "manifest") for path in gone}
    left_over = (each for path, each in gone.items() if same(path) not in alive)
    for frame in live_files(left_over, before, reader, _pass_over):
        candidates |= {same(path): (path, content) for path, content in frame.unique().iter_rows()}
    for key in (*alive, *needed):
        candidates.pop(key, None)
    # Statistics are named by whoever made them, perhaps like a data file.
    is_asked = any(kind not in ("list", "manifest") for _, kind in candidates.values())
    living = (manifest for manifest in alive.values() if is_asked and manifest.has_live_files())
    for frame in live_files(living, before, reader):
        for path in frame["file_path"].unique():
            candidates.pop(same(path), None)

    def left(kind: object) -> tuple[str, ...]:
        return tuple(path for path, each in candidates.values() if each == kind)

    return UnreachableFiles(
        data_files=left(DataFileContent.DATA),
        position_delete_files=left(DataFileContent.POSITION_DELETES),
        equality_delete_files=left(DataFileContent.EQUALITY_DELETES),
        manifests=left("manifest"),
        manifest_lists=left("list"),
        statistics_files=left("statistics"),
    )


def _pass_over(error: Exception) -> None:
    logger.warning("Files of an expired snapshot are not looked for: %s", error)


def _metadata_files(metadata: TableMetadata) -> Iterator[str]:
    """Files that a version itself names: manifest lists, earlier versions, statistics."""
    yield from (snapshot.manifest_list for snapshot in metadata.snapshots if snapshot.manifest_list is not None)
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from _statistics(metadata)


def _statistics(metadata: TableMetadata) -> Iterator[str]:
    yield from (file.statistics_path for file in metadata.statistics)
    yield from (file.statistics_path for file in metadata.partition_statistics)
