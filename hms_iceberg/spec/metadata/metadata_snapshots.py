"""Changes of a table's snapshots, references, logs and statistics.

Pure functions from metadata to metadata. Source: Iceberg specification, "Snapshots", "Snapshot References", "Snapshot
Row IDs", "Table Metadata Fields" (snapshot-log, metadata-log).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hms_iceberg.errors import (
    CommitFailedError,
    InvalidInputError,
    NoSuchRefError,
    NoSuchSnapshotError,
    RefAlreadyExistsError,
)
from hms_iceberg.spec.json_model import snapshot_number
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, changed, now_ms
from hms_iceberg.spec.snapshots_and_refs import (
    MAIN_BRANCH,
    EncryptionKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from hms_iceberg.spec.table_properties import METADATA_PREVIOUS_VERSIONS_MAX

# -------------------------------------------------------------------------------------------- snapshots


def add_snapshot(
    metadata: TableMetadata, snapshot: Snapshot, branch: str | None = MAIN_BRANCH, at_ms: int | None = None
) -> TableMetadata:
    """The metadata with one more snapshot at the head of a branch, made if it is new; None stages it. CommitFailedError
    if sequence number or first row id are behind the table's, because it moved on."""
    if snapshot.snapshot_id in metadata.snapshots_by_id:
        raise InvalidInputError(f"Cannot add snapshot {snapshot.snapshot_id}: {metadata.location} has it already")
    if metadata.format_version > 1:
        # As in Apache Iceberg: one without a parent, that of a table that was replaced, rests on nothing before it.
        is_behind = snapshot.sequence_number <= metadata.last_sequence_number
        if is_behind and snapshot.parent_snapshot_id is not None:
            raise CommitFailedError(
                f"Cannot add snapshot {snapshot.snapshot_id} with sequence number {snapshot.sequence_number} to "
                f"{metadata.location}: the table's last one is {metadata.last_sequence_number} already; refresh the "
                "table and try again"
            )
        if snapshot.manifest_list is None:
            raise InvalidInputError(f"Cannot add snapshot {snapshot.snapshot_id}: it has no manifest list")
    new = changed(
        metadata,
        snapshot.timestamp_ms if at_ms is None else at_ms,
        snapshots=(*metadata.snapshots, snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number)
        if metadata.format_version > 1
        else 0,
        next_row_id=_next_row_id(metadata, snapshot),
    )
    return new if branch is None else _moved(new, branch, snapshot, snapshot.timestamp_ms)


def _next_row_id(metadata: TableMetadata, snapshot: Snapshot) -> int | None:
    if metadata.next_row_id is None:
        return None
    if snapshot.first_row_id is None or snapshot.added_rows is None or snapshot.added_rows < 0:
        raise InvalidInputError(
            f"Cannot add snapshot {snapshot.snapshot_id}: a table of format version {metadata.format_version} needs "
            f"'first-row-id' and 'added-rows', got {snapshot.first_row_id} and {snapshot.added_rows}"
        )
    if snapshot.first_row_id < metadata.next_row_id:
        raise CommitFailedError(
            f"Cannot add snapshot {snapshot.snapshot_id} with first row id {snapshot.first_row_id} to "
            f"{metadata.location}: the table's next one is {metadata.next_row_id} already; refresh the table and "
            "try again"
        )
    return snapshot.first_row_id + snapshot.added_rows


def _moved(metadata: TableMetadata, branch: str, snapshot: Snapshot, time_ms: int) -> TableMetadata:
    ref = metadata.refs.get(branch)
    if ref is not None and ref.is_tag:
        raise InvalidInputError(f"Cannot commit to {branch!r}: it is a tag of {metadata.location}, expected a branch")
    moved = SnapshotRef(snapshot.snapshot_id) if ref is None else replace(ref, snapshot_id=snapshot.snapshot_id)
    return _with_ref(metadata, branch, moved, time_ms)


def _with_ref(metadata: TableMetadata, name: str, ref: SnapshotRef, time_ms: int) -> TableMetadata:
    refs = {**metadata.refs, name: ref}
    if name != MAIN_BRANCH:
        return changed(metadata, time_ms, refs=refs)
    log = metadata.snapshot_log
    if metadata.current_snapshot_id != ref.snapshot_id:
        log = (*log, SnapshotLogEntry(ref.snapshot_id, time_ms))
    return changed(metadata, time_ms, refs=refs, current_snapshot_id=ref.snapshot_id, snapshot_log=log)


def suppress_intermediate_snapshots(metadata: TableMetadata, base: TableMetadata) -> TableMetadata:
    """Leaves out of the snapshot log what was never current outside the transaction that `metadata` came of."""
    intermediate = metadata.snapshots_by_id.keys() - base.snapshots_by_id.keys() - {metadata.current_snapshot_id}
    log = tuple(entry for entry in metadata.snapshot_log if entry.snapshot_id not in intermediate)
    return metadata if len(log) == len(metadata.snapshot_log) else replace(metadata, snapshot_log=log)


def remove_snapshots(metadata: TableMetadata, ids: Collection[int], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some snapshots, their statistics and keys; no reference may point there. The snapshot log
    loses all up to a removed snapshot's last entry, as gaps would make time travel wrong."""
    removed = metadata.snapshots_by_id.keys() & set(ids)
    if not removed:
        return metadata
    held = {name: ref.snapshot_id for name, ref in metadata.refs.items() if ref.snapshot_id in removed}
    if held:
        raise InvalidInputError(
            f"Cannot remove snapshots of {metadata.location} that are still referenced: "
            + ", ".join(f"{snapshot_id} by {name!r}" for name, snapshot_id in held.items())
            + "; remove the references first"
        )
    log: list[SnapshotLogEntry] = []
    for entry in metadata.snapshot_log:
        if entry.snapshot_id in removed or entry.snapshot_id not in metadata.snapshots_by_id:
            log.clear()
        else:
            log.append(entry)
    kept = tuple(each for each in metadata.snapshots if each.snapshot_id not in removed)
    lost_keys = {metadata.snapshots_by_id[each].key_id for each in removed} - {each.key_id for each in kept}
    return changed(
        metadata,
        at_ms,
        snapshots=kept,
        encryption_keys=tuple(key for key in metadata.encryption_keys if key.key_id not in lost_keys),
        snapshot_log=tuple(log),
        statistics=tuple(each for each in metadata.statistics if each.snapshot_id not in removed),
        partition_statistics=tuple(each for each in metadata.partition_statistics if each.snapshot_id not in removed),
    )


# ------------------------------------------------------------------------------------------- references


def require_snapshot(metadata: TableMetadata, snapshot_id: int) -> Snapshot:
    snapshot = metadata.snapshot_by_id(snapshot_number(snapshot_id))
    if snapshot is None:
        raise NoSuchSnapshotError(
            f"The table at {metadata.location} has no snapshot {snapshot_id}; it may have expired. It has "
            f"{len(metadata.snapshots)} snapshots, the current one is {metadata.current_snapshot_id}"
        )
    return snapshot


def require_ref(metadata: TableMetadata, name: str) -> SnapshotRef:
    ref = metadata.refs.get(name)
    if ref is None:
        raise NoSuchRefError(
            f"The table at {metadata.location} has no branch or tag {name!r}; it has {sorted(metadata.refs)}"
        )
    return ref


def set_ref(
    metadata: TableMetadata, name: str, ref: SnapshotRef, at_ms: int | None = None, replace_existing: bool = True
) -> TableMetadata:
    """The metadata with a branch or tag, new or changed; moving main is a rollback, and is logged."""
    if not name:
        raise InvalidInputError("Cannot set a reference without a name")
    require_snapshot(metadata, ref.snapshot_id)
    known = metadata.refs.get(name)
    if known == ref:
        return metadata
    if known is not None and not replace_existing:
        kind = known.snapshot_ref_type
        raise RefAlreadyExistsError(f"The table at {metadata.location} has a {kind} {name!r} already")
    if name == MAIN_BRANCH and ref.is_tag:
        raise InvalidInputError("Cannot make a tag of 'main': it must be a branch")
    if name == MAIN_BRANCH and ref.max_ref_age_ms is not None:
        raise InvalidInputError("Cannot set max_ref_age_ms of 'main': it never expires")
    if known is not None and known.snapshot_ref_type is not ref.snapshot_ref_type:
        raise InvalidInputError(
            f"Cannot replace {known.snapshot_ref_type} {name!r} of {metadata.location} by a {ref.snapshot_ref_type}; "
            "remove it first"
        )
    return _with_ref(metadata, name, ref, now_ms() if at_ms is None else at_ms)


def set_branch_snapshot(
    metadata: TableMetadata, snapshot_id: int, branch: str = MAIN_BRANCH, at_ms: int | None = None
) -> TableMetadata:
    """The metadata whose branch points at an existing snapshot (rollback, fast-forward); made if it is new."""
    ref = metadata.refs.get(branch)
    if ref is not None and ref.is_branch and ref.snapshot_id == snapshot_id:
        return metadata
    snapshot = require_snapshot(metadata, snapshot_id)
    return _moved(metadata, branch, snapshot, now_ms() if at_ms is None else at_ms)


def remove_ref(metadata: TableMetadata, name: str, at_ms: int | None = None) -> TableMetadata:
    """The metadata without a branch or tag; without main, the table has no current snapshot."""
    require_ref(metadata, name)
    return remove_refs(metadata, (name,), at_ms)


def remove_refs(metadata: TableMetadata, names: Collection[str], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some branches and tags; without main, the table has no current snapshot."""
    refs = {each: ref for each, ref in metadata.refs.items() if each not in names}
    current = None if MAIN_BRANCH in names else metadata.current_snapshot_id
    return changed(metadata, at_ms, refs=refs, current_snapshot_id=current)


# ------------------------------------------------------------------------------------------- statistics


def set_statistics(metadata: TableMetadata, file: StatisticsFile, at_ms: int | None = None) -> TableMetadata:
    """The metadata with a statistics file in place of another one of its snapshot."""
    require_snapshot(metadata, file.snapshot_id)
    others = (each for each in metadata.statistics if each.snapshot_id != file.snapshot_id)
    return changed(metadata, at_ms, statistics=(*others, file))


def remove_statistics(metadata: TableMetadata, snapshot_id: int, at_ms: int | None = None) -> TableMetadata:
    """Changes nothing if there is none."""
    kept = tuple(each for each in metadata.statistics if each.snapshot_id != snapshot_id)
    return metadata if len(kept) == len(metadata.statistics) else changed(metadata, at_ms, statistics=kept)


def set_partition_statistics(
    metadata: TableMetadata, file: PartitionStatisticsFile, at_ms: int | None = None
) -> TableMetadata:
    """The metadata with a partition statistics file in place of another one of its snapshot."""
    require_snapshot(metadata, file.snapshot_id)
    others = (each for each in metadata.partition_statistics if each.snapshot_id != file.snapshot_id)
    return changed(metadata, at_ms, partition_statistics=(*others, file))


def remove_partition_statistics(metadata: TableMetadata, snapshot_id: int, at_ms: int | None = None) -> TableMetadata:
    """The metadata without a snapshot's partition statistics file; unchanged if there is none."""
    kept = tuple(each for each in metadata.partition_statistics if each.snapshot_id != snapshot_id)
    unchanged = len(kept) == len(metadata.partition_statistics)
    return metadata if unchanged else changed(metadata, at_ms, partition_statistics=kept)


# -------------------------------------------------------------------------------------- keys, past files


def add_encryption_key(metadata: TableMetadata, key: EncryptionKey, at_ms: int | None = None) -> TableMetadata:
    """The metadata with one more encryption key (v3 only); unchanged if it has the key already."""
    if metadata.format_version < 3:
        raise InvalidInputError(f"Cannot add an encryption key to {metadata.location}: it needs format version 3")
    for known in metadata.encryption_keys:
        if known.key_id == key.key_id:
            if known == key:
                return metadata
            raise InvalidInputError(f"Cannot add encryption key {key.key_id!r}: the table has another key of this id")
    return changed(metadata, at_ms, encryption_keys=(*metadata.encryption_keys, key))


def remove_encryption_key(metadata: TableMetadata, key_id: str, at_ms: int | None = None) -> TableMetadata:
    """The metadata without an encryption key; unchanged if there is none of this id."""
    kept = tuple(key for key in metadata.encryption_keys if key.key_id != key_id)
    return metadata if len(kept) == len(metadata.encryption_keys) else changed(metadata, at_ms, encryption_keys=kept)


def append_metadata_log(
    metadata: TableMetadata, previous_location: str | None, previous_updated_ms: int
) -> TableMetadata:
    """The metadata whose log names the replaced file (None for a new table), cut to
    `write.metadata.previous-versions-max`."""
    if previous_location is None:
        return metadata
    return replace(
        metadata,
        metadata_log=(*metadata.metadata_log, MetadataLogEntry(previous_location, previous_updated_ms))[
            -previous_versions_max(metadata) :
        ],
    )


def previous_versions_max(metadata: TableMetadata) -> int:
    """The number of entries that the metadata log keeps, by the table's properties; at least one."""
    text = metadata.properties.get(METADATA_PREVIOUS_VERSIONS_MAX.name, "").strip()
    return max(1, int(text)) if text.lstrip("+-").isdigit() else METADATA_PREVIOUS_VERSIONS_MAX.default
