"""Which data files are rewritten, and why: planned from metadata alone.

Source: Iceberg documentation, "Spark Procedures", `rewrite_data_files`; the choice is Apache Iceberg's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.rewrite.file_groups import FileGroup, in_job_order, is_worth_it, limited
from hms_iceberg.maintenance.rewrite.options import DataFileRules, SizeRules
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.splitting import packed
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan, ScanRequest, content_files
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage

_GROUPS_AT_ONCE = 1_000


@dataclass(frozen=True, eq=False)
class PlannedTasks(Sequence[FileScanTask]):
    """The tasks of some files of a scan's plan.

    They are made anew each time that somebody looks: those of a large table do not fit in memory.

    Attributes:
        whole: the plan.
        rows: their rows in its files, ascending.
    """

    whole: ScanPlan
    rows: pl.Series

    @property
    def plan(self) -> ScanPlan:
        """The plan of these files alone."""
        return self.whole.at(self.rows)

    @property
    def record_count(self) -> int:
        """Rows of the files, deleted ones among them."""
        return int(self.whole.files["record_count"].gather(self.rows).sum())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[FileScanTask]:
        return self.plan.tasks()

    @overload
    def __getitem__(self, place: int) -> FileScanTask: ...

    @overload
    def __getitem__(self, place: slice) -> PlannedTasks: ...

    def __getitem__(self, place: int | slice) -> FileScanTask | PlannedTasks:
        if isinstance(place, slice):
            return PlannedTasks(self.whole, self.rows[place])
        return next(self.whole.at(pl.Series([self.rows[place]], dtype=self.rows.dtype)).tasks())


class TaskGroup(FileGroup[FileScanTask]):
    """Data files that are rewritten together."""

    items: PlannedTasks


@dataclass(frozen=True)
class RewritePlan:
    """The plan for rewriting data files.

    Attributes:
        snapshot: the snapshot that was planned; None for an empty table.
        groups: the groups, in the order in which they are rewritten.
        output_spec_id: the partition spec of the new files.
        files_total: live data files that the filter may match.
    """

    snapshot: Snapshot | None
    groups: tuple[TaskGroup, ...]
    output_spec_id: int
    files_total: int

    @property
    def input_files(self) -> int:
        """How many data files are rewritten."""
        return sum(len(group.items) for group in self.groups)

    @property
    def input_bytes(self) -> int:
        """Bytes of the files that are rewritten."""
        return sum(group.input_bytes for group in self.groups)

    @property
    def output_files(self) -> int:
        """About how many files take their place."""
        return sum(group.output_files for group in self.groups)


def plan_rewrite(
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    storage: Storage,
    sizes: SizeRules,
    rules: DataFileRules,
    row_filter: BooleanExpression,
    case_sensitive: bool,
) -> RewritePlan:
    """The groups to rewrite, in job order, and how many files were looked at. All rows are rewritten of each file that
    may hold rows that the filter matches."""
    spec_id = metadata.default_spec_id if rules.output_spec_id is None else rules.output_spec_id
    if snapshot is None:
        return RewritePlan(None, (), spec_id, 0)

    schema = metadata.schema()
    request = ScanRequest(metadata, snapshot.snapshot_id, row_filter, case_sensitive, schema, whole_files=True)
    whole = plan_scan(request, storage)
    files = _files_with_deletes(whole)
    runs = _runs(files, list(whole.partitions.dtypes), metadata.default_spec_id, sizes, rules)
    groups = _groups(metadata, whole, limited(runs, sizes.max_files), sizes, rules.compression_factor)
    return RewritePlan(snapshot, in_job_order(groups, sizes.job_order), spec_id, files.height)


def _files_with_deletes(plan: ScanPlan) -> pl.DataFrame:
    """The plan's files with their row numbers, how many delete files apply, and how many rows are surely deleted."""
    deletes = plan.delete_files
    of_one_file = deletes["referenced_data_file"].is_not_null()
    is_sure = (deletes["content"] == DataFileContent.POSITION_DELETES.value) & of_one_file
    deleted = plan.count_deletes(
        deletes["record_count"].zip_with(is_sure, pl.zeros(deletes.height, pl.Int64, eager=True))
    )
    rows = pl.int_range(pl.len(), dtype=pl.UInt32).alias("row")
    return plan.files.with_columns(rows, plan.count_deletes().alias("delete_files"), deleted.alias("deleted"))


def _runs(
    files: pl.DataFrame, partition_columns: Sequence[str], spec_id: int, sizes: SizeRules, rules: DataFileRules
) -> Iterator[list[int]]:
    """Row numbers of files that go together. Files of another partition spec than the table's have no partition in
    common with the new files: all of them go together, as in Apache Iceberg."""
    size = pl.col("file_size_in_bytes")
    too_many = pl.col("delete_files") >= rules.delete_file_threshold
    ratio = pl.min_horizontal("deleted", "record_count") / pl.col("record_count").clip(lower_bound=1)
    by_deletes = (pl.col("delete_files") > 0) & (too_many | (ratio >= rules.delete_ratio_threshold))
    files = files.with_columns(by_deletes.alias("by_deletes"), (pl.col("spec_id") == spec_id).alias("current"))
    if not sizes.rewrite_all:
        files = files.filter((size < sizes.min_bytes) | (size > sizes.max_bytes) | pl.col("by_deletes"))
    files = files.with_columns(pl.when("current").then(pl.col(name)).alias(name) for name in partition_columns)
    for _, part in files.group_by(["current", *partition_columns], maintain_order=True):
        items = list(zip(part["row"].to_list(), part["file_size_in_bytes"].to_list(), part["by_deletes"], strict=True))
        for run in packed(items, lambda item: int(item[1]), sizes.max_group_bytes, sizes.max_group_files):
            if sizes.rewrite_all or any(item[2] for item in run) or is_worth_it([item[1] for item in run], sizes):
                yield [item[0] for item in run]


def _groups(
    metadata: TableMetadata, whole: ScanPlan, runs: Iterator[list[int]], sizes: SizeRules, factor: float
) -> Iterator[TaskGroup]:
    bytes_of = whole.files["file_size_in_bytes"].to_numpy()
    while some := list(islice(runs, _GROUPS_AT_ONCE)):
        first_files = content_files(whole.files[[run[0] for run in some]], whole.partitions)
        for run, file in zip(some, first_files, strict=True):
            size = int(bytes_of[run].sum())
            tasks = PlannedTasks(whole, pl.Series(run, dtype=pl.UInt32))
            output_bytes, output_files = sizes.output_bytes(size, factor), sizes.output_files(int(size * factor))
            yield TaskGroup(_path(metadata, file), tasks, size, output_bytes, output_files)


def _path(metadata: TableMetadata, file: DataFile) -> str:
    spec = metadata.spec_by_id(file.spec_id)
    if file.spec_id != metadata.default_spec_id or spec.is_unpartitioned():
        return ""
    return spec.partition_to_path(file.partition, metadata.schema_for_spec(spec))
