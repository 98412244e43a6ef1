"""The journal of a migration: the Hive table as it was, written before anything is changed.

The journal lies in a folder below the Hive table's, is written once and never changed: together with the rows of the
metastore it says after a crash how far the migration came, and what has to be put back. It stays after a migration,
for a rollback. Beside it are the list of the Hive table's files, and the notes of a rollback.
"""

from __future__ import annotations

import gzip
import json
import uuid
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from hms_iceberg.errors import FileAlreadyExistsError, MigrationError, MissingFileError
from hms_iceberg.processes import Process
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed.others import MIGRATION_JOURNALS

JOURNAL_NAME = f"{MIGRATION_JOURNALS}json"
_FORMAT = 2


@dataclass(frozen=True)
class Journal:
    """One migration."""

    migration_id: str  # drawn once; the rows that belong to the migration carry it as a parameter
    # database, table, backup, staging: names in the metastore, the last two for the time after and during the switch
    database: str
    table: str
    backup: str
    staging: str
    location: str  # where the Hive table's files are
    # where the Iceberg table is: at the same location, or (a copy) in a folder that was made for it and holds nothing
    # else
    iceberg_location: str
    original: Mapping[str, Any]  # the Hive table's type, and the parameters that the migration changes, as they were
    files: int  # files, bytes, partitions: how much the Hive table had
    bytes: int
    partitions: int
    worker: Process = field(default_factory=Process.this)  # the process that migrates

    @property
    def name(self) -> str:
        """The table's name as people write it."""
        return f"{self.database}.{self.table}"

    @property
    def is_copy(self) -> bool:
        """Whether the rows were copied, rather than the files taken in where they are."""
        return self.iceberg_location != self.location


def new_migration_id() -> str:
    return str(uuid.uuid4())


def journal_location(metadata_folder: str) -> str:
    return f"{metadata_folder}/{JOURNAL_NAME}"


def write_journal(storage: Storage, metadata_folder: str, journal: Journal) -> None:
    """Writes the journal; only one can be there: another migration of the table may have begun."""
    content = {"format": _FORMAT, **asdict(journal)}
    try:
        storage.create(journal_location(metadata_folder), json.dumps(content, indent=2).encode())
    except FileAlreadyExistsError as error:
        raise MigrationError(
            f"Cannot migrate {journal.name}: another migration of it was begun in the meantime "
            f"({journal_location(metadata_folder)}). Wait for its end, or run the same command again."
        ) from error


def read_journal(storage: Storage, metadata_folder: str) -> Journal | None:
    """The journal in a metadata folder; None if there is none."""
    location = journal_location(metadata_folder)
    try:
        data = storage.read(location)
    except MissingFileError:
        return None
    try:
        content = json.loads(data)
        if content.pop("format") != _FORMAT:
            raise ValueError("it was written by another version of this package")
        worker = Process(**content.pop("worker"))
        return Journal(**{**content, "worker": worker})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MigrationError(
            f"Cannot read the migration journal {location}: {error}. The tables in the metastore were left as they "
            "are. Restore the file, or the tables, by hand."
        ) from error


# ------------------------------------------------------------------------------------------- the list of files


def files_location(metadata_folder: str, journal: Journal) -> str:
    return f"{metadata_folder}/{MIGRATION_JOURNALS}{journal.migration_id}.files.json.gz"


def write_files(storage: Storage, metadata_folder: str, journal: Journal, files: Iterable[tuple[str, int]]) -> None:
    """Writes the list of a Hive table's files: location and size in bytes of each."""
    folders: dict[str, dict[str, int]] = {}
    for location, size in files:
        folder, _, name = location.rpartition("/")
        folders.setdefault(folder, {})[name] = size
    data = gzip.compress(json.dumps(folders, separators=(",", ":")).encode(), compresslevel=3, mtime=0)
    storage.create(files_location(metadata_folder, journal), data)


def read_files(storage: Storage, metadata_folder: str, journal: Journal) -> dict[str, int]:
    """Locations of the files that a Hive table had, to their sizes in bytes."""
    location = files_location(metadata_folder, journal)
    try:
        folders = json.loads(gzip.decompress(storage.read(location)))
        return {f"{folder}/{name}": size for folder, names in folders.items() for name, size in names.items()}
    except (MissingFileError, OSError, EOFError, zlib.error, ValueError, AttributeError) as error:
        raise MigrationError(
            f"The list of the files that {journal.name} had as a Hive table cannot be read ({location}: {error}), so "
            "that nobody can tell whether they are all there. Nothing was changed. Restore the list."
        ) from error


# ------------------------------------------------------------------------------------------- ways back

ROLLBACK_NAME = f"{MIGRATION_JOURNALS}rollback.json"


def write_rollback_note(storage: Storage, metadata_folder: str) -> None:
    """Notes that this process rolls a table back; raises MigrationError if another one began to."""
    location = f"{metadata_folder}/{ROLLBACK_NAME}"
    try:
        storage.create(location, json.dumps(asdict(Process.this())).encode())
    except FileAlreadyExistsError as error:
        raise MigrationError(f"Another process began to take the table back ({location}). Wait for its end.") from error


def read_rollback_note(storage: Storage, metadata_folder: str) -> Process | None:
    """The process that began to roll a table back; None if none did, or the note is cut off."""
    try:
        return Process(**json.loads(storage.read(f"{metadata_folder}/{ROLLBACK_NAME}")))
    except (MissingFileError, ValueError, TypeError):
        return None


def remove_rollback_note(storage: Storage, metadata_folder: str) -> None:
    storage.delete(f"{metadata_folder}/{ROLLBACK_NAME}")


def given_up_location(metadata_folder: str, journal: Journal) -> str:
    """Where the version of the Iceberg table is noted that is given up for the Hive table."""
    return f"{metadata_folder}/{MIGRATION_JOURNALS}{journal.migration_id}.given-up"


def write_given_up(storage: Storage, metadata_folder: str, journal: Journal, metadata_location: str) -> None:
    """Notes, just before names are switched, which Iceberg version the Hive table replaces; the last note counts."""
    forget_given_up(storage, metadata_folder, journal)
    storage.create(given_up_location(metadata_folder, journal), metadata_location.encode())


def read_given_up(storage: Storage, metadata_folder: str, journal: Journal) -> str | None:
    """Location of the metadata file of the version that is given up for the Hive table; None if none is."""
    try:
        return storage.read(given_up_location(metadata_folder, journal)).decode()
    except MissingFileError:
        return None


def forget_given_up(storage: Storage, metadata_folder: str, journal: Journal) -> None:
    """Removes the notes that a version is given up, and that names were switched."""
    forget_switched(storage, metadata_folder, journal)
    storage.delete(given_up_location(metadata_folder, journal))


def switched_location(metadata_folder: str, journal: Journal) -> str:
    """Where it is noted that names were switched, after which nobody writes to the Iceberg table."""
    return f"{metadata_folder}/{MIGRATION_JOURNALS}{journal.migration_id}.switched-back"


def write_switched(storage: Storage, metadata_folder: str, journal: Journal) -> None:
    """Notes that names were switched, as the rows show; that may have been noted before."""
    with suppress(FileAlreadyExistsError):
        storage.create(switched_location(metadata_folder, journal), b"")


def forget_switched(storage: Storage, metadata_folder: str, journal: Journal) -> None:
    storage.delete(switched_location(metadata_folder, journal))


def is_switch_noted(storage: Storage, metadata_folder: str, journal: Journal) -> bool:
    return storage.exists(switched_location(metadata_folder, journal))
