"""Files put into groups, each to be rewritten at once: what a plan of a rewriting is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hms_iceberg.maintenance.rewrite.options import JobOrder, SizeRules

T = TypeVar("T")
G = TypeVar("G", bound="FileGroup[Any]")


@dataclass(frozen=True)
class FileGroup(Generic[T]):
    """Files of one partition that are read and written anew together.

    Attributes:
        partition: the partition as in a path, empty for none.
        items: what is rewritten: tasks of a scan, made while they are asked for, or delete files.
        input_bytes: of all files.
        output_bytes: at which size a file that is written is full.
        output_files: about how many files are written.
    """

    partition: str
    items: Sequence[T]
    input_bytes: int
    output_bytes: int
    output_files: int


def is_worth_it(sizes: Sequence[int], rules: SizeRules) -> bool:
    """Whether files of these bytes are enough, together more than a target file, or more than a file may have."""
    several = len(sizes) > 1
    total = sum(sizes)
    return (
        (several and len(sizes) >= rules.min_input_files)
        or (several and total > rules.target_bytes)
        or total > rules.max_bytes
    )


def limited(runs: Iterable[list[T]], most: int | None) -> Iterator[list[T]]:
    """Runs until there are as many items as may be rewritten; the last one is cut off."""
    left = most
    for run in runs:
        if left is None:
            yield run
        elif left > 0:
            yield run[:left]
            left -= len(run)


def in_job_order(groups: Iterable[G], order: JobOrder) -> tuple[G, ...]:
    keys: dict[JobOrder, Callable[[G], int]] = {
        JobOrder.NONE: lambda each: 0,
        JobOrder.BYTES_ASC: lambda each: each.input_bytes,
        JobOrder.BYTES_DESC: lambda each: -each.input_bytes,
        JobOrder.FILES_ASC: lambda each: len(each.items),
        JobOrder.FILES_DESC: lambda each: -len(each.items),
    }
    return tuple(sorted(groups, key=keys[order]))
