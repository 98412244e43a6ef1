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
    """The metadata with a snapshot more, at the head of a branch (made if it is new).

    Args:
        metadata: the table.
        snapshot: the snapshot; its sequence number and first row id must be the table's next ones.
        branch: the branch that moves to it; None stages it without a reference.
        at_ms: when the table is updated, in milliseconds from 1970-01-01 UTC; the snapshot's time by default.

    Raises:
        CommitFailedError: sequence number or first row id are behind the table's, because it moved on.
        InvalidInputError: the id is taken, something that the format version needs is missing, or the branch is a tag.
    """
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
    """The metadata whose snapshot log does not name snapshots that were never the table's current one.

    A transaction may add several snapshots to main one after the other; only the last one is ever seen by readers.

    Args:
        metadata: the table after the transaction.
        base: the table before it.
    """
    intermediate = metadata.snapshots_by_id.keys() - base.snapshots_by_id.keys() - {metadata.current_snapshot_id}
    log = tuple(entry for entry in metadata.snapshot_log if entry.snapshot_id not in intermediate)
    return metadata if len(log) == len(metadata.snapshot_log) else replace(metadata, snapshot_log=log)


def remove_snapshots(metadata: TableMetadata, ids: Collection[int], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some snapshots, their statistics, and the keys of their manifest lists.

    The snapshot log loses everything up to the last entry of a removed snapshot, since its gaps would make time travel
    wrong.

    Args:
        metadata: the table's metadata.
        ids: ids of the snapshots.
        at_ms: time of the change in milliseconds since 1970; None for now.

    Raises:
        InvalidInputError: a branch or tag still points at one of them.
    """
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
    """The snapshot with this id; raises NoSuchSnapshotError.

    Args:
        metadata: the table's metadata.
        snapshot_id: id of the snapshot.
    """
    snapshot = metadata.snapshot_by_id(snapshot_number(snapshot_id))
    if snapshot is None:
        raise NoSuchSnapshotError(
            f"The table at {metadata.location} has no snapshot {snapshot_id}; it may have expired. It has "
            f"{len(metadata.snapshots)} snapshots, the current one is {metadata.current_snapshot_id}"
        )
    return snapshot


def require_ref(metadata: TableMetadata, name: str) -> SnapshotRef:
    """The branch or tag of this name; raises NoSuchRefError.

    Args:
        metadata: the table's metadata.
        name: name of the branch or tag.
    """
    ref = metadata.refs.get(name)
    if ref is None:
        raise NoSuchRefError(
            f"The table at {metadata.location} has no branch or tag {name!r}; it has {sorted(metadata.refs)}"
        )
    return ref


def set_ref(
    metadata: TableMetadata, name: str, ref: SnapshotRef, at_ms: int | None = None, replace_existing: bool = True
) -> TableMetadata:
    """The metadata with a branch or tag, new or changed. Moving main is a rollback, and is logged.

    Args:
        metadata: the table's metadata.
        name: name of the branch or tag.
        ref: where it points, and how long it is kept.
        at_ms: time of the change in milliseconds since 1970; None for now.
        replace_existing: whether one of this name may be there already.

    Raises:
        NoSuchSnapshotError: the table does not have the snapshot.
        RefAlreadyExistsError: the name is taken and `replace_existing` is False.
        InvalidInputError: the name is empty, main would become a tag, or a branch would become a tag or the reverse.
    """
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
    """The metadata whose branch points at an existing snapshot (rollback, fast-forward); made if it is new.

    Args:
        metadata: the table's metadata.
        snapshot_id: id of the snapshot.
        branch: name of the branch.
        at_ms: time of the change in milliseconds since 1970; None for now.

    Raises:
        NoSuchSnapshotError: the table does not have the snapshot.
        InvalidInputError: the branch is a tag.
    """
    ref = metadata.refs.get(branch)
    if ref is not None and ref.is_branch and ref.snapshot_id == snapshot_id:
        return metadata
    snapshot = require_snapshot(metadata, snapshot_id)
    return _moved(metadata, branch, snapshot, now_ms() if at_ms is None else at_ms)


def remove_ref(metadata: TableMetadata, name: str, at_ms: int | None = None) -> TableMetadata:
    """The metadata without a branch or tag; without main, the table has no current snapshot.

    Args:
        metadata: the table's metadata.
        name: name of the branch or tag.
        at_ms: time of the change in milliseconds since 1970; None for now.

    Raises:
        NoSuchRefError: there is none of this name.
    """
    require_ref(metadata, name)
    refs = {each: ref for each, ref in metadata.refs.items() if each != name}
    current = None if name == MAIN_BRANCH else metadata.current_snapshot_id
    return changed(metadata, at_ms, refs=refs, current_snapshot_id=current)


# ------------------------------------------------------------------------------------------- statistics


def set_statistics(metadata: TableMetadata, file: StatisticsFile, at_ms: int | None = None) -> TableMetadata:
    """The metadata with a statistics file, in place of another one of the same snapshot.

    Args:
        metadata: the table's metadata.
        file: the statistics file.
        at_ms: time of the change in milliseconds since 1970; None for now.
    """
    require_snapshot(metadata, file.snapshot_id)
    others = (each for each in metadata.statistics if each.snapshot_id != file.snapshot_id)
    return changed(metadata, at_ms, statistics=(*others, file))


def remove_statistics(metadata: TableMetadata, snapshot_id: int, at_ms: int | None = None) -> TableMetadata:
    """The metadata without the statistics file of a snapshot; unchanged if there is none.

    Args:
        metadata: the table's metadata.
        snapshot_id: id of the snapshot.
        at_ms: time of the change in milliseconds since 1970; None for now.
    """
    kept = tuple(each for each in metadata.statistics if each.snapshot_id != snapshot_id)
    return metadata if len(kept) == len(metadata.statistics) else changed(metadata, at_ms, statistics=kept)


def set_partition_statistics(
    metadata: TableMetadata, file: PartitionStatisticsFile, at_ms: int | None = None
) -> TableMetadata:
    """The metadata with a partition statistics file, in place of another one of the same snapshot.

    Args:
        metadata: the table's metadata.
        file: the partition statistics file.
        at_ms: time of the change in milliseconds since 1970; None for now.
    """
    require_snapshot(metadata, file.snapshot_id)
    others = (each for each in metadata.partition_statistics if each.snapshot_id != file.snapshot_id)
    return changed(metadata, at_ms, partition_statistics=(*others, file))


def remove_partition_statistics(metadata: TableMetadata, snapshot_id: int, at_ms: int | None = None) -> TableMetadata:
    """The metadata without the partition statistics file of a snapshot; unchanged if there is none.

    Args:
        metadata: the table's metadata.
        snapshot_id: id of the snapshot.
        at_ms: time of the change in milliseconds since 1970; None for now.
    """
    kept = tuple(each for each in metadata.partition_statistics if each.snapshot_id != snapshot_id)
    unchanged = len(kept) == len(metadata.partition_statistics)
    return metadata if unchanged else changed(metadata, at_ms, partition_statistics=kept)


# -------------------------------------------------------------------------------------- keys, past files


def add_encryption_key(metadata: TableMetadata, key: EncryptionKey, at_ms: int | None = None) -> TableMetadata:
    """The metadata with an encryption key more (format v3); unchanged if it has the key already.

    Args:
        metadata: the table's metadata.
        key: the key.
        at_ms: time of the change in milliseconds since 1970; None for now.

    Raises:
        InvalidInputError: the table is not of format v3, or the id belongs to another key.
    """
    if metadata.format_version < 3:
        raise InvalidInputError(f"Cannot add an encryption key to {metadata.location}: it needs format version 3")
    for known in metadata.encryption_keys:
        if known.key_id == key.key_id:
            if known == key:
                return metadata
            raise InvalidInputError(f"Cannot add encryption key {key.key_id!r}: the table has another key of this id")
    return changed(metadata, at_ms, encryption_keys=(*metadata.encryption_keys, key))


def remove_encryption_key(metadata: TableMetadata, key_id: str, at_ms: int | None = None) -> TableMetadata:
    """The metadata without an encryption key; unchanged if there is none of this id.

    Args:
        metadata: the table's metadata.
        key_id: id of the key.
        at_ms: time of the change in milliseconds since 1970; None for now.
    """
    kept = tuple(key for key in metadata.encryption_keys if key.key_id != key_id)
    return metadata if len(kept) == len(metadata.encryption_keys) else changed(metadata, at_ms, encryption_keys=kept)


def append_metadata_log(
    metadata: TableMetadata, previous_location: str | None, previous_updated_ms: int
) -> TableMetadata:
    """The metadata whose log names the file that it was made from, cut to `write.metadata.previous-versions-max`.

    Args:
        metadata: the new metadata.
        previous_location: location of the file that it replaces; None for a new table.
        previous_updated_ms: `last-updated-ms` in that file.
    """
    if previous_location is None:
        return metadata
    return replace(
        metadata,
        metadata_log=(*metadata.metadata_log, MetadataLogEntry(previous_location, previous_updated_ms))[
            -previous_versions_max(metadata) :
        ],
    )


def previous_versions_max(metadata: TableMetadata) -> int:
    """How many entries the metadata log keeps, by the table's properties; at least one."""
    text = metadata.properties.get(METADATA_PREVIOUS_VERSIONS_MAX.name, "").strip()
    return max(1, int(text)) if text.lstrip("+-").isdigit() else METADATA_PREVIOUS_VERSIONS_MAX.default
