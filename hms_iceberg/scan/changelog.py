"""The changes of rows by each snapshot of a table: files that hold rows that it inserted, and rows that it deleted.

A snapshot is compared with its parent, whatever it did: files may be added and removed, and files that stay may get
other deletes, be they position deletes, deletion vectors or equality deletes. Manifests that both snapshots list need
not be read for that, unless deletes changed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from hms_iceberg.errors import NoSuchSnapshotError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.appends import added_files, snapshot_or_current, snapshots_between
from hms_iceberg.scan.delete_index import DeleteIndex
from hms_iceberg.scan.manifests.manifest_source import ManifestSource, manifests_of, named_snapshot, named_table
from hms_iceberg.scan.planner import KeptFiles, Planner, manifest_source
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot
from hms_iceberg.storage import Storage

# What tells one delete file from another: deletion vectors share a file.
_DELETE_KEY = ("file_path", "content_offset")


class ChangeType(str, Enum):
    """A kind of change of a row; the values are those of Apache Iceberg (Java)."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    UPDATE_AFTER = "UPDATE_AFTER"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class ChangelogRequest:
    """Which changes are wanted: after one snapshot (None: from the table's first) up to another (None: the current
    one)."""

    metadata: TableMetadata
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)  # by the names of ``schema``
    case_sensitive: bool = True
    schema: Schema | None = None  # the columns that the filter may name; None takes the table's current schema
    table_name: str | None = None  # for errors; None takes the location


@dataclass(frozen=True)
class ChangelogScanTask:
    """One data file in which a snapshot inserted or deleted rows.

    Args:
        change_type: INSERT or DELETE.
        change_ordinal: number of the snapshot among those of the changelog, from 0.
        commit_snapshot_id: the snapshot.
        task: the file with the deletes whose rows are no part of the change.
        deleted_by: only rows that one of these deletes removes are part of it; None for all.
    """

    change_type: ChangeType
    change_ordinal: int
    commit_snapshot_id: int
    task: FileScanTask
    deleted_by: Sequence[DataFile] | None = None

    @property
    def file(self) -> DataFile:
        """The data file with the changed rows."""
        return self.task.file


@dataclass(frozen=True)
class SnapshotChanges:
    """The changes that one snapshot made.

    Args:
        ordinal: its number among those of the changelog, from 0.
        snapshot: the snapshot.
        removed: files that it removed, with the deletes from before; None if it cannot have removed any.
        added: files that it added, with the deletes that came with them.
        before: files that stayed and whose deletes changed, with the deletes from before; or None.
        after: the same files, in the same order, with the deletes from then on; or None.
    """

    ordinal: int
    snapshot: Snapshot
    removed: ScanPlan | None
    added: ScanPlan
    before: ScanPlan | None = None
    after: ScanPlan | None = None

    def deletes(self) -> Iterator[ChangelogScanTask]:
        """Files in which rows were deleted."""
        if self.removed is not None:
            for task in self.removed.tasks():
                yield self._task(ChangeType.DELETE, task)
        yield from self._between(ChangeType.DELETE, self.before, self.after)

    def inserts(self) -> Iterator[ChangelogScanTask]:
        """Files with inserted rows, and files whose deleted rows became live again."""
        for task in self.added.tasks():
            yield self._task(ChangeType.INSERT, task)
        yield from self._between(ChangeType.INSERT, self.after, self.before)

    def tasks(self) -> Iterator[ChangelogScanTask]:
        """All files with changed rows, deletes first."""
        yield from self.deletes()
        yield from self.inserts()

    def _task(
        self, change: ChangeType, task: FileScanTask, deleted_by: Sequence[DataFile] | None = None
    ) -> ChangelogScanTask:
        return ChangelogScanTask(change, self.ordinal, self.snapshot.snapshot_id, task, deleted_by)

    def _between(
        self, change: ChangeType, with_rows: ScanPlan | None, without_rows: ScanPlan | None
    ) -> Iterator[ChangelogScanTask]:
        """Files in both states with rows that are live in only one of them."""
        if with_rows is None or without_rows is None:
            return
        for live, gone in zip(with_rows.tasks(), without_rows.tasks(), strict=True):
            if not _keys(gone.delete_files) <= _keys(live.delete_files):
                yield self._task(change, live, gone.delete_files)


def plan_changelog(request: ChangelogRequest, storage: Storage) -> Iterator[SnapshotChanges]:
    """Finds the files in which snapshots inserted or deleted rows, snapshot by snapshot, oldest first. Snapshots with
    the operation ``replace`` change no rows and are passed over; they have no ordinal."""
    metadata = request.metadata
    last = snapshot_or_current(metadata, request.to_snapshot_id)
    between = snapshots_between(metadata, request.from_snapshot_id, last)
    changing = [each for each in between if each.operation != Operation.REPLACE]
    for snapshot in changing:
        _check_parent(metadata, snapshot)
    schema = request.schema or metadata.schema()
    with named_table(request.metadata.location, request.table_name):
        row_filter = bind(schema, request.row_filter, request.case_sensitive)
    differ = _SnapshotDiffer(metadata, schema, row_filter, storage)
    return (differ.changes(ordinal, snapshot) for ordinal, snapshot in enumerate(changing))


def _check_parent(metadata: TableMetadata, snapshot: Snapshot) -> None:
    """Refuses a snapshot whose parent has expired, unless it only added files."""
    parent_id = snapshot.parent_snapshot_id
    if snapshot.operation == Operation.APPEND or parent_id is None or metadata.snapshot_by_id(parent_id) is not None:
        return
    raise NoSuchSnapshotError(
        f"Cannot tell what snapshot {snapshot.snapshot_id} ({snapshot.operation}) of the table at {metadata.location} "
        f"changed: the snapshot before it, {parent_id}, has expired. Begin after it: from_snapshot_id_exclusive="
        f"{snapshot.snapshot_id}"
    )


class _SnapshotDiffer:
    """Compares snapshots with their parents."""

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        row_filter: BooleanExpression,
        storage: Storage,
    ) -> None:
        self._metadata = metadata
        self._schema = schema
        self._filter = row_filter
        self._storage = storage
        self._source: ManifestSource = manifest_source(metadata, storage)
        self._planner = Planner(metadata, schema, row_filter, self._source)
        self._unfiltered = Planner(metadata, schema, AlwaysTrue(), self._source)

    def changes(self, ordinal: int, snapshot: Snapshot) -> SnapshotChanges:
        """The changes that a snapshot made."""
        with named_snapshot(snapshot.snapshot_id, self._metadata.location):
            return self._changes(ordinal, snapshot)

    def _changes(self, ordinal: int, snapshot: Snapshot) -> SnapshotChanges:
        started = time.perf_counter()
        if snapshot.operation == Operation.APPEND:
            added = added_files(self._planner, [snapshot], self._storage)
            return SnapshotChanges(ordinal, snapshot, None, self._planner.plan(snapshot, added, None, started))
        parent = self._parent(snapshot)
        before = _Manifests([] if parent is None else manifests_of(parent, self._storage))
        after = _Manifests(manifests_of(snapshot, self._storage))
        deletes_before = self._planner.delete_files(before.deletes)
        deletes_after = self._planner.delete_files(after.deletes)
        gone, new = before.data_beyond(after), after.data_beyond(before)
        gone_files, new_files = self._files(gone, deletes_before), self._files(new, deletes_after)
        gone_paths, new_paths = self._paths(gone), self._paths(new)
        removed = _only(gone_files, ~gone_files.frame["file_path"].is_in(new_paths))
        added = _only(new_files, ~new_files.frame["file_path"].is_in(gone_paths))
        changes = SnapshotChanges(
            ordinal,
            snapshot,
            self._planner.plan(parent, removed, deletes_before, started),
            self._planner.plan(snapshot, added, deletes_after, started),
        )
        changed_deletes = _differences(deletes_before, deletes_after)
        if not changed_deletes:
            return changes
        stayed = [each for each in after.data if each.manifest_path in before.paths]
        affected = self._affected([*stayed, *new], gone_paths, stayed, changed_deletes)
        if not len(affected):
            return changes
        states = (
            self._planner.plan(snapshot, self._chosen([*stayed, *new], deletes, affected), deletes, started)
            for deletes in (deletes_before, deletes_after)
        )
        return replace(changes, before=next(states), after=next(states))

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        if snapshot.parent_snapshot_id is None:
            return None
        return self._metadata.snapshot_by_id(snapshot.parent_snapshot_id)

    def _files(self, manifests: Sequence[ManifestFile], deletes: KeptFiles) -> KeptFiles:
        return self._planner.data_files(manifests, deletes.key_types)

    def _paths(self, manifests: Sequence[ManifestFile]) -> pl.Series:
        """Locations of all files, including those that the filter leaves out."""
        return self._unfiltered.data_files(manifests, {}).frame["file_path"].implode()

    def _affected(
        self,
        manifests: Sequence[ManifestFile],
        gone_paths: pl.Series,
        stayed: Collection[ManifestFile],
        changed: Sequence[KeptFiles],
    ) -> pl.Series:
        """Locations of files in both states to which one of these deletes applies."""
        paths = []
        listed = self._paths(list(stayed))
        for deletes in changed:
            files = self._files(manifests, deletes).frame
            both = files.filter(files["file_path"].is_in(gone_paths) | files["file_path"].is_in(listed))
            _, runs = self._index(deletes).assign(both, deletes.frame)
            paths.append(both["file_path"].gather(runs["data_file"].unique()))
        return pl.concat(paths).unique()

    def _index(self, deletes: KeptFiles) -> DeleteIndex:
        unpartitioned = [spec.spec_id for spec in self._metadata.partition_specs if spec.is_unpartitioned()]
        return DeleteIndex(self._source.partitions, unpartitioned, deletes.key_types)

    def _chosen(self, manifests: Sequence[ManifestFile], deletes: KeptFiles, paths: pl.Series) -> KeptFiles:
        files = self._files(manifests, deletes)
        return _only(files, files.frame["file_path"].is_in(paths.implode()))


def _keys(deletes: Iterable[DataFile]) -> set[tuple[str, int | None]]:
    return {(each.file_path, each.content_offset) for each in deletes}


class _Manifests:
    """The manifests of a snapshot by content."""

    def __init__(self, manifests: Sequence[ManifestFile]) -> None:
        self.data = [each for each in manifests if each.content is ManifestContent.DATA]
        self.deletes = [each for each in manifests if each.content is ManifestContent.DELETES]
        self.paths = frozenset(each.manifest_path for each in manifests)

    def data_beyond(self, other: _Manifests) -> list[ManifestFile]:
        """Data manifests that the other snapshot does not list."""
        return [each for each in self.data if each.manifest_path not in other.paths]


def _only(files: KeptFiles, mask: pl.Series) -> KeptFiles:
    return replace(files, frame=files.frame.filter(mask))


def _differences(before: KeptFiles, after: KeptFiles) -> list[KeptFiles]:
    """The delete files that only one of two states has, of each state that has any."""
    found = []
    for these, those in ((before, after), (after, before)):
        alone = these.frame.join(those.frame, on=list(_DELETE_KEY), how="anti", nulls_equal=True)
        if alone.height:
            found.append(replace(these, frame=alone))
    return found
