"""Transactions of Spark's sessions on several tables: what their statements change is kept here until they commit.

Nothing of it is in a table before that, not even in a hidden branch. A statement reads its table by a name that only
this process knows, which stands for the metadata as the statements before it would leave it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.catalog import Catalog
from hms_iceberg.catalog.transactions import JoinedTransaction
from hms_iceberg.errors import CommitConflictError, InvalidInputError, UnsupportedError
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.spark.catalogs import OpenCatalogs, version_name
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction

logger = logging.getLogger(__name__)

_MARK = "#transaction-"
_KEPT_VERSIONS = 64
_METASTORE_PROPERTIES = ("type", "uri", "warehouse")


@dataclass(frozen=True)
class ChangedTable:
    """A table that a transaction was on, by name, with its current snapshots before and after."""

    identifier: Identifier
    before: int | None
    after: int | None


@dataclass(eq=False)
class _JoinedTable:
    """A table of a transaction, at the version that its first statement found, and as its statements leave it."""

    table: Table
    started: TableMetadata
    first: str  # the name of the version that it was found at
    name: str  # of the version that the next statement reads
    changes: JoinedTransaction | None = None
    versions: dict[str, TableMetadata] = field(default_factory=dict)

    def takes_rows_for(self, name: str) -> bool:
        """Whether files written for a version of it have the columns and partitions of its newest one."""
        written, newest = self.versions.get(name), self.versions.get(self.name, self.started)
        if written is None and name == self.first:
            written = self.started
        return (
            written is not None
            and written.current_schema_id == newest.current_schema_id
            and written.default_spec_id == newest.default_spec_id
        )

    def move(self, transaction_id: int, after: TableMetadata) -> None:
        """Names the table as a statement has left it."""
        location = self.table.metadata_location
        self.name = f"{location}{_MARK}{transaction_id}@{len(self.versions) + 1}"
        self.versions[self.name] = after


class SessionTransaction:
    """The open transaction of a session, on tables of one catalog."""

    def __init__(self, number: int, catalog: Catalog) -> None:
        """Begins one; refuses a catalog that cannot commit to several tables at once."""
        self.number = number
        self._catalog = catalog
        self._changes = catalog.transaction()
        self._tables: dict[Identifier, _JoinedTable] = {}
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The catalog's name in SQL."""
        return self._catalog.name

    def is_on(self, catalog: Catalog) -> bool:
        """Whether the transaction takes tables of a catalog, which a copy of the session may have opened anew since."""
        return catalog.name == self.name and all(
            catalog.properties.get(key) == self._catalog.properties.get(key) for key in _METASTORE_PROPERTIES
        )

    def refuses(self, what: str) -> UnsupportedError:
        """The error for a statement that cannot be part of the transaction."""
        return UnsupportedError(
            f"Cannot {what} in transaction {self.number}: it changes rows and definitions of the Iceberg tables of the "
            f"catalog {self.name}, by their names, and nothing else. Nothing was changed. End it first (call "
            "system.commit_transaction(), or call system.rollback_transaction())."
        )

    def pin(self, identifiers: Sequence[Identifier]) -> None:
        """Takes tables into the transaction as they are at one moment."""
        with self._lock:
            for identifier, table in zip(identifiers, self._catalog.load_tables(identifiers), strict=True):
                self._take(identifier, table)

    def find(self, identifier: Identifier) -> str:
        """The name of the table's version that the next statement reads."""
        with self._lock:
            known = self._known(identifier)
            return (known or self._take(identifier, self._catalog.load_table(identifier))).name

    def metadata(self, name: str) -> TableMetadata | None:
        """The metadata of a version that a statement has left, by the version's name."""
        with self._lock:
            return next((each.versions[name] for each in self._different() if name in each.versions), None)

    @contextmanager
    def change(self, question: Mapping[str, Any]) -> Iterator[TableTransaction]:
        """Gives the changes of the table that a statement is about, to add to; a statement that fails adds nothing."""
        with self._lock:
            known = self._of(question)
            joined = known.changes = known.changes or self._changes.table(known.table)
            with joined.begun.all_or_nothing():
                yield joined
                after = joined.metadata
            known.move(self.number, after)

    def commit(self) -> tuple[list[ChangedTable], dict[str, TableMetadata]]:
        """Makes all changes part of their tables, or none; returns these, and their versions in between."""
        with self._lock:
            started = {each.table.name(): each.started for each in self._different()}
            made = self._changes.commit_transaction()
            versions = {name: version for each in self._different() for name, version in each.versions.items()}
        changed = [
            ChangedTable(name, started[name].current_snapshot_id, table.metadata.current_snapshot_id)
            for name, table in sorted(made.items())
            if table.metadata is not started[name]
        ]
        return changed, versions

    def abandon(self) -> list[ChangedTable]:
        """Gives all changes up, deletes the files written for them, and returns the tables that had changes."""
        with self._lock:
            changed = [each for each in self._different() if each.versions]
            self._changes.abandon()
        snapshots = [(each.table.name(), each.started.current_snapshot_id) for each in changed]
        return sorted((ChangedTable(name, now, now) for name, now in snapshots), key=lambda each: each.identifier)

    def _of(self, question: Mapping[str, Any]) -> _JoinedTable:
        """The table of a statement, which must have read it as it is now."""
        identifier = (question["namespace"], question["table"])
        known = self._known(identifier) or self._take(identifier, self._catalog.load_table(identifier))
        read = question.get("version_name", known.name)
        if known.name == read or (question.get("kind") == "append" and known.takes_rows_for(read)):
            return known
        raise CommitConflictError(
            f"Cannot change table {'.'.join(identifier)} in transaction {self.number}: it is not as the statement has "
            "read it, since another thread of the session began the transaction, or changed the table in it, "
            "meanwhile. Repeat the statement."
        )

    def _different(self) -> Iterable[_JoinedTable]:
        """Each table of the transaction once, whatever names it has."""
        return dict.fromkeys(self._tables.values())

    def _known(self, identifier: Identifier) -> _JoinedTable | None:
        return self._tables.get(identifier)

    def _take(self, identifier: Identifier, table: Table) -> _JoinedTable:
        """Takes a table into the transaction, once under whatever spelling."""
        lower = tuple(part.lower() for part in identifier)
        for name, known in self._tables.items():
            is_same = known.started.table_uuid == table.metadata.table_uuid
            if is_same and tuple(part.lower() for part in name) == lower:
                self._tables[identifier] = known
                return known
        found = version_name(MetadataVersion(table.metadata_location, table.metadata))
        taken = self._tables[identifier] = _JoinedTable(table, table.metadata, found, found)
        return taken


class OpenTransactions:
    """The transactions that sessions have open, by number."""

    def __init__(self, catalogs: OpenCatalogs) -> None:
        self._catalogs = catalogs
        self._open: dict[int, SessionTransaction] = {}
        # What committed transactions had in between, for queries that still read it.
        self._left: BoundedCache[TableMetadata] = BoundedCache(_KEPT_VERSIONS)
        self._numbers = count(1)
        self._lock = threading.Lock()

    def begin(self, catalog: Catalog, tables: Sequence[Identifier] = ()) -> SessionTransaction:
        """Begins a transaction on tables of a catalog, some of which it takes as they are now, at one moment."""
        begun = SessionTransaction(next(self._numbers), catalog)
        begun.pin(tables)
        with self._lock:
            self._open[begun.number] = begun
        return begun

    def commit(self, transaction: SessionTransaction) -> list[ChangedTable]:
        """Ends a transaction: all its changes are made part of their tables, or none is; returns the changed tables."""
        self._end(transaction)
        changed, versions = transaction.commit()
        for name, metadata in versions.items():
            self._left.put(name, metadata)
        return changed

    def roll_back(self, transaction: SessionTransaction) -> list[ChangedTable]:
        """Ends a transaction without its changes, and returns the tables that had some."""
        self._end(transaction)
        return transaction.abandon()

    def give_up(self, number: int) -> None:
        """Gives up the transaction of a session that has gone, if it is open still."""
        with self._lock:
            left = self._open.pop(number, None)
        if left is not None:
            logger.info("Transaction %s is given up: its session has gone without a commit", number)
            left.abandon()

    def _end(self, transaction: SessionTransaction) -> None:
        with self._lock:
            if self._open.pop(transaction.number, None) is None:
                _raise_ended(f"Transaction {transaction.number}")

    def of(self, question: Mapping[str, Any]) -> SessionTransaction | None:
        """The open transaction of the session that asks; None if it has none."""
        number = question.get("transaction")
        if number is None:
            return None
        with self._lock:
            known = self._open.get(number)
        return known or _raise_ended(f"Transaction {number}")

    def of_change(self, question: Mapping[str, Any]) -> SessionTransaction | None:
        """The open transaction that a change is to be part of; refuses a change of another catalog's table."""
        transaction = self.of(question)
        if transaction is not None and not self._is_on_catalog_of(question, transaction):
            raise transaction.refuses(f"change {question.get('name') or 'this table'}")
        return transaction

    def _is_on_catalog_of(self, question: Mapping[str, Any], transaction: SessionTransaction) -> bool:
        return question.get("catalog") is not None and transaction.is_on(self._catalogs.of(question))

    def refuse(self, question: Mapping[str, Any]) -> None:
        """Refuses a change of neither rows nor a table's definition in a session with an open transaction."""
        transaction = self.of(question)
        if transaction is not None:
            name = question.get("name") or ".".join(filter(None, (question.get("namespace"), question.get("table"))))
            raise transaction.refuses(f"{question['call'].replace('-', ' ')} {name}".strip())

    def find(self, question: Mapping[str, Any]) -> str | None:
        """The name of the version that a session reads in its transaction; None for a table of another catalog."""
        transaction = self.of(question)
        if transaction is None or not self._is_on_catalog_of(question, transaction):
            return None
        return transaction.find((question["namespace"], question["table"]))

    def metadata(self, name: str) -> TableMetadata | None:
        """The metadata of a version that is in a transaction only; None for one that a table has."""
        if _MARK not in name:
            return None
        number = int(name.rpartition(_MARK)[2].partition("@")[0])
        with self._lock:
            known = self._open.get(number)
        metadata = self._left.get(name) if known is None else known.metadata(name)
        return metadata or _raise_ended(f"The table is read as it was in transaction {number}, and that")

    def close(self) -> None:
        """Gives all open transactions up."""
        with self._lock:
            left, self._open = list(self._open.values()), {}
        for each in left:
            each.abandon()


class GiveUpTransaction(msgspec.Struct, frozen=True):
    """Gives up a transaction whose session is gone (`OpenTransactions`)."""

    number: int


def _raise_ended(what: str) -> Any:
    raise InvalidInputError(f"{what} was committed or rolled back already. Begin a new one, and read the table again.")
