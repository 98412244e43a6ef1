"""Locks between the writers of this machine: those of one process wait for each other, and processes by a file.

They decide nothing: the lock or the comparison of the metastore does. They let processes of a machine wait for each
other without asking the server again and again, and without losing to each other. The kernel frees a file lock when its
holder dies.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable

from hms_iceberg.hms.locking.fair_queue import WARN_AFTER_SECONDS, FairQueue, QueuePlace
from hms_iceberg.metastore import Identifier
from hms_iceberg.private_files import shared_folder

# After so many seconds another process of this machine is not waited for any more: the metastore decides.
_HOST_SECONDS = 10.0

FAIR_QUEUE = FairQueue()
os.register_at_fork(after_in_child=FAIR_QUEUE._forget_all)


class LocalMutex:
    """Lets one writer of a table on this machine in at a time."""

    def __init__(self, server: str, identifier: Identifier) -> None:
        self._key = (server, *identifier)
        self._host = HostLock("/".join(self._key))
        self._place: QueuePlace | None = None

    def try_acquire(self) -> bool:
        """Takes it if nobody is before this writer; else keeps a place in the process's queue."""
        return self._enter().is_first() and self._host.try_acquire()

    def may_ask(self) -> bool:
        """Whether it is this writer's turn to ask the metastore: it has the lock, or the one before it has already
        sent its release of the metastore's lock, which the metastore receives first."""
        place = self._enter()
        return self._host.try_acquire() if place.ahead() == 0 else place.is_next_after_leaving()

    def acquire(self, timeout: float, warn: Callable[[str], None] = lambda why: None) -> None:
        """Waits `timeout` seconds for the lock; `warn` is called with the reason once it takes long."""
        deadline = time.monotonic() + timeout
        self._enter().wait(timeout, warn)
        self._host.acquire(min(_HOST_SECONDS, max(0.0, deadline - time.monotonic())), warn)

    def announce_release(self) -> None:
        """Makes the next one wait a moment for the release."""
        if self._place is not None:
            self._place.is_leaving = True

    def release(self) -> None:
        """Lets the next one in; gives the place up if it was not taken yet."""
        self._host.release()
        place, self._place = self._place, None
        if place is not None:
            place.leave()

    def _enter(self) -> QueuePlace:
        if self._place is None:
            self._place = FAIR_QUEUE.enter(self._key)
        return self._place


logger = logging.getLogger(__name__)


class HostLock:
    """The lock of one key. If the system has no file locks it is always free."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._file: int | None = None

    def try_acquire(self) -> bool:
        if self._file is not None:
            return True
        file = self._open()
        if file is None:
            return True
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            return not isinstance(error, BlockingIOError)
        self._file = file
        return True

    def acquire(self, timeout: float, warn: Callable[[str], None] = lambda why: None) -> bool:
        """Waits `timeout` seconds for the lock; returns False if it was not free in time, when the caller goes on
        without it."""
        if self.try_acquire():
            return True
        file = self._open()
        if file is None:
            return True
        self._file = _Waiter(file).wait(timeout, warn)
        if self._file is None:
            logger.warning("Another process of this machine holds the file lock of %s for long", self._key)
        return self._file is not None

    def _open(self) -> int | None:
        """The file of the lock; None if there are no file locks."""
        try:
            import fcntl  # noqa: F401

            return os.open(shared_folder() / hashlib.sha256(self._key.encode()).hexdigest()[:32], _FLAGS, 0o600)
        except (ImportError, OSError) as error:
            logger.debug("No file lock for %s: %s", self._key, error)
            return None

    def release(self) -> None:
        """Frees it; twice is no error."""
        file, self._file = self._file, None
        if file is not None:
            _free(file)


class _Waiter:
    """Waits for a file lock in a thread, since the operating system has no such wait with a time-out.

    The system wakes it when its turn has come, in the order of the requests; nothing is asked again and again.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._mutex = threading.Lock()
        self._granted = threading.Event()
        self._given_up = False
        threading.Thread(target=self._run, name="hms-iceberg-host-lock", daemon=True).start()

    def wait(self, timeout: float, warn: Callable[[str], None]) -> int | None:
        """The locked file; None if it was not granted in time."""
        try:
            if not self._granted.wait(min(timeout, WARN_AFTER_SECONDS)) and timeout > WARN_AFTER_SECONDS:
                warn("Another process of this machine commits to the same table.")
                self._granted.wait(timeout - WARN_AFTER_SECONDS)
        except BaseException:
            with self._mutex:
                self._given_up = True
                if self._granted.is_set():
                    _free(self._file)
            raise
        with self._mutex:
            self._given_up = not self._granted.is_set()
        return None if self._given_up else self._file

    def _run(self) -> None:
        import fcntl

        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._mutex:
            if self._given_up:
                _free(self._file)
            else:
                self._granted.set()


def _free(file: int) -> None:
    import fcntl

    # Not by closing alone: a process that was forked meanwhile has the file open as well.
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
