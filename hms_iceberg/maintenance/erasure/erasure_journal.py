"""The journal of an erasure: what is to be forgotten, which old files are left, and when they go.

It lies beside the table's metadata until the last of these files is gone, so that a killed erasure can be finished by
anybody. It holds the predicate as long as the rows are there, and goes with them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hms_iceberg.errors import CorruptFileError, MissingFileError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, now_ms
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed_files.needed_by_others import ERASURE_JOURNALS

_BEGUN, _GONE = ".json", ".gone.json"
_FILES, _DUE = ".files-", ".due"


@dataclass(frozen=True)
class ErasureIntent:
    """The request of an erasure, and the table as it was when that began."""

    erasure_id: str
    table: str  # the table's name when it was begun
    table_uuid: str
    where: str | None  # the predicate, as text; None for an encrypted table, as a journal is not encrypted
    digest: dict[str, str]  # the predicate as the report tells it
    case_sensitive: bool
    begun_ms: int
    delay_ms: int  # how long the old files stay after the table has moved on
    give_up_backup: bool  # whether the files go that the original Hive table of a migration needs
    snapshots: int
    rows: int
    is_reported: bool = True  # whether somebody waits for the report, so that only `resume_forget` finishes it


@dataclass(frozen=True)
class ErasureJournal:
    """An erasure that is not finished, by its files."""

    intent: ErasureIntent
    folder: str
    storage: Storage

    @classmethod
    def begin(cls, intent: ErasureIntent, metadata: TableMetadata, storage: Storage) -> ErasureJournal:
        folder = metadata_folder(metadata.location, metadata.properties)
        journal = cls(intent, folder, storage)
        journal._write(_BEGUN, asdict(intent))
        return journal

    @property
    def location(self) -> str:
        """Where the journal begins."""
        return self._location(_BEGUN)

    def will_delete(self, files: Iterable[str], replaced: Mapping[str, list[str]]) -> None:
        """Notes, before the table moves on, which files the old version alone names, and what replaces which."""
        ending = f"{_FILES}{now_ms()}-{uuid.uuid4().hex[:8]}.json"
        self._write(ending, {"files": sorted(files), "replaced": replaced})

    def moved(self, due_ms: int) -> None:
        """Notes that the table has moved on, and when the old files may go. Of several such times the last one
        counts: those who read the files that went last need them the longest."""
        self._write(f"{_DUE}-{uuid.uuid4().hex[:8]}.json", {"due-ms": due_ms})

    def deletes(self, facts: Mapping[str, Any]) -> None:
        """Notes what the files are that go now, before the first goes."""
        if self.deleted is None:
            self._write(_GONE, facts)

    def end(self) -> None:
        """Deletes the journal, its beginning last."""
        for location in self._own():
            if location != self.location:
                self.storage.delete(location)
        self.storage.delete(self.location)

    # --------------------------------------------------------------------------------------------- reading

    @property
    def due_ms(self) -> int | None:
        """When the old files may go; None if the table has not moved on, or nobody noted it."""
        start = _name(self._location(_DUE))
        found = [self._read(each) for each in self._own() if _name(each).startswith(start)]
        return max((int(each["due-ms"]) for each in found if each is not None), default=None)

    @property
    def deleted(self) -> dict[str, Any] | None:
        """The facts of the files to delete; None if their deletion was not begun."""
        return self._read(self._location(_GONE))

    def files(self) -> dict[str, None]:
        """The files that only old versions name."""
        return dict.fromkeys(each for noted in self._noted() for each in noted["files"])

    def replaced(self) -> dict[str, list[str]]:
        """The files that took the place of each old data or delete file."""
        return {old: new for noted in self._noted() for old, new in noted["replaced"].items()}

    def _noted(self) -> Iterator[dict[str, Any]]:
        for location in sorted(self._own()):
            if _FILES in location and (found := self._read(location)) is not None:
                yield found

    def _own(self) -> list[str]:
        start = self._location("")
        return [
            each.location for each in self.storage.list(self.folder) if _name(each.location).startswith(_name(start))
        ]

    def _location(self, ending: str) -> str:
        return f"{self.folder}/{ERASURE_JOURNALS}{self.intent.erasure_id}{ending}"

    def _write(self, ending: str, content: Mapping[str, Any]) -> None:
        self.storage.create(self._location(ending), json.dumps(content, indent=1).encode("utf-8"))

    def _read(self, location: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self.storage.read(location))
        except MissingFileError:
            return None
        except ValueError as error:
            raise CorruptFileError(f"Cannot read the journal of an erasure at {location}: {error}") from error
        return found


def open_erasures(metadata: TableMetadata, metadata_location: str, storage: Storage) -> tuple[ErasureJournal, ...]:
    """The erasures of a table that are not finished, the oldest first."""
    folders = {metadata_folder(metadata.location, metadata.properties), metadata_location.rpartition("/")[0]}
    found = []
    for folder in sorted(folders):
        for file in storage.list(folder):
            name = _name(file.location)
            if name.startswith(ERASURE_JOURNALS) and name.count(".") == 1:
                intent = _intent(file.location, storage)
                if intent is not None and intent.table_uuid == metadata.table_uuid:
                    found.append(ErasureJournal(intent, folder, storage))
    return tuple(sorted(found, key=lambda each: each.intent.begun_ms))


def needed_by_erasures(metadata: TableMetadata, metadata_location: str, storage: Storage) -> Iterator[str]:
    """The old files that open erasures delete when they are due, and nobody else before."""
    for journal in open_erasures(metadata, metadata_location, storage):
        yield from journal.files()


def _intent(location: str, storage: Storage) -> ErasureIntent | None:
    """The request in a journal; None if the journal was deleted meanwhile, CorruptFileError if it cannot be read."""
    try:
        return ErasureIntent(**json.loads(storage.read(location)))
    except MissingFileError:
        return None
    except (ValueError, TypeError) as error:
        raise CorruptFileError(
            f"Cannot read the journal of an erasure at {location}: {error}. Forget the rows again, and delete it then."
        ) from error


def _name(location: str) -> str:
    return location.rpartition("/")[2]
