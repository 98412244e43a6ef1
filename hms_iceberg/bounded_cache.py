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
# What processes that this one was forked from had in their caches. It is never let go: a frame of polars that is let go
# may wait for a lock that a thread of the parent held, and that thread is not here.
_OF_PARENTS: list[object] = []


class BoundedCache(Generic[T]):
    """Keeps values up to a sum of costs, none of more than `largest` (by default a quarter); those not used for longest
    go first. Safe for threads; a forked process begins with an empty one."""

    def __init__(self, bound: int, cost: Callable[[T], int] = lambda _: 1, largest: int | None = None) -> None:
        self._bound = bound
        self._cost = cost
        self._largest = bound // 4 if largest is None else largest
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        self._used = 0
        self._slots: OrderedDict[Hashable, tuple[T, int | None]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def size(self) -> int:
        """The sum of costs of what is kept now."""
        return self._used

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                return None
            self._slots.move_to_end(key)
            return slot[0]

    def put(self, key: Hashable, value: T) -> T:
        """Keeps a value, unless it costs too much alone; returns it."""
        cost = self._cost(value)
        with self._lock:
            self._drop(key)
            if cost <= self._largest and self._make_room(cost, value):
                self._keep(key, value, cost)
        return value

    def pop(self, key: Hashable) -> T | None:
        with self._lock:
            return self._drop(key)

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if it is not kept."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found

    def get_or_put(self, key: Hashable, value: T) -> T:
        """The value of a key, which is the given one if there is none; it stays until it is weighed."""
        with self._lock:
            if key not in self._slots:
                self._slots[key] = value, None
            self._slots.move_to_end(key)
            return self._slots[key][0]

    def weigh(self, key: Hashable, value: T) -> None:
        """Finds out again what a value costs, if it is kept still; others go for it."""
        cost = self._cost(value)
        with self._lock:
            if self._drop(key) is not None:
                self._make_room(cost, value)
                self._keep(key, value, cost)

    def clear(self) -> None:
        with self._lock:
            self._slots.clear()
            self._used = 0

    def _gives_way(self, kept: T, other: T) -> bool:
        """Whether a value may go so that another one is kept."""
        return True

    def _keep(self, key: Hashable, value: T, cost: int) -> None:
        self._slots[key] = value, cost
        self._used += cost

    def _drop(self, key: Hashable) -> T | None:
        value, cost = self._slots.pop(key, (None, None))
        self._used -= cost or 0
        return value

    def _make_room(self, cost: int, value: T) -> bool:
        """Drops as much as a new value needs; returns whether there is room for it."""
        excess, gone = self._used + cost - self._bound, []
        for key, (kept, its_cost) in self._slots.items():
            if excess <= 0 or not self._gives_way(kept, value):
                break
            if its_cost is not None:
                gone.append(key)
                excess -= its_cost
        for key in gone:
            self._drop(key)
        return excess <= 0


def _begin_all() -> None:
    for cache in list(_ALL):
        _OF_PARENTS.append(cache._slots)
        cache._begin()


os.register_at_fork(after_in_child=_begin_all)
