"""Compaction: small files become large ones, deletes are applied, rows are sorted.

In this process, it is done with Arrow and in bounded memory.

Source: Iceberg documentation, "Spark Procedures", `rewrite_data_files`; Iceberg specification, "Row Lineage": a row
that is written anew keeps its id and its sequence number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.formats.parquet_writer import parquet_codec
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.arrow.reading.row_rewrites import RowRewriter
from hms_iceberg.arrow.rows.row_order import RowOrder, RowSorter, ZOrder
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.arrow.writing.external_sort import sorted_parts
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.maintenance.rewrite.commits import GroupCommits, Replaced, rewrite_groups, workers_for
from hms_iceberg.maintenance.rewrite.layout import Layout, layout_of
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.rewrite.rewrite_plan import TaskGroup, plan_rewrite
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite, Engine, RewriteResult
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.spec.table_properties import PARQUET_CODEC_LEVEL, TARGET_FILE_BYTES
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.new_snapshot import parent_on


def rewrite_data_files(
    table: Table,
    *,
    strategy: str = "binpack",
    sort_order: str | SortOrder | None = None,
    where: str | BooleanExpression | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
    dry_run: bool = False,
    engine: Engine | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> RewriteResult:
    """Replaces data files by fewer, larger or better sorted ones with the same rows.

    Deletes are applied, row ids and sequence numbers of rows are kept. Groups of files are committed as they are done
    (`partial-progress.enabled`, true unless an option says otherwise), so that an interrupted run loses only what it
    was at, and a conflict only the groups that it is about. A concurrent writer is never made to fail but where the
    format leaves no other way: where it deletes single rows of a file that was replaced.

    Args:
        table: the table, which moves to its newest version.
        strategy: `binpack` puts files together as they are; `sort` sorts rows.
        sort_order: for `sort`, such as `id desc nulls last, bucket(4, name)` or `zorder(a, b)`; the table's by default.
        where: only files that may hold matching rows.
        options: Apache Iceberg's, by name; see `hms_iceberg.maintenance.rewrite.options`.
        branch: the branch to rewrite.
        case_sensitive: how names of columns are matched.
        dry_run: only plan.
        engine: what reads and writes files; by default this process, with Arrow. `hms_iceberg.spark.SparkEngine` is
            another.
        stop: asked before each group; True leaves what is not begun for another run.

    Returns:
        the plan, and counts of files and bytes that were replaced; with `dry_run`, the plan alone.

    Raises:
        InvalidInputError: an option, the strategy or the order is unknown or wrong, or there is no such branch.
        ExpressionParseError, UnknownColumnError, TypeMismatchError: the filter or the order does not fit the table.
        CommitConflictError, CommitFailedError: without partial progress, a concurrent change or other writers were in
            the way; nothing was changed. With it, more commits failed than `partial-progress.max-failed-commits`.
        CommitStateUnknownError: nobody can tell whether a group was committed; no file was deleted.
        MissingFileError, CorruptDataFileError, StorageError: without partial progress, a file cannot be read or
            written.
    """
    planned = plan_data_files(
        table,
        strategy=strategy,
        sort_order=sort_order,
        where=where,
        options=options,
        branch=branch,
        case_sensitive=case_sensitive,
        stop=stop,
    )
    if dry_run or planned.plan.snapshot is None:
        return RewriteResult(planned.plan)
    (engine or LocalEngine()).run(planned)
    return planned.result()


def plan_data_files(
    table: Table,
    *,
    strategy: str = "binpack",
    sort_order: str | SortOrder | None = None,
    where: str | BooleanExpression | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
    stop: Callable[[], bool] = lambda: False,
) -> DataFileRewrite:
    """Plans what `rewrite_data_files` does, which takes the same arguments, from metadata alone."""
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    layout = layout_of(metadata, strategy, sort_order, name, case_sensitive)
    given = RewriteOptions(options, f"rewrite_data_files ({strategy})", name)
    given.refuse_others(sorts=layout.sorts, zorder=bool(layout.zorder))
    sizes = given.sizes(TARGET_FILE_BYTES.of(metadata.properties))
    commits, rules = given.commits(), given.data_files()
    specs = sorted(each.spec_id for each in metadata.partition_specs)
    if rules.output_spec_id is not None and rules.output_spec_id not in specs:
        raise InvalidInputError(
            f"Cannot rewrite the data files of table {name}: output-spec-id {rules.output_spec_id} is not one of its "
            f"partition specs, {specs}."
        )
    if branch != MAIN_BRANCH and branch not in metadata.refs:
        raise InvalidInputError(f"Cannot rewrite the data files of branch {branch} of table {name}: no such branch.")
    snapshot = parent_on(metadata, branch)
    row_filter = parse(where) if isinstance(where, str) else where or AlwaysTrue()
    plan = plan_rewrite(metadata, snapshot, table.storage, sizes, rules, row_filter, case_sensitive)
    number = None
    if snapshot is not None and rules.use_starting_sequence_number and metadata.format_version > 1:
        number = snapshot.sequence_number
    done = GroupCommits(table, commits, branch, number)
    return DataFileRewrite(table, plan, layout, done, branch, rules.remove_dangling_deletes, stop)


# ----------------------------------------------------------------------------------------------- in this process


# Rows in memory over all groups: those that wait for their row group, and those that are being sorted.
_MEMORY_BYTES = 256 * 1024 * 1024
# Of them for a file, if several are written at once: a row group.
_FILE_BYTES = 128 * 1024 * 1024
# Apache Iceberg's level; pyarrow's own is 1. Files that are written once and read for long are 5% smaller, for 15% more
# time to encode them; a table's own level goes before it.
_COMPRESSION = {PARQUET_CODEC_LEVEL.name: PARQUET_CODEC_LEVEL.default_text}
# Batches are joined up to so many rows or bytes: each costs Python as much as it takes to copy thousands of rows.
_JOINED_ROWS, _JOINED_BYTES = 32_768, 16 * 1024 * 1024
_SAMPLED_FILES = 32
_SAMPLED_ROWS = 200_000


class LocalEngine:
    """Rewrites groups of files in this process."""

    def run(self, rewrite: DataFileRewrite) -> None:
        """Writes the groups of a plan, several at once, and hands each over when it is written."""
        table, plan = rewrite.table, rewrite.plan
        workers = workers_for(rewrite.commits.rules, len(plan.groups))
        writer = GroupWriter(table.metadata, table.storage, rewrite.name, rewrite.layout, plan.output_spec_id, workers)

        def write(group: TaskGroup, on_create: Callable[[str], None]) -> Replaced:
            return Replaced(tuple(task.file for task in group.items), writer.rewrite(group, on_create))

        rewrite_groups(rewrite.commits, plan.groups, write, workers, rewrite.stop)


class GroupWriter:
    """Reads and writes groups of files with Arrow; `groups_at_once` of them share the memory."""

    def __init__(
        self, metadata: TableMetadata, storage: Storage, table: str, layout: Layout, spec_id: int, groups_at_once: int
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._table = table
        self._layout = layout
        self._spec = metadata.spec_by_id(spec_id)
        self._schema = RowRewriter(metadata, storage).schema
        self._properties = _compression(metadata.properties)
        self._memory_bytes = _MEMORY_BYTES // groups_at_once
        # Rows are read sooner than encoded, and threads of Python get in each other's way: one file at a time is quick
        # enough where files are near, and nothing sorts meanwhile.
        is_near = parse_location(metadata.location).is_local and not layout.sorts
        self._readers = 1 if groups_at_once > 1 or is_near else None

    def rewrite(self, group: TaskGroup, on_create: Callable[[str], None]) -> tuple[DataFile, ...]:
        """Writes a group's live rows to new files, if any; `on_create` gets each location before the file is made."""
        rows = self._rows(group.items, self._schema)
        if not self._layout.sorts:
            return tuple(self._written(group, rows, on_create, self._memory_bytes))
        schema, order, parts = to_arrow(self._schema), self._order(group.items), self._parts(group)
        writers = min(default_workers(self._memory_bytes // _FILE_BYTES), parts)

        def write(part: Iterable[pa.RecordBatch]) -> list[DataFile]:
            return list(self._written(group, part, on_create, self._memory_bytes // writers))

        with (
            sorted_parts(rows, schema, order, self._memory_bytes, parts, writers) as ordered,
            ThreadPoolExecutor(writers, thread_name_prefix="iceberg-sorted") as pool,
        ):
            return tuple(chain.from_iterable(pool.map(write, ordered)))

    def _parts(self, group: TaskGroup) -> int:
        """A part for each file that is expected; rows of several partitions stay together, for fewer files."""
        of_one = group.partition and self._spec.spec_id == self._metadata.default_spec_id
        return group.output_files if of_one or self._spec.is_unpartitioned() else 1

    def _written(
        self,
        group: TaskGroup,
        rows: Iterable[pa.RecordBatch],
        on_create: Callable[[str], None],
        buffer_bytes: int,
    ) -> Iterator[DataFile]:
        return write_data_files(
            self._metadata,
            self._storage,
            pa.RecordBatchReader.from_batches(to_arrow(self._schema), _joined(rows)),
            table=self._table,
            spec=self._spec,
            properties=self._properties | {TARGET_FILE_BYTES.name: str(group.output_bytes)},
            schema=self._schema,
            order=self._layout.order or (UNSORTED if self._layout.zorder else None),
            on_create=on_create,
            buffer_bytes=buffer_bytes,
        )

    def _rows(self, tasks: Sequence[FileScanTask], schema: Schema) -> Iterator[pa.RecordBatch]:
        filter_schema = self._metadata.schema()
        return read_tasks(
            tasks,
            filter_schema,
            schema,
            self._metadata,
            self._storage,
            workers=self._readers,
            buffer_bytes=self._memory_bytes // 8,
        )

    def _order(self, tasks: Sequence[FileScanTask]) -> RowOrder:
        if self._layout.order is not None:
            return RowSorter(self._schema, self._layout.order)
        columns = self._schema.select_ids(self._layout.zorder)
        return ZOrder(self._schema, self._layout.zorder, columns, self._sample(tasks, columns))

    def _sample(self, tasks: Sequence[FileScanTask], columns: Schema) -> Iterable[pa.RecordBatch]:
        """Some rows of files all over the group."""
        chosen = tasks[:: max(1, len(tasks) // _SAMPLED_FILES)][:_SAMPLED_FILES]
        rows = sum(task.file.record_count for task in chosen)
        every = max(1, rows // _SAMPLED_ROWS)
        for batch in self._rows(chosen, columns):
            yield batch.take(pa.array(np.arange(0, batch.num_rows, every)))


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are no smaller than is worth it."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.get_total_buffer_size()
        if rows >= _JOINED_ROWS or size >= _JOINED_BYTES:
            yield pa.concat_batches(held) if len(held) > 1 else batch
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_batches(held)


def _compression(properties: Mapping[str, str]) -> dict[str, str]:
    """The level that the table leaves open."""
    return {} if PARQUET_CODEC_LEVEL.name in properties or parquet_codec(properties) != "zstd" else _COMPRESSION
