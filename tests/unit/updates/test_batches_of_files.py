"""Files are read in batches that are small together, however large and many they are."""

from __future__ import annotations

import threading
import time

import pytest

from hms_iceberg.errors import MissingFileError
from hms_iceberg.updates.machinery import listed_manifests
from hms_iceberg.updates.machinery.listed_manifests import in_batches

LIMIT = listed_manifests._BYTES_AT_ONCE
WIDE = LIMIT // listed_manifests._EXPANDED


@pytest.mark.parametrize(
    ("lengths", "entries", "batches"),
    [
        ([1] * 600, 0, [256, 256, 88]),
        ([WIDE] * 3, 0, [1, 1, 1]),
        ([WIDE // 2 + 1] * 5, 0, [2, 2, 1]),
        ([1] * 5, LIMIT // listed_manifests._ENTRY_BYTES // 2 + 1, [2, 2, 1]),
        ([], 0, []),
    ],
    ids=["small", "large", "of half the limit", "of many entries", "none"],
)
def test_batches_hold_as_many_files_as_are_small_together(lengths: list[int], entries: int, batches: list[int]) -> None:
    numbers = range(len(lengths))
    found = list(in_batches(numbers, lambda each: b"x" * lengths[each], lambda each: entries))
    assert [len(batch) for batch in found] == batches
    assert [(number, len(data)) for batch in found for number, data in batch] == list(enumerate(lengths))


def test_few_files_are_read_ahead_of_who_uses_them() -> None:
    read: list[int] = []
    lock = threading.Lock()

    def content(number: int) -> bytes:
        with lock:
            read.append(number)
        return bytes(WIDE)

    batches = in_batches(range(100), content)
    next(batches)
    time.sleep(0.05)
    assert len(read) <= 1 + listed_manifests._READERS
    assert sum(len(batch) for batch in batches) == 99


def test_the_error_of_a_file_stands_in_its_place() -> None:
    def content(number: int) -> bytes:
        if number == 1:
            raise MissingFileError("gone")
        return b"x"

    ((first, error, last),) = in_batches(range(3), content)
    assert (first, last) == ((0, b"x"), (2, b"x"))
    assert isinstance(error[1], MissingFileError)
