"""Many small files read side by side, a batch after the other, if some may be unreadable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from hms_iceberg.errors import CorruptFileError, StorageError
from hms_iceberg.updates.machinery.update import FileReader

T = TypeVar("T")
_READERS = 8
_AT_ONCE = 256

OnUnreadable = Callable[[Exception], None] | None
"""Gets the error of a file that cannot be read, which is passed over; None has it raised."""


def in_batches(
    items: Iterable[T], location: Callable[[T], str], reader: FileReader
) -> Iterator[list[tuple[T, bytes | Exception]]]:
    """Items with what is in their files, a few hundred at a time; an error where one cannot be read."""

    def read(item: T) -> tuple[T, bytes | Exception]:
        try:
            return item, reader.read(location(item))
        except (StorageError, CorruptFileError) as error:
            return item, error

    left = iter(items)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
        while batch := list(islice(left, _AT_ONCE)):
            yield list(pool.map(read, batch))


def tell(error: Exception, on_unreadable: OnUnreadable) -> None:
    """Hands an error on, or raises it."""
    if on_unreadable is None:
        raise error
    on_unreadable(error)
