"""Many small files read side by side, a batch after the other, if some may be unreadable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
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
    """Items with what is in their files, a few hundred at a time; an error if one cannot be read."""

    def read(part: Sequence[T]) -> list[tuple[T, bytes | Exception]]:
        return [(item, _contents(reader, location(item))) for item in part]

    left = iter(items)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
        while batch := list(islice(left, _AT_ONCE)):
            size = max(1, len(batch) // (2 * _READERS))
            parts = [batch[start : start + size] for start in range(0, len(batch), size)]
            yield list(chain.from_iterable(pool.map(read, parts)))


def _contents(reader: FileReader, location: str) -> bytes | Exception:
    try:
        return reader.read(location)
    except (StorageError, CorruptFileError) as error:
        return error


def tell(error: Exception, on_unreadable: OnUnreadable) -> None:
    """Hands an error on, or raises it."""
    if on_unreadable is None:
        raise error
    on_unreadable(error)
