"""Work on many items at once, in bounded memory however many there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.storage.filesystems import parse_location

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 1_000


def in_parallel(work: Callable[[T], R], items: Iterable[T], near: str, ahead: int = _AHEAD) -> Iterator[R]:
    """Works on some items, several at once.

    Args:
        work: what is done with each.
        items: the items, taken as they are needed.
        near: a location, which tells whether files are on this machine, or far, so that more are waited for at once.
        ahead: how many items may be worked on, or done and not taken yet.

    Returns:
        the results in the order of the items; an error of `work` is raised in its item's place.
    """
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
