"""For how long a migrated table has a way back: as long as the files that it had as a Hive table are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hms_iceberg.migration.state import HIVE_TABLE
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot, SnapshotRef
from hms_iceberg.spec.table_properties import MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS
from hms_iceberg.table import Table
from hms_iceberg.table.needed.named_files import path_of
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of

_ALWAYS = 2**63 - 1  # which Iceberg takes for an age without end


@dataclass(frozen=True)
class Outlook:
    """How long the files of the Hive table are kept, and by which settings.

    Attributes:
        left_over: how many of them the Iceberg table's present version does not have any more.
        safe_until_ms: milliseconds since 1970 until which no expiry by the table's own settings deletes one of these,
            because the migration's own snapshot is kept; None if no time ends that.
    """

    left_over: int
    safe_until_ms: int | None


def outlook(table: Table, files: Iterable[str]) -> Outlook:
    """Tells how long the files that a table had as a Hive table are kept, and by which settings.

    Args:
        table: the Iceberg table.
        files: locations of the files.

    Returns:
        how many of them only older snapshots have, and until when no expiry deletes those.

    Raises:
        CorruptManifestError, StorageError: the table's manifests cannot be read.
    """
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    entries = (entry for manifest in manifests for entry in entries_of(manifest, table.storage))
    live = {path_of(entry.data_file.file_path) for entry in entries if entry.is_live}
    left_over = sum(path_of(location) not in live for location in files)
    return Outlook(left_over, _safe_until(table) if left_over else None)


def _safe_until(table: Table) -> int | None:
    """When the migration's own snapshot may be expired, which has all of the files; 0 if it was."""
    metadata = table.metadata
    times = [kept_until(metadata, each) for each in metadata.snapshots if HIVE_TABLE in each.summary]
    latest = max(times, default=0)
    return None if latest >= _ALWAYS else latest


def kept_until(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """Until when a snapshot survives every expiry. `min-snapshots-to-keep` does not count: later commits use it up.

    Args:
        metadata: the table.
        snapshot: one of its snapshots.

    Returns:
        Milliseconds since 1970; 2^63 - 1 or more for no end.

    Source: Iceberg specification, "Snapshot Retention Policy"; Apache Iceberg, `RemoveSnapshots`.
    """
    age = MAX_SNAPSHOT_AGE_MS.of(metadata.properties)
    age_of_refs = MAX_REF_AGE_MS.of(metadata.properties)
    until, known_until = 0, 0
    for name, ref in metadata.refs.items():
        line = _down_to(metadata, ref, snapshot)
        if line:
            of_ref = age_of_refs if ref.max_ref_age_ms is None else ref.max_ref_age_ms
            ends = _ALWAYS if name == MAIN_BRANCH else line[0].timestamp_ms + of_ref
            of_branch = age if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms
            # An expiry goes down a branch as far as the first snapshot that is too old.
            oldest = min(each.timestamp_ms for each in line) + of_branch
            until = max(until, min(ends, oldest) if ref.is_branch else ends)
            known_until = max(known_until, ends)
    # What no branch and no tag has is kept by its own age.
    return max(until, snapshot.timestamp_ms + age) if until >= known_until else until


def _down_to(metadata: TableMetadata, ref: SnapshotRef, snapshot: Snapshot) -> list[Snapshot]:
    """The snapshots from a branch's head, or of a tag, down to one; empty if it is not there."""
    line = []
    for each in metadata.ancestors_of(ref.snapshot_id):
        line.append(each)
        if each.snapshot_id == snapshot.snapshot_id:
            return line
        if not ref.is_branch:
            break
    return []
