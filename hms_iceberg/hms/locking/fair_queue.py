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

PATIENCE_SECONDS = 3.0
"""Who waits for longer is told for whom."""

_LEAVING_SECONDS = 1.0


class Place:
    """A place in a queue: taken on creation, given up by `leave`."""

    def __init__(self, queue: FairQueue, key: Hashable) -> None:
        self._queue = queue
        self._key = key
        self._first_in_line = threading.Event()
        self.holder = threading.current_thread().name
        self.since = time.monotonic()
        self.is_leaving = False

    def is_first(self) -> bool:
        """Whether nobody is before this one; one who only waits for an answer before it leaves is waited for."""
        return self.ahead() == 0 or (self.is_next_to_one_who_leaves() and self._first_in_line.wait(_LEAVING_SECONDS))

    def is_next_to_one_who_leaves(self) -> bool:
        """Whether the only one before this one waits for an answer and does nothing else."""
        return self._queue._is_next_to_one_who_leaves(self._key, self)

    def ahead(self) -> int:
        """How many are before this one; 0 when it is the first."""
        return self._queue._ahead(self._key, self)

    def wait(self, timeout: float, tell: Callable[[str], None] = lambda why: None) -> None:
        """Waits until it is the first.

        Args:
            timeout: seconds.
            tell: is told why, once, if the first takes long; a queue that moves is no reason to worry.

        Raises:
            LockTimeoutError: it did not come in time; the place is given up.
        """
        deadline, has_told = time.monotonic() + timeout, False
        while not self._first_in_line.wait(max(0.0, min(deadline - time.monotonic(), PATIENCE_SECONDS))):
            if time.monotonic() >= deadline:
                break
            first = self._queue._first(self._key)
            if not has_told and first is not None and time.monotonic() - first.since >= PATIENCE_SECONDS:
                has_told = True
                tell(f"Other threads of this process commit to the same table ({self._others()}).")
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

    def _is_next_to_one_who_leaves(self, key: Hashable, place: Place) -> bool:
        with self._mutex:
            places = self._places.get(key)
            return places is not None and len(places) > 1 and places[1] is place and places[0].is_leaving

    def _first(self, key: Hashable) -> Place | None:
        with self._mutex:
            places = self._places.get(key)
            return places[0] if places else None

    def _forget_all(self) -> None:
        """In the child of a fork: the threads that held places are not there."""
        self._mutex = threading.Lock()
        self._places = {}
