"""Who keeps other writers of a table away: held by a thread, or parked between a conflict and the replay.

A commit that finds the lock taken, or its base stale once it has the lock, will be replayed at once. If it gave its
place in the queue up, it would wait a second time, so it is parked for the replay in the same thread.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from hms_iceberg.errors import CommitFailedError, LockTimeoutError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.locking.local_mutex import LocalMutex
from hms_iceberg.metastore import Identifier

_PARKED_SECONDS = 3.0
# Those who set a parameter of a table without its lock would lose it to a row that was read long before.
_ROW_SECONDS = 1.0


class Exclusion(Protocol):
    """What a writer holds while it swaps: the table's lock, or its turn in this process."""

    def try_acquire(self) -> bool:
        """Takes it if it is free; else keeps a place in its queue."""
        ...

    def acquire(self) -> None:
        """Takes it, waiting in the place that is kept, or in a new one."""
        ...

    def ensure_active(self) -> None:
        """Raises LockError where it was lost."""
        ...

    def linger(self, settled: Callable[[], bool]) -> None:
        """Has `release` keep it for as long as a request of its holder may arrive late and do harm."""
        ...

    def release(self) -> None:
        """Gives it, or the place in its queue, back."""
        ...


class Turn:
    """The exclusion of compare-and-swap: the writers of this machine one after the other.

    Args:
        server: the metastore.
        identifier: the table.
        timeout: seconds to wait.
    """

    def __init__(self, server: str, identifier: Identifier, timeout: float) -> None:
        self._name = ".".join(identifier)
        self._turn = LocalMutex(server, identifier)
        self._timeout = timeout

    def try_acquire(self) -> bool:
        """Takes the turn if nobody is before this writer."""
        return self._turn.try_acquire()

    def acquire(self) -> None:
        """Waits for the turn.

        Raises:
            LockTimeoutError: it did not come in time.
        """
        try:
            self._turn.acquire(self._timeout)
        except BaseException as error:
            self.release()
            if isinstance(error, LockTimeoutError):
                raise LockTimeoutError(f"Cannot commit to table {self._name}: {error} Try again later.") from error
            raise

    def ensure_active(self) -> None:
        """Nothing can take a turn away: the server compares."""

    def linger(self, settled: Callable[[], bool]) -> None:
        """A late request does no harm: the server compares."""

    def release(self) -> None:
        """Lets the next one in."""
        self._turn.release()


class _Parked:
    """An exclusion that waits for the replay, and is released where none comes."""

    def __init__(self, exclusion: Exclusion) -> None:
        self._exclusion: Exclusion | None = exclusion
        self._mutex = threading.Lock()
        self._timer = threading.Timer(_PARKED_SECONDS, self.release)
        self._timer.daemon = True
        self._timer.start()

    def take(self) -> Exclusion | None:
        """The exclusion; None where it was released by now."""
        self._timer.cancel()
        with self._mutex:
            exclusion, self._exclusion = self._exclusion, None
        return exclusion

    def release(self) -> None:
        """Releases it, unless it was taken."""
        exclusion = self.take()
        if exclusion is not None:
            exclusion.release()


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.held: dict[Identifier, Exclusion] = {}
        self.rows: dict[Identifier, tuple[ttypes.Table, float]] = {}
        self.parked: dict[Identifier, _Parked] = {}


class Exclusions:
    """The exclusions of one metastore's tables, by thread."""

    def __init__(self) -> None:
        self._of_thread = _OfThread()
        self._all_parked: weakref.WeakSet[_Parked] = weakref.WeakSet()
        _INSTANCES.add(self)

    def held(self, identifier: Identifier) -> Exclusion | None:
        """What this thread holds for the table now."""
        return self._of_thread.held.get(identifier)

    def keep_row(self, identifier: Identifier, row: ttypes.Table) -> None:
        """Remembers the table's row for the swap that follows, where this thread holds the table."""
        if identifier in self._of_thread.held:
            self._of_thread.rows[identifier] = (row, time.monotonic())

    def take_row(self, identifier: Identifier) -> ttypes.Table | None:
        """The row that was read a moment ago, since this thread holds the table; only once."""
        row, read_at = self._of_thread.rows.pop(identifier, (None, 0.0))
        return row if time.monotonic() - read_at < _ROW_SECONDS else None

    def adopt(self, identifier: Identifier) -> Exclusion | None:
        """What this thread parked for the table, which is its to hold or release again."""
        parked = self._of_thread.parked.pop(identifier, None)
        return None if parked is None else parked.take()

    @contextmanager
    def hold(self, identifier: Identifier, exclusion: Exclusion) -> Iterator[None]:
        """Holds an exclusion for the time of the context, and releases it unless it was parked meanwhile."""
        held = self._of_thread.held
        held[identifier] = exclusion
        self._of_thread.rows.pop(identifier, None)
        try:
            yield
        finally:
            self._of_thread.rows.pop(identifier, None)
            if held.pop(identifier, None) is not None:
                exclusion.release()

    def park(self, identifier: Identifier, error: CommitFailedError) -> CommitFailedError:
        """Keeps what this thread holds for the table until its replay, and tells the retry policy to make haste.

        Returns:
            `error`, to be raised.
        """
        parked = _Parked(self._of_thread.held.pop(identifier))
        self._of_thread.parked[identifier] = parked
        self._all_parked.add(parked)
        error.retry_at_once = True
        return error

    def release_parked(self) -> None:
        """Releases all that is parked, of every thread."""
        for parked in list(self._all_parked):
            parked.release()


_INSTANCES: weakref.WeakSet[Exclusions] = weakref.WeakSet()


@atexit.register
def _release_at_exit() -> None:
    for exclusions in list(_INSTANCES):
        exclusions.release_parked()
