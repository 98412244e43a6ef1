"""Writing Arrow data as a table's data files: each row to a file of its partition, in bounded memory.

Source: Iceberg specification, "Writing data files"; Iceberg documentation, "Configuration" (``write.target-file-size-
bytes``, ``write.parquet.*``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.columns.nested import pruned
from hms_iceberg.arrow.formats.content_files import ContentFormat, ContentWriter, format_name
from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.rows.partition_split import Partition, PartitionSplitter, grouped
from hms_iceberg.arrow.rows.row_order import RowSorter
from hms_iceberg.arrow.storage.data_locations import DataLocations
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.arrow.writing.external_sort import PartitionSpill
from hms_iceberg.arrow.writing.given_rows import ArrowInput, batches_of
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.spec.table_properties import (
    DOWNCAST_NANOSECONDS,
    PARQUET_ROW_GROUP_BYTES,
    PARQUET_ROW_GROUP_ROWS,
    TARGET_FILE_BYTES,
)
from hms_iceberg.storage import Storage

# Memory of rows that wait for their row group, over all open files.
BUFFER_BYTES = 512 * 1024 * 1024
# Files open at once; as many as half of the memory is enough for.
_LEAST_OPEN, _MOST_OPEN = 8, 256
_MANY = 1_000
# Rows that are split by partition at once: many, as every batch makes one small batch a partition.
_SPLIT_ROWS = 1_048_576
_SPLIT_BYTES = 128 * 1024 * 1024


# Tells -0.0 from 0.0, and NaN equals NaN.
_Key = tuple[str, ...]


class _PartitionRows:
    """The rows of one partition that wait, and the file they go to."""

    def __init__(self, partition: Partition, path: str) -> None:
        self.partition = partition
        self.path = path
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0
        self.writer: ContentWriter | None = None
        self.writing: tuple[Future[None], int] | None = None
        self.held = 0
        self.last: pa.RecordBatch | None = None
        self.in_order = True

    def add(self, batch: pa.RecordBatch, size: int) -> int:
        """Takes rows of so many bytes in, and returns these."""
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += size
        return size

    def take(self) -> tuple[list[pa.RecordBatch], int]:
        batches, size = self.batches, self.bytes
        self.batches, self.rows, self.bytes = [], 0, 0
        return batches, size


@dataclass(frozen=True)
class WriteRules:
    """How rows become files: formats, sizes, order and metrics, by write options, then the table's properties.
    `file_schema` are the columns of files that have fewer than the rows, `fields` further ones of `DataFile`."""

    spec: PartitionSpec
    properties: Mapping[str, str]
    order: SortOrder = UNSORTED
    file_schema: Schema | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class FileRouter:
    """Routes rows to one file a partition, rolled at the target size and encoded in the background; `buffer_bytes`
    bounds waiting rows over all partitions, and rows beyond it wait in the machine's temporary folder."""

    def __init__(
        self,
        metadata: TableMetadata,
        storage: Storage,
        schema: Schema,
        rules: WriteRules,
        on_create: Callable[[str], None] | None,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        properties, order = rules.properties, rules.order
        is_data = "content" not in rules.fields
        self._storage = storage
        self._folder = metadata.location
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
        self._target_bytes = TARGET_FILE_BYTES.of(properties)
        self._group_bytes = min(PARQUET_ROW_GROUP_BYTES.of(properties), self._target_bytes)
        self._group_rows = PARQUET_ROW_GROUP_ROWS.of(properties)
        self._buffer_bytes = buffer_bytes
        self._most_open = min(_MOST_OPEN, max(_LEAST_OPEN, buffer_bytes // 2 // self._format.open_bytes))
        self._waiting = 0
        self._open = 0
        self._held = 0
        self._adapted = False
        self._background: ThreadPoolExecutor | None = None
        self._partitions: dict[_Key, _PartitionRows] = {}
        self._closed: set[_Key] = set()
        self._reopened = 0

    def sorted(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        if self._sorter is None or not batches:
            return batches
        return self._sorter.sort(pa.Table.from_batches(batches)).to_batches()

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[DataFile]:
        """Writes all batches; files of a write that fails are given up."""
        if not isinstance(batches, list):  # which is in memory until the end
            batches = map(_owned, batches)
        try:
            yield from self._route(batches)
        finally:
            if self._background is not None:
                self._background.shutdown(cancel_futures=True)
            for waiting in self._partitions.values():
                if waiting.writer is not None:
                    with suppress(Exception):
                        waiting.writer.abandon()

    def _route(self, batches: Iterable[pa.RecordBatch], level: int = 0) -> Iterator[DataFile]:
        """Writes rows to the files of their partitions; those of too many partitions come back share by share."""
        spill: PartitionSpill | None = None
        try:
            for batch in batches if self._spec.is_unpartitioned() else self._regrouped(batches):
                partitions, codes = self._splitter.numbered(batch)
                if spill is None and max(len(partitions), self._reopened) > self._most_open:
                    spill = PartitionSpill(self._buffer_bytes // 4, level)
                if spill is not None:
                    spill.add(batch, list(map(_key, partitions)), codes)
                    continue
                parts = grouped(batch, codes, len(partitions))
                owned = parts if self._spec.is_unpartitioned() else map(_owned, parts)
                for partition, rows in zip(partitions, owned, strict=True):
                    yield from self._add(partition, self._stored(rows))
            yield from self._finish_all()
            self._reopened = 0
            for size, rows_of_some in spill.shares() if spill is not None else ():
                yield from self._share(size, rows_of_some, level + 1)
        finally:
            if spill is not None:
                spill.close()

    def _share(self, size: int, batches: Iterator[pa.RecordBatch], level: int) -> Iterator[DataFile]:
        if size > self._buffer_bytes // 4:
            yield from self._route(batches, level)
            return
        held = list(batches)
        if held:
            parts = self._splitter.split(pa.concat_batches(held))
            held.clear()
            for partition, rows in parts:
                self._waiting += self._of(partition).add(self._stored(rows), rows.nbytes)
            yield from self._finish_all()

    def _adapt(self) -> None:
        """Fits the format to the first rows, before the first file is opened."""
        if self._adapted or not self._partitions:
            return
        self._adapted = True
        most = max(self._partitions.values(), key=lambda each: each.rows)
        share = self._buffer_bytes // 4 // min(len(self._partitions), self._most_open)
        self._format.adapt(most.batches, share)

    def _regrouped(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows in batches that are worth to be split: small ones put together, large ones cut."""
        held: list[pa.RecordBatch] = []
        limit = min(_SPLIT_BYTES, self._buffer_bytes // 16)  # thrice in memory: as it came, put together, by partition
        rows = size = 0
        for batch in batches:
            most = max(1, int(limit * batch.num_rows / max(batch.nbytes, 1)))
            for start in range(0, batch.num_rows, most):
                part = batch.slice(start, most)
                if held and (rows + part.num_rows > _SPLIT_ROWS or size + part.nbytes > limit):
                    yield pa.concat_batches(held)
                    held, rows, size = [], 0, 0
                held.append(part)
                rows, size = rows + part.num_rows, size + part.nbytes
        if held:
            yield pa.concat_batches(held)

    def _stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._file_schema is None:
            return rows
        columns = pruned(rows.columns, self._schema.fields, self._file_schema.fields)
        return pa.RecordBatch.from_arrays(columns, names=[field.name for field in self._file_schema.fields])

    def _of(self, partition: Partition) -> _PartitionRows:
        """The waiting rows of a partition, which becomes the most recently used one."""
        key = _key(partition)
        waiting = self._partitions.pop(key, None)
        if waiting is None:
            waiting = _PartitionRows(partition, self._path(partition))
            self._reopened += key in self._closed
        self._partitions[key] = waiting
        return waiting

    def _add(self, partition: Partition, rows: pa.RecordBatch) -> Iterator[DataFile]:
        waiting = self._of(partition)
        row_bytes = max(rows.nbytes / rows.num_rows, 1)
        start = 0
        while start < rows.num_rows:
            fitting = int((self._group_bytes - waiting.bytes) / row_bytes)
            part = rows.slice(start, max(1, min(self._group_rows - waiting.rows, fitting)))
            start += part.num_rows
            self._waiting += waiting.add(part, int(part.num_rows * row_bytes))
            if waiting.rows >= self._group_rows or waiting.bytes + row_bytes > self._group_bytes:
                yield from self._flush(waiting)
        while self._waiting > max(self._buffer_bytes * 3 // 4 - self._held, self._buffer_bytes // 8):
            written = next((each for each in self._partitions.values() if each.writing is not None), None)
            if written is not None:
                yield from self._settle(written)
            elif len(self._partitions) > self._most_open:
                yield from self._finish_first()
            else:
                yield from self._flush(max(self._partitions.values(), key=lambda each: each.bytes))
        while self._open > self._most_open:
            yield from self._finish_first()

    def _finish_first(self) -> Iterator[DataFile]:
        """Finishes the partition that was written to longest ago."""
        key = next(iter(self._partitions))
        self._closed.add(key)
        self._adapt()
        yield from self._finish(self._partitions[key])
        del self._partitions[key]

    def _path(self, partition: Partition) -> str:
        if self._spec.is_unpartitioned():
            return ""
        return self._spec.partition_to_path(partition, self._schema)

    def _flush(self, waiting: _PartitionRows) -> Iterator[DataFile]:
        """Starts writing the waiting rows in the background, once the row group before them is written."""
        self._adapt()
        yield from self._settle(waiting)
        write, size = self._next_group(waiting)
        if self._background is None:
            self._background = ThreadPoolExecutor(default_workers(_MANY), thread_name_prefix="iceberg-encode")
        waiting.writing = self._background.submit(write), size

    def _settle(self, waiting: _PartitionRows) -> Iterator[DataFile]:
        """Waits for the group that is being written, and closes a file that is full with it."""
        if waiting.writing is None:
            return
        future, size = waiting.writing
        waiting.writing = None
        self._waiting -= size
        future.result()
        yield from self._roll(waiting)

    def _roll(self, waiting: _PartitionRows) -> Iterator[DataFile]:
        if waiting.writer is None:
            return
        if waiting.writer.size >= self._target_bytes:
            yield self._close(waiting)
            return
        held = waiting.writer.held
        self._held += held - waiting.held
        waiting.held = held

    def _next_group(self, waiting: _PartitionRows) -> tuple[Callable[[], None], int]:
        """A function that writes the waiting rows, and the size of these rows in bytes."""
        rows = waiting.rows
        batches, size = waiting.take()
        if self._sorter is not None:
            batches = self._in_order(self._sorter, waiting, batches)
        if waiting.writer is None:
            location = self._locations.next(waiting.path, self._format.name)
            if self._on_create is not None:
                self._on_create(location)
            waiting.writer = self._format.open(location, rows)
            self._open += 1
        return partial(waiting.writer.write_row_group, batches), size

    def _in_order(
        self, sorter: RowSorter, waiting: _PartitionRows, batches: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        """A group of rows sorted; a file only says that it is sorted if its groups follow one another."""
        ordered: list[pa.RecordBatch] = sorter.sort(pa.Table.from_batches(batches)).to_batches()
        if waiting.last is not None and not sorter.follows(waiting.last, ordered[0]):
            waiting.in_order = False
        waiting.last = ordered[-1].slice(ordered[-1].num_rows - 1)
        return ordered

    def _finish_all(self) -> Iterator[DataFile]:
        """Writes all waiting rows and closes the files, several at once: encoding and compressing needs no interpreter
        lock."""
        self._adapt()
        partitions = list(self._partitions.values())
        self._closed.update(self._partitions)
        workers = default_workers(len(partitions), remote=not parse_location(self._folder).is_local)
        pool = ThreadPoolExecutor(workers, thread_name_prefix="iceberg-write")
        finished = deque(pool.submit(list, self._finish(each)) for each in partitions)
        try:
            while finished:
                yield from finished.popleft().result()
            self._partitions.clear()
            self._waiting = self._open = self._held = 0
        finally:
            pool.shutdown(cancel_futures=True)
            for each in finished:  # if one failed, or nobody reads on
                if not each.cancelled() and each.exception() is None:
                    for file in each.result():
                        with suppress(Exception):
                            self._storage.delete(file.file_path)

    def _finish(self, waiting: _PartitionRows) -> Iterator[DataFile]:
        yield from self._settle(waiting)
        if waiting.batches:
            write, size = self._next_group(waiting)
            write()
            self._waiting -= size
            yield from self._roll(waiting)
        if waiting.writer is not None:
            yield self._close(waiting)

    def _close(self, waiting: _PartitionRows) -> DataFile:
        writer = waiting.writer
        assert writer is not None
        order = self._sorter if self._sorter is not None and waiting.in_order else UNSORTED
        waiting.writer, waiting.last, waiting.in_order = None, None, True
        self._open -= 1
        self._held -= waiting.held
        waiting.held = 0
        return writer.close(
            spec_id=self._spec.spec_id, partition=waiting.partition, sort_order_id=order.order_id, **self._fields
        )


def _key(partition: Partition) -> _Key:
    return tuple(map(repr, partition))


def _owned(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows copied into memory of their own if they are a small part of a larger buffer, which they would keep
    alive."""
    if rows.get_total_buffer_size() <= 2 * rows.nbytes:
        return rows
    return pa.concat_batches([rows, rows.slice(0, 0)])


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
    buffer_bytes: int = BUFFER_BYTES,
) -> Iterator[DataFile]:
    """Writes rows (columns by name) to new data files, each yielded once it is complete; the table is not changed. A
    table in memory is checked whole before the first file, a stream batch by batch; `on_create` gets each location
    before its file is made; after a failure, yielded files stay and unfinished ones go."""
    options = {**metadata.properties, **(properties or {})}
    schema = schema or metadata.schema()
    rules = WriteRules(spec or metadata.spec(), options, metadata.sort_order() if order is None else order)
    files = FileRouter(metadata, storage, schema, rules, on_create, buffer_bytes)
    batches, incoming = batches_of(data)
    fit = SchemaFit(incoming, schema, table, DOWNCAST_NANOSECONDS.of(options))
    fitted: Iterable[pa.RecordBatch] = map(fit.fit, batches)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        fitted = files.sorted(list(fitted))  # every value is checked before anything is written
    return files.write(fitted)
