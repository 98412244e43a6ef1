"""Tasks cut into parts and put together into groups of about the same cost, for readers that work side by side.

The sizes and defaults are those of Apache Iceberg's `read.split.*` table properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.table_properties import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)

T = TypeVar("T")
_SPLITTABLE = ("PARQUET", "ORC", "AVRO")


@dataclass(frozen=True)
class SplitOptions:
    """How large groups are to be."""

    target_size: int = SPLIT_TARGET_SIZE.default  # bytes of a group
    # groups that are open at once while tasks are put into the first that has room
    lookback: int = SPLIT_LOOKBACK.default
    # the least bytes that a file counts as, so that many small files do not make one group
    open_file_cost: int = SPLIT_OPEN_FILE_COST.default

    @classmethod
    def of(cls, properties: Mapping[str, str], options: Mapping[str, str]) -> SplitOptions:
        """The splitting options: those of the scan, else those of the table."""
        values = {**properties, **options}
        sizes = {}
        for setting, least in ((SPLIT_TARGET_SIZE, 1), (SPLIT_LOOKBACK, 1), (SPLIT_OPEN_FILE_COST, 0)):
            sizes[setting] = setting.of(values)
            if sizes[setting] < least:
                raise ConfigurationError(
                    f"Property {setting.name!r}: expected a number of at least {least}, got {sizes[setting]}. The "
                    f"default is {setting.default}."
                )
        return cls(sizes[SPLIT_TARGET_SIZE], sizes[SPLIT_LOOKBACK], sizes[SPLIT_OPEN_FILE_COST])


@dataclass(frozen=True)
class ScanTaskGroup:
    """Tasks that one reader does one after the other."""

    tasks: tuple[FileScanTask, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the data that is read and of the deletes that apply to it."""
        return sum(task.length + task.delete_files.content_bytes for task in self.tasks)

    @property
    def files_count(self) -> int:
        """Files that are opened, deletes included."""
        return sum(1 + len(task.delete_files) for task in self.tasks)

    @property
    def estimated_rows_count(self) -> int:
        """About how many rows are read before deletes and filter."""
        return sum(task.file.record_count * task.length // max(task.file.file_size_in_bytes, 1) for task in self.tasks)


def task_groups(tasks: Iterable[FileScanTask], options: SplitOptions) -> Iterator[ScanTaskGroup]:
    """Groups parts of files so that each group has about the target size."""
    parts = (part for task in tasks for part in split(task, options.target_size))
    for group in _packed(parts, options):
        yield ScanTaskGroup(tuple(_merged(group)))


def split(task: FileScanTask, target_size: int) -> Iterator[FileScanTask]:
    """Cuts a task into parts that together read every row once; the task itself if it cannot be cut. A file with split
    offsets is cut at each, so that a part is a row group or a stripe; another one every `target_size` bytes."""
    file = task.file
    size = file.file_size_in_bytes
    if task.byte_range is not None or file.file_format.upper() not in _SPLITTABLE:
        yield task
        return
    cuts = _offsets(file) or range(target_size, size, target_size)
    starts = [0, *cuts]
    if len(starts) == 1:
        yield task
        return
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        yield task.part(start, end - start)


def _offsets(file: DataFile) -> list[int]:
    """Offsets of the row groups after the first; empty if the recorded offsets are not plausible."""
    offsets = list(file.split_offsets or ())
    ascending = all(one < other for one, other in pairwise(offsets))
    return offsets[1:] if ascending and offsets and offsets[-1] < file.file_size_in_bytes else []


def _weight(task: FileScanTask, options: SplitOptions) -> int:
    return max(task.length + task.delete_files.content_bytes, (1 + len(task.delete_files)) * options.open_file_cost)


@dataclass(eq=False)
class _Bin:
    tasks: list[FileScanTask]
    weight: int


def _packed(tasks: Iterable[FileScanTask], options: SplitOptions) -> Iterator[list[FileScanTask]]:
    """First fit into the open bins; where there would be too many, the fullest is done."""
    bins: list[_Bin] = []
    for task in tasks:
        weight = _weight(task, options)
        for each in bins:
            if each.weight + weight <= options.target_size:
                each.tasks.append(task)
                each.weight += weight
                break
        else:
            bins.append(_Bin([task], weight))
            if len(bins) > options.lookback:
                fullest = max(bins, key=lambda each: each.weight)
                bins.remove(fullest)
                yield fullest.tasks
    for each in bins:
        yield each.tasks


def _merged(tasks: Iterable[FileScanTask]) -> Iterator[FileScanTask]:
    """Neighbouring parts of a file as one."""
    last: FileScanTask | None = None
    for task in tasks:
        if last is not None and last.is_followed_by(task):
            last = last.part(last.start, last.length + task.length)
        else:
            if last is not None:
                yield last
            last = task
    if last is not None:
        yield last


def packed(items: Iterable[T], size: Callable[[T], int], max_bytes: int, max_items: int) -> Iterator[list[T]]:
    """Packs items into runs of limited bytes and number; an item larger than the limit is a run of its own."""
    run: list[T] = []
    total = 0
    for item in items:
        weight = size(item)
        if run and (total + weight > max_bytes or len(run) >= max_items):
            yield run
            run, total = [], 0
        run.append(item)
        total += weight
    if run:
        yield run
