"""A cache that keeps what was used last, up to a bound."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_ALL: WeakSet[BoundedCache[Any]] = WeakSet()


class BoundedCache(Generic[T]):
    """Keeps values under their keys up to a sum of costs; those that were not used for longest go first. Safe for
    threads.

    A process that was forked begins with an empty one: the thread that held the lock may not be there.
    """

    def __init__(self, bound: int, cost: Callable[[T], int] = lambda _: 1) -> None:
        self._bound = bound
        self._cost = cost
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        self._used = 0
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> T:
        """Keeps a value, unless it costs too much alone; returns it."""
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
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._used -= self._cost(value)
            return value

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if it is not kept."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found


def _begin_all() -> None:
    for cache in list(_ALL):
        cache._begin()


os.register_at_fork(after_in_child=_begin_all)
