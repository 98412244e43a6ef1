"""Values computed once and shared by threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Remembers what was computed for a key; a second thread that asks waits for the first. Errors are remembered."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[K, Future[V]] = {}

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """The value for a key, computed at the first call."""
        with self._lock:
            future = self._known.get(key)
            mine = future is None
            if future is None:
                future = self._known[key] = Future()
        if mine:
            try:
                future.set_result(compute())
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def forget(self, key: K) -> None:
        """Drops what is known for a key, so that it is computed anew if it is asked for again."""
        with self._lock:
            self._known.pop(key, None)
