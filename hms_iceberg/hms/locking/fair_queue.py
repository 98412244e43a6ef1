"""First come, first served among the threads of this process, per table.

Only the first of them asks the metastore for its lock: the others would be requests for the server, and would be
granted it in no order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

from hms_iceberg.errors import LockTimeoutError

WARN_AFTER_SECONDS = 3.0
"""Waits for longer are logged, with whom they are for."""

_LEAVING_SECONDS = 1.0


class QueuePlace:
    """A place in a queue: taken on creation, given up by `leave`."""

    def __init__(self, queue: FairQueue, key: Hashable) -> None:
        self._queue = queue
        self._key = key
        self._first_in_line = threading.Event()
        self.holder = threading.current_thread().name
        self.since = time.monotonic()
        self.is_leaving = False

    def is_first(self) -> bool:
        """Whether nobody is before this one; a leaving one, which waits only for an answer, is waited for."""
        return self.ahead() == 0 or (self.is_next_after_leaving() and self._first_in_line.wait(_LEAVING_SECONDS))

    def is_next_after_leaving(self) -> bool:
        """Whether the only one before this one waits for an answer and does nothing else."""
        return self._queue._is_next_after_leaving(self._key, self)

    def ahead(self) -> int:
        """How many are before this one; 0 when it is the first."""
        return self._queue._ahead(self._key, self)

    def wait(self, timeout: float, warn: Callable[[str], None] = lambda why: None) -> None:
        """Waits until it is the first; raises LockTimeoutError, and gives the place up, after `timeout` seconds.

        `warn` is called once, with the reason, if the first takes long; a queue that moves is no reason to worry.
        """
        deadline, has_warned = time.monotonic() + timeout, False
        while not self._first_in_line.wait(max(0.0, min(deadline - time.monotonic(), WARN_AFTER_SECONDS))):
            if time.monotonic() >= deadline:
                break
            first = self._queue._first(self._key)
            if not has_warned and first is not None and time.monotonic() - first.since >= WARN_AFTER_SECONDS:
                has_warned = True
                warn(f"Other threads of this process commit to the same table ({self._others()}).")
        else:
            return
        others = self._others()
        self.leave()
        raise LockTimeoutError(
            f"Waited {timeout:.1f} s for the other threads of this process that commit to the same table ({others})."
        )

    def _others(self) -> str:
        first = self._queue._first(self._key)
        held = f"; thread {first.holder!r} has held it for {time.monotonic() - first.since:.0f} s" if first else ""
        return f"{self.ahead()} before this one{held}"

    def leave(self) -> None:
        """Gives the place up, whether it waits or is the first; twice is no error."""
        self._queue._leave(self._key, self)


class FairQueue:
    """Queues by key. A key without anybody in it takes no memory."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._places: dict[Hashable, deque[QueuePlace]] = {}

    def enter(self, key: Hashable) -> QueuePlace:
        place = QueuePlace(self, key)
        with self._mutex:
            places = self._places.setdefault(key, deque())
            places.append(place)
            if places[0] is place:
                place._first_in_line.set()
        return place

    def _leave(self, key: Hashable, place: QueuePlace) -> None:
        with self._mutex:
            places = self._places.get(key)
            if places is None or place not in places:
                return
            places.remove(place)
            if places:
                places[0].since = time.monotonic() if not places[0]._first_in_line.is_set() else places[0].since
                places[0]._first_in_line.set()
            else:
                del self._places[key]

    def _ahead(self, key: Hashable, place: QueuePlace) -> int:
        with self._mutex:
            places = self._places.get(key, ())
            return next((index for index, other in enumerate(places) if other is place), 0)

    def _is_next_after_leaving(self, key: Hashable, place: QueuePlace) -> bool:
        with self._mutex:
            places = self._places.get(key)
            return places is not None and len(places) > 1 and places[1] is place and places[0].is_leaving

    def _first(self, key: Hashable) -> QueuePlace | None:
        with self._mutex:
            places = self._places.get(key)
            return places[0] if places else None

    def _forget_all(self) -> None:
        """Empties the queues in the child of a fork, where the threads that held places are not."""
        self._mutex = threading.Lock()
        self._places = {}
