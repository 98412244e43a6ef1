"""The lock that keeps other writers of a table away during a swap: the metastore's, or one of this machine alone."""

from __future__ import annotations

import logging
from typing import Protocol

from hms_iceberg.errors import LockTimeoutError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.locking.host_lock import LocalMutex
from hms_iceberg.metastore import Identifier

logger = logging.getLogger(__name__)


class WriterLock(Protocol):
    """A lock that one writer of a table takes; used by one thread."""

    @property
    def excludes_all(self) -> bool:
        """Whether the lock also excludes writers on other machines."""
        ...

    def begin(self, with_row: bool) -> None:
        """Asks for the lock, and `with_row` for the table's row, without waiting; does nothing for a lock that needs
        no request."""
        ...

    def take_row(self) -> tuple[ttypes.Table, float] | None:
        """The table's row under the lock, and the earliest time at which it was read (`time.monotonic`), if `begin`
        asked for it; given once."""
        ...

    def try_acquire(self) -> bool:
        """Takes the lock if it is free; otherwise queues for it, until `acquire` or `release`."""
        ...

    def acquire(self) -> None:
        """Takes the lock, waiting in the queue; does nothing if it is taken already."""
        ...

    def ensure_active(self) -> None:
        """Raises LockError if the lock was lost."""
        ...

    def release(self, wait: bool = True) -> None:
        """Releases the lock, or gives up the place in its queue; a second call does nothing."""
        ...


class LocalLock:
    """The lock of compare-and-swap: the server compares, and the writers of this machine do not disturb each other."""

    excludes_all = False

    def __init__(self, server: str, identifier: Identifier, timeout: float) -> None:
        self._name = ".".join(identifier)
        self._mutex = LocalMutex(server, identifier)
        self._timeout = timeout

    def begin(self, with_row: bool) -> None:
        """Does nothing: this lock is not waited for long."""

    def take_row(self) -> None:
        """None: no row is read with this lock."""

    def try_acquire(self) -> bool:
        return self._mutex.try_acquire()

    def acquire(self) -> None:
        try:
            self._mutex.acquire(
                self._timeout, lambda why: logger.warning("Waiting to commit to table %s. %s", self._name, why)
            )
        except BaseException as error:
            self.release()
            if isinstance(error, LockTimeoutError):
                raise LockTimeoutError(f"Cannot commit to table {self._name}: {error} Try again later.") from error
            raise

    def ensure_active(self) -> None:
        """Does nothing: this lock cannot be lost."""

    def release(self, wait: bool = True) -> None:
        """Lets the next writer in."""
        self._mutex.release()
