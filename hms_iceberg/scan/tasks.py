"""The request of a scan, its plan as frames, and its tasks, made on demand.

A task is one data file with its deletes and what is left of the filter.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Protocol

import msgspec

from hms_iceberg.expressions.residuals import residual_by_constants, residual_evaluator
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import bound_predicates
from hms_iceberg.lazy import pl
from hms_iceberg.printable import printable
from hms_iceberg.scan.delete_runs import sums_of_runs, used_deletes
from hms_iceberg.scan.metadata_filter import file_constants, is_of_file
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.scan.task_deletes import DeleteFiles, PlannedDeletes
from hms_iceberg.spec.data_types import IcebergType, StructType, UUIDType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot

_ROWS_AT_ONCE = 1000
_REQUIRED = ("file_path", "file_format", "record_count", "file_size_in_bytes", "spec_id")
_OPTIONAL = (
    "split_offsets",
    "equality_ids",
    "key_metadata",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


class FileScanTask(msgspec.Struct, eq=False, gc=False):
    """One data file to read, or a part of it, and what to do with its rows.

    A plan makes very many, so that a task is no more than a row's number; it is in no cycle and needs no collector.

    Attributes:
        byte_range: first byte and length of the part that is read: the row groups, stripes or runs of blocks that begin
            in it. None for all.
    """

    _rows: _Rows
    _row: int
    byte_range: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        file: DataFile,
        delete_files: Sequence[DataFile] = (),
        residual: BooleanExpression | None = None,
        data_sequence_number: int = 0,
        file_sequence_number: int | None = None,
        delete_sequence_numbers: Sequence[int] = (),
        byte_range: tuple[int, int] | None = None,
        snapshot_id: int | None = None,
    ) -> FileScanTask:
        """A task of its parts, which the properties describe; without a residual every row matches.

        Args:
            file: the file.
            delete_files: the deletes that apply to it.
            residual: the filter that is left; None if every row matches.
            data_sequence_number: the file's data sequence number.
            file_sequence_number: the file's own sequence number.
            delete_sequence_numbers: the data sequence number of each delete file.
            byte_range: offset and length of the part to read; None for the whole file.
            snapshot_id: the snapshot that added the file.
        """
        remaining = AlwaysTrue() if residual is None else residual
        deletes = DeleteFiles.of(delete_files, delete_sequence_numbers)
        rows = _OneRow((file, deletes, remaining, data_sequence_number, file_sequence_number), snapshot_id)
        return cls(rows, 0, byte_range)

    def part(self, start: int, length: int) -> FileScanTask:
        """A task for the rows that begin within a range of bytes of the file; see `byte_range`.

        Args:
            start: offset of the first byte.
            length: number of bytes.
        """
        return FileScanTask(self._rows, self._row, (start, length))

    @property
    def file(self) -> DataFile:
        """The data file, without metrics."""
        file: DataFile = self._rows.value(self._row)[0]
        return file

    @property
    def delete_files(self) -> DeleteFiles:
        """The delete files and deletion vectors that apply to it."""
        files: DeleteFiles = self._rows.value(self._row)[1]
        return files

    @property
    def delete_sequence_numbers(self) -> tuple[int, ...]:
        """Data sequence numbers of ``delete_files``, in their order."""
        return self.delete_files.sequence_numbers

    @property
    def residual(self) -> BooleanExpression:
        """The part of the filter that the file's partition does not decide; bound to the plan's schema."""
        residual: BooleanExpression = self._rows.value(self._row)[2]
        return residual

    @property
    def data_sequence_number(self) -> int:
        """The file's data sequence number."""
        number: int = self._rows.value(self._row)[3]
        return number

    @property
    def file_sequence_number(self) -> int | None:
        """The sequence number of the snapshot that added the file."""
        number: int | None = self._rows.value(self._row)[4]
        return number

    def is_followed_by(self, other: FileScanTask) -> bool:
        """Whether another task reads the next part of the same file."""
        return (
            self._rows is other._rows
            and self._row == other._row
            and self.byte_range is not None
            and other.byte_range is not None
            and sum(self.byte_range) == other.byte_range[0]
        )

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that was planned, None if there is none."""
        return self._rows.snapshot_id

    @property
    def start(self) -> int:
        """The first byte that is read."""
        return 0 if self.byte_range is None else self.byte_range[0]

    @property
    def length(self) -> int:
        """Bytes that are read, of all columns."""
        return self.file.file_size_in_bytes if self.byte_range is None else self.byte_range[1]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FileScanTask)
            and self.byte_range == other.byte_range
            and self._rows.value(self._row) == other._rows.value(other._row)
        )

    def __hash__(self) -> int:
        return hash((self.file.file_path, self.data_sequence_number))

    def __repr__(self) -> str:
        told = f"{self.file.file_path}, {len(self.delete_files)} delete files, residual {self.residual}"
        return f"FileScanTask({printable(told)})"

    def __reduce__(self) -> tuple[Any, ...]:
        file, deletes, *rest = self._rows.value(self._row)
        return FileScanTask.of, (
            file,
            tuple(deletes),
            *rest,
            deletes.sequence_numbers,
            self.byte_range,
            self.snapshot_id,
        )


class _Rows(Protocol):
    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that was planned."""

    def value(self, row: int) -> tuple[Any, ...]:
        """File, delete files, residual, both sequence numbers of a row."""
        ...


class _OneRow:
    __slots__ = ("_value", "snapshot_id")

    def __init__(self, value: tuple[Any, ...], snapshot_id: int | None) -> None:
        self._value = value
        self.snapshot_id = snapshot_id

    def value(self, row: int) -> tuple[Any, ...]:
        return self._value


def planned_tasks(plan: ScanPlan) -> Iterator[FileScanTask]:
    """One task for each row of a plan's files, in order."""
    shared, height = _Shared(plan), plan.files.height
    stretches = (
        map(FileScanTask, repeat(_PlannedRows(shared, start)), range(min(_ROWS_AT_ONCE, height - start)))
        for start in range(0, height, _ROWS_AT_ONCE)
    )
    return chain.from_iterable(stretches)


def residuals(plan: ScanPlan) -> Callable[[DataFile], BooleanExpression]:
    """A function from a data file of a plan to the filter that is left for its rows, as a bound predicate."""
    return _Shared(plan).residual


def content_files(frame: pl.DataFrame, partitions: PartitionColumns) -> list[DataFile]:
    """The rows of a plan's frame as data files without metrics, in order."""
    columns = frame.to_dict(as_series=False)
    spec_ids = columns["spec_id"]
    partition_lists = {
        spec_id: _partitions_of(columns, partitions.columns(spec_id), partitions.structs[spec_id], frame.height)
        for spec_id in set(spec_ids)
    }
    contents = [DataFileContent(each) for each in columns.get("content", [0] * frame.height)]
    nothing: list[Any] = [None] * frame.height
    rows = zip(*(columns[name] for name in _REQUIRED), *(columns.get(name, nothing) for name in _OPTIONAL), strict=True)
    files = []
    for row, values in enumerate(rows):
        path, file_format, records, size, spec_id, splits, ids, key, order, first, about, offset, length = values
        file = DataFile(
            file_path=path,
            file_format=file_format,
            record_count=records,
            file_size_in_bytes=size,
            content=contents[row],
            spec_id=spec_id,
            partition=partition_lists[spec_id][row],
            key_metadata=key,
            split_offsets=None if splits is None else tuple(splits),
            equality_ids=None if ids is None else tuple(ids),
            sort_order_id=order,
            first_row_id=first,
            referenced_data_file=about,
            content_offset=offset,
            content_size_in_bytes=length,
        )
        files.append(file)
    return files


def _partitions_of(
    columns: dict[str, list[Any]], names: tuple[str, ...], partition_type: StructType, rows: int
) -> list[tuple[Any, ...]]:
    """The partition tuple of each row, as if all were of one spec."""
    if not names:
        return [()] * rows
    lists = []
    for name, partition_field in zip(names, partition_type.fields, strict=True):
        values = columns[name]
        if isinstance(partition_field.field_type, UUIDType):
            values = [uuid.UUID(bytes=each) if isinstance(each, bytes) and len(each) == 16 else each for each in values]
        lists.append(values)
    return list(zip(*lists, strict=True))


class _Shared:
    """The parts that all tasks of a plan have in common: delete files and residuals, made once."""

    def __init__(self, plan: ScanPlan) -> None:
        self.plan = plan
        self.lock = threading.RLock()
        self._deletes: PlannedDeletes | None = None
        self._runs: dict[int, list[tuple[int, int]]] = {}
        self._evaluators: dict[int, Callable[[tuple[Any, ...]], BooleanExpression]] = {}
        self._residuals: dict[tuple[int, tuple[Any, ...]], BooleanExpression] = {}
        tests = bound_predicates(plan.row_filter)
        self._file_columns = frozenset(each.ref.field_id for each in tests if is_of_file(each))

    def deletes_of(self, row: int) -> DeleteFiles:
        if self._deletes is None:
            for data_file, first, end in self.plan.assignments.iter_rows():
                self._runs.setdefault(data_file, []).append((first, end))
            numbers = self.plan.delete_files["sequence_number"].to_list()
            files = content_files(self.plan.delete_files, self.plan.partitions)
            self._deletes = PlannedDeletes(files, numbers, in_order=True)
        return DeleteFiles(self._deletes, tuple(self._runs.get(row, ())))

    def residual(self, file: DataFile) -> BooleanExpression:
        """The filter that is left to test in a file, given its partition."""
        plan = self.plan
        if isinstance(plan.row_filter, AlwaysTrue):
            return plan.row_filter
        key = (file.spec_id, file.partition)
        if key not in self._residuals:
            if file.spec_id not in self._evaluators:
                spec = plan.metadata.spec_by_id(file.spec_id)
                self._evaluators[file.spec_id] = residual_evaluator(spec, plan.row_filter, plan.schema)
            self._residuals[key] = self._evaluators[file.spec_id](file.partition)
        residual = self._residuals[key]
        if not self._file_columns:
            return residual
        fields = plan.metadata.spec_by_id(file.spec_id).fields
        constants = file_constants(file, [each.field_id for each in fields], self._file_columns)
        return residual_by_constants(residual, constants)


class _PlannedRows:
    """A stretch of a plan's rows; their objects are made when the first of them is looked at."""

    __slots__ = ("_shared", "_start", "_values")

    def __init__(self, shared: _Shared, start: int) -> None:
        self._shared = shared
        self._start = start
        self._values: list[tuple[Any, ...]] | None = None

    @property
    def snapshot_id(self) -> int | None:
        snapshot = self._shared.plan.snapshot
        return None if snapshot is None else snapshot.snapshot_id

    def value(self, row: int) -> tuple[Any, ...]:
        if self._values is None:
            with self._shared.lock:
                self._values = self._values or self._make()
        return self._values[row]

    def _make(self) -> list[tuple[Any, ...]]:
        plan, shared = self._shared.plan, self._shared
        part = plan.files.slice(self._start, _ROWS_AT_ONCE)
        files = content_files(part, plan.partitions)
        decided = part["all_match"].to_list() if "all_match" in part.columns else [False] * part.height
        numbers = (part[name].to_list() for name in ("sequence_number", "file_sequence_number"))
        return [
            (file, shared.deletes_of(self._start + row), AlwaysTrue() if done else shared.residual(file), data, added)
            for row, (file, done, data, added) in enumerate(zip(files, decided, *numbers, strict=True))
        ]


__all__ = ["FileScanTask", "PlanMetrics", "ScanPlan", "ScanRequest"]


@dataclass(frozen=True)
class ScanRequest:
    """A scan that is to be planned.

    Args:
        metadata: the table.
        snapshot_id: the snapshot to read; None reads the current one.
        row_filter: which rows are wanted, by the names of ``schema``.
        case_sensitive: how column names in the filter are matched.
        schema: the columns that the filter may name; None takes the table's current schema, or for a snapshot that
            was asked for by its id, the schema of that snapshot.
        decide: also find the files of which every row matches, by their metrics; nothing is left to filter in these.
        whole_files: the filter chooses files, of which all live rows are wanted, as where files are written anew.
        all_deletes: the filter leaves out no delete of the files, as where rows are changed; so it is of whole files.
        table_name: what errors call the table; None takes its location.
        stats: ids and types of fields whose metrics the plan's data files have in columns beside the others; see
            :func:`~hms_iceberg.scan.delete_keys.key_metric_columns`.
    """

    metadata: TableMetadata
    snapshot_id: int | None = None
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)
    case_sensitive: bool = True
    schema: Schema | None = None
    decide: bool = False
    whole_files: bool = False
    table_name: str | None = None
    stats: Mapping[int, IcebergType] = field(default_factory=dict)
    all_deletes: bool = False


TaskPlanner = Callable[[ScanRequest], Iterator[FileScanTask] | None]
"""Has somebody else plan a scan; None if that does not plan such scans."""


@dataclass(frozen=True)
class PlanMetrics:
    """Counts of what planning read. Files count live entries of the manifests that were read.

    Args:
        manifests_total: data manifests of the snapshot.
        manifests_kept: data manifests that were read.
        delete_manifests_total: delete manifests of the snapshot.
        delete_manifests_kept: delete manifests that were read.
        manifests_cached: manifests, of those read, that were found in the cache.
        files_total: data files in the manifests that were read.
        files_kept: data files in the plan.
        delete_files_total: delete files in the manifests that were read.
        delete_files_kept: delete files that apply to a file of the plan.
        seconds: how long planning took.
    """

    manifests_total: int = 0
    manifests_kept: int = 0
    delete_manifests_total: int = 0
    delete_manifests_kept: int = 0
    manifests_cached: int = 0
    files_total: int = 0
    files_kept: int = 0
    delete_files_total: int = 0
    delete_files_kept: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class ScanPlan:
    """The files to read and the deletes to apply, as frames.

    Args:
        metadata: the table that was planned.
        snapshot: the snapshot; None for a table without one.
        schema: the columns that the filters are bound to.
        row_filter: which rows are wanted, bound.
        partitions: names and types of the partition columns of both frames.
        files: one row for each data file: ``file_path``, ``file_format``, ``spec_id``, ``record_count``,
            ``file_size_in_bytes``, ``snapshot_id``, ``sequence_number`` (data), ``file_sequence_number``,
            ``first_row_id``, ``sort_order_id``, ``split_offsets``, ``key_metadata``, and the partition columns
            (``p<field id>``, see ``partitions``) as stored values. Where it was asked for, ``all_match``: whether
            every row matches.
        delete_files: the same for each delete file that applies to a file of the plan, with ``content``,
            ``equality_ids``, ``referenced_data_file``, ``content_offset`` and ``content_size_in_bytes``.
        assignments: which deletes apply to which file, as runs: ``data_file`` (row in ``files``), ``first`` and
            ``end`` (rows in ``delete_files`` of the first and of the one after the last), sorted.
        metrics: what planning looked at.
        file_filter: by what files were chosen of which all rows are wanted, bound; None if by `row_filter`.
    """

    metadata: TableMetadata
    snapshot: Snapshot | None
    schema: Schema
    row_filter: BooleanExpression
    partitions: PartitionColumns
    files: pl.DataFrame
    delete_files: pl.DataFrame
    assignments: pl.DataFrame
    metrics: PlanMetrics
    file_filter: BooleanExpression | None = None

    def __len__(self) -> int:
        return self.files.height

    @property
    def has_deletes(self) -> bool:
        """True if a delete file applies to any file of the plan."""
        return self.assignments.height > 0

    def tasks(self) -> Iterator[FileScanTask]:
        """One task for each data file, in the order of ``files``; made while they are asked for."""
        return planned_tasks(self)

    def subset(self, mask: pl.Series) -> ScanPlan:
        """The plan of some of its files, with the deletes that apply to them.

        Args:
            mask: which of its files.
        """
        files = self.files.with_row_index("data_file").filter(mask).with_row_index("new")
        assigned = self.assignments.join(files.select("data_file", "new"), on="data_file", how="inner")
        runs = assigned.select(pl.col("new").alias("data_file"), "first", "end").sort("data_file", "first")
        used, assignments = used_deletes(runs, self.delete_files.height)
        return replace(
            self,
            files=files.drop("data_file", "new"),
            delete_files=self.delete_files.filter(used),
            assignments=assignments,
        )

    def at(self, rows: pl.Series) -> ScanPlan:
        """The plan of the files in some rows of ``files``, ascending, with the deletes that apply to them.

        It takes time by these files and by the range of the delete files that apply to them, not by all of the plan.
        """
        files = self.files[rows]
        if not self.has_deletes:
            return replace(self, files=files)
        assigned = self.assignments["data_file"]
        first, end = (assigned.search_sorted(rows.cast(assigned.dtype), side) for side in ("left", "right"))
        places = pl.select(pl.int_ranges(first, end).alias("place")).with_row_index("data_file").explode("place")
        places = places.drop_nulls("place")
        runs = self.assignments[places["place"]].with_columns(places["data_file"].cast(assigned.dtype))
        if not runs.height:
            return replace(self, files=files, delete_files=self.delete_files.clear(), assignments=runs)
        least, most = runs.select(pl.min("first"), pl.max("end")).row(0)
        deletes = self.delete_files.slice(least, most - least)
        used, assignments = used_deletes(runs.with_columns(pl.col("first", "end") - least), deletes.height)
        return replace(self, files=files, delete_files=deletes.filter(used), assignments=assignments)

    def of_paths(self, paths: Iterable[str]) -> ScanPlan:
        """The part of the plan that concerns the given files."""
        return self.subset(self.files["file_path"].is_in(pl.Series(list(paths), dtype=pl.String).implode()))

    def with_deletes(self) -> ScanPlan:
        """The plan of the files that any delete file applies to."""
        return self.subset(self.count_deletes() > 0)

    def count_deletes(self, values: pl.Series | None = None) -> pl.Series:
        """How many delete files apply to each data file.

        Args:
            values: what each delete file counts, a number or a truth; None for one.
        """
        each = pl.ones(self.delete_files.height, pl.Int64, eager=True) if values is None else values
        return sums_of_runs(self.assignments, each, len(self))
