"""The journal of a migration: what the Hive table was, written before anything is changed.

It lies beside the metadata of the Iceberg table, is written once and never changed: together with the rows of the
metastore it tells after a crash how far the migration came, and what has to be put back. It stays after a migration,
for the way back.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hms_iceberg.errors import FileAlreadyExistsError, MigrationError, MissingFileError
from hms_iceberg.storage import Storage

JOURNAL_NAME = "hive-migration.json"
_FORMAT = 1


@dataclass(frozen=True)
class Worker:
    """The process that does a migration, so that another one can tell whether it still lives.

    Attributes:
        host: name of the machine.
        pid: process id on it.
        started: what tells a process from a later one with the same id, empty if the system does not say.
    """

    host: str
    pid: int
    started: str = ""

    @classmethod
    def this_process(cls) -> Worker:
        """The worker that this process is."""
        status = _status_of(os.getpid())
        return cls(socket.gethostname(), os.getpid(), status[1] if status else "")

    def may_be_alive(self) -> bool:
        """False only if the process certainly ended."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        status = _status_of(self.pid)
        if status is None:
            return True
        state, started = status
        return state not in "ZX" and started == (self.started or started)


def _status_of(pid: int) -> tuple[str, str] | None:
    """State and start of a process, if the system tells: `R`, `S`, `Z` (ended, not collected) ..."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()
    except OSError:
        return None
    return fields[0], fields[19]


@dataclass(frozen=True)
class Journal:
    """One migration.

    Attributes:
        migration_id: drawn once; the rows that belong to the migration carry it as a parameter.
        database, table, backup, staging: names in the metastore, the last two for the time after and during the
            switch.
        location: where the table's files are.
        original: the Hive table's type, and the parameters that the migration changes, as they were.
        files, bytes, partitions: what was found.
        existing: names of files that were in the metadata folder before.
        worker: who does it.
    """

    migration_id: str
    database: str
    table: str
    backup: str
    staging: str
    location: str
    original: Mapping[str, Any]
    files: int
    bytes: int
    partitions: int
    existing: tuple[str, ...] = ()
    worker: Worker = field(default_factory=Worker.this_process)

    @property
    def name(self) -> str:
        """The table's name as people write it."""
        return f"{self.database}.{self.table}"


def new_migration_id() -> str:
    """An id for a migration."""
    return str(uuid.uuid4())


def journal_location(metadata_folder: str) -> str:
    """Where the journal of a migration lies."""
    return f"{metadata_folder}/{JOURNAL_NAME}"


def write_journal(storage: Storage, metadata_folder: str, journal: Journal) -> None:
    """Write the journal; only one can be there.

    Raises:
        MigrationError: another migration of the table was begun in the meantime.
    """
    content = {"format": _FORMAT, **asdict(journal)}
    try:
        storage.create(journal_location(metadata_folder), json.dumps(content, indent=2).encode())
    except FileAlreadyExistsError as error:
        raise MigrationError(
            f"Cannot migrate {journal.name}: another migration of it was begun in the meantime "
            f"({journal_location(metadata_folder)}). Wait for its end, or run the same command again."
        ) from error


def read_journal(storage: Storage, metadata_folder: str) -> Journal | None:
    """The journal in a metadata folder; None if there is none.

    Raises:
        MigrationError: the file cannot be understood.
    """
    location = journal_location(metadata_folder)
    try:
        data = storage.read(location)
    except MissingFileError:
        return None
    try:
        content = json.loads(data)
        if content.pop("format") != _FORMAT:
            raise ValueError("it was written by another version of this package")
        worker = Worker(**content.pop("worker"))
        return Journal(**{**content, "existing": tuple(content["existing"]), "worker": worker})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MigrationError(
            f"Cannot read the migration journal {location}: {error}. The tables in the metastore were left as they "
            "are. Restore the file, or the tables, by hand."
        ) from error


# ------------------------------------------------------------------------------------------- ways back

ROLLBACK_NAME = "hive-migration.rollback.json"


def write_rollback_note(storage: Storage, metadata_folder: str) -> None:
    """Note that this process takes a table back.

    Raises:
        MigrationError: another one began to, in the meantime.
    """
    location = f"{metadata_folder}/{ROLLBACK_NAME}"
    try:
        storage.create(location, json.dumps(asdict(Worker.this_process())).encode())
    except FileAlreadyExistsError as error:
        raise MigrationError(f"Another process began to take the table back ({location}). Wait for its end.") from error


def read_rollback_note(storage: Storage, metadata_folder: str) -> Worker | None:
    """The process that began to take a table back; None if none did, or the note is cut off."""
    try:
        return Worker(**json.loads(storage.read(f"{metadata_folder}/{ROLLBACK_NAME}")))
    except (MissingFileError, ValueError, TypeError):
        return None


def remove_rollback_note(storage: Storage, metadata_folder: str) -> None:
    """Forget that a process began to take a table back."""
    storage.delete(f"{metadata_folder}/{ROLLBACK_NAME}")
