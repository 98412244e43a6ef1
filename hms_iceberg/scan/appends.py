"""Plans of the rows that were appended between two snapshots."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_source import manifests_of, named_snapshot, named_table
from hms_iceberg.scan.planner import KeptFiles, Planner, manifest_source
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot
from hms_iceberg.storage import Storage


@dataclass(frozen=True)
class AppendRequest:
    """Which appended rows are wanted: after one snapshot (None: from the table's first) up to another (None: the
    current one)."""

    metadata: TableMetadata
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None
    from_inclusive: bool = False  # also what ``from_snapshot_id`` itself appended
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)  # by the names of ``schema``
    case_sensitive: bool = True
    schema: Schema | None = None  # the columns that the filter may name; None takes the table's current schema
    table_name: str | None = None  # for errors; None takes the location


def plan_appends(request: AppendRequest, storage: Storage) -> ScanPlan:
    """Finds the data files that snapshots with operation ``append`` added between two snapshots. Other snapshots are
    passed over, and deletes are not applied: the plan is of rows that were appended, whatever became of them since."""
    started = time.perf_counter()
    metadata = request.metadata
    schema = request.schema or metadata.schema()
    with named_table(metadata.location, request.table_name):
        row_filter = bind(schema, request.row_filter, request.case_sensitive)
    planner = Planner(metadata, schema, row_filter, manifest_source(metadata, storage))
    last = snapshot_or_current(metadata, request.to_snapshot_id)
    between = snapshots_between(metadata, request.from_snapshot_id, last, request.from_inclusive)
    appends = [each for each in between if each.operation == Operation.APPEND]
    with named_snapshot(None if last is None else last.snapshot_id, metadata.location):
        return planner.plan(last, added_files(planner, appends, storage), None, started)


def added_files(planner: Planner, snapshots: Sequence[Snapshot], storage: Storage) -> KeptFiles:
    """The data files that some snapshots added and that may match, each once."""
    data = planner.data_files(_added_manifests(snapshots, storage), {})
    return replace(data, frame=_added_by(data.frame, snapshots))


def snapshot_or_current(metadata: TableMetadata, snapshot_id: int | None) -> Snapshot | None:
    """A snapshot by its id; the current one (None if the table has none) if that is None."""
    if snapshot_id is None:
        return metadata.current_snapshot()
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise NoSuchSnapshotError(
            f"Cannot scan the table at {metadata.location}: it has no snapshot {snapshot_id}; it may have expired. "
            "List the snapshots that there are with table.snapshots()"
        )
    return snapshot


def snapshots_between(
    metadata: TableMetadata, from_snapshot_id: int | None, last: Snapshot | None, from_inclusive: bool = False
) -> list[Snapshot]:
    """The snapshots after one (None: from the first that has not expired on) up to another, oldest first."""
    if from_snapshot_id is not None and from_inclusive:
        snapshot_or_current(metadata, from_snapshot_id)
    found: list[Snapshot] = []
    for snapshot in metadata.ancestors_of(None if last is None else last.snapshot_id):
        if snapshot.snapshot_id == from_snapshot_id and not from_inclusive:
            return found[::-1]
        found.append(snapshot)
        # The snapshot before the first may have expired, as long as its child still names it.
        edge = snapshot.snapshot_id if from_inclusive else snapshot.parent_snapshot_id
        if edge is not None and edge == from_snapshot_id:
            return found[::-1]
    if from_snapshot_id is None:
        return found[::-1]
    raise InvalidInputError(
        f"Cannot scan the table at {metadata.location} from snapshot {from_snapshot_id} to "
        f"{None if last is None else last.snapshot_id}: the first is no ancestor of the last. Choose snapshots of one "
        "branch, in the order in which they were made"
    )


def _added_manifests(snapshots: Iterable[Snapshot], storage: Storage) -> list[ManifestFile]:
    found: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        for manifest in manifests_of(snapshot, storage):
            is_own = manifest.added_snapshot_id == snapshot.snapshot_id
            if is_own and manifest.content is ManifestContent.DATA and manifest.has_added_files():
                found.setdefault(manifest.manifest_path, manifest)
    return list(found.values())


def _added_by(files: pl.DataFrame, snapshots: Iterable[Snapshot]) -> pl.DataFrame:
    """Files that these snapshots added, each once, although several manifests may list a file."""
    ids = pl.Series([each.snapshot_id for each in snapshots], dtype=pl.Int64)
    return files.filter(files["snapshot_id"].is_in(ids.implode())).unique("file_path", maintain_order=True)
