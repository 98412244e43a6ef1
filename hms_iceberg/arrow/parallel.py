"""Work of several threads: files or items side by side, in order and bounded memory; a cache that they share."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.bounded_cache import BoundedCache

T = TypeVar("T")


class Sized(Protocol):
    """Rows that know how much memory they take."""

    @property
    def nbytes(self) -> int: ...


B = TypeVar("B", bound=Sized)


class _Cancelled(Exception):
    """Stops a worker: the reader wants no more batches."""


class _Lane(Generic[B]):
    """The batches of one item that wait for the reader."""

    def __init__(self, limit: int, stop: threading.Event) -> None:
        self._limit = limit
        self._stop = stop
        self._changed = threading.Condition()
        self._batches: deque[tuple[B, int]] = deque()
        self._bytes = 0
        self._done = False
        self._error: BaseException | None = None

    def put(self, batch: B) -> None:
        """Hands a batch over; waits while enough of them wait already."""
        size = batch.nbytes
        with self._changed:
            while self._batches and self._bytes + size > self._limit and not self._stop.is_set():
                self._changed.wait()
            if self._stop.is_set():
                raise _Cancelled
            self._batches.append((batch, size))
            self._bytes += size
            self._changed.notify_all()

    def finish(self, error: BaseException | None) -> None:
        """Marks the lane as complete, with the error that ended it if there was one."""
        with self._changed:
            self._done = True
            self._error = error
            self._changed.notify_all()

    def wake(self) -> None:
        """Lets a waiting worker look at the stop signal."""
        with self._changed:
            self._changed.notify_all()

    def drain(self) -> Iterator[B]:
        """The batches in order; raises the worker's error if there was one."""
        while True:
            with self._changed:
                while not self._batches and not self._done:
                    self._changed.wait()
                if not self._batches:
                    if self._error is not None:
                        raise self._error
                    return
                batch, size = self._batches.popleft()
                self._bytes -= size
                self._changed.notify_all()
            yield batch


def default_workers(items: int, remote: bool = False) -> int:
    """The number of items to read at once: one a processor and at least two, for a remote store at least eight, and no
    more than there are."""
    processors = os.cpu_count() or 2
    return min(max(8 if remote else 2, processors), max(items, 1))


def read_in_order(items: Iterable[T], read: Callable[[T], Iterator[B]], workers: int, buffer_bytes: int) -> Iterator[B]:
    """Reads several items at once in threads, and yields their batches in the order of the items; `buffer_bytes` may
    wait over all of them. One worker reads without threads."""
    if workers <= 1:
        for item in items:
            yield from read(item)
        return
    stop = threading.Event()
    window = workers + 2
    lanes: deque[_Lane[B]] = deque()

    def work(item: T, lane: _Lane[B]) -> None:
        error: BaseException | None = None
        try:
            for batch in read(item):
                lane.put(batch)
        except _Cancelled:
            pass
        except BaseException as caught:
            error = caught
        lane.finish(error)

    own: set[int] = set()
    pool = ThreadPoolExecutor(
        workers, thread_name_prefix="iceberg-scan", initializer=lambda: own.add(threading.get_ident())
    )
    iterator = iter(items)
    try:
        exhausted = False
        while True:
            while not exhausted and len(lanes) < window:
                try:
                    item = next(iterator)
                except StopIteration:
                    exhausted = True
                    break
                lane: _Lane[B] = _Lane(max(buffer_bytes // window, 1), stop)
                lanes.append(lane)
                pool.submit(work, item, lane)
            if not lanes:
                return
            yield from lanes[0].drain()
            lanes.popleft()
    finally:
        stop.set()
        for lane in lanes:
            lane.wake()
        # Who forgets the generator leaves it to the garbage collector, which may run in one of its own threads.
        pool.shutdown(wait=threading.get_ident() not in own, cancel_futures=True)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """Remembers what was computed for a key, errors too; a second thread that asks waits for the first. Beyond
    `max_bytes` what was not asked for longest is forgotten first; None keeps everything."""

    def __init__(self, size_of: Callable[[V], int] | None = None, max_bytes: int | None = None) -> None:
        self._size_of = size_of
        bound = sys.maxsize if max_bytes is None else max_bytes
        self._known: BoundedCache[Future[V]] = BoundedCache(bound, self._bytes, largest=sys.maxsize)

    def get(self, key: K, compute: Callable[[], V]) -> V:
        mine: Future[V] = Future()
        future = self._known.get_or_put(key, mine)
        if future is mine:
            try:
                future.set_result(compute())
            except BaseException as error:
                future.set_exception(error)
            else:
                self._known.weigh(key, future)
        return future.result()

    def forget(self, key: K) -> None:
        self._known.pop(key)

    def resized(self, key: K) -> None:
        """The value of a key has another size than before: others may have to be forgotten."""
        future = self._known.get(key)
        if future is not None:
            self._known.weigh(key, future)

    def _bytes(self, future: Future[V]) -> int:
        return 0 if self._size_of is None else self._size_of(future.result())


# --------------------------------------------------------------------------------------------------------- items


R = TypeVar("R")
_AHEAD = 1_000


def in_parallel(work: Callable[[T], R], items: Iterable[T], near: str, ahead: int = _AHEAD) -> Iterator[R]:
    """Works on items in threads, at most `ahead` of them, more at once if the location `near` is remote; results, and
    an item's error, come in the items' order."""
    workers = default_workers(ahead, not parse_location(near).is_local)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="iceberg-care")
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
