"""Snapshots, logs, references, statistics files and encryption keys as JSON-ready Python, both ways.

Source: Iceberg specification, Appendix C, "Table Metadata and Snapshots", and the tables of their fields.
"""

from __future__ import annotations

import logging
from typing import Any

from hms_iceberg.errors import CorruptMetadataError
from hms_iceberg.spec.json_model import JsonObject, set_json_form, shown
from hms_iceberg.spec.snapshots_and_refs import (
    INITIAL_SEQUENCE_NUMBER,
    OPERATION,
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    Summary,
)
from hms_iceberg.spec.statistics_files import BlobMetadata, EncryptionKey, PartitionStatisticsFile, StatisticsFile

_logger = logging.getLogger(__name__)


def _present(**members: Any) -> dict[str, Any]:
    """The members that are not None, under their JSON names."""
    return {name.replace("_", "-"): value for name, value in members.items() if value is not None}


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot; sequence number 0, that of v1 tables, is left out as Java leaves it out."""
    data = _present(
        sequence_number=snapshot.sequence_number if snapshot.sequence_number > INITIAL_SEQUENCE_NUMBER else None,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        timestamp_ms=snapshot.timestamp_ms,
        summary=dict(snapshot.summary) or None,
        manifest_list=snapshot.manifest_list,
        schema_id=snapshot.schema_id,
        first_row_id=snapshot.first_row_id,
        added_rows=snapshot.added_rows,
        key_id=snapshot.key_id,
    )
    if snapshot.manifest_list is None:
        data["manifests"] = list(snapshot.manifest_locations or ())
    return data


def snapshot_from_json(data: Any) -> Snapshot:
    """The snapshot that parsed JSON stands for.

    Raises:
        CorruptMetadataError: a member is missing or of another type.
    """
    read = JsonObject(data, "a snapshot")
    snapshot_id = read.integer("snapshot-id")
    read.what = f"snapshot {snapshot_id}"
    summary = read.text_map_or_none("summary") or {}
    if summary and OPERATION not in summary:
        _logger.warning("The summary of snapshot %d lacks its operation; taken as overwrite", snapshot_id)
        summary = {OPERATION: str(Operation.OVERWRITE), **summary}
    manifest_list = read.text_or_none("manifest-list")
    manifests: tuple[str, ...] | None = None
    if manifest_list is None:
        listed = read.sequence("manifests") if "manifests" in read.data else None
        if listed is None or not all(isinstance(each, str) for each in listed):
            raise CorruptMetadataError(
                f"snapshot {snapshot_id} has neither a 'manifest-list' nor a list of 'manifests'"
            )
        manifests = tuple(listed)
    return Snapshot(
        snapshot_id,
        read.integer_or_none("parent-snapshot-id"),
        read.integer_or_none("sequence-number") or INITIAL_SEQUENCE_NUMBER,
        read.integer("timestamp-ms"),
        manifest_list,
        manifests,
        Summary.of(summary),
        read.integer_or_none("schema-id"),
        read.integer_or_none("first-row-id"),
        read.integer_or_none("added-rows"),
        read.text_or_none("key-id"),
    )


def snapshot_log_to_json(entry: SnapshotLogEntry) -> dict[str, Any]:
    """An entry of the snapshot log."""
    return {"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id}


def snapshot_log_from_json(data: Any) -> SnapshotLogEntry:
    """The entry of the snapshot log that parsed JSON stands for; raises CorruptMetadataError."""
    read = JsonObject(data, "an entry of the snapshot log")
    return SnapshotLogEntry(read.integer("snapshot-id"), read.integer("timestamp-ms"))


def metadata_log_to_json(entry: MetadataLogEntry) -> dict[str, Any]:
    """An entry of the metadata log."""
    return {"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file}


def metadata_log_from_json(data: Any) -> MetadataLogEntry:
    """The entry of the metadata log that parsed JSON stands for; raises CorruptMetadataError."""
    read = JsonObject(data, "an entry of the metadata log")
    return MetadataLogEntry(read.text("metadata-file"), read.integer("timestamp-ms"))


def ref_to_json(ref: SnapshotRef) -> dict[str, Any]:
    """A branch or tag."""
    return _present(
        snapshot_id=ref.snapshot_id,
        type=str(ref.snapshot_ref_type),
        min_snapshots_to_keep=ref.min_snapshots_to_keep,
        max_snapshot_age_ms=ref.max_snapshot_age_ms,
        max_ref_age_ms=ref.max_ref_age_ms,
    )


def ref_from_json(data: Any, name: str = "") -> SnapshotRef:
    """The branch or tag that parsed JSON stands for.

    Raises:
        CorruptMetadataError: a member is missing or of another type.
        InvalidInputError: the retention makes no sense.
    """
    read = JsonObject(data, f"reference {name!r}")
    kind = read.text("type").lower()
    if kind not in {str(each) for each in SnapshotRefType}:
        raise CorruptMetadataError(f"'type' of reference {name!r} is {shown(kind)}, expected branch or tag")
    return SnapshotRef(
        read.integer("snapshot-id"),
        SnapshotRefType(kind),
        read.integer_or_none("min-snapshots-to-keep"),
        read.integer_or_none("max-snapshot-age-ms"),
        read.integer_or_none("max-ref-age-ms"),
    )


def statistics_to_json(file: StatisticsFile) -> dict[str, Any]:
    """A registered statistics file."""
    return _present(
        snapshot_id=file.snapshot_id,
        statistics_path=file.statistics_path,
        file_size_in_bytes=file.file_size_in_bytes,
        file_footer_size_in_bytes=file.file_footer_size_in_bytes,
        key_metadata=file.key_metadata,
        blob_metadata=[_blob_to_json(blob) for blob in file.blob_metadata],
    )


def _blob_to_json(blob: BlobMetadata) -> dict[str, Any]:
    return _present(
        type=blob.type,
        snapshot_id=blob.snapshot_id,
        sequence_number=blob.sequence_number,
        fields=list(blob.fields),
        properties=blob.properties,
    )


def statistics_from_json(data: Any) -> StatisticsFile:
    """The registered statistics file that parsed JSON stands for; raises CorruptMetadataError."""
    read = JsonObject(data, "a statistics file")
    read.sequence("blob-metadata")
    return StatisticsFile(
        read.integer("snapshot-id"),
        read.text("statistics-path"),
        read.integer("file-size-in-bytes"),
        read.integer("file-footer-size-in-bytes"),
        tuple(_blob_from_json(each) for each in read.objects("blob-metadata", "blob metadata")),
        read.text_or_none("key-metadata"),
    )


def _blob_from_json(read: JsonObject) -> BlobMetadata:
    fields = read.sequence("fields")
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in fields):
        raise CorruptMetadataError(f"'fields' of blob metadata is {shown(fields)}, expected a list of field ids")
    return BlobMetadata(
        read.text("type"),
        read.integer("snapshot-id"),
        read.integer("sequence-number"),
        tuple(fields),
        read.text_map_or_none("properties"),
    )


def partition_statistics_to_json(file: PartitionStatisticsFile) -> dict[str, Any]:
    """A registered partition statistics file."""
    return _present(
        snapshot_id=file.snapshot_id,
        statistics_path=file.statistics_path,
        file_size_in_bytes=file.file_size_in_bytes,
    )


def partition_statistics_from_json(data: Any) -> PartitionStatisticsFile:
    """The registered partition statistics file that parsed JSON stands for; raises CorruptMetadataError."""
    read = JsonObject(data, "a partition statistics file")
    return PartitionStatisticsFile(
        read.integer("snapshot-id"), read.text("statistics-path"), read.integer("file-size-in-bytes")
    )


def encryption_key_to_json(key: EncryptionKey) -> dict[str, Any]:
    """An encryption key."""
    return _present(
        key_id=key.key_id,
        encrypted_key_metadata=key.encrypted_key_metadata,
        encrypted_by_id=key.encrypted_by_id,
        properties=key.properties,
    )


def encryption_key_from_json(data: Any) -> EncryptionKey:
    """The encryption key that parsed JSON stands for; raises CorruptMetadataError."""
    read = JsonObject(data, "an encryption key")
    return EncryptionKey(
        read.text("key-id"),
        read.text("encrypted-key-metadata"),
        read.text_or_none("encrypted-by-id"),
        read.text_map_or_none("properties"),
    )


set_json_form(Snapshot, snapshot_to_json, snapshot_from_json)
set_json_form(SnapshotLogEntry, snapshot_log_to_json, snapshot_log_from_json)
set_json_form(MetadataLogEntry, metadata_log_to_json, metadata_log_from_json)
set_json_form(SnapshotRef, ref_to_json, ref_from_json)
set_json_form(StatisticsFile, statistics_to_json, statistics_from_json)
set_json_form(PartitionStatisticsFile, partition_statistics_to_json, partition_statistics_from_json)
