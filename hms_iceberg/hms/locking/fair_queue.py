"""First come, first served among the threads of this process, per table.

Only the first of them asks the metastore for its lock: the others would be requests for the server, and would be
granted it in no order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable

from hms_iceberg.errors import LockTimeoutError


class Place:
    """A place in a queue: taken on creation, given up by `leave`."""

    def __init__(self, queue: FairQueue, key: Hashable) -> None:
        self._queue = queue
        self._key = key
        self._first_in_line = threading.Event()
        self.holder = threading.current_thread().name
        self.since = time.monotonic()

    def ahead(self) -> int:
        """How many are before this one; 0 when it is the first."""
        return self._queue._ahead(self._key, self)

    def wait(self, timeout: float) -> None:
        """Waits until it is the first.

        Args:
            timeout: seconds.

        Raises:
            LockTimeoutError: it did not come in time; the place is given up.
        """
        if self._first_in_line.wait(max(0.0, timeout)):
            return
        first = self._queue._first(self._key)
        ahead = self.ahead()
        self.leave()
        held = f"; thread {first.holder!r} has held it for {time.monotonic() - first.since:.0f} s" if first else ""
        raise LockTimeoutError(
            f"Waited {timeout:.1f} s for the other threads of this process that commit to the same table "
            f"({ahead} before this one{held})."
        )

    def leave(self) -> None:
        """Gives the place up, whether it waits or is the first; twice is no error."""
        self._queue._leave(self._key, self)


class FairQueue:
    """Queues by key. A key without anybody in it takes no memory."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._places: dict[Hashable, deque[Place]] = {}

    def enter(self, key: Hashable) -> Place:
        """Takes the next place in the queue of `key`."""
        place = Place(self, key)
        with self._mutex:
            places = self._places.setdefault(key, deque())
            places.append(place)
            if places[0] is place:
                place._first_in_line.set()
        return place

    def _leave(self, key: Hashable, place: Place) -> None:
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

    def _ahead(self, key: Hashable, place: Place) -> int:
        with self._mutex:
            places = self._places.get(key, ())
            return next((index for index, other in enumerate(places) if other is place), 0)

    def _first(self, key: Hashable) -> Place | None:
        with self._mutex:
            places = self._places.get(key)
            return places[0] if places else None

    def _forget_all(self) -> None:
        """In the child of a fork: the threads that held places are not there."""
        self._mutex = threading.Lock()
        self._places = {}
