"""Findings of a check of a table's consistency: one type for each kind of problem; and the owner of a metadata file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.storage import Storage, same_place
from hms_iceberg.table.version_files import VersionFiles, version_number
from hms_iceberg.transaction.workspace import read_version

__all__ = [
    "Finding",
    "MisplacedFile",
    "MissingFile",
    "OtherTable",
    "RepeatedFile",
    "SecondDeletionVector",
    "UnfinishedTransaction",
    "UnreachedVersion",
    "UnreadableFile",
    "WrongBounds",
    "WrongFileSize",
    "WrongManifestCount",
    "WrongPartitionSummary",
    "WrongRecordCount",
    "WrongRowIds",
    "WrongSequenceNumber",
    "WrongStatistics",
    "WrongSummary",
    "WrongValues",
]


@dataclass(frozen=True)
class Finding:
    """One place where a table's metadata is wrong. `str()` says what, where, and what was expected."""

    _text: ClassVar[str]
    """The sentence, with the names of attributes in braces."""

    def __str__(self) -> str:
        return self._text.format_map(vars(self))


@dataclass(frozen=True)
class MissingFile(Finding):
    """A file that the table needs is not there; `role` is what it is to the table (`manifest`, `data file` …)."""

    location: str
    role: str

    _text = "The {role} {location} is not there."


@dataclass(frozen=True)
class OtherTable(Finding):
    """The metadata file has another UUID or location than the metastore's row: it is that of another table."""

    location: str
    recorded: str
    found: str | None
    what: str = "UUID"

    _text = (
        "The metadata file {location} is that of another table: its {what} is {found}, that "
        "of the metastore's row {recorded}."
    )


@dataclass(frozen=True)
class UnreachedVersion(Finding):
    """Readers of a table that is a folder do not reach its newest version: one before it is missing."""

    location: str
    reason: str

    _text = "{reason}"


@dataclass(frozen=True)
class UnfinishedTransaction(Finding):
    """A commit to several tables, of which this is one, was left open by its owner."""

    transaction: str
    decides: str

    _text = (
        "Transaction {transaction} on several tables, which {decides} decides, is not finished, and its owner is dead. "
        "The next commit to a table that it has moved finishes it; so does the removal of orphan files of {decides}."
    )


@dataclass(frozen=True)
class UnreadableFile(Finding):
    """A file is there and cannot be read as what it should be."""

    location: str
    role: str
    reason: str

    _text = "The {role} {location} cannot be read: {reason}"


@dataclass(frozen=True)
class WrongFileSize(Finding):
    """A file has another size than the metadata says; both in bytes."""

    location: str
    role: str
    recorded: int
    found: int

    _text = "The {role} {location} has {found:,} bytes; the metadata says {recorded:,}."


@dataclass(frozen=True)
class WrongManifestCount(Finding):
    """A count in a manifest list (`added_files_count` …) is not that of the manifest's entries."""

    manifest: str
    field: str
    recorded: int
    found: int

    _text = "The manifest {manifest} has {field} {found:,}; the manifest list says {recorded:,}."


@dataclass(frozen=True)
class WrongPartitionSummary(Finding):
    """A manifest list's summary of a partition field leaves out a live file, so that scans lose its rows."""

    manifest: str
    partition_field: str
    location: str
    reason: str

    _text = (
        "The manifest list's summary of partition field {partition_field!r} for the manifest {manifest} "
        "leaves out {location}: {reason}. Scans with a filter lose its rows."
    )


@dataclass(frozen=True)
class MisplacedFile(Finding):
    """An entry does not belong in its manifest: other content, or a partition of another shape."""

    manifest: str
    location: str
    reason: str

    _text = "The manifest {manifest} must not hold {location}: {reason}."


@dataclass(frozen=True)
class WrongSummary(Finding):
    """A count in a snapshot's summary is not that of the snapshot's files; `recorded` None if it is missing."""

    snapshot_id: int
    key: str
    recorded: str | None
    found: int

    def __str__(self) -> str:
        said = "does not say it" if self.recorded is None else f"says {self.recorded!r}"
        return f"Snapshot {self.snapshot_id} has {self.key} {self.found:,}; its summary {said}."


@dataclass(frozen=True)
class RepeatedFile(Finding):
    """A file is live more than once in a snapshot: its rows are read, or deleted, as often."""

    snapshot_id: int
    location: str
    times: int

    _text = "In snapshot {snapshot_id} the file {location} is live {times} times."


@dataclass(frozen=True)
class SecondDeletionVector(Finding):
    """A data file has more than one deletion vector in a snapshot; readers may apply only one of them."""

    snapshot_id: int
    data_file: str
    vectors: int

    _text = "In snapshot {snapshot_id} the data file {data_file} has {vectors} deletion vectors."


@dataclass(frozen=True)
class WrongSequenceNumber(Finding):
    """A sequence number is not in its bounds; `where` is a snapshot, a manifest or a file."""

    where: str
    reason: str

    _text = "Wrong sequence number of {where}: {reason}."


@dataclass(frozen=True)
class WrongRowIds(Finding):
    """Row ids are not assigned, assigned twice, or beyond the table's next one; `where` is a snapshot or a file."""

    where: str
    reason: str

    _text = "Wrong row ids of {where}: {reason}."


@dataclass(frozen=True)
class WrongRecordCount(Finding):
    """A content file holds another number of rows (or deleted positions) than its entry says."""

    location: str
    recorded: int
    found: int

    _text = "The file {location} holds {found:,} records; its manifest entry says {recorded:,}."


@dataclass(frozen=True)
class WrongValues(Finding):
    """A data file does not hold the values of a column that its entry says: it was changed or damaged."""

    location: str
    column: str
    reason: str

    _text = "The file {location} holds other values of {column} than its manifest entry says: {reason}."


@dataclass(frozen=True)
class WrongBounds(Finding):
    """A data file has values of a column outside of the bounds that its entry says, so that filters lose its rows.

    They were taken from statistics that are not to be believed: those of old writers of Parquet.
    """

    location: str
    column: str
    way: str
    bound: str

    _text = (
        "The file {location} has values of {column} {way} that its manifest entry says, {bound}: filters lose rows. "
        "Repair the table, which makes bounds anew."
    )


@dataclass(frozen=True)
class WrongStatistics(Finding):
    """A file with statistics is damaged, or is not what the table says it is."""

    location: str
    reason: str

    _text = "{reason}"


def check_owner(version: MetadataVersion, pointer: TablePointer, storage: Storage) -> OtherTable | None:
    """The evidence that a metadata file belongs to another table, or None: its UUID, or without one (format version 1)
    its location; for a table that is a folder, that folder and the UUID of the versions before."""
    row, own = pointer.properties.get("uuid"), version.metadata.table_uuid
    if row and own:
        return None if row == own else OtherTable(version.location, row, own)
    row, place = pointer.location, version.metadata.location
    if row and not same_place(place, row, storage):
        return OtherTable(version.location, row, place, "location")
    earlier = _earlier_uuids(version, pointer, storage) if pointer.is_folder and own else []
    return OtherTable(version.location, earlier[0], own) if earlier and own not in earlier else None


_LOOKED_BACK = 5


def _earlier_uuids(version: MetadataVersion, pointer: TablePointer, storage: Storage) -> list[str]:
    """The UUIDs of the last versions before one in a folder, as far as they can be read and are of this place."""
    folder, number = version.location.rpartition("/")[0], version_number(version.location) or 0
    files, found = VersionFiles(storage, folder), []
    for earlier in range(number - 1, max(number - 1 - _LOOKED_BACK, 0), -1):
        location = files.existing(earlier)
        with suppress(MissingFileError, CorruptMetadataError):
            metadata = None if location is None else read_version(location, storage).metadata
            if (
                metadata is not None
                and metadata.table_uuid
                and same_place(metadata.location, pointer.location, storage)
            ):
                found.append(metadata.table_uuid)
        if found and found[-1] == version.uuid:
            break
    return found
