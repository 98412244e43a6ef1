"""Heartbeats of the locks that this process holds, sent by one thread in the background.

A metastore drops a lock without a heartbeat for `hive.txn.timeout` (five minutes by default). Most commits
are over long before, so a lock costs an entry in a list here, and no thread and no call.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hms_iceberg.errors import IcebergError, MetastoreUnavailableError

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


@dataclass(eq=False)
class Heartbeat:
    """The heartbeat of one lock.

    `beat` sends it, and raises if the metastore cannot be reached or does not know the lock; the first is due after
    half of `interval` seconds; `describe` names the lock in the log.
    """

    beat: Callable[[], None]
    interval: float
    describe: str
    last_sign: float = field(default_factory=time.monotonic)
    due: float = 0.0
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.due = self.last_sign + self.interval / 2

    @property
    def is_alive(self) -> bool:
        """Whether the lock is believed to be held still: nothing failed, and the last heartbeat is not too long ago."""
        return self.failure is None and time.monotonic() - self.last_sign <= self.interval

    def send(self) -> None:
        """Sends a heartbeat now, and notes whether it arrived."""
        try:
            self.beat()
        except MetastoreUnavailableError as error:
            now = time.monotonic()
            if now - self.last_sign > self.interval:
                self.failure = error
            self.due = now + min(_RETRY_SECONDS, self.interval / 4)
            logger.warning("No sign of life of %s could be sent: %s", self.describe, error)
        except IcebergError as error:
            self.failure = error
            logger.warning("The metastore does not keep %s any more: %s", self.describe, error)
        else:
            self.last_sign = time.monotonic()
            self.due = self.last_sign + self.interval / 2


class HeartbeatThread:
    """Sends the heartbeats of all locks; starts with the first lock and ends when there has been none for a while."""

    def __init__(self, idle_seconds: float = 30.0) -> None:
        self._idle_seconds = idle_seconds
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._beats: list[Heartbeat] = []
        self._running = False
        self._wakes_at = 0.0

    def add(self, beat: Heartbeat) -> None:
        with self._changed:
            self._beats.append(beat)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="hms-iceberg-heartbeat", daemon=True).start()
            elif beat.due < self._wakes_at:
                self._changed.notify()

    def remove(self, beat: Heartbeat) -> None:
        """Sends this one no more; one that is on its way may still arrive."""
        with self._changed:
            if beat in self._beats:
                self._beats.remove(beat)

    def _wait(self, seconds: float) -> bool:
        """Waits so long, or until a lock is added that needs a heartbeat before that."""
        self._wakes_at = time.monotonic() + seconds
        is_woken = self._changed.wait(seconds)
        self._wakes_at = 0.0
        return is_woken

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._beats and not self._wait(self._idle_seconds) and not self._beats:
                    self._running = False
                    return
                now = time.monotonic()
                due = [beat for beat in self._beats if beat.due <= now and beat.failure is None]
                if not due:
                    next_due = min((beat.due for beat in self._beats if beat.failure is None), default=now + 60)
                    self._wait(max(0.0, next_due - now))
                    continue
            for beat in due:
                beat.send()


HEARTBEATS = HeartbeatThread()
