"""How a migration tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

LISTING = "Listing partitions"
FOOTERS = "Reading footers"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Progress(Protocol):
    """Told of each stage of a migration and how much of it is done."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`done` of `total` parts of a stage are done."""
        ...


def silent(stage: str, done: int, total: int) -> None:
    """Shows nothing.

    Args:
        stage: what is done.
        done: how much of it.
        total: of how much.
    """


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int, window: int = 4
) -> Iterator[Result]:
    """Computes a function over items in threads.

    At most `window` items a thread are under way or waiting, so that a failure stops the work early and results do not
    pile up.

    Args:
        function: gives the result for an item.
        items: the items.
        threads: number of threads.
        window: items in work for each thread at most.

    Returns:
        the results in the order of the items; the first error ends it.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        pending: list[Future[Any]] = [pool.submit(function, item) for item in islice(iterator, threads * window)]
        pending.reverse()
        try:
            while pending:
                yield pending.pop().result()
                for item in islice(iterator, 1):
                    pending.insert(0, pool.submit(function, item))
        finally:
            for future in pending:
                future.cancel()
