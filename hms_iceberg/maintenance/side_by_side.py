"""Work on many items at once, in bounded memory however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.storage.filesystems import parse_location

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 1_000


def in_parallel(work: Callable[[T], R], items: Iterable[T], near: str) -> Iterator[R]:
    """The results for some items, in order, several at once.

    Args:
        work: what is done with each.
        items: the items, taken a thousand at a time.
        near: a location, which tells whether files are on this machine, or far, so that more are waited for at once.
    """
    workers = default_workers(_AT_ONCE, not parse_location(near).is_local)
    left = iter(items)
    with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-care") as pool:
        while some := list(islice(left, _AT_ONCE)):
            yield from pool.map(work, some)
