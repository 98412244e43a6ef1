"""Writing Arrow data as a table's data files: checked, partitioned, in bounded memory.

Source: Iceberg specification, "Writing data files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.columns.nested import pruned
from hms_iceberg.arrow.columns.partition_split import Partition, PartitionSplitter
from hms_iceberg.arrow.columns.row_order import RowSorter
from hms_iceberg.arrow.formats.content_writers import ContentFormat, ContentWriter, format_name
from hms_iceberg.arrow.formats.parquet_writer import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from hms_iceberg.arrow.metrics.metrics_modes import metrics_modes
from hms_iceberg.arrow.storage.data_locations import DataLocations
from hms_iceberg.errors import InvalidInputError, TypeMismatchError
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitioning import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sorting import UNSORTED, SortOrder
from hms_iceberg.spec.table_properties import bool_property, int_property
from hms_iceberg.storage import Storage

TARGET_FILE_BYTES = ("write.target-file-size-bytes", 512 * 1024 * 1024)
_DOWNCAST_NS = ("downcast-ns-timestamp-to-us-on-write", False)
# Rows that wait for their row group, over all open files; and files open at once.
_BUFFER_BYTES = 512 * 1024 * 1024
_OPEN_FILES = 256
_BATCH_ROWS = 131_072

# pyarrow.Table, RecordBatch or RecordBatchReader, an iterable of batches, or anything with __arrow_c_stream__.
ArrowInput = Any


def write_data_files(
    metadata: TableMetadata,
    storage: Storage,
    data: ArrowInput,
    *,
    table: str | None = None,
    spec: PartitionSpec | None = None,
    properties: Mapping[str, str] | None = None,
    schema: Schema | None = None,
    order: SortOrder | None = None,
    on_create: Callable[[str], None] | None = None,
    buffer_bytes: int = _BUFFER_BYTES,
) -> Iterator[DataFile]:
    """Writes rows to new data files of a table; the table itself is not changed.

    Args:
        metadata: the table's metadata: current schema, default spec and sort order, location and properties count.
        storage: where the files go.
        data: the rows; columns are matched by name. A table in memory is checked as a whole before the first file is
            written, a stream batch by batch.
        table: the table's name, for messages.
        spec: the partition spec, the table's default unless given.
        properties: write options that go before the table's properties.
        schema: the columns of the files; the table's current schema unless given.
        order: how rows are sorted, the table's sort order unless given.
        on_create: called with each location before the file is made, so that a failed write can be cleaned up.
        buffer_bytes: rows that wait for their row group, in bytes of memory over all partitions.

    Yields:
        Each data file once it is complete and visible.

    Raises:
        SchemaMismatchError, TypeMismatchError, NullValueError: the data does not fit the table.
        UnsupportedError: the file format or the partition spec cannot be written.
        StorageError: a file cannot be written; files already yielded stay, unfinished ones are removed.
    """
    options = {**metadata.properties, **(properties or {})}
    schema = schema or metadata.schema()
    rules = WriteRules(spec or metadata.spec(), options, metadata.sort_order() if order is None else order)
    files = FileRouter(metadata, storage, schema, rules, on_create, buffer_bytes)
    batches, incoming = batches_of(data)
    fit = SchemaFit(incoming, schema, table, bool_property(options, _DOWNCAST_NS))
    fitted: Iterable[pa.RecordBatch] = map(fit.fit, batches)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        fitted = files.sorted(list(fitted))  # every value is checked before anything is written
    return files.write(fitted)


def batches_of(data: ArrowInput) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """The batches of anything that can be written, and their schema.

    Raises:
        TypeMismatchError: not Arrow data.
        InvalidInputError: no batches, so that the columns are unknown.
    """
    if isinstance(data, pa.RecordBatch):
        return [data], data.schema
    if isinstance(data, pa.Table):
        return data.to_batches(max_chunksize=_BATCH_ROWS), data.schema
    if isinstance(data, pa.RecordBatchReader):
        return data, data.schema
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader, reader.schema
    if isinstance(data, Iterable):
        iterator: Iterator[Any] = iter(data)
        first = next(iterator, None)
        if isinstance(first, pa.RecordBatch):
            return _chain(first, iterator), first.schema
        if first is None:
            raise InvalidInputError("Cannot write an empty iterable: its columns are unknown. Pass a pyarrow.Table.")
    raise TypeMismatchError(
        f"Cannot write {type(data).__name__}: expected a pyarrow.Table, RecordBatch or RecordBatchReader, batches, or "
        f"any object with __arrow_c_stream__ (polars, DuckDB, pandas)."
    )


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


class _Lane:
    """The rows of one partition that wait, and the file they go to."""

    def __init__(self, partition: Partition, path: str) -> None:
        self.partition = partition
        self.path = path
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0
        self.writer: ContentWriter | None = None
        self.last: pa.RecordBatch | None = None
        self.in_order = True

    def add(self, batch: pa.RecordBatch) -> int:
        """Takes rows in; returns their bytes."""
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        return int(batch.nbytes)

    def take(self) -> tuple[list[pa.RecordBatch], int]:
        """The rows that waited, and their bytes; none wait afterwards."""
        batches, size = self.batches, self.bytes
        self.batches, self.rows, self.bytes = [], 0, 0
        return batches, size


@dataclass(frozen=True)
class WriteRules:
    """How rows become files.

    Args:
        spec: the partition spec of the files.
        properties: the table's properties, with write options before them.
        order: how rows are sorted.
        file_schema: the columns of the files, where they are fewer than those of the rows.
        fields: further fields of `DataFile` for each file; without `content` the files hold data.
    """

    spec: PartitionSpec
    properties: Mapping[str, str]
    order: SortOrder = UNSORTED
    file_schema: Schema | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class FileRouter:
    """Routes rows to one file a partition, rolling files at the target size.

    Args:
        metadata: the table.
        storage: where the files go.
        schema: the columns of the rows.
        rules: how rows become files.
        on_create: called with each location before the file is made.
        buffer_bytes: rows that wait for their row group, in bytes of memory over all partitions.

    Raises:
        ConfigurationError, UnsupportedError: a property, a type or the spec cannot be used.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        storage: Storage,
        schema: Schema,
        rules: WriteRules,
        on_create: Callable[[str], None] | None,
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        properties, order = rules.properties, rules.order
        is_data = "content" not in rules.fields
        self._schema = schema
        self._spec = rules.spec
        self._fields = rules.fields
        self._splitter = PartitionSplitter(schema, rules.spec)
        self._sorter = None if order.is_unsorted else RowSorter(schema, order)
        modes = metrics_modes(metadata.schema(), properties, order)
        name = format_name(properties, deletes=not is_data)
        self._file_schema = rules.file_schema
        self._format = ContentFormat(storage, name, rules.file_schema or schema, properties, modes)
        self._locations = DataLocations(metadata.location, properties, suffix=None if is_data else "deletes")
        self._on_create = on_create
        self._target_bytes = int_property(properties, TARGET_FILE_BYTES)
        self._group_bytes = min(int_property(properties, ROW_GROUP_BYTES), self._target_bytes)
        self._group_rows = int_property(properties, ROW_GROUP_ROWS)
        self._buffer_bytes = buffer_bytes
        self._waiting = 0
        self._lanes: dict[tuple[str, ...], _Lane] = {}

    def sorted(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Batches that are all of the rows, in the table's order."""
        if self._sorter is None or not batches:
            return batches
        return self._sorter.sort(pa.Table.from_batches(batches)).to_batches(max_chunksize=_BATCH_ROWS)

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[DataFile]:
        """Writes all batches; files of a write that fails are given up."""
        try:
            for batch in batches:
                for partition, rows in self._splitter.split(batch):
                    yield from self._add(partition, self._stored(rows))
            for lane in list(self._lanes.values()):
                yield from self._finish(lane)
        finally:
            for lane in self._lanes.values():
                if lane.writer is not None:
                    with suppress(Exception):
                        lane.writer.abandon()

    def _stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._file_schema is None:
            return rows
        columns = pruned(rows.columns, self._schema.fields, self._file_schema.fields)
        return pa.RecordBatch.from_arrays(columns, names=[field.name for field in self._file_schema.fields])

    def _add(self, partition: Partition, rows: pa.RecordBatch) -> Iterator[DataFile]:
        key = tuple(map(repr, partition))  # tells -0.0 from 0.0, and NaN equals NaN
        lane = self._lanes.pop(key, None) or _Lane(partition, self._path(partition))
        self._lanes[key] = lane  # the last written stands last
        fitting = self._group_bytes * rows.num_rows // max(rows.nbytes, 1)
        step = max(1, min(_BATCH_ROWS, self._group_rows, fitting))
        for start in range(0, rows.num_rows, step):
            self._waiting += lane.add(rows.slice(start, step))
            if lane.rows >= self._group_rows or lane.bytes >= self._group_bytes:
                yield from self._flush(lane)
        while self._waiting > self._buffer_bytes:
            yield from self._flush(max(self._lanes.values(), key=lambda each: each.bytes))
        open_lanes = [each for each in self._lanes.values() if each.writer is not None]
        for oldest in open_lanes[: max(0, len(open_lanes) - _OPEN_FILES)]:
            yield from self._finish(oldest)

    def _path(self, partition: Partition) -> str:
        if self._spec.is_unpartitioned():
            return ""
        return self._spec.partition_to_path(partition, self._schema)

    def _flush(self, lane: _Lane) -> Iterator[DataFile]:
        batches, size = lane.take()
        self._waiting -= size
        if self._sorter is not None:
            batches = self._in_order(self._sorter, lane, batches)
        if lane.writer is None:
            location = self._locations.next(lane.path, self._format.name)
            if self._on_create is not None:
                self._on_create(location)
            lane.writer = self._format.open(location)
        lane.writer.write_row_group(batches)
        if lane.writer.size >= self._target_bytes:
            yield self._close(lane)

    def _in_order(self, sorter: RowSorter, lane: _Lane, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """A group of rows sorted; a file only says that it is sorted where its groups follow one another."""
        ordered: list[pa.RecordBatch] = sorter.sort(pa.Table.from_batches(batches)).to_batches()
        if lane.last is not None and not sorter.follows(lane.last, ordered[0]):
            lane.in_order = False
        lane.last = ordered[-1].slice(ordered[-1].num_rows - 1)
        return ordered

    def _finish(self, lane: _Lane) -> Iterator[DataFile]:
        if lane.batches:
            yield from self._flush(lane)
        if lane.writer is not None:
            yield self._close(lane)

    def _close(self, lane: _Lane) -> DataFile:
        writer = lane.writer
        assert writer is not None
        order_id = self._sorter.order_id if self._sorter is not None and lane.in_order else None
        lane.writer, lane.last, lane.in_order = None, None, True
        return writer.close(
            spec_id=self._spec.spec_id, partition=lane.partition, sort_order_id=order_id, **self._fields
        )
