"""Streams of what is appended to a table: where one begins, how far a batch goes, and which files it reads.

An offset is what Apache Iceberg (Java) writes into a checkpoint: a snapshot, and how many of the files that it added
have been read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError, UnsupportedError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.lazy import pl
from hms_iceberg.scan.appends import added_files, snapshots_between
from hms_iceberg.scan.planner import Planner, manifest_source
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.read_options import check_options
from hms_iceberg.spark.read_questions import CheckStream, FirstOffset, LatestOffset, StreamBatch
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot
from hms_iceberg.storage import Storage

# Java's offset where a table has no snapshot that a stream could begin with.
_NOWHERE = (-1, -1)
_AFTER = "after_snapshot_id"
_SKIPPED = {
    str(Operation.DELETE): "streaming-skip-delete-snapshots",
    str(Operation.OVERWRITE): "streaming-skip-overwrite-snapshots",
}


def check_stream(metadata: TableMetadata, storage: Storage, asked: CheckStream) -> None:
    """Refuses unknown options of a stream, and those that choose rows of one read."""
    check_options(asked.options, asked.name, streaming=True)


def first_offset(metadata: TableMetadata, storage: Storage, asked: FirstOffset) -> dict[str, Any]:
    """The `offset` where a stream begins, before the oldest snapshot since the wanted time, as the checkpoint keeps it;
    without one it is Java's for an empty table, and `after_snapshot_id` the newest to pass over."""
    wanted, _ = _wanted(metadata, metadata.current_snapshot(), asked.options)
    if wanted:
        return {"offset": _text((wanted[0].snapshot_id, 0))}
    return {"offset": {**_text(_NOWHERE), _AFTER: metadata.current_snapshot_id}}


def latest_offset(metadata: TableMetadata, storage: Storage, asked: LatestOffset) -> dict[str, Any]:
    """How far the next batch of a stream goes: its `offset`, null if there is nothing new. Deleted or overwritten rows
    are refused unless the options say to pass over them."""
    options, name = asked.options, asked.name
    start = _offset(asked.start, name)
    limits = {} if asked.everything else options
    max_files = int(limits.get("streaming-max-files-per-micro-batch", 2**62))
    max_rows = int(limits.get("streaming-max-rows-per-micro-batch", 2**62))
    reached, files, rows = start, 0, 0
    snapshots = _since(metadata, asked.start, metadata.current_snapshot(), options, name)
    for snapshot, position in _to_read(snapshots, start, options, name):
        counts = _record_counts(metadata, snapshot, storage)
        for count in counts[position:]:
            if files == max_files or (rows >= max_rows and files):
                return {"offset": _text(reached)}
            files, rows, position = files + 1, rows + count, position + 1
            reached = (snapshot.snapshot_id, position)
        reached = (snapshot.snapshot_id, max(position, len(counts)))
    return {"offset": None if reached == start else _text(reached)}


def plan_batch(metadata: TableMetadata, storage: Storage, name: str, schema_id: int, batch: StreamBatch) -> ScanPlan:
    """The files between two offsets of a stream, without the rows' filter; the last snapshot is that of the end.
    Deleted or overwritten rows are refused unless the options say to pass over them."""
    started = time.perf_counter()
    start, end = _offset(batch.start, name), _offset(batch.end, name)
    last = None if end == _NOWHERE else _snapshot(metadata, end[0], name)
    planner = _planner(metadata, storage, schema_id)
    parts = []
    snapshots = _since(metadata, batch.start, last, batch.options, name) if last else []
    for snapshot, position in _to_read(snapshots, start, batch.options, name):
        part = added_files(planner, [snapshot], storage)
        stop = end[1] if snapshot.snapshot_id == end[0] else part.frame.height
        parts.append(replace(part, frame=part.frame.slice(position, max(0, stop - position))))
    data = parts[0] if parts else added_files(planner, [], storage)
    if len(parts) > 1:
        data = replace(data, frame=pl.concat([part.frame for part in parts], how="diagonal_relaxed"))
    return planner.plan(last, data, None, started)


def _offset(offset: Mapping[str, Any] | None, table: str) -> tuple[int, int]:
    """A snapshot and a number of files; None is the start in a checkpoint of ours from the time when it said none."""
    if offset is None:
        return _NOWHERE
    snapshot_id, position = offset.get("snapshot_id"), offset.get("position")
    is_known = offset.get("version") == 1 and not offset.get("scan_all_files")
    if is_known and isinstance(snapshot_id, int) and isinstance(position, int):
        return _NOWHERE if snapshot_id == _NOWHERE[0] else (snapshot_id, max(position, 0))
    raise UnsupportedError(
        f"Cannot stream the table {table} from {dict(offset)}: expected an offset of version 1 of appended files. "
        "Start the stream with another checkpoint."
    )


def _text(offset: tuple[int, int]) -> dict[str, Any]:
    return {"version": 1, "snapshot_id": offset[0], "position": offset[1], "scan_all_files": False}


def _wanted(
    metadata: TableMetadata, last: Snapshot | None, options: Mapping[str, str]
) -> tuple[list[Snapshot], int | None]:
    """The snapshots since the time from which a stream is wanted, oldest first; and which comes before them. That one
    is None if there is none, or if it is known to be too old to be wanted."""
    since = int(options.get("stream-from-timestamp", 0))
    found: list[Snapshot] = []
    for snapshot in metadata.ancestors_of(None if last is None else last.snapshot_id):
        if snapshot.timestamp_ms < since:
            return found[::-1], None
        found.append(snapshot)
    return found[::-1], found[-1].parent_snapshot_id if found else None


def _since(
    metadata: TableMetadata,
    start: Mapping[str, Any] | None,
    last: Snapshot | None,
    options: Mapping[str, str],
    table: str,
) -> list[Snapshot]:
    """The snapshots from one offset on, of which the first may have been read in part."""
    snapshot_id, _ = _offset(start, table)
    if snapshot_id != _NOWHERE[0]:
        _snapshot(metadata, snapshot_id, table)
        lineage = list(metadata.ancestors_of(None if last is None else last.snapshot_id))
        if snapshot_id not in {each.snapshot_id for each in lineage}:
            before = lineage[-1].parent_snapshot_id if lineage else None
            if before is not None:
                raise _expired(before, table, "which may have come after what the stream has read")
            raise InvalidInputError(
                f"Cannot stream the table {table} on: it was rolled back from its snapshot {snapshot_id}, up to which "
                "the stream has read. Start the stream with a new checkpoint."
            )
        return snapshots_between(metadata, snapshot_id, last, from_inclusive=True)
    wanted, before = _wanted(metadata, last, options)
    if before is not None and before != (start or {}).get(_AFTER):
        raise _expired(before, table, "which came before what the stream would read first")
    return wanted


def _snapshot(metadata: TableMetadata, snapshot_id: int, table: str) -> Snapshot:
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise _expired(snapshot_id, table, "which the checkpoint names")
    return snapshot


def _expired(snapshot_id: int, table: str, which: str) -> NoSuchSnapshotError:
    return NoSuchSnapshotError(
        f"Cannot stream the table {table} on: its snapshot {snapshot_id}, {which}, has expired, or the table was made "
        "anew, so that nobody knows which rows the stream has not read. Start the stream with a new checkpoint: it "
        "begins with what the oldest snapshot that is left appended; older rows are in queries only. Keep snapshots "
        "for longer than a stream may stand still."
    )


def _to_read(
    snapshots: Sequence[Snapshot], start: tuple[int, int], options: Mapping[str, str], table: str
) -> Iterator[tuple[Snapshot, int]]:
    """The snapshots that appended, each with the number of its files that have been read."""
    for snapshot in snapshots:
        operation = snapshot.operation
        if operation == Operation.APPEND:
            yield snapshot, start[1] if snapshot.snapshot_id == start[0] else 0
        elif operation in _SKIPPED and options.get(_SKIPPED[operation], "false").lower() != "true":
            raise UnsupportedError(
                f"Cannot stream the table {table}: the operation of its snapshot {snapshot.snapshot_id} is {operation},"
                f" which is more than appended rows. Set the option {_SKIPPED[operation]} to true to pass "
                "over such snapshots."
            )


def _record_counts(metadata: TableMetadata, snapshot: Snapshot, storage: Storage) -> list[int]:
    planner = _planner(metadata, storage, metadata.current_schema_id)
    return added_files(planner, [snapshot], storage).frame["record_count"].to_list()


def _planner(metadata: TableMetadata, storage: Storage, schema_id: int) -> Planner:
    schema = metadata.schema_by_id(schema_id)
    return Planner(metadata, schema, bind(schema, AlwaysTrue()), manifest_source(metadata, storage))
