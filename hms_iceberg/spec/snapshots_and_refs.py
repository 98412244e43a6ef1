"""Snapshots, logs, references, statistics files and encryption keys, as table metadata lists them.

Source: Iceberg specification, "Snapshots", "Snapshot References", "Table Metadata Fields"; Iceberg specification,
"Table Statistics", "Partition Statistics", "Encryption Keys".
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hooks import Hook
from hms_iceberg.spec.json_model import JsonModel, set_json_form

if TYPE_CHECKING:
    from hms_iceberg.spec.manifests.manifest_values import FileSource, ManifestFile


MAIN_BRANCH = "main"
INITIAL_SEQUENCE_NUMBER = 0
OPERATION = "operation"

SNAPSHOT_HTML: Hook[[Snapshot], str] = Hook("hms_iceberg.report.notebook")

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
    """The summary of a snapshot, as text by text; a key that is absent gives None.

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
        """All keys but the operation."""
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

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
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
        """The snapshot as HTML, for notebooks."""
        return SNAPSHOT_HTML(self)

    @property
    def operation(self) -> str | None:
        """The summary's operation, or None if an old table has none."""
        return self.summary.operation

    def manifests(self, io: FileSource) -> list[ManifestFile]:
        """Its manifests, in the order of its manifest list.

        Args:
            io: reads files by location: `table.io`.

        Raises:
            MissingFileError: the manifest list is gone.
            CorruptManifestError: it cannot be read.
        """
        return MANIFESTS_OF(self, io)


@dataclass(frozen=True)
class SnapshotLogEntry(JsonModel):
    """From `timestamp_ms` on, the snapshot was the table's current one."""

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True)
class MetadataLogEntry(JsonModel):
    """A former metadata file of the table, and when it was written."""

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
    metadata_file: str
    timestamp_ms: int


class SnapshotRefType(str, Enum):
    """A branch moves with commits, a tag stays."""

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

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
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
    """A random positive id that is not among `taken`."""
    while True:
        bits = uuid.uuid4().int
        candidate = ((bits >> 64) ^ bits) & 0x7FFFFFFFFFFFFFFF
        if candidate and candidate not in taken:
            return candidate


set_json_form(Summary, dict, Summary.of)


@dataclass(frozen=True)
class BlobMetadata:
    """One blob of a statistics file: what was computed, from which snapshot, over which fields."""

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

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
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

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
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
    """A snapshot with the key of its manifest list, and the one that encrypts it.

    Args:
        snapshot: the snapshot.
        keys: those of the table's metadata.
    """
    if snapshot.key_id is None:
        return snapshot
    by_id = {key.key_id: key for key in keys}
    own = by_id.get(snapshot.key_id)
    above = None if own is None else by_id.get(own.encrypted_by_id or "")
    return replace(snapshot, keys=tuple(key for key in (own, above) if key is not None))
