"""Mutual exclusion of the writers of this machine: the threads of a process in order, then the processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from hms_iceberg.hms.locking.fair_queue import FairQueue, Place
from hms_iceberg.hms.locking.host_lock import HostLock
from hms_iceberg.metastore import Identifier

# After so many seconds another process of this machine is not waited for any more: the metastore decides.
_HOST_SECONDS = 10.0

FAIR_QUEUE = FairQueue()
os.register_at_fork(after_in_child=FAIR_QUEUE._forget_all)


class LocalMutex:
    """Lets one writer of a table on this machine in at a time.

    Args:
        server: the metastore.
        identifier: the table.
    """

    def __init__(self, server: str, identifier: Identifier) -> None:
        self._key = (server, *identifier)
        self._host = HostLock("/".join(self._key))
        self._place: Place | None = None

    def try_acquire(self) -> bool:
        """Takes it if nobody is before this writer; else keeps a place in the process's queue."""
        return self._enter().is_first() and self._host.try_acquire()

    def acquire(self, timeout: float, tell: Callable[[str], None] = lambda why: None) -> None:
        """Waits for the lock.

        Args:
            timeout: seconds.
            tell: is told why, once it takes long.

        Raises:
            LockTimeoutError: the threads before it took longer.
        """
        deadline = time.monotonic() + timeout
        self._enter().wait(timeout, tell)
        self._host.acquire(min(_HOST_SECONDS, max(0.0, deadline - time.monotonic())), tell)

    def announce_release(self) -> None:
        """Tells the next one that it is worth waiting a moment for the release."""
        if self._place is not None:
            self._place.is_leaving = True

    def release(self) -> None:
        """Lets the next one in; gives the place up if it was not taken yet."""
        self._host.release()
        place, self._place = self._place, None
        if place is not None:
            place.leave()

    def _enter(self) -> Place:
        if self._place is None:
            self._place = FAIR_QUEUE.enter(self._key)
        return self._place
