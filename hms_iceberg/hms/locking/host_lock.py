"""The turns of the writers of this machine, threads and processes alike: a file lock of each table.

They decide nothing: the lock or the comparison of the metastore does. They let writers of a machine wait for each other
without asking the server again and again, and without losing to each other. The kernel lets them in in the order in
which they came, and frees the lock when its holder dies.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable

from hms_iceberg.private_files import shared_folder

# A writer of this machine that has held the lock for so many seconds is not waited for any more: the metastore decides.
_HOST_SECONDS = 10.0
WARN_AFTER_SECONDS = 3.0
"""Whoever holds a lock for longer is told of; a queue that moves is no reason to worry."""

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
        os.utime(file)  # tells those who wait that the queue moves
        return True

    def acquire(self, timeout: float, warn: Callable[[str], None] = lambda why: None) -> bool:
        """Waits `timeout` seconds for the lock, as long as the queue moves; returns False if it was not free in time,
        when the caller goes on without it. `warn` is called once, with the reason, if the queue stands still."""
        if self.try_acquire():
            return True
        file = self._open()
        if file is None:
            return True
        self._file = _Waiter(file).wait(timeout, warn)
        if self._file is None:
            logger.warning("Another writer of this machine holds the file lock of %s for long", self._key)
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


class HostLocks:
    """The locks of several keys, always taken in one order, so that nobody waits for himself. Whoever waits for one of
    them has no lock of the metastore yet."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._locks = [HostLock(key) for key in sorted(keys)]

    def try_acquire(self) -> bool:
        if all(each.try_acquire() for each in self._locks):
            return True
        self.release()
        return False

    def acquire(self, timeout: float, warn: Callable[[str], None] = lambda why: None) -> bool:
        """Waits `timeout` seconds in all; see `HostLock.acquire`."""
        deadline = time.monotonic() + timeout
        return all(each.acquire(max(0.0, deadline - time.monotonic()), warn) for each in self._locks)

    def release(self) -> None:
        for each in reversed(self._locks):
            each.release()


class _Waiter:
    """Waits for a file lock in a thread, since the operating system has no such wait with a time-out. The system wakes
    it when its turn has come, in the order of the requests; nothing is asked again and again."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._mutex = threading.Lock()
        self._granted = threading.Event()
        self._given_up = False
        threading.Thread(target=self._run, name="hms-iceberg-host-lock", daemon=True).start()

    def wait(self, timeout: float, warn: Callable[[str], None]) -> int | None:
        """The locked file; None if it was not granted in time."""
        try:
            self._wait(time.monotonic() + timeout, warn)
        except BaseException:
            with self._mutex:
                self._given_up = True
                if self._granted.is_set():
                    _free(self._file)
            raise
        with self._mutex:
            self._given_up = not self._granted.is_set()
        return None if self._given_up else self._file

    def _wait(self, deadline: float, warn: Callable[[str], None]) -> None:
        has_warned = False
        while (left := deadline - time.monotonic()) > 0:
            if self._granted.wait(min(left, WARN_AFTER_SECONDS, _HOST_SECONDS)):
                return
            held_for = time.time() - os.fstat(self._file).st_mtime
            if held_for >= _HOST_SECONDS:
                return
            if held_for >= WARN_AFTER_SECONDS and not has_warned:
                has_warned = True
                warn("Another writer of this machine commits to the same table.")

    def _run(self) -> None:
        import fcntl

        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._mutex:
            if self._given_up:
                _free(self._file)
            else:
                os.utime(self._file)
                self._granted.set()


def _free(file: int) -> None:
    import fcntl

    # Not by closing alone: a process that was forked meanwhile has the file open as well.
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
