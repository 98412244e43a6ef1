"""A cache that keeps what was used last, up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Keeps values under their keys; those that were not used for longest go first. Safe for threads.

    Args:
        bound: the highest sum of costs.
        cost: what a value costs, 1 by default.
    """

    def __init__(self, bound: int, cost: Callable[[T], int] = lambda _: 1) -> None:
        self._bound = bound
        self._cost = cost
        self._used = 0
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value of a key, if it is kept."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> T:
        """Keeps a value, unless it costs too much alone; returns it.

        Args:
            key: the key.
            value: the value.
        """
        cost = self._cost(value)
        with self._lock:
            old = self._values.pop(key, None)
            if old is not None:
                self._used -= self._cost(old)
            if cost > self._bound // 4:
                return value
            self._values[key] = value
            self._used += cost
            while self._used > self._bound:
                _, dropped = self._values.popitem(last=False)
                self._used -= self._cost(dropped)
        return value

    def pop(self, key: Hashable) -> T | None:
        """Removes a value, and returns it."""
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._used -= self._cost(value)
            return value

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if it is not kept.

        Args:
            key: the key.
            make: makes the value.
        """
        found = self.get(key)
        return self.put(key, make()) if found is None else found
