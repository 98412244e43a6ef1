"""Snapshots, logs, references, statistics files and encryption keys, as table metadata lists them.

Source: Iceberg specification, "Snapshots", "Snapshot References", "Table Metadata Fields"; Iceberg specification,
"Table Statistics", "Partition Statistics", "Encryption Keys".
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import CorruptMetadataError, InvalidInputError
from hms_iceberg.hooks import Hook
from hms_iceberg.notebook_html import framed, pairs_table
from hms_iceberg.spec.json_model import JsonModel, JsonObject, set_json_form, shown
from hms_iceberg.spec.values.datetimes import format_seconds

if TYPE_CHECKING:
    from hms_iceberg.spec.manifests.manifest_values import FileSource, ManifestFile


_logger = logging.getLogger(__name__)

MAIN_BRANCH = "main"
INITIAL_SEQUENCE_NUMBER = 0
OPERATION = "operation"

MANIFESTS_OF: Hook[[Snapshot, FileSource], list[ManifestFile]] = Hook("hms_iceberg.scan.manifests.manifest_source")


class Operation(str, Enum):
    """The operation of a snapshot, as its summary names it."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"

    def __str__(self) -> str:
        return self.value


class Summary(dict[str, str], JsonModel):
    """The summary of a snapshot: texts by name; a key that is absent gives None.

    Args:
        operation: what the snapshot did, one of `Operation`; None if an old table does not say.
        properties: the other keys.
    """

    def __init__(self, operation: Operation | str | None = None, /, **properties: str) -> None:
        first = properties.pop(OPERATION, None) if operation is None else operation
        super().__init__(properties if first is None else {OPERATION: str(first), **properties})

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Summary:
        """The summary with these keys, `operation` among them."""
        return cls(**data)

    def __missing__(self, key: str) -> Any:
        return None

    @property
    def operation(self) -> str | None:
        """The operation: an `Operation` if it is one of the specification's."""
        text = self.get(OPERATION)
        return Operation(text) if text in _OPERATIONS else text

    @property
    def additional_properties(self) -> dict[str, str]:
        """The members of the summary without the operation."""
        return {key: value for key, value in self.items() if key != OPERATION}


_OPERATIONS = frozenset(each.value for each in Operation)


@dataclass(frozen=True)
class Snapshot(JsonModel):
    """The state of a table at one time.

    Args:
        snapshot_id: unique id.
        parent_snapshot_id: id of the snapshot that it was made from, or None.
        sequence_number: its place in the order of changes; 0 in v1 tables.
        timestamp_ms: when it was made, in milliseconds from 1970-01-01 UTC.
        manifest_list: location of its manifest list; None only in old v1 tables that have `manifest_locations`.
        manifest_locations: locations of its manifests, in old v1 tables without manifest list.
        summary: what changed, as text by text; "operation" is one of `Operation`.
        schema_id: id of the table's schema when it was made.
        first_row_id: the first row id that it may assign (v3).
        added_rows: an upper bound of how many row ids it assigns (v3).
        key_id: id of the manifest list's key among those of the table (v3); None if it is not encrypted.
        keys: that key, and the one that encrypts it, as the table's metadata has them.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = INITIAL_SEQUENCE_NUMBER
    timestamp_ms: int = 0
    manifest_list: str | None = None
    manifest_locations: tuple[str, ...] | None = None
    summary: Summary = field(default_factory=Summary, hash=False)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    keys: tuple[EncryptionKey, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "summary", Summary.of(self.summary))

    def _repr_html_(self) -> str:
        facts = [
            ("snapshot", self.snapshot_id),
            ("parent", "none" if self.parent_snapshot_id is None else self.parent_snapshot_id),
            ("made at", f"{format_seconds(self.timestamp_ms)} UTC"),
            *sorted(self.summary.items()),
        ]
        return framed(pairs_table(facts))

    @property
    def operation(self) -> str | None:
        """The summary's operation, or None if an old table has none."""
        return self.summary.operation

    def manifests(self, io: FileSource) -> list[ManifestFile]:
        """The snapshot's manifests, in the order of its manifest list.

        Args:
            io: reads files by location: `table.io`.

        Raises:
            MissingFileError: the manifest list is gone.
            CorruptManifestError: it cannot be read.
        """
        return MANIFESTS_OF(self, io)


@dataclass(frozen=True)
class SnapshotLogEntry(JsonModel):
    """A time (`timestamp_ms`) from which a snapshot was the table's current one."""

    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True)
class MetadataLogEntry(JsonModel):
    """A former metadata file of the table, and when it was written."""

    metadata_file: str
    timestamp_ms: int


class SnapshotRefType(str, Enum):
    """The kind of a reference: a branch moves with commits, a tag stays."""

    BRANCH = "branch"
    TAG = "tag"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class SnapshotRef(JsonModel):
    """A branch or tag, with its retention.

    Args:
        snapshot_id: the snapshot it points at.
        snapshot_ref_type: branch (the default) or tag.
        min_snapshots_to_keep: snapshots of a branch that expiration keeps at least; None for the table's setting.
        max_snapshot_age_ms: age up to which expiration keeps a branch's snapshots; None for the table's setting.
        max_ref_age_ms: age at which the reference itself expires; None for the table's setting.

    Raises:
        InvalidInputError: a number is not positive, or a tag has settings of a branch.
    """

    snapshot_id: int
    snapshot_ref_type: SnapshotRefType = SnapshotRefType.BRANCH
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "snapshot_ref_type", SnapshotRefType(self.snapshot_ref_type))
        for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value = getattr(self, name)
            if value is None:
                continue
            if value <= 0:
                raise InvalidInputError(
                    f"Invalid retention of a snapshot reference: {name} must be above 0, got {value}"
                )
            if self.snapshot_ref_type is SnapshotRefType.TAG and name != "max_ref_age_ms":
                raise InvalidInputError(f"Invalid retention of a tag: {name} is a setting of branches")

    @property
    def is_branch(self) -> bool:
        """True for a branch."""
        return self.snapshot_ref_type is SnapshotRefType.BRANCH

    @property
    def is_tag(self) -> bool:
        """True for a tag."""
        return self.snapshot_ref_type is SnapshotRefType.TAG


def new_snapshot_id(taken: Collection[int] = ()) -> int:
    while True:
        bits = uuid.uuid4().int
        candidate = ((bits >> 64) ^ bits) & 0x7FFFFFFFFFFFFFFF
        if candidate and candidate not in taken:
            return candidate


@dataclass(frozen=True)
class BlobMetadata:
    """A blob of a statistics file: what was computed, from which snapshot, over which fields."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...] = ()
    properties: dict[str, str] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))


@dataclass(frozen=True)
class StatisticsFile(JsonModel):
    """A Puffin file with statistics of a snapshot; sizes in bytes."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "blob_metadata", tuple(self.blob_metadata))


@dataclass(frozen=True)
class PartitionStatisticsFile(JsonModel):
    """A file with one row of statistics per partition of a snapshot; size in bytes."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


@dataclass(frozen=True)
class EncryptionKey:
    """A key for the encryption of tables, itself encrypted (v3)."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = field(default=None, hash=False)


def with_keys(snapshot: Snapshot, keys: Iterable[EncryptionKey]) -> Snapshot:
    """A snapshot with the key of its manifest list, and the one that encrypts it, out of those of the metadata."""
    if snapshot.key_id is None:
        return snapshot
    by_id = {key.key_id: key for key in keys}
    own = by_id.get(snapshot.key_id)
    above = None if own is None else by_id.get(own.encrypted_by_id or "")
    return replace(snapshot, keys=tuple(key for key in (own, above) if key is not None))


# ------------------------------------------------------------------------------------------------- as JSON


def _present(**members: Any) -> dict[str, Any]:
    """The members that are not None, under their JSON names."""
    return {name.replace("_", "-"): value for name, value in members.items() if value is not None}


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot as JSON; sequence number 0, that of v1 tables, is left out as Java leaves it out."""
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
        read.milliseconds("timestamp-ms"),
        manifest_list,
        manifests,
        Summary.of(summary),
        read.integer_or_none("schema-id"),
        read.integer_or_none("first-row-id"),
        read.integer_or_none("added-rows"),
        read.text_or_none("key-id"),
    )


def snapshot_log_to_json(entry: SnapshotLogEntry) -> dict[str, Any]:
    return {"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id}


def snapshot_log_from_json(data: Any) -> SnapshotLogEntry:
    read = JsonObject(data, "an entry of the snapshot log")
    return SnapshotLogEntry(read.integer("snapshot-id"), read.milliseconds("timestamp-ms"))


def metadata_log_to_json(entry: MetadataLogEntry) -> dict[str, Any]:
    return {"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file}


def metadata_log_from_json(data: Any) -> MetadataLogEntry:
    read = JsonObject(data, "an entry of the metadata log")
    return MetadataLogEntry(read.text("metadata-file"), read.milliseconds("timestamp-ms"))


def ref_to_json(ref: SnapshotRef) -> dict[str, Any]:
    return _present(
        snapshot_id=ref.snapshot_id,
        type=str(ref.snapshot_ref_type),
        min_snapshots_to_keep=ref.min_snapshots_to_keep,
        max_snapshot_age_ms=ref.max_snapshot_age_ms,
        max_ref_age_ms=ref.max_ref_age_ms,
    )


def ref_from_json(data: Any, name: str = "") -> SnapshotRef:
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
    return _present(
        snapshot_id=file.snapshot_id,
        statistics_path=file.statistics_path,
        file_size_in_bytes=file.file_size_in_bytes,
    )


def partition_statistics_from_json(data: Any) -> PartitionStatisticsFile:
    read = JsonObject(data, "a partition statistics file")
    return PartitionStatisticsFile(
        read.integer("snapshot-id"), read.text("statistics-path"), read.integer("file-size-in-bytes")
    )


def encryption_key_to_json(key: EncryptionKey) -> dict[str, Any]:
    """The key as JSON; properties are left out if there are none, as Java leaves them out."""
    return _present(
        key_id=key.key_id,
        encrypted_key_metadata=key.encrypted_key_metadata,
        encrypted_by_id=key.encrypted_by_id,
        properties=key.properties or None,
    )


def encryption_key_from_json(data: Any) -> EncryptionKey:
    read = JsonObject(data, "an encryption key")
    return EncryptionKey(
        read.text("key-id"),
        read.text("encrypted-key-metadata"),
        read.text_or_none("encrypted-by-id"),
        read.text_map_or_none("properties"),
    )


set_json_form(Summary, dict, Summary.of)
set_json_form(Snapshot, snapshot_to_json, snapshot_from_json)
set_json_form(SnapshotLogEntry, snapshot_log_to_json, snapshot_log_from_json)
set_json_form(MetadataLogEntry, metadata_log_to_json, metadata_log_from_json)
set_json_form(SnapshotRef, ref_to_json, ref_from_json)
set_json_form(StatisticsFile, statistics_to_json, statistics_from_json)
set_json_form(PartitionStatisticsFile, partition_statistics_to_json, partition_statistics_from_json)
