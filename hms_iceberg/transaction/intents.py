"""The intent of a commit to several tables: what is to become of each of them, written down before the first row moves.

A copy lies beside the metadata of each table until the commit is closed. Its name is hidden, so that no engine takes it
for an orphan.
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
    """The versions of one table before and after a transaction.

    Attributes:
        identifier: its name.
        uuid: of the table; empty if it has none.
        base, new: locations of its metadata files before and after.
        checksum: SHA-256 of the new one.
    """

    identifier: Identifier
    uuid: str
    base: str
    new: str
    checksum: str = ""

    def record(self, transaction_id: str) -> str:
        """The location of the intent's copy beside the table's metadata."""
        return f"{self.new.rpartition('/')[0]}/{INTENTS}{transaction_id}.json"


@dataclass(frozen=True)
class Intent:
    """A commit to several tables, in the order in which their rows move; the last decides."""

    transaction_id: str
    tables: tuple[IntendedTable, ...]

    @property
    def records(self) -> tuple[str, ...]:
        """The locations of its copies."""
        return tuple(dict.fromkeys(each.record(self.transaction_id) for each in self.tables))

    @property
    def way_location(self) -> str:
        """The location of the file that says where it is taken."""
        return f"{self.records[-1].removesuffix('.json')}.way"

    def write(self, storage: Storage) -> None:
        """Writes every copy; those that were written go again if one cannot be."""
        content = self._encoded()
        written: list[str] = []
        try:
            for record in self.records:
                written.append(record)
                storage.create(record, content)
        except BaseException:
            for record in written:
                with suppress(Exception):
                    storage.delete(record)
            raise

    def close(self, storage: Storage) -> None:
        """Deletes every copy, and what was said of its way; the copy beside the table that decides goes last."""
        *others, last = self.records
        for location in (*others, self.way_location, last):
            storage.delete(location)

    def forget(self, storage: Storage) -> None:
        """Deletes every copy, when nobody has said where it is to be taken."""
        for location in self.records:
            storage.delete(location)

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
    """Reads a copy of an intent; None if it was closed."""
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
    """Whether a file is a copy of an intent, or says its way, by its name."""
    return location.rpartition("/")[2].startswith(INTENTS)


def open_among(locations: Iterable[str], storage: Storage) -> Iterator[Intent]:
    """The intents among some files that are open still."""
    for location in locations:
        is_copy = is_intent(location) and location.endswith(".json")
        intent = read_intent(location, storage) if is_copy else None
        if intent is not None:
            yield intent
