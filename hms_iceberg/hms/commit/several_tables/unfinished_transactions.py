"""Rows that a transaction on several tables has moved: what a reader sees, and how whoever meets one finishes it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hms_iceberg.errors import NoSuchTableError, UnsupportedError
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.commit.pointer_kinds import TableSwap
from hms_iceberg.hms.commit.several_tables.finishing import End, Finisher
from hms_iceberg.hms.commit.several_tables.locks import SeveralLocks
from hms_iceberg.hms.commit.several_tables.visible_version import histories, seen_pointer
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.transaction_marks import Mark
from hms_iceberg.metastore import Identifier, TablePointer
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.intents import Intent, read_intent

logger = logging.getLogger(__name__)

# How long an owner that may live is waited for where no lock tells; to judge it dead too early does no harm.
_OWNER_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.05


class UnfinishedTransactions:
    """Reads rows with marks, and finishes the transactions that left them."""

    def __init__(self, swap: TableSwap, locks: LockChoice, storage: Storage | None) -> None:
        self._swap = swap
        self._locks = locks
        self._storage = storage

    # ------------------------------------------------------------------------------------------- reading

    def pointer(self, row: ttypes.Table) -> TablePointer:
        """The pointer that a reader follows: to the table's base while the transaction that moved it is not
        committed."""
        return seen_pointer(self._swap.pointer(row), self._parameters, histories(self._storage))

    # ------------------------------------------------------------------------------------------- finishing

    def needs_finishing(self, row: ttypes.Table) -> Mark | None:
        """The mark of a row that must not be changed before its transaction is finished; None if it may be."""
        mark = Mark.of(row.parameters)
        if mark is None:
            return None
        is_closed = mark.decides_itself and not self.storage.exists(mark.record)
        return None if is_closed else mark

    def finish(self, identifier: Identifier, mark: Mark) -> End | None:
        """Waits for a transaction's owner, or carries it forward or takes it back if the owner is dead; no lock may be
        held. Returns None if the owner, or somebody else, has finished it meanwhile."""
        storage = self.storage
        intent = read_intent(mark.record, storage) or mark.intent_for(identifier)
        with self._locked(intent) as locks:
            if not locks.exclude_all and not self._is_left(identifier, mark):
                return None
            row = self._find(identifier)
            if row is None or (found := Mark.of(row.parameters)) is None or found.transaction != mark.transaction:
                return None
            intent = read_intent(mark.record, storage) or intent
            logger.warning(
                "Finishing transaction %s on %s, which its owner left open", mark.transaction, _names(intent)
            )
            return Finisher(self._swap, storage, locks).finish(intent)

    def finish_intent(self, intent: Intent) -> End:
        """Finishes a transaction of which only the intent was found: its owner may have ended before the first move."""
        with self._locked(intent) as locks:
            return Finisher(self._swap, self.storage, locks).finish(intent)

    @contextmanager
    def _locked(self, intent: Intent) -> Iterator[SeveralLocks]:
        properties: dict[Identifier, Mapping[str, str]] = {}
        for table in intent.tables:
            properties[table.identifier] = self._parameters(table.identifier) or {}
        locks = SeveralLocks(self._locks, properties)
        try:
            locks.acquire()
            yield locks
        finally:
            locks.release()

    def _is_left(self, identifier: Identifier, mark: Mark) -> bool:
        """Whether a transaction's owner is dead, or has not gone on for long."""
        owner = mark.owner_process
        deadline = time.monotonic() + _OWNER_TIMEOUT_SECONDS
        while time.monotonic() < deadline and (owner is None or owner.may_be_alive()):
            row = self._find(identifier)
            found = None if row is None else Mark.of(row.parameters)
            if found is None or found.transaction != mark.transaction:
                return False
            if mark.decides_itself and not self.storage.exists(mark.record):
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _parameters(self, identifier: Identifier) -> Mapping[str, str] | None:
        row = self._find(identifier)
        return None if row is None else row.parameters or {}

    def _find(self, identifier: Identifier) -> ttypes.Table | None:
        try:
            return self._swap.read(identifier)
        except NoSuchTableError:
            return None

    @property
    def storage(self) -> Storage:
        """Where metadata files are."""
        if self._storage is None:
            raise UnsupportedError(
                "A transaction on several tables needs a catalog with a storage, as load_catalog gives it: this "
                "metastore was opened without one."
            )
        return self._storage


def _names(intent: Intent) -> str:
    return ", ".join(".".join(each.identifier) for each in intent.tables)
