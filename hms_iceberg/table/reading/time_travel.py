"""Which snapshot a table had at a time.

Source: Iceberg specification, "Point in Time Reads (Time Travel)": the snapshot log decides, not the lineage.
"""

from __future__ import annotations

import datetime as dt

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.values.datetimes import format_milliseconds, parse_timestamp


def snapshot_as_of(metadata: TableMetadata, time: int | str | dt.datetime, inclusive: bool = True) -> Snapshot | None:
    """The snapshot that was current at a time, None if the table had none yet.

    Args:
        metadata: the table's metadata.
        time: the time: milliseconds since 1970, ISO text, or a datetime.
        inclusive: whether a snapshot of exactly this time counts.

    Raises:
        NoSuchSnapshotError: the snapshot of that time has expired.
        InvalidInputError: not a time.
    """
    limit = milliseconds(time)
    found = None
    for entry in metadata.snapshot_log:
        if entry.timestamp_ms < limit or (inclusive and entry.timestamp_ms == limit):
            found = entry
    if found is None:
        return None
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id == found.snapshot_id:
            return snapshot
    raise NoSuchSnapshotError(
        f"Snapshot {found.snapshot_id}, current at {format_milliseconds(limit)}, of the table at {metadata.location} "
        "has expired. Choose a later time."
    )


def milliseconds(time: int | str | dt.datetime) -> int:
    """Milliseconds since the epoch of a number of them, ISO text or a datetime; without a zone it is UTC.

    Raises:
        InvalidInputError: not a time.
    """
    if isinstance(time, bool) or not isinstance(time, (int, str, dt.datetime)):
        raise InvalidInputError(f"Not a time: {time!r}. Expected milliseconds since the epoch, ISO text or a datetime.")
    if isinstance(time, int):
        return time
    if isinstance(time, dt.datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=dt.timezone.utc)
        return (zoned - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(milliseconds=1)
    try:
        nanos, offset = parse_timestamp(time)
    except ValueError as error:
        raise InvalidInputError(f"Not a time: {error}") from error
    return (nanos - (offset or 0) * 1_000_000_000) // 1_000_000
