"""Groups of data files rewritten in this process, with Arrow and in bounded memory.

Source: Iceberg specification, "Row Lineage": a row that is written anew keeps its id and its sequence number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.formats.parquet_writer import parquet_codec
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.arrow.reading.row_rewrites import RowRewriter
from hms_iceberg.arrow.rows.row_order import RowOrder, RowSorter, ZOrder
from hms_iceberg.arrow.writing.external_sort import sorted_parts
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.maintenance.rewrite.commits import Replaced
from hms_iceberg.maintenance.rewrite.file_groups import FileGroup
from hms_iceberg.maintenance.rewrite.layout import Layout
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite
from hms_iceberg.maintenance.rewrite.run_groups import rewrite_groups, workers_for
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED
from hms_iceberg.spec.table_properties import PARQUET_CODEC_LEVEL, TARGET_FILE_BYTES
from hms_iceberg.storage import Storage

# Rows in memory over all groups: those that wait for their row group, and those that are being sorted.
_MEMORY_BYTES = 256 * 1024 * 1024
# Of them for a file, if several are written at once: a row group.
_FILE_BYTES = 128 * 1024 * 1024
# Apache Iceberg's level; pyarrow's own is 1. Files that are written once and read for long are 5% smaller, for 15% more
# time to encode them; a table's own level goes before it.
_COMPRESSION = {PARQUET_CODEC_LEVEL.name: PARQUET_CODEC_LEVEL.default_text}
_SAMPLED_FILES = 32
_SAMPLED_ROWS = 200_000


class LocalEngine:
    """Rewrites groups of files in this process."""

    def run(self, rewrite: DataFileRewrite) -> None:
        """Writes the groups of a plan, several at once, and hands each over when it is written.

        Raises:
            IcebergError: as of `rewrite_data_files`.
        """
        table, plan = rewrite.table, rewrite.plan
        workers = workers_for(rewrite.commits.rules, len(plan.groups))
        writer = GroupWriter(table.metadata, table.storage, rewrite.name, rewrite.layout, plan.output_spec_id, workers)

        def write(group: FileGroup[FileScanTask], on_create: Callable[[str], None]) -> Replaced:
            return Replaced(tuple(task.file for task in group.items), writer.rewrite(group, on_create))

        rewrite_groups(rewrite.commits, plan.groups, write, workers, rewrite.stop)


class GroupWriter:
    """Reads and writes groups of files with Arrow.

    Args:
        metadata: the table as it was planned.
        storage: where its files are.
        table: its name, for messages.
        layout: how rows are ordered.
        spec_id: the partition spec of the new files.
        groups_at_once: how many groups share the memory.
    """

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
        self._readers = None if groups_at_once == 1 else 1

    def rewrite(self, group: FileGroup[FileScanTask], on_create: Callable[[str], None]) -> tuple[DataFile, ...]:
        """Writes a group's live rows to new files.

        Args:
            group: the files with their deletes.
            on_create: called with each location before the file is made.

        Returns:
            The new files; none if no row is live.

        Raises:
            MissingFileError, CorruptDataFileError: a file is gone or damaged.
            StorageError: a file cannot be written.
            SchemaMismatchError, NullValueError, TypeMismatchError: rows of old files do not fit the table's schema.
        """
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

    def _parts(self, group: FileGroup[FileScanTask]) -> int:
        """A part for each file that is expected; rows of several partitions stay together, for fewer files."""
        of_one = group.partition and self._spec.spec_id == self._metadata.default_spec_id
        return group.output_files if of_one or self._spec.is_unpartitioned() else 1

    def _written(
        self,
        group: FileGroup[FileScanTask],
        rows: Iterable[pa.RecordBatch],
        on_create: Callable[[str], None],
        buffer_bytes: int,
    ) -> Iterator[DataFile]:
        return write_data_files(
            self._metadata,
            self._storage,
            pa.RecordBatchReader.from_batches(to_arrow(self._schema), rows),
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


def _compression(properties: Mapping[str, str]) -> dict[str, str]:
    """The level that the table leaves open."""
    return {} if PARQUET_CODEC_LEVEL.name in properties or parquet_codec(properties) != "zstd" else _COMPRESSION
