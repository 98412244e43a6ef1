"""Signals that end a command's work cleanly: what is at hand is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """The event that ends the work, and the number of the signal that set it, if one did."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.number: int | None = None

    def signalled(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self.event.set()


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
