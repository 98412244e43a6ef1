"""The lease of a commit to several tables, and the moves of its owner."""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hms_iceberg.encryption.encrypted_tables import METADATA_HASH
from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcebergError,
    StaleBaseError,
    UnsupportedError,
)
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.commit.pointer_kinds import TableSwap
from hms_iceberg.hms.commit.several_tables.finishing import End, Finisher
from hms_iceberg.hms.commit.several_tables.locks import SeveralLocks
from hms_iceberg.hms.commit.several_tables.unfinished_transactions import UnfinishedTransactions
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.transaction_marks import MARK, Mark, owner_mark
from hms_iceberg.metastore import Identifier, TablePointer, TableSwitch
from hms_iceberg.transaction.intents import IntendedTable, Intent

logger = logging.getLogger(__name__)


class HiveSeveralLease:
    """Implements `SeveralLease` for the rows of lower-case names."""

    def __init__(
        self,
        properties: Mapping[Identifier, Mapping[str, str]],
        swap: TableSwap,
        locks: LockChoice,
        unfinished: UnfinishedTransactions,
    ) -> None:
        self._properties = properties
        self._swap = swap
        self._locks = locks
        self._unfinished = unfinished
        self._storage = unfinished.storage
        self._held: SeveralLocks | None = None
        self._is_granted = False

    @property
    def blocks_others(self) -> bool:
        """Whether this commit holds the locks, or waits for them in their queues."""
        return self._held is not None

    def load(self, identifier: Identifier) -> TablePointer:
        return self._unfinished.pointer(self._swap.read(_lower(identifier)))

    def acquire(self) -> None:
        """Waits for the locks, in the places that an earlier attempt has taken."""
        if not self._is_granted:
            self._new_locks().acquire()
            self._is_granted = True

    def release(self) -> None:
        """Releases the locks; a second call does nothing."""
        held, self._held, self._is_granted = self._held, None, False
        if held is not None:
            held.release()

    def swap(self, switches: Sequence[TableSwitch]) -> None:
        switches = [replace(each, identifier=_lower(each.identifier)) for each in switches]
        self._try_acquire()
        rows = [self._swap.read(each.identifier) for each in switches]
        self._finish_others(switches, rows)
        self._check_bases(switches, rows)
        intent = Intent(str(uuid.uuid4()), tuple(map(_intended, switches)))
        marks = self._marks(intent, rows)
        intent.write(self._storage)
        try:
            for switch, row, mark in zip(switches, rows, marks, strict=True):
                self._move(switch, row, mark)
        except Exception as error:  # an interrupted one is finished by whoever meets it
            self._settle(intent, error)
        else:
            self._clean(intent, switches, rows)

    # ------------------------------------------------------------------------------------------- before

    def _new_locks(self) -> SeveralLocks:
        if self._held is None:
            self._held = SeveralLocks(self._locks, self._properties)
        return self._held

    def _try_acquire(self) -> None:
        if self._is_granted:
            return
        if not self._new_locks().try_acquire():
            raise CommitFailedError(f"Cannot commit to tables {self._names} yet: another commit is under way.")
        self._is_granted = True

    def _finish_others(self, switches: Sequence[TableSwitch], rows: Sequence[ttypes.Table]) -> None:
        """Finishes transactions that others have left on the tables, without the locks of this one."""
        for switch, row in zip(switches, rows, strict=True):
            mark = self._unfinished.needs_finishing(row)
            if mark is not None:
                self.release()
                self._unfinished.finish(switch.identifier, mark)
                raise CommitFailedError(
                    f"Cannot commit to tables {self._names} yet: another transaction on {'.'.join(switch.identifier)} "
                    "had to be finished."
                )

    def _check_bases(self, switches: Sequence[TableSwitch], rows: Sequence[ttypes.Table]) -> None:
        for switch, row in zip(switches, rows, strict=True):
            location = self._swap.pointer(row).metadata_location
            if location != switch.base.location:
                raise StaleBaseError(
                    f"Cannot commit to table {'.'.join(switch.identifier)}: it moved on since the change was made. "
                    f"Expected the metadata file {switch.base.location}, found {location}. Replay the change on the "
                    "newer version."
                )

    def _marks(self, intent: Intent, rows: Sequence[ttypes.Table]) -> list[dict[str, str]]:
        limit, owner = self._swap.settings.max_value_length, owner_mark()
        marks = []
        for number, row in enumerate(rows):
            text = Mark.made(intent, number, owner, (row.parameters or {}).get(METADATA_HASH, "")).text
            if limit and len(text) > limit:
                raise UnsupportedError(
                    f"Cannot commit to tables {self._names} at once: what a row has to say of it takes {len(text)} "
                    f"characters, and the metastore's database holds {limit} (iceberg.hive.table-property-max-size). "
                    "Commit to one table after the other, or give the tables shorter locations."
                )
            marks.append({MARK: text})
        return marks

    # ------------------------------------------------------------------------------------------- moves

    def _move(self, switch: TableSwitch, row: ttypes.Table, mark: Mapping[str, str]) -> None:
        lock, compares = self._new_locks().of(switch.identifier), self._new_locks().compares(switch.identifier)
        self._swap.commit(switch.identifier, switch.base, switch.new, lock, compares, row, mark)

    def _clean(self, intent: Intent, switches: Sequence[TableSwitch], rows: Sequence[ttypes.Table]) -> None:
        """Removes the marks once all is committed. A failure is no failure of the commit: whoever meets it goes on."""
        finisher = Finisher(self._swap, self._storage, self._new_locks())
        try:
            for switch, row in zip(switches[:-1], rows[:-1], strict=True):
                if not finisher.alter(switch.identifier, row, _without_mark(row)):  # others committed on top
                    finisher.finish(intent, owner=True)
                    return
            intent.forget(self._storage)
        except IcebergError as error:
            logger.warning("The marks of the commit to %s are left to whoever meets them: %s", self._names, error)

    def _settle(self, intent: Intent, error: Exception) -> None:
        """Finds out what became of a commit whose moves ended in an error; returns if it was made all the same."""
        is_certain = isinstance(error, IcebergError) and not isinstance(error, CommitStateUnknownError)
        locks = self._new_locks()
        try:
            end = Finisher(self._swap, self._storage, locks).finish(intent, owner=is_certain)
        except IcebergError as again:
            raise self._unknown(intent, f"{error} Then: {again}") from error
        if end is End.COMMITTED:
            logger.warning("The commit to %s was made, although it ended in an error: %s", self._names, error)
            return
        self.release()
        if end is End.TORN:
            raise self._unknown(intent, f"It is torn: others committed on top of a part of it. {error}") from error
        if is_certain:
            raise error
        if not locks.compare:  # what is under way may arrive at any time
            raise self._unknown(intent, str(error)) from error
        raise CommitFailedError(f"Cannot commit to tables {self._names}: it was taken back. {error}") from error

    def _unknown(self, intent: Intent, why: str) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"Cannot tell whether the commit to tables {self._names} was made: {why} No file was deleted. Until it is "
            "finished, readers see the tables as they were, or as they are to be, all of them alike; the next commit "
            f"to one of them finishes it. To find out, look then for {intent.tables[-1].new} in the metadata log of "
            f"table {'.'.join(intent.tables[-1].identifier)}."
        )

    @property
    def _names(self) -> str:
        return ", ".join(".".join(each) for each in self._properties)


def _lower(identifier: Identifier) -> Identifier:
    return tuple(each.lower() for each in identifier)


def _intended(switch: TableSwitch) -> IntendedTable:
    return IntendedTable(
        switch.identifier, switch.new.uuid or "", switch.base.location, switch.new.location, switch.checksum
    )


def _without_mark(row: ttypes.Table) -> ttypes.Table:
    new = copy.copy(row)
    new.parameters = {key: value for key, value in row.parameters.items() if key != MARK}
    return new
