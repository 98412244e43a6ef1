"""The delete files of a task: a part of those of the plan, which all tasks share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import Any, overload

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent

Run = tuple[int, int]


class PlannedDeletes:
    """Delete files in the order of their plan.

    Args:
        files: the delete files.
        numbers: their data sequence numbers.
        in_order: whether those of one kind, partition and key follow each other by sequence number, so that all from
            one on apply to a data file, but for those that have no key in common with it.
    """

    def __init__(self, files: Sequence[DataFile], numbers: Sequence[int], in_order: bool = False) -> None:
        self.files = files
        self.numbers = numbers
        self.in_order = in_order

    def bytes_of(self, first: int, end: int) -> int:
        """Bytes of the content of some files in a row."""
        return self._bytes_before[end] - self._bytes_before[first]

    def group(self, row: int) -> Run:
        """The delete files in a row of the same kind, partition and key as one: the first, and that after the last."""
        return self._groups[row]

    @cached_property
    def _bytes_before(self) -> list[int]:
        return list(accumulate((file.content_bytes for file in self.files), initial=0))

    @cached_property
    def _groups(self) -> list[Run]:
        groups: list[Run] = []
        for _, rows in groupby(range(len(self.files)), key=lambda row: _kind(self.files[row])):
            found = list(rows)
            groups += [(found[0], found[-1] + 1)] * len(found)
        return groups


@dataclass(frozen=True)
class DeleteGroup:
    """Delete files of one kind, partition and key that apply to a data file.

    Args:
        plan: all delete files.
        runs: where they are among these.
    """

    plan: PlannedDeletes
    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return sum(end - first for first, end in self.runs)

    @property
    def files(self) -> list[DataFile]:
        """The files."""
        return [self.plan.files[row] for first, end in self.runs for row in range(first, end)]

    @property
    def content(self) -> DataFileContent:
        """The kind of all."""
        return self.plan.files[self.first].content

    @property
    def names_data_files(self) -> bool:
        """Whether each of them is about one data file."""
        return self.plan.files[self.first].only_data_file is not None

    @property
    def first(self) -> int:
        """The row of the first."""
        return self.runs[0][0]

    @property
    def whole(self) -> Run:
        """The first row, and that after the last, of all delete files of the plan that have this key and partition."""
        return self.plan.group(self.first)


class DeleteFiles(Sequence[DataFile]):
    """Delete files that apply to a data file; equal to a tuple of them.

    Args:
        plan: all delete files of the plan.
        runs: first row, and row after the last, of those that apply.
    """

    __slots__ = ("_length", "_plan", "_runs")

    def __init__(self, plan: PlannedDeletes, runs: tuple[Run, ...] = ()) -> None:
        self._plan = plan
        self._runs = runs
        self._length = sum(end - first for first, end in runs)

    @classmethod
    def of(cls, files: Sequence[DataFile], numbers: Sequence[int] = ()) -> DeleteFiles:
        """The delete files of one task.

        Args:
            files: the files.
            numbers: their data sequence numbers, where these matter.
        """
        if isinstance(files, DeleteFiles):
            return files
        return cls(PlannedDeletes(tuple(files), tuple(numbers)), ((0, len(files)),) if files else ())

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[DataFile]:
        return chain.from_iterable(self._plan.files[first:end] for first, end in self._runs)

    @overload
    def __getitem__(self, index: int) -> DataFile: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[DataFile, ...]: ...

    def __getitem__(self, index: int | slice) -> DataFile | tuple[DataFile, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (DeleteFiles, tuple)):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return DeleteFiles.of, (tuple(self), self.sequence_numbers)

    @property
    def sequence_numbers(self) -> tuple[int, ...]:
        """The data sequence numbers of the files, in their order."""
        return tuple(chain.from_iterable(self._plan.numbers[first:end] for first, end in self._runs))

    @property
    def content_bytes(self) -> int:
        """Bytes of the content of all."""
        return sum(self._plan.bytes_of(first, end) for first, end in self._runs)

    @property
    def has_equality_deletes(self) -> bool:
        """Whether any is an equality delete file."""
        return any(True for _ in self.equality_groups())

    def equality_groups(self) -> Iterator[DeleteGroup]:
        """The equality delete files, by key and partition."""
        return (each for each in self._groups() if each.content is DataFileContent.EQUALITY_DELETES)

    def position_groups(self) -> Iterator[DeleteGroup]:
        """The position delete files and vectors: those that name their data file, and the others by partition."""
        return (each for each in self._groups() if each.content is DataFileContent.POSITION_DELETES)

    def _groups(self) -> Iterator[DeleteGroup]:
        group: list[Run] = []
        for first, end in self._within_groups():
            if group and self._plan.group(group[0][0]) != self._plan.group(first):
                yield DeleteGroup(self._plan, tuple(group))
                group = []
            group.append((first, end))
        if group:
            yield DeleteGroup(self._plan, tuple(group))

    def _within_groups(self) -> Iterator[Run]:
        for start, end in self._runs:
            first = start
            while first < end:
                cut = min(end, self._plan.group(first)[1])
                yield first, cut
                first = cut


def _kind(file: DataFile) -> tuple[Any, ...]:
    """The facts that the files of a group have in common."""
    if file.content is DataFileContent.EQUALITY_DELETES:
        return file.content, tuple(sorted(file.equality_ids or ())), file.partition_key
    return file.content, file.only_data_file is not None or file.partition_key
