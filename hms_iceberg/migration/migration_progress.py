"""Progress reports of a migration, and work in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

LISTING = "Listing partitions"
FOOTERS = "Reading footers"
_AHEAD = 4  # items for each thread that are under way or waiting

Item = TypeVar("Item")
Result = TypeVar("Result")


class Progress(Protocol):
    """A function that is called with each stage of a migration, and how many of its parts are done."""

    def __call__(self, stage: str, done: int, total: int) -> None: ...


def silent(stage: str, done: int, total: int) -> None: ...


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Computes a function over items in threads, in their order; few items are under way or waiting, so that the first
    error, which ends it, stops the work early."""
    iterator = iter(items)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        pending: list[Future[Any]] = [pool.submit(function, item) for item in islice(iterator, threads * _AHEAD)]
        pending.reverse()
        try:
            while pending:
                yield pending.pop().result()
                for item in islice(iterator, 1):
                    pending.insert(0, pool.submit(function, item))
        finally:
            for future in pending:
                future.cancel()
