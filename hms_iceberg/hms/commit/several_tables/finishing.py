"""Finishes a transaction on several tables: carries it forward or takes it back, as the rules say."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum

from hms_iceberg.encryption.encrypted_tables import METADATA_HASH
from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    CorruptMetadataError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    MissingFileError,
    NoSuchTableError,
)
from hms_iceberg.hms.commit.capability import MODIFIED
from hms_iceberg.hms.commit.pointer_kinds import TableSwap
from hms_iceberg.hms.commit.several_tables.locks import SeveralLocks
from hms_iceberg.hms.commit.several_tables.rules import (
    Action,
    RowState,
    Way,
    is_committed,
    is_torn,
    next_step,
    proposed_way,
)
from hms_iceberg.hms.commit.several_tables.visible_version import histories, row_state_in
from hms_iceberg.hms.connection.answers import polls
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, update_row
from hms_iceberg.hms.rows.transaction_marks import MARK, Mark, owner_mark
from hms_iceberg.metastore import Identifier
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.intents import IntendedTable, Intent, checksum_of
from hms_iceberg.transaction.workspace import FileWorkspace, read_version, write_version

logger = logging.getLogger(__name__)

# Each step changes a row, or somebody else did; a table with so many others' commits meanwhile is never met.
_MOST_STEPS = 1000


class End(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"  # all of it is part of the tables
    TAKEN_BACK = "taken back"  # nothing of it is
    TORN = "torn"  # others had committed on top of a part of it, and another part could not get in any more


class Finisher:
    """Finishes transactions under locks that are held."""

    def __init__(self, swap: TableSwap, storage: Storage, locks: SeveralLocks) -> None:
        self._swap = swap
        self._storage = storage
        self._locks = locks

    def finish(self, intent: Intent, *, owner: bool = False) -> End:
        """Does step after step until the transaction is closed; `owner` has no requests under way. After a LockError,
        or if the metastore cannot be reached, anybody may go on."""
        storage = self._storage
        for _ in range(_MOST_STEPS):
            rows = [self._find(each.identifier) for each in intent.tables]
            states = [
                row_state_in(None if row is None else row.parameters, intent.transaction_id, each, histories(storage))
                for each, row in zip(intent.tables, rows, strict=True)
            ]
            way = None
            if not is_committed(states):
                way = self._way(intent, states)
            marked = [_is_marked(row, intent) for row in rows]
            step = next_step(states, marked, way, owner=owner)
            if step is None:
                intent.close(storage)
                return _logged_end(intent, states)
            row = rows[step.table]
            assert row is not None
            self._carry_out(intent, step.action, step.table, row, states[step.table], owner)
        raise CommitStateUnknownError(
            f"Transaction {intent.transaction_id} is not finished: its tables change all the time. Load one again."
        )

    def _way(self, intent: Intent, states: Sequence[RowState]) -> Way:
        """Where all who finish it take it; back, if nothing could tell which of several has said it first."""
        if not self._locks.exclude_all and not self._storage.creates_exclusively(intent.way_location):
            return Way.BACK
        return Way(intent.said_way(self._storage, proposed_way(states).value))

    def _carry_out(
        self, intent: Intent, action: Action, number: int, row: ttypes.Table, state: RowState, owner: bool
    ) -> None:
        table, new = intent.tables[number], copy.deepcopy(row)
        if action is Action.CLEAR:
            del new.parameters[MARK]
        elif action is Action.TAKE_BACK:
            self._take_back(intent, table, new, state, owner)
        else:
            self._move(intent, number, new)
        self.alter(table.identifier, row, new)

    def alter(self, identifier: Identifier, old: ttypes.Table, new: ttypes.Table) -> bool:
        """Changes a row that others may have changed meanwhile; returns whether it certainly did."""
        lock, compares = self._locks.of(identifier), self._locks.compares(identifier)
        try:
            lock.ensure_active()
            self._swap.alter(identifier, old, new, compares, lock)
            lock.ensure_active()
        except MetastoreAnswerLostError as lost:
            self._await(identifier, new, compares, lost)
            return False
        except (LockError, MetastoreUnavailableError):
            raise
        except (NoSuchTableError, CommitFailedError):
            return False  # dropped, renamed or changed
        except MetastoreError as error:
            if MODIFIED not in str(error):
                raise
            return False
        return True

    def _await(self, identifier: Identifier, new: ttypes.Table, compares: bool, lost: MetastoreAnswerLostError) -> None:
        """Looks at a row until a request whose answer was lost has arrived, or is not to be expected any more."""
        for _ in polls(".".join(identifier), compares):
            row = self._find(identifier)
            if row is None or _shown(row) == _shown(new):
                return
        if not compares:
            raise lost  # it may arrive at any time

    def _take_back(self, intent: Intent, table: IntendedTable, row: ttypes.Table, state: RowState, owner: bool) -> None:
        storage = self._storage
        base = read_version(table.base, storage)
        shown = base
        if state is RowState.MOVED:
            with suppress(MissingFileError):  # it only tells which properties the row has more than the base
                shown = read_version(table.new, storage)
        target = base if owner else write_version(base, base.metadata, FileWorkspace(storage))
        mark = Mark.of(row.parameters)
        kept = row.parameters[MARK] if mark is not None and mark.transaction != intent.transaction_id else None
        update_row(row, shown, target, self._swap.settings)
        if owner and len(base.previous):
            row.parameters[PREVIOUS_METADATA_LOCATION] = base.previous[-1]
        elif owner:
            del row.parameters[PREVIOUS_METADATA_LOCATION]
        else:
            row.parameters[PREVIOUS_METADATA_LOCATION] = base.location
        if kept is not None:
            row.parameters[MARK] = kept

    def _move(self, intent: Intent, number: int, row: ttypes.Table) -> None:
        table, storage = intent.tables[number], self._storage
        if not table.checksum or checksum_of(storage.read(table.new)) != table.checksum:
            raise CorruptMetadataError(
                f"Transaction {intent.transaction_id} cannot be carried forward: {table.new} is not the file that it "
                f"wrote for table {'.'.join(table.identifier)}. Restore it, or remove the parameter {MARK} of the rows "
                "of its tables, which then show what has moved."
            )
        base_hash = row.parameters.get(METADATA_HASH, "")
        update_row(row, read_version(table.base, storage), read_version(table.new, storage), self._swap.settings)
        row.parameters[MARK] = Mark.made(intent, number, owner_mark(), base_hash).text

    def _find(self, identifier: Identifier) -> ttypes.Table | None:
        try:
            return self._swap.read(identifier)
        except NoSuchTableError:
            return None


def _shown(row: ttypes.Table) -> tuple[str | None, str | None]:
    return row.parameters.get(METADATA_LOCATION), row.parameters.get(MARK)


def _is_marked(row: ttypes.Table | None, intent: Intent) -> bool:
    mark = None if row is None else Mark.of(row.parameters)
    return mark is not None and mark.transaction == intent.transaction_id


def _logged_end(intent: Intent, states: Sequence[RowState]) -> End:
    names = {".".join(each.identifier): state.value for each, state in zip(intent.tables, states, strict=True)}
    if is_committed(states):
        return End.COMMITTED
    if is_torn(states):
        logger.error(
            "Transaction %s is torn, as others committed on top of a part of it and to other tables of it, before it "
            "was committed. Those who follow have its change, the others have not: %s. Make the change of those again",
            intent.transaction_id,
            names,
        )
        return End.TORN
    logger.info("Transaction %s was taken back: %s", intent.transaction_id, names)
    return End.TAKEN_BACK
