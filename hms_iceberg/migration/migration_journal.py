"""The record of a migration: its journal, the list of the Hive table's files, and the notes of a rollback.

They lie in a folder below the Hive table's. The journal is written before anything is changed, once, and never changed:
together with the rows of the metastore it says after a crash how far the migration came, and what has to be put back.
It stays after a migration, for a rollback. Each note is a file of its own, as storages promise only to create a file
that is not there, and to delete one.
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
from hms_iceberg.table.needed_files.needed_by_others import MIGRATION_JOURNALS

JOURNAL_NAME = f"{MIGRATION_JOURNALS}json"
_FORMAT = 2


@dataclass(frozen=True)
class Journal:
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


@dataclass(frozen=True)
class HandbackNote:
    """The version of the Iceberg table that was planned for, the copies, and the partitions that Hive did not have."""

    version: str
    files: tuple[str, ...]
    partitions: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True)
class MigrationRecord:
    """All that a migration notes in its folder."""

    storage: Storage = field(compare=False, repr=False)
    folder: str
    journal: Journal

    @classmethod
    def begin(cls, storage: Storage, folder: str, journal: Journal) -> MigrationRecord:
        """Writes the journal; only one can be there: another migration of the table may have begun."""
        record = cls(storage, folder, journal)
        content = {"format": _FORMAT, **asdict(journal)}
        try:
            storage.create(record.location, json.dumps(content, indent=2).encode())
        except FileAlreadyExistsError as error:
            raise MigrationError(
                f"Cannot migrate {journal.name}: another migration of it was begun in the meantime "
                f"({record.location}). Wait for its end, or run the same command again."
            ) from error
        return record

    @classmethod
    def find(cls, storage: Storage, folder: str) -> MigrationRecord | None:
        """The record in a folder; None if there is none."""
        location = f"{folder}/{JOURNAL_NAME}"
        try:
            data = storage.read(location)
        except MissingFileError:
            return None
        try:
            content = json.loads(data)
            if content.pop("format") != _FORMAT:
                raise ValueError("it was written by another version of this package")
            worker = Process(**content.pop("worker"))
            return cls(storage, folder, Journal(**{**content, "worker": worker}))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise MigrationError(
                f"Cannot read the migration journal {location}: {error}. The tables in the metastore were left as they "
                "are. Restore the file, or the tables, by hand."
            ) from error

    @property
    def location(self) -> str:
        return f"{self.folder}/{JOURNAL_NAME}"

    def delete(self) -> None:
        """Deletes all of it: first the list of files, which says that something may be left; the journal last."""
        for location in (self.files_location, self._handback, self._rollback):
            self.storage.delete(location)
        self.forget_given_up()
        self.storage.delete(self.location)

    # --------------------------------------------------------------------------------------- the list of files

    @property
    def files_location(self) -> str:
        return self._own("files.json.gz")

    def write_files(self, files: Iterable[tuple[str, int]]) -> None:
        """Writes the list of a Hive table's files: location and size in bytes of each."""
        folders: dict[str, dict[str, int]] = {}
        for location, size in files:
            folder, _, name = location.rpartition("/")
            folders.setdefault(folder, {})[name] = size
        data = gzip.compress(json.dumps(folders, separators=(",", ":")).encode(), compresslevel=3, mtime=0)
        self.storage.create(self.files_location, data)

    def read_files(self) -> dict[str, int]:
        """Locations of the files that a Hive table had, to their sizes in bytes."""
        location = self.files_location
        try:
            folders = json.loads(gzip.decompress(self.storage.read(location)))
            return {f"{folder}/{name}": size for folder, names in folders.items() for name, size in names.items()}
        except (MissingFileError, OSError, EOFError, zlib.error, ValueError, AttributeError) as error:
            raise MigrationError(
                f"The list of the files that {self.journal.name} had as a Hive table cannot be read ({location}: "
                f"{error}), so that nobody can tell whether they are all there. Nothing was changed. Restore the list."
            ) from error

    # ----------------------------------------------------------------------------------------------- ways back

    @property
    def taken_back_by(self) -> Process | None:
        """The process that began to roll the table back; None if none did, or the note is cut off."""
        try:
            return Process(**json.loads(self.storage.read(self._rollback)))
        except (MissingFileError, ValueError, TypeError):
            return None

    def begin_to_take_back(self) -> None:
        """Notes that this process rolls the table back; raises MigrationError if another one begins to just now."""
        self.end_taking_back()
        try:
            self.storage.create(self._rollback, json.dumps(asdict(Process.this())).encode())
        except FileAlreadyExistsError as error:
            raise MigrationError(
                f"Another process began to take the table back ({self._rollback}). Wait for its end."
            ) from error

    def end_taking_back(self) -> None:
        self.storage.delete(self._rollback)

    @property
    def given_up(self) -> str | None:
        """Location of the metadata file of the Iceberg table's version that the Hive table replaces; None if none."""
        found = self._read(self._own("given-up"))
        return None if found is None else found.decode()

    def give_up(self, metadata_location: str) -> None:
        """Notes, just before names are switched, which Iceberg version the Hive table replaces; the last one counts."""
        self.forget_given_up()
        self.storage.create(self._own("given-up"), metadata_location.encode())

    def forget_given_up(self) -> None:
        """Removes the notes that a version is given up, and that names were switched."""
        self.forget_switched()
        self.storage.delete(self._own("given-up"))

    @property
    def is_switched(self) -> bool:
        """Whether it is noted that names were switched, after which nobody writes to the Iceberg table."""
        return self.storage.exists(self._own("switched-back"))

    def note_switched(self) -> None:
        """Notes that names were switched: the Iceberg table is given up, even if the rows do not show it any more."""
        with suppress(FileAlreadyExistsError):
            self.storage.create(self._own("switched-back"), b"")

    def forget_switched(self) -> None:
        self.storage.delete(self._own("switched-back"))

    @property
    def handback(self) -> HandbackNote | None:
        """The note of what was copied for the Hive table; None if nothing was."""
        try:
            found = self._read(self._handback)
            if found is None:
                return None
            content = json.loads(found)
            partitions = tuple((tuple(values), place) for values, place in content["partitions"])
            return HandbackNote(content["version"], tuple(content["files"]), partitions)
        except (ValueError, TypeError, KeyError) as error:
            raise MigrationError(
                f"Cannot read {self._handback}: {error}. It names files that were copied for the Hive table; nothing "
                "was changed."
            ) from error

    def note_handback(self, note: HandbackNote) -> None:
        """Notes what will be copied; only one note can be there."""
        self.storage.create(self._handback, json.dumps(asdict(note)).encode())

    def forget_handback(self) -> None:
        self.storage.delete(self._handback)

    @property
    def _rollback(self) -> str:
        return f"{self.folder}/{MIGRATION_JOURNALS}rollback.json"

    @property
    def _handback(self) -> str:
        return f"{self.folder}/{MIGRATION_JOURNALS}as-hive.json"

    def _own(self, name: str) -> str:
        return f"{self.folder}/{MIGRATION_JOURNALS}{self.journal.migration_id}.{name}"

    def _read(self, location: str) -> bytes | None:
        try:
            return self.storage.read(location)
        except MissingFileError:
            return None
