"""A writer's turn on this machine: the threads of a process in order, then the processes of the machine."""

from __future__ import annotations

import os
import time

from hms_iceberg.hms.fair_queue import FairQueue, Place
from hms_iceberg.hms.host_lock import HostLock
from hms_iceberg.metastore import Identifier

# After so many seconds another process of this machine is not waited for any more: the metastore decides.
_HOST_SECONDS = 10.0

FAIR_QUEUE = FairQueue()
os.register_at_fork(after_in_child=FAIR_QUEUE._forget_all)


class LocalTurn:
    """The turn of one writer of a table.

    Args:
        server: the metastore.
        identifier: the table.
    """

    def __init__(self, server: str, identifier: Identifier) -> None:
        self._key = (server, *identifier)
        self._host = HostLock("/".join(self._key))
        self._place: Place | None = None

    def try_take(self) -> bool:
        """Takes the turn if nobody is before this writer; else it keeps its place in the process's queue."""
        return self._enter().ahead() == 0 and self._host.try_acquire()

    def take(self, timeout: float) -> None:
        """Waits for the turn.

        Args:
            timeout: seconds.

        Raises:
            LockTimeoutError: the threads before it took longer.
        """
        deadline = time.monotonic() + timeout
        self._enter().wait(timeout)
        self._host.acquire(min(_HOST_SECONDS, max(0.0, deadline - time.monotonic())))

    def leave(self) -> None:
        """Lets the next one in; gives the place up where the turn has not come."""
        self._host.release()
        place, self._place = self._place, None
        if place is not None:
            place.leave()

    def _enter(self) -> Place:
        if self._place is None:
            self._place = FAIR_QUEUE.enter(self._key)
        return self._place
