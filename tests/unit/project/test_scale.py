"""Work that once grew faster than what it was done on is counted: lines that run, rows that are compared and united.

`python -m tests.benchmarks.scale` measures seconds and memory of larger sizes.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from hms_iceberg.arrow.deletes.equality_deletes import DeletedKeys
from hms_iceberg.scan import delete_keys
from tests.support import scale_walls
from tests.support.scale_walls import WALLS, exponent


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were compared, or united, in polars; with what makes a small size as a large one."""
    counted: list[int] = []
    overlaps, unite = delete_keys._overlaps, DeletedKeys.__init__

    def compared(data: Any, delete: Any, key_type: Any) -> Any:
        counted.append(data.height)
        return overlaps(data, delete, key_type)

    def united(self: DeletedKeys, keys: Any) -> None:
        counted.append(keys.height)
        unite(self, keys)

    monkeypatch.setattr(delete_keys, "_overlaps", compared)
    monkeypatch.setattr(DeletedKeys, "__init__", united)
    monkeypatch.setattr(delete_keys, "_FEW", 500)
    monkeypatch.setattr(delete_keys, "_FOR_EACH_FILE", 4)
    monkeypatch.setattr(scale_walls, "ROWS_READ", 50)
    monkeypatch.setattr(scale_walls, "FILES_IN_MANIFEST", 250)
    monkeypatch.setattr(scale_walls, "FILES_IN_LARGE", 100)
    return counted


def lines_of(work: Any) -> int:
    """How many lines of Python run in this thread, and how many rows the work gives."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = work()
    finally:
        sys.settrace(before)
    return count + (result if isinstance(result, int) else 0)


@pytest.mark.parametrize("name", WALLS)
def test_work_grows_no_faster_than_what_it_is_done_on(rows: list[int], name: str) -> None:
    wall, counts = WALLS[name], []
    wall.make(wall.small)()  # what is done once does not count
    for size in (wall.small, 2 * wall.small, 4 * wall.small):
        work = wall.make(size)
        rows.clear()
        counts.append(lines_of(work) + sum(rows))
    once, twice, four_times = counts
    least = 0.05 * once  # what does not grow at all
    added = max(twice - once, least), max(four_times - twice, 2 * least)
    assert exponent((1, 2), added) <= 1.2, counts
