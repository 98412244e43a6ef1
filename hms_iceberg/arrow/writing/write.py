"""Writing Arrow data as a table's data files: checked, partitioned, in bounded memory.

Source: Iceberg specification, "Writing data files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.writing.file_router import BUFFER_BYTES, FileRouter, WriteRules
from hms_iceberg.errors import InvalidInputError, TypeMismatchError
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import DOWNCAST_NANOSECONDS
from hms_iceberg.storage import Storage

_BATCH_ROWS = 1_048_576

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
    buffer_bytes: int = BUFFER_BYTES,
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
        buffer_bytes: memory of rows that wait to be written, over all partitions. If rows of very many partitions come
            mixed, those that do not fit wait in the machine's temporary folder.

    Yields:
        Each data file once it is complete and visible.

    Raises:
        SchemaMismatchError, TypeMismatchError, NullValueError: the data does not fit the table.
        UnsupportedError: the file format or the partition spec cannot be written.
        StorageError: a file cannot be written, or the temporary folder is full; files already yielded stay, unfinished
            ones are removed.
    """
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
