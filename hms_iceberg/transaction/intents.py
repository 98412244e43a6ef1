"""The intent of a commit to several tables: what is to become of each of them, written down before the first row moves.

It lies beside the metadata of the table whose row decides until the commit is closed; the mark of each row that moves
names it. Its own name is hidden, so that no engine takes it for an orphan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hms_iceberg.errors import CorruptMetadataError, FileAlreadyExistsError, MissingFileError
from hms_iceberg.metastore import Identifier
from hms_iceberg.storage import Storage

INTENTS = "_transaction-"
"""What names of intents begin with."""
_VERSION = 1


@dataclass(frozen=True)
class IntendedTable:
    """The versions of one table before and after a transaction."""

    identifier: Identifier
    uuid: str  # empty if the table has none
    base: str  # location of the metadata file before, `new` after
    new: str
    checksum: str = ""  # SHA-256 of the new metadata file


@dataclass(frozen=True)
class Intent:
    """A commit to several tables, in the order in which their rows move; the last decides."""

    transaction_id: str
    tables: tuple[IntendedTable, ...]

    @property
    def record(self) -> str:
        """Where it is written down."""
        return f"{self.tables[-1].new.rpartition('/')[0]}/{INTENTS}{self.transaction_id}.json"

    @property
    def way_location(self) -> str:
        """The location of the file that says where it is taken."""
        return f"{self.record.removesuffix('.json')}.way"

    def write(self, storage: Storage) -> None:
        """Writes it down; a file that could be written in part only goes again."""
        try:
            storage.create(self.record, self._encoded())
        except BaseException:
            with suppress(Exception):
                storage.delete(self.record)
            raise

    def close(self, storage: Storage) -> None:
        """Deletes what was said of its way, and then the intent itself."""
        storage.delete(self.way_location)
        storage.delete(self.record)

    def forget(self, storage: Storage) -> None:
        """Deletes the intent, when nobody has said where it is to be taken."""
        storage.delete(self.record)

    def said_way(self, storage: Storage, proposed: str) -> str:
        """Where it is taken, as whoever came first has said; `proposed` if nobody has."""
        try:
            return storage.read(self.way_location).decode()
        except MissingFileError:
            with suppress(FileAlreadyExistsError):
                storage.create(self.way_location, proposed.encode())
                return proposed
        return storage.read(self.way_location).decode()

    def _encoded(self) -> bytes:
        tables = [
            {
                "name": list(each.identifier),
                "uuid": each.uuid,
                "base": each.base,
                "new": each.new,
                "checksum": each.checksum,
            }
            for each in self.tables
        ]
        return json.dumps(
            {"format-version": _VERSION, "transaction-id": self.transaction_id, "tables": tables}
        ).encode()


@runtime_checkable
class FinishesTransactions(Protocol):
    """A metastore whose transactions on several tables anybody can finish, if their owners are dead."""

    def finish(self, intent: Intent) -> None:
        """Carries a transaction forward, or takes it back."""
        ...


def checksum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_intent(location: str, storage: Storage) -> Intent | None:
    """Reads an intent; None if it was closed."""
    try:
        content = storage.read(location)
    except MissingFileError:
        return None
    try:
        told: Mapping[str, Any] = json.loads(content)
        if told["format-version"] != _VERSION:
            raise ValueError(f"version {told['format-version']}")
        tables = tuple(
            IntendedTable(tuple(each["name"]), each["uuid"], each["base"], each["new"], each["checksum"])
            for each in told["tables"]
        )
        return Intent(told["transaction-id"], tables)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptMetadataError(
            f"{location} does not hold the intent of a transaction on several tables: {error!r}. It was written by a "
            "newer version of hms_iceberg, or damaged."
        ) from error


def is_intent(location: str) -> bool:
    """Whether a file is an intent, or says its way, by its name."""
    return location.rpartition("/")[2].startswith(INTENTS)


def open_among(locations: Iterable[str], storage: Storage) -> Iterator[Intent]:
    """The intents among some files that are open still."""
    for location in locations:
        is_record = is_intent(location) and location.endswith(".json")
        intent = read_intent(location, storage) if is_record else None
        if intent is not None:
            yield intent
