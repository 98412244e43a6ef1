"""What a scan is asked and what it answers: the request, the plan as frames, and tasks made on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.scan.tasks import FileScanTask, planned_tasks
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot

__all__ = ["FileScanTask", "PlanMetrics", "ScanPlan", "ScanRequest"]


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
        decide: also find the files of which every row matches, by their metrics; nothing is left to filter in these.
        whole_files: the filter chooses files, of which all live rows are wanted, as where files are written anew.
        table_name: what errors call the table; None takes its location.
    """

    metadata: TableMetadata
    snapshot_id: int | None = None
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)
    case_sensitive: bool = True
    schema: Schema | None = None
    decide: bool = False
    whole_files: bool = False
    table_name: str | None = None


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
        assignments: which deletes apply to which file: ``data_file`` (row in ``files``) and ``delete_file`` (row in
            ``delete_files``), sorted.
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
        files = self.files.with_row_index("data_file").filter(mask).with_row_index("new_data_file")
        assigned = self.assignments.join(files.select("data_file", "new_data_file"), on="data_file", how="inner")
        used = assigned.select("delete_file").unique().sort("delete_file").with_row_index("new_delete_file")
        deletes = self.delete_files.with_row_index("delete_file").join(used, on="delete_file", how="inner")
        assignments = assigned.join(used, on="delete_file", how="inner").select(
            pl.col("new_data_file").alias("data_file"), pl.col("new_delete_file").alias("delete_file")
        )
        return replace(
            self,
            files=files.drop("data_file", "new_data_file"),
            delete_files=deletes.sort("new_delete_file").drop("delete_file", "new_delete_file"),
            assignments=assignments.cast(self.assignments.schema).sort("data_file", "delete_file"),
        )

    def of_paths(self, paths: Iterable[str]) -> ScanPlan:
        """The plan of those of some files that are in it."""
        return self.subset(self.files["file_path"].is_in(pl.Series(list(paths), dtype=pl.String).implode()))

    def with_deletes(self) -> ScanPlan:
        """The plan of the files that any delete file applies to."""
        rows = pl.int_range(len(self), dtype=pl.UInt32, eager=True)
        return self.subset(rows.is_in(self.assignments["data_file"].implode()))
