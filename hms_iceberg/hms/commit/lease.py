"""A commit's lease of one row of the metastore: its lock, or the place in the lock's queue, over all attempts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Generic

from hms_iceberg.errors import (
    CommitFailedError,
    IcebergError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreUnavailableError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.capability import MODIFIED, expectation
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.commit.pointer_swap import Guard, PointerSwap
from hms_iceberg.hms.commit.several_tables.unfinished_transactions import UnfinishedTransactions
from hms_iceberg.hms.connection.answers import ensure_made, polls
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.locking.writer_lock import WriterLock
from hms_iceberg.hms.rows.table_rows import METADATA_LOCATION
from hms_iceberg.metastore import Identifier, TablePointer, V

# Those who set a parameter of a table without its lock would lose it to a row that was read long before.
_ROW_SECONDS = 1.0


class HiveLease(Generic[V]):
    """Implements `Lease` for the row of a lower-case name."""

    def __init__(
        self,
        identifier: Identifier,
        swap: PointerSwap[V],
        locks: LockChoice,
        properties: Mapping[str, str],
        unfinished: UnfinishedTransactions | None = None,
    ) -> None:
        self._identifier = identifier
        self._swap: PointerSwap[V] = swap
        self._locks = locks
        self._properties = properties
        self._unfinished = unfinished
        self._mode = locks.mode(properties)
        self._lock: WriterLock | None = None
        self._is_granted = False
        self._row: tuple[ttypes.Table, float] | None = None
        self._refuses_late = False

    @property
    def refuses_late(self) -> bool:
        """Whether the server compared for the last swap; False after a create, as its name may be free again."""
        return self._refuses_late

    @property
    def blocks_others(self) -> bool:
        """Whether this commit holds the lock, or waits for it in the queue."""
        return self._lock is not None

    def load(self) -> TablePointer:
        row = self._swap.read(self._identifier)
        self._row = (row, time.monotonic()) if self._is_granted else None
        return self._swap.pointer(row) if self._unfinished is None else self._unfinished.pointer(row)

    def acquire(self) -> None:
        """Waits for the lock, in the place that an earlier attempt has taken."""
        if not self._is_granted:
            self._new_lock().acquire()
            self._is_granted = True

    def swap(self, base: V | None, new: V) -> None:
        self._refuses_late = False
        if base is None:
            self._locks.check_name(self._identifier, self._swap.lock_properties(new))
            self._swap.create(self._identifier, new)
            return
        self._follow_mode(base)
        is_optimistic = not self._is_granted
        lock = self._try_acquire() if is_optimistic else self._granted_lock()
        self._refuses_late = compares = self._locks.compares(lock)
        try:
            row = (self._recent_row() if compares else None) or self._swap.read(self._identifier)
            self._finish_others(row)
            self._swap.commit(self._identifier, base, new, lock, compares, row)
        except BaseException as error:
            # The base was read before the lock was taken; what is read under the lock now is what counts.
            if not (isinstance(error, CommitFailedError) and is_optimistic and _keeps_all_out(lock)):
                self.release()
            raise

    def rename(self, target: Identifier) -> None:
        """Gives the row another name, once the lease is acquired."""
        if target == self._identifier:
            raise TableAlreadyExistsError(f"Cannot rename {'.'.join(target)} to itself. Choose another name.")
        self._locks.check_name(target, self._properties)
        self._finish_others(self._swap.read(self._identifier))
        lock = self._granted_lock()
        swap = self._swap
        rename_row(swap.client, self._identifier, target, swap.renamable, lock, self._locks.compares(lock))

    def release(self) -> None:
        """Releases the locks; a second call does nothing."""
        lock, self._lock = self._lock, None
        self._is_granted, self._row = False, None
        if lock is not None:
            lock.release()

    # ------------------------------------------------------------------------------------------- details

    def _new_lock(self) -> WriterLock:
        if self._lock is None:
            self._lock = self._locks.new_lock(self._identifier, self._mode)
        return self._lock

    def _granted_lock(self) -> WriterLock:
        assert self._lock is not None and self._is_granted
        return self._lock

    def _try_acquire(self) -> WriterLock:
        lock = self._new_lock()
        if not lock.try_acquire():
            # What is before this commit will make its base stale. The next attempt waits in the place that it has now.
            raise CommitFailedError(
                f"Cannot commit to {self._swap.named(self._identifier)} yet: another commit is under way."
            )
        self._is_granted = True
        return lock

    def _follow_mode(self, base: V) -> None:
        """Adopts the lock mode that the table's properties now ask for, which another writer may have changed."""
        mode = self._locks.mode(self._swap.lock_properties(base))
        if mode == self._mode:
            return
        held, self._mode = self._lock is not None, mode
        self.release()
        if held:
            raise CommitFailedError(
                f"Cannot commit to {self._swap.named(self._identifier)} yet: its locks were switched meanwhile."
            )

    def _finish_others(self, row: ttypes.Table) -> None:
        """Finishes a transaction on several tables that others have left on this one, without this commit's lock."""
        mark = None if self._unfinished is None else self._unfinished.needs_finishing(row)
        if self._unfinished is None or mark is None:
            return
        self.release()
        self._unfinished.finish(self._identifier, mark)
        raise CommitFailedError(
            f"Cannot commit to {self._swap.named(self._identifier)} yet: a transaction on it had to be finished."
        )

    def _recent_row(self) -> ttypes.Table | None:
        """The row that was read under the lock a moment ago; given once."""
        (row, read_at), self._row = self._row or (None, 0.0), None
        return row if time.monotonic() - read_at < _ROW_SECONDS else None


def _keeps_all_out(lock: WriterLock) -> bool:
    try:
        lock.ensure_active()
    except LockError:
        return False
    return lock.excludes_all


def rename_row(
    client: HmsClient,
    source: Identifier,
    target: Identifier,
    pointer_of: Callable[[ttypes.Table], TablePointer],
    guard: Guard,
    compare: bool,
) -> None:
    """Gives a row another, lower-case name; with `compare` the server compares once more while it alters. Only a
    MetastoreAnswerLostError leaves the outcome unknown."""
    row = client.get_table(*source)
    pointer = pointer_of(row)
    row.dbName, row.tableName = target
    # Hive 4 sets this if it made an external table of a managed one, and then gives the row another location.
    row.parameters.pop("TRANSLATED_TO_EXTERNAL", None)
    name, new_name = ".".join(source), ".".join(target)

    def is_at(place: Identifier) -> bool:
        return _location(client, place, pointer_of) == pointer.metadata_location

    def is_renamed() -> bool:
        return is_at(target) and _location(client, source, pointer_of) is None

    guard.ensure_active()
    environment = expectation(METADATA_LOCATION, pointer.metadata_location) if compare else {}
    try:
        client.alter_table(source[0], source[1], row, environment)
    except MetastoreAnswerLostError as error:
        if not any(_is_true(is_renamed) for _ in polls(name, compare)):
            ensure_made(error, f"rename of {name} to {new_name}", is_renamed)
    except MetastoreUnavailableError:
        raise  # nothing was sent
    except IcebergError as error:
        if is_renamed():
            return
        if isinstance(error, TableAlreadyExistsError) or is_at(target):
            raise TableAlreadyExistsError(
                f"Cannot rename {name}: {new_name} exists already. Choose another name."
            ) from error
        if MODIFIED in str(error):
            raise CommitFailedError(f"Cannot rename {name}: it was changed meanwhile. Try again.") from error
        raise


def _is_true(look: Callable[[], bool]) -> bool:
    """The result of a check; False if it fails."""
    try:
        return look()
    except IcebergError:
        return False


def _location(client: HmsClient, name: Identifier, pointer_of: Callable[[ttypes.Table], TablePointer]) -> str | None:
    try:
        return pointer_of(client.get_table(*name)).metadata_location
    except (NoSuchTableError, NoSuchViewError):
        return None
