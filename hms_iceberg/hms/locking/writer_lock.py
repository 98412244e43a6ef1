"""The lock that keeps other writers of a table away during a swap: the metastore's, or one of this machine alone."""

from __future__ import annotations

import logging
from typing import Protocol

from hms_iceberg.hms.locking.host_lock import HostLock
from hms_iceberg.metastore import Identifier

logger = logging.getLogger(__name__)


class WriterLock(Protocol):
    """A lock that one writer of a table takes; used by one thread."""

    @property
    def excludes_all(self) -> bool:
        """Whether the lock also excludes writers on other machines."""
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

    def release(self) -> None:
        """Releases the lock, or gives up the place in its queue; a second call does nothing."""
        ...


class LocalLock:
    """The lock of compare-and-swap: the server compares, and the writers of this machine do not disturb each other."""

    excludes_all = False

    def __init__(self, server: str, identifier: Identifier, timeout: float) -> None:
        self._name = ".".join(identifier)
        self._host = HostLock("/".join((server, *identifier)))
        self._timeout = timeout

    def try_acquire(self) -> bool:
        return self._host.try_acquire()

    def acquire(self) -> None:
        """Waits for the other writers of this machine, though not for long: the server compares."""
        self._host.acquire(
            self._timeout, lambda why: logger.warning("Waiting to commit to table %s. %s", self._name, why)
        )

    def ensure_active(self) -> None:
        """Does nothing: this lock cannot be lost."""

    def release(self) -> None:
        self._host.release()
