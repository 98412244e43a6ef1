"""Manifest files and their entries: the values that a snapshot's manifest list and manifests hold.

Source: Iceberg table specification, sections "Manifests" and "Manifest Lists". The Avro form of these values is
in :mod:`hms_iceberg.spec.manifests.manifest_avro`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Protocol

from hms_iceberg.hooks import Hook

DELETE_FILE_PATH_ID = 2147483546
"""The field id of the paths of position delete files (Iceberg specification, "Reserved Field IDs")."""

__all__ = [
    "DataFile",
    "DataFileContent",
    "FieldSummary",
    "FileFormat",
    "FileSource",
    "ManifestContent",
    "ManifestEntry",
    "ManifestEntryStatus",
    "ManifestFile",
    "Record",
]

MANIFEST_BYTES: Hook[[ManifestFile, FileSource], bytes] = Hook("hms_iceberg.encryption.encrypted_tables")
MANIFEST_ENTRIES: Hook[[bytes, ManifestFile], list[ManifestEntry]] = Hook("hms_iceberg.spec.manifests.manifest_avro")


class FileSource(Protocol):
    """Reads a whole file by its location; `table.io` is one."""

    def read(self, location: str) -> bytes:
        """The content of the file; raises ``MissingFileError``."""
        ...


class DataFileContent(IntEnum):
    """The kind of a content file's rows (field 134 of `data_file`)."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class FileFormat(str, Enum):
    """The formats of content files; equal to their names."""

    AVRO = "AVRO"
    ORC = "ORC"
    PARQUET = "PARQUET"
    PUFFIN = "PUFFIN"

    def __str__(self) -> str:
        return self.value


class Record(tuple[Any, ...]):
    """A partition tuple of these values: `Record(1, "a")`, equal to `(1, "a")`."""

    __slots__ = ()

    def __new__(cls, *values: Any) -> Record:
        return super().__new__(cls, values)


class ManifestContent(IntEnum):
    """The kind of a manifest's files (field 517 of `manifest_file`)."""

    DATA = 0
    DELETES = 1

    @property
    def label(self) -> str:
        """The word that a manifest's own Avro metadata uses: ``data`` or ``deletes``."""
        return "data" if self is ManifestContent.DATA else "deletes"


class ManifestEntryStatus(IntEnum):
    """The status of a file in the snapshot that wrote the entry (field 0 of `manifest_entry`)."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


# A spec id and what stands for the partition's values; see `DataFile.partition_key`.
PartitionKey = tuple[int, tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file, a delete file or a deletion vector, with its partition and its metrics.

    Args:
        content: what the file's rows are.
        file_path: full location, with its scheme if the table's location has one.
        file_format: upper-case name: ``PARQUET``, ``ORC``, ``AVRO`` or ``PUFFIN``.
        spec_id: id of the partition spec that ``partition`` belongs to.
        partition: stored values in the order of the spec's fields; empty when unpartitioned.
        record_count: rows in the file, or the cardinality of a deletion vector.
        file_size_in_bytes: size of the whole file (for a deletion vector: of the Puffin file).
        column_sizes: field id to bytes on disk.
        value_counts: field id to number of values, nulls and NaN included.
        null_value_counts: field id to number of nulls.
        nan_value_counts: field id to number of NaN.
        lower_bounds: field id to lower bound as single-value bytes.
        upper_bounds: field id to upper bound as single-value bytes.
        key_metadata: encryption key metadata, opaque.
        split_offsets: offsets where the file may be split, ascending.
        equality_ids: field ids of the key of an equality delete file; None for every other file.
        sort_order_id: sort order the rows were written in.
        first_row_id: ``_row_id`` of the first row (v3), None if not assigned.
        referenced_data_file: the one data file that a position delete file or deletion vector is about.
        content_offset: where the deletion vector's blob starts in the Puffin file, bytes.
        content_size_in_bytes: length of the deletion vector's blob, bytes.

    Source: Iceberg specification, "Data File Fields".
    """

    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    content: DataFileContent = DataFileContent.DATA
    spec_id: int = 0
    partition: tuple[Any, ...] = ()
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    split_offsets: Sequence[int] | None = None
    equality_ids: Sequence[int] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def partition_key(self) -> PartitionKey:
        """A key for grouping files by partition: equal for two files only if spec and partition values are equal.

        Values compare as the specification compares them: NaN equals itself, and -0.0 is not 0.0.
        """
        values = (repr(value) if isinstance(value, float) else value for value in self.partition)
        return self.spec_id, tuple(values)

    @property
    def is_data(self) -> bool:
        """True if the rows belong to the table, False for deletes of either kind."""
        return self.content is DataFileContent.DATA

    @property
    def content_bytes(self) -> int:
        """The size of the file, or of the part of it that is a deletion vector, in bytes."""
        return self.file_size_in_bytes if self.content_size_in_bytes is None else self.content_size_in_bytes

    @property
    def is_deletion_vector(self) -> bool:
        """True for a deletion vector: position deletes stored as a blob of a Puffin file."""
        return self.content is DataFileContent.POSITION_DELETES and self.file_format == "PUFFIN"

    @property
    def only_data_file(self) -> str | None:
        """The one data file that position deletes apply to, whatever its partition: the one that the file names, or
        whose path is both of its bounds. None if it may apply to several."""
        if self.content is not DataFileContent.POSITION_DELETES or self.referenced_data_file is not None:
            return self.referenced_data_file
        lower = (self.lower_bounds or {}).get(DELETE_FILE_PATH_ID)
        if lower is None or lower != (self.upper_bounds or {}).get(DELETE_FILE_PATH_ID):
            return None
        try:
            return lower.decode("utf-8")
        except UnicodeDecodeError:
            return None

    @classmethod
    def from_args(cls, **arguments: Any) -> DataFile:
        """A file from the arguments above, under PyIceberg's name."""
        given = {key: value for key, value in arguments.items() if not key.startswith("_")}
        return cls(
            **{**given, "file_format": str(given["file_format"]), "partition": tuple(given.get("partition", ()))}
        )


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A row of a manifest: a file, and when it was added, carried over or removed.

    ``snapshot_id``, ``sequence_number`` (the data sequence number) and ``file_sequence_number`` are None in an
    entry that is to inherit them from the manifest list; entries that were read have them filled in.
    """

    status: ManifestEntryStatus
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    data_file: DataFile

    @property
    def is_live(self) -> bool:
        """False for an entry that only records a removal."""
        return self.status is not ManifestEntryStatus.DELETED


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """The summary of one partition field over the files of a manifest; bounds are single-value bytes.

    ``contains_nan`` is None if the writer did not say.
    """

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A row of a manifest list: the location of a manifest and what is known of its content.

    Counts are None if a v1 writer left them out: they must then be taken as possibly more than zero.
    ``sequence_number`` is None only before a manifest list assigned it (it is then the commit's own).

    Source: Iceberg specification, "Manifest Lists".
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    added_snapshot_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int | None = 0
    min_sequence_number: int | None = 0
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    first_row_id: int | None = None

    def has_added_files(self) -> bool:
        """False only if the manifest certainly has no entry with status ADDED."""
        return self.added_files_count is None or self.added_files_count > 0

    def has_existing_files(self) -> bool:
        """False only if the manifest certainly has no entry with status EXISTING."""
        return self.existing_files_count is None or self.existing_files_count > 0

    def has_deleted_files(self) -> bool:
        """False only if the manifest certainly has no entry with status DELETED."""
        return self.deleted_files_count is None or self.deleted_files_count > 0

    def has_live_files(self) -> bool:
        """False only if the manifest certainly has no live entry."""
        return self.has_added_files() or self.has_existing_files()

    def fetch_manifest_entry(self, io: FileSource, discard_deleted: bool = True) -> list[ManifestEntry]:
        """The manifest's entries, with what they inherit from the manifest list.

        Args:
            io: reads files by location: `table.io`.
            discard_deleted: leave out entries that only record a removal.

        Raises:
            MissingFileError: the manifest is gone.
            CorruptManifestError: it cannot be read.
        """
        entries = MANIFEST_ENTRIES(MANIFEST_BYTES(self, io), self)
        return [entry for entry in entries if entry.is_live or not discard_deleted]

    @property
    def entries_count(self) -> int | None:
        """The number of entries, removed files included; None if the manifest list does not say."""
        counts = (self.added_files_count, self.existing_files_count, self.deleted_files_count)
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None
