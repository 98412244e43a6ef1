"""What a scan is asked and what it answers: the request, the plan as frames, and tasks made on demand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hms_iceberg.expressions.residuals import residual_evaluator
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.manifests import DataFile, DataFileContent
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots import Snapshot
from hms_iceberg.spec.types import StructType, UUIDType

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ScanRequest:
    """What to plan.

    Args:
        metadata: the table.
        snapshot_id: the snapshot to read; None reads the current one.
        row_filter: which rows are wanted, by the names of ``schema``.
        case_sensitive: how column names in the filter are matched.
        schema: the columns that the filter may name; None takes the table's current schema, or for a snapshot that
            was asked for by its id, the schema of that snapshot.
    """

    metadata: TableMetadata
    snapshot_id: int | None = None
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)
    case_sensitive: bool = True
    schema: Schema | None = None


@dataclass(frozen=True)
class PlanMetrics:
    """What planning looked at. Files count live entries of the manifests that were read.

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
class FileScanTask:
    """One data file to read, and what to do with its rows.

    Args:
        file: the data file, without metrics.
        delete_files: the delete files and deletion vectors that apply to it.
        residual: the part of the filter that the file's partition does not decide; bound to the plan's schema.
        data_sequence_number: the file's data sequence number.
        file_sequence_number: the sequence number of the snapshot that added the file.
        delete_sequence_numbers: data sequence numbers of ``delete_files``, in their order.
    """

    file: DataFile
    delete_files: tuple[DataFile, ...]
    residual: BooleanExpression
    data_sequence_number: int
    file_sequence_number: int | None = None
    delete_sequence_numbers: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Bytes of the data file."""
        return self.file.file_size_in_bytes


@dataclass(frozen=True)
class ScanPlan:
    """The files to read and the deletes to apply, as frames.

    Args:
        metadata: the table that was planned.
        snapshot: the snapshot; None for a table without one.
        schema: the columns that ``row_filter`` is bound to.
        row_filter: the filter, bound.
        partitions: names and types of the partition columns of both frames.
        files: one row for each data file: ``file_path``, ``file_format``, ``spec_id``, ``record_count``,
            ``file_size_in_bytes``, ``snapshot_id``, ``sequence_number`` (data), ``file_sequence_number``,
            ``first_row_id``, ``sort_order_id``, ``split_offsets``, ``key_metadata``, and the partition columns
            (``p<field id>``, see ``partitions``) as stored values.
        delete_files: the same for each delete file that applies to a file of the plan, with ``content``,
            ``equality_ids``, ``referenced_data_file``, ``content_offset`` and ``content_size_in_bytes``.
        assignments: which deletes apply to which file: ``data_file`` (row in ``files``) and ``delete_file`` (row in
            ``delete_files``), sorted.
        metrics: what planning looked at.
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

    def __len__(self) -> int:
        return self.files.height

    @property
    def has_deletes(self) -> bool:
        """True where a delete file applies to any file of the plan."""
        return self.assignments.height > 0

    def row_count(self) -> int | None:
        """The number of rows of the scan where metadata knows it: without a filter and without deletes."""
        if self.has_deletes or not isinstance(self.row_filter, AlwaysTrue):
            return None
        return int(self.files["record_count"].sum())

    def tasks(self) -> Iterator[FileScanTask]:
        """One task for each data file, in the order of ``files``; made while they are asked for."""
        deletes = list(content_files(self.delete_files, self.partitions))
        sequence_numbers = self.delete_files["sequence_number"].to_list()
        assigned = _grouped(self.assignments)
        residuals = _Residuals(self)
        rows = self.files.select("sequence_number", "file_sequence_number").iter_rows()
        for index, (file, (sequence_number, file_sequence_number)) in enumerate(
            zip(content_files(self.files, self.partitions), rows, strict=True)
        ):
            mine = assigned.get(index, ())
            yield FileScanTask(
                file=file,
                delete_files=tuple(deletes[each] for each in mine),
                residual=residuals.of(file),
                data_sequence_number=sequence_number,
                file_sequence_number=file_sequence_number,
                delete_sequence_numbers=tuple(sequence_numbers[each] for each in mine),
            )


def content_files(frame: pl.DataFrame, partitions: PartitionColumns) -> Iterator[DataFile]:
    """The rows of a plan's frame as data files without metrics, in order.

    Args:
        frame: the files or delete files of a plan.
        partitions: the plan's partition columns.
    """
    takers: dict[int, Callable[[Mapping[str, Any]], tuple[Any, ...]]] = {}
    for row in frame.iter_rows(named=True):
        spec_id = row["spec_id"]
        if spec_id not in takers:
            takers[spec_id] = _partition_taker(partitions.columns(spec_id), partitions.structs[spec_id])
        yield DataFile(
            content=DataFileContent(row.get("content", 0)),
            file_path=row["file_path"],
            file_format=row["file_format"],
            spec_id=spec_id,
            partition=takers[spec_id](row),
            record_count=row["record_count"],
            file_size_in_bytes=row["file_size_in_bytes"],
            key_metadata=row["key_metadata"],
            split_offsets=_tuple(row.get("split_offsets")),
            equality_ids=_tuple(row.get("equality_ids")),
            sort_order_id=row["sort_order_id"],
            first_row_id=row.get("first_row_id"),
            referenced_data_file=row.get("referenced_data_file"),
            content_offset=row.get("content_offset"),
            content_size_in_bytes=row.get("content_size_in_bytes"),
        )


def _tuple(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _partition_taker(
    names: tuple[str, ...], partition_type: StructType
) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    uuids = [isinstance(each.field_type, UUIDType) for each in partition_type.fields]
    if not any(uuids):
        return lambda row: tuple(row[name] for name in names)
    pairs = tuple(zip(names, uuids, strict=True))
    return lambda row: tuple(
        uuid.UUID(bytes=row[name]) if is_uuid and row[name] is not None else row[name] for name, is_uuid in pairs
    )


def _grouped(assignments: pl.DataFrame) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = {}
    for data_file, delete_file in assignments.iter_rows():
        grouped.setdefault(data_file, []).append(delete_file)
    return grouped


class _Residuals:
    """The residual of a plan's filter for each partition, made once per partition."""

    def __init__(self, plan: ScanPlan) -> None:
        self._plan = plan
        self._evaluators: dict[int, Callable[[tuple[Any, ...]], BooleanExpression]] = {}
        self._known: dict[tuple[int, tuple[Any, ...]], BooleanExpression] = {}

    def of(self, file: DataFile) -> BooleanExpression:
        """The residual for a file's partition."""
        plan = self._plan
        if isinstance(plan.row_filter, AlwaysTrue):
            return plan.row_filter
        key = (file.spec_id, file.partition)
        if key not in self._known:
            if file.spec_id not in self._evaluators:
                spec = plan.metadata.spec_by_id(file.spec_id)
                self._evaluators[file.spec_id] = residual_evaluator(spec, plan.row_filter, plan.schema)
            self._known[key] = self._evaluators[file.spec_id](file.partition)
        return self._known[key]
