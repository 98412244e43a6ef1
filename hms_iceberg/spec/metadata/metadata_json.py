"""Table metadata of format versions 1 to 3, and a preview of 4, and their parts as JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

from hms_iceberg.errors import CorruptMetadataError, InvalidInputError, UnsupportedError
from hms_iceberg.spec.json_model import JsonObject, set_json_form, shown
from hms_iceberg.spec.metadata.encryption_keys import encryption_key_from_json, encryption_key_to_json
from hms_iceberg.spec.metadata.metadata_file import read_metadata_file
from hms_iceberg.spec.metadata.relative_paths import table_location, with_absolute_locations
from hms_iceberg.spec.metadata.table_metadata import (
    PREVIEWED_FORMAT_VERSION,
    SUPPORTED_FORMAT_VERSIONS,
    TableMetadata,
    check_metadata,
)
from hms_iceberg.spec.partitions.partition_specs import (
    PARTITION_FIELD_ID_START,
    PartitionSpec,
    spec_fields_to_json,
    spec_from_fields_json,
    spec_from_json,
    spec_to_json,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from hms_iceberg.spec.snapshots_and_refs import (
    INITIAL_SEQUENCE_NUMBER,
    MAIN_BRANCH,
    OPERATION,
    BlobMetadata,
    MetadataLogEntry,
    Operation,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    Summary,
    with_keys,
)
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder, sort_order_from_json, sort_order_to_json

NO_SNAPSHOT = -1
"""What v1 and v2 files hold as `current-snapshot-id` of a table without data."""


# ---------------------------------------------------------------------------------------------- writing


def metadata_to_json(metadata: TableMetadata) -> bytes:
    """The content of a metadata file, uncompressed.

    Raises:
        IcebergError: the metadata breaks a rule of the specification; nothing invalid is ever written.
    """
    check_metadata(metadata)
    text = json.dumps(metadata_to_dict(metadata), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"Cannot write the metadata of the table at {metadata.location}: a name, property or comment holds half a "
            f"character ({error.object[error.start : error.end]!r}); remove it"
        ) from error


def metadata_to_dict(metadata: TableMetadata) -> dict[str, Any]:
    """The metadata as JSON-ready Python, with the members of its format version."""
    version = metadata.format_version
    data: dict[str, Any] = {"format-version": version}
    if metadata.table_uuid is not None:
        data["table-uuid"] = metadata.table_uuid
    data["location"] = metadata.location
    if version > 1:
        data["last-sequence-number"] = metadata.last_sequence_number
    data["last-updated-ms"] = metadata.last_updated_ms
    data["last-column-id"] = metadata.last_column_id
    if version == 1:
        data["schema"] = schema_to_json(metadata.schema())
    data["current-schema-id"] = metadata.current_schema_id
    data["schemas"] = [schema_to_json(schema) for schema in metadata.schemas]
    if version == 1:
        data["partition-spec"] = spec_fields_to_json(metadata.spec())
    data["default-spec-id"] = metadata.default_spec_id
    data["partition-specs"] = [spec_to_json(spec) for spec in metadata.partition_specs]
    data["last-partition-id"] = metadata.last_partition_id
    data["default-sort-order-id"] = metadata.default_sort_order_id
    data["sort-orders"] = [sort_order_to_json(order) for order in metadata.sort_orders]
    data["properties"] = metadata.properties
    absent = None if version > 2 else NO_SNAPSHOT  # older readers of v1 and v2 insist on a number
    data["current-snapshot-id"] = absent if metadata.current_snapshot_id is None else metadata.current_snapshot_id
    if version > 2:
        data["next-row-id"] = metadata.next_row_id
    if metadata.encryption_keys:
        data["encryption-keys"] = [encryption_key_to_json(key) for key in metadata.encryption_keys]
    data["refs"] = {name: ref_to_json(ref) for name, ref in metadata.refs.items()}
    data["snapshots"] = [snapshot_to_json(each) for each in metadata.snapshots]
    data["statistics"] = [statistics_to_json(file) for file in metadata.statistics]
    data["partition-statistics"] = [partition_statistics_to_json(file) for file in metadata.partition_statistics]
    data["snapshot-log"] = [snapshot_log_to_json(entry) for entry in metadata.snapshot_log]
    data["metadata-log"] = [metadata_log_to_json(entry) for entry in metadata.metadata_log]
    return data


# ---------------------------------------------------------------------------------------------- reading


def metadata_from_json(data: bytes, location: str | None = None, *, preview: bool = False) -> TableMetadata:
    """The table metadata in the content of a metadata file; gzip is told by the content.

    Args:
        data: the content of the file.
        location: where it was read.
        preview: whether format version 4 is read, as far as its draft is settled.

    Raises:
        UnsupportedError: the format version is newer than v3 (v4 if previewed).
        CorruptMetadataError: it is no JSON, something is missing or of the wrong type, or it contradicts itself.
    """
    return read_metadata_file(
        data, "table metadata", location, lambda parsed: _metadata(parsed, location, preview=preview)
    )


def metadata_from_dict(data: Any) -> TableMetadata:
    """The table metadata that parsed JSON stands for.

    Raises:
        UnsupportedError: the format version is newer than v3.
        IcebergError: something is missing or of the wrong type, or it contradicts itself.
    """
    return _metadata(data, None, preview=False)


def _metadata(data: Any, metadata_file: str | None, *, preview: bool) -> TableMetadata:
    read = JsonObject(data, "the metadata")
    version = read.integer("format-version")
    if version == PREVIEWED_FORMAT_VERSION and preview:
        location = table_location(read.text_or_none("location"), metadata_file)
        read = JsonObject(with_absolute_locations(data, location), "the metadata")
    elif version not in SUPPORTED_FORMAT_VERSIONS:
        advice = ". Set the catalog property preview.format-v4 to true to read it as far as its draft is settled"
        raise UnsupportedError(
            f"the table has format version {version}; this version of hms_iceberg reads and writes "
            f"{SUPPORTED_FORMAT_VERSIONS[0]} to {SUPPORTED_FORMAT_VERSIONS[-1]}"
            f"{advice if version == PREVIEWED_FORMAT_VERSION else ''}"
        )
    else:
        location = _without_trailing_slash(read.text("location"))
    schemas, current_schema_id = _schemas(read, version)
    specs, default_spec_id = _specs(read, version)
    orders, default_order_id = _sort_orders(read, version)
    current_snapshot_id = read.integer_or_none("current-snapshot-id")
    if current_snapshot_id == NO_SNAPSHOT:
        current_snapshot_id = None
    keys = tuple(map(encryption_key_from_json, read.sequence_or_empty("encryption-keys")))
    metadata = TableMetadata(
        format_version=version,
        table_uuid=read.text_or_none("table-uuid"),
        location=location,
        last_updated_ms=read.integer("last-updated-ms"),
        last_column_id=max(read.integer("last-column-id"), *(schema.highest_field_id for schema in schemas)),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_last_partition_id(read, version, specs),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties=read.text_map_or_none("properties") or {},
        last_sequence_number=read.integer("last-sequence-number") if version > 1 else INITIAL_SEQUENCE_NUMBER,
        current_snapshot_id=current_snapshot_id,
        snapshots=tuple(with_keys(snapshot_from_json(each), keys) for each in read.sequence_or_empty("snapshots")),
        snapshot_log=tuple(map(snapshot_log_from_json, read.sequence_or_empty("snapshot-log"))),
        metadata_log=tuple(map(metadata_log_from_json, read.sequence_or_empty("metadata-log"))),
        refs=_refs(read, current_snapshot_id),
        statistics=tuple(map(statistics_from_json, read.sequence_or_empty("statistics"))),
        partition_statistics=tuple(map(partition_statistics_from_json, read.sequence_or_empty("partition-statistics"))),
        next_row_id=read.integer("next-row-id") if version > 2 else None,
        encryption_keys=keys,
    )
    check_metadata(metadata, preview=preview)
    return metadata


def _without_trailing_slash(location: str) -> str:
    return location if location.endswith("://") else location.rstrip("/") or location


def _required_list(read: JsonObject, key: str, version: int) -> bool:
    """True if the list is there; it must be, from v2 on."""
    if read.has(key):
        return True
    if version > 1:
        read.sequence(key)
    return False


def _schemas(read: JsonObject, version: int) -> tuple[tuple[Schema, ...], int]:
    if _required_list(read, "schemas", version):
        schemas = tuple(map(schema_from_json, read.sequence("schemas")))
        if not schemas:
            raise CorruptMetadataError("'schemas' is empty, expected at least one schema")
        return schemas, read.integer("current-schema-id")
    if not read.has("schema"):
        raise CorruptMetadataError("the metadata has neither 'schemas' nor 'schema'")
    schema = schema_from_json(read.data["schema"])
    return (schema,), schema.schema_id


def _specs(read: JsonObject, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    if _required_list(read, "partition-specs", version):
        return tuple(map(spec_from_json, read.sequence("partition-specs"))), read.integer("default-spec-id")
    return (spec_from_fields_json(read.sequence("partition-spec")),), 0


def _last_partition_id(read: JsonObject, version: int, specs: tuple[PartitionSpec, ...]) -> int:
    highest = max((spec.last_assigned_field_id for spec in specs), default=PARTITION_FIELD_ID_START - 1)
    if version == 1 and not read.has("last-partition-id"):
        return highest
    return max(read.integer("last-partition-id"), highest)


def _sort_orders(read: JsonObject, version: int) -> tuple[tuple[SortOrder, ...], int]:
    if _required_list(read, "sort-orders", version):
        orders = tuple(map(sort_order_from_json, read.sequence("sort-orders")))
        default = read.integer("default-sort-order-id")
        # Id 0 always stands for the unsorted order, whether or not it is listed.
        listed = default != UNSORTED.order_id or any(order.order_id == default for order in orders)
        return orders if listed else (*orders, UNSORTED), default
    return (UNSORTED,), UNSORTED.order_id


def _refs(read: JsonObject, current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    refs: dict[str, SnapshotRef] = {}
    if read.has("refs"):
        members = JsonObject(read.data["refs"], "'refs'").data
        refs = {name: ref_from_json(ref, name) for name, ref in members.items()}
    if current_snapshot_id is not None and MAIN_BRANCH not in refs:
        refs[MAIN_BRANCH] = SnapshotRef(current_snapshot_id)
    return refs


set_json_form(TableMetadata, metadata_to_dict, metadata_from_dict)


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
    """A branch or tag as JSON-ready Python."""
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
    """A registered statistics file as JSON-ready Python."""
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


set_json_form(Snapshot, snapshot_to_json, snapshot_from_json)
set_json_form(SnapshotLogEntry, snapshot_log_to_json, snapshot_log_from_json)
set_json_form(MetadataLogEntry, metadata_log_to_json, metadata_log_from_json)
set_json_form(SnapshotRef, ref_to_json, ref_from_json)
set_json_form(StatisticsFile, statistics_to_json, statistics_from_json)
set_json_form(PartitionStatisticsFile, partition_statistics_to_json, partition_statistics_from_json)
