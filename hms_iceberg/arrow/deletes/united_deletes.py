"""The deletes of many delete files of a plan, united once for all data files of a scan."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from hms_iceberg.arrow.parallel import SharedCache
from hms_iceberg.scan.task_deletes import DeleteGroup, PlannedDeletes, Run

T = TypeVar("T")

FEW_FILES = 8
"""So many delete files of a data file are united for it alone."""
# What is kept of very many delete files, of several partitions.
_CACHE_BYTES = 512 * 1024 * 1024


class UnitedDeletes(Generic[T]):
    """Unites the delete files of groups as far back as any data file needs them: `read` adds the rows of more of a
    group's files to those of all after them, and `size_of` counts their bytes."""

    def __init__(self, read: Callable[[DeleteGroup, range, T | None], T], size_of: Callable[[T], int]) -> None:
        self._read = read
        self._groups: SharedCache[tuple[PlannedDeletes, Run], _United[T]] = SharedCache(
            lambda united: 0 if united.value is None else size_of(united.value), _CACHE_BYTES
        )

    @staticmethod
    def is_worth_it(group: DeleteGroup) -> bool:
        """Whether a data file has more of a group's delete files than are united for it alone."""
        return group.plan.in_order and len(group) > FEW_FILES

    def since_first(self, group: DeleteGroup) -> T:
        """The united deletes of all delete files of a plan from the first of the group on, and perhaps some before
        it."""
        name = group.plan, group.whole
        united = self._groups.get(name, lambda: _United(*group.whole))
        value = united.since(group, self._read)
        self._groups.resized(name)
        return value


class _United(Generic[T]):
    def __init__(self, start: int, end: int) -> None:
        self._lock = Lock()
        self._start = start
        self._first = self._end = end
        self.value: T | None = None

    def since(self, group: DeleteGroup, read: Callable[[DeleteGroup, range, T | None], T]) -> T:
        with self._lock:
            if self.value is None or group.first < self._first:
                # Data files are asked for newest first, and each of them needs one delete file more.
                back = max(self._start, min(group.first, 2 * self._first - self._end))
                self.value = read(group, range(back, self._first), self.value)
                self._first = back
            return self.value
