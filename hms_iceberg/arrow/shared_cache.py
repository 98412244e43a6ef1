"""Values computed once and shared by threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """Remembers what was computed for a key; a second thread that asks waits for the first. Errors are remembered.

    Args:
        size_of: bytes of a value, for the bound.
        max_bytes: how much is kept: what was not asked for longest is forgotten first. None keeps everything.
    """

    def __init__(self, size_of: Callable[[V], int] | None = None, max_bytes: int | None = None) -> None:
        self._lock = Lock()
        self._known: OrderedDict[K, Future[V]] = OrderedDict()
        self._sizes: dict[K, int] = {}
        self._size_of = size_of
        self._max_bytes = max_bytes

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """The value for a key, computed at the first call, and again if it was forgotten."""
        with self._lock:
            future = self._known.get(key)
            mine = future is None
            if future is None:
                future = self._known[key] = Future()
            self._known.move_to_end(key)
        if mine:
            try:
                value = compute()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(value)
                self._keep_within_bound(key, value)
        return future.result()

    def forget(self, key: K) -> None:
        """Drops what is known for a key, so that it is computed anew if it is asked for again."""
        with self._lock:
            self._known.pop(key, None)
            self._sizes.pop(key, None)

    def _keep_within_bound(self, key: K, value: V) -> None:
        if self._size_of is None or self._max_bytes is None:
            return
        size = self._size_of(value)
        with self._lock:
            self._sizes[key] = size
            total = sum(self._sizes.values())
            for old in list(self._known):
                if total <= self._max_bytes:
                    return
                if old != key and old in self._sizes:
                    del self._known[old]
                    total -= self._sizes.pop(old)
