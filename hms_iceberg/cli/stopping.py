"""Signals that end a command's work cleanly: what is at hand is finished first."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LOOK_SECONDS = 0.25  # how often one who waits looks whether a signal came


class Stop(threading.Event):
    """The event that ends the work: signals set it, and so may any thread.

    A handler runs in the main thread between any two of its instructions. If it took the event's lock, which that
    thread may hold, both would stand still for ever; so it only notes the number. One who waits looks at that again and
    again, as a signal that comes just before the wait, or to another thread, does not end it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number: int | None = None  # of the signal that set it, if one did

    def signalled(self, number: int, _frame: FrameType | None) -> None:
        self.number = number

    def is_set(self) -> bool:
        return self.number is not None or super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (left := end - time.monotonic()) > 0:
            super().wait(min(left, _LOOK_SECONDS))
        return self.is_set()


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """Has SIGTERM and SIGINT set an event while the context is open."""
    stop = Stop()
    before = {number: signal.signal(number, stop.signalled) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
