"""Reading a planned scan to Arrow: columns by field id, deletes applied, the filter applied exactly.

Source: Iceberg specification, "Scan Planning", "Column Projection", "Delete Formats", "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from hms_iceberg.arrow.filesystems import parse_location
from hms_iceberg.arrow.parallel import default_workers, read_in_order
from hms_iceberg.arrow.schema import to_arrow
from hms_iceberg.arrow.task_reader import ScanContext, read_task
from hms_iceberg.scan.plan import FileScanTask, ScanPlan
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_BUFFER_BYTES = 256 * 1024 * 1024
_BATCH_ROWS = 131_072


def scan_to_batches(
    plan: ScanPlan,
    projected: Schema,
    metadata: TableMetadata,
    storage: Storage,
    *,
    batch_rows: int = _BATCH_ROWS,
    workers: int | None = None,
    buffer_bytes: int = _BUFFER_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The rows of a scan as record batches, in the order of the plan's files.

    Args:
        plan: what to read; its filter and deletes are applied.
        projected: the columns of the result, which may include metadata columns (``spec.metadata_columns``) and may be
            empty: then batches only have a number of rows.
        metadata: the table.
        storage: where its files are.
        batch_rows: at most so many rows a batch.
        workers: files read at once; by default one a processor, and more for a remote store.
        buffer_bytes: batches that wait for the reader, in bytes.

    Yields:
        Batches of the schema ``to_arrow(projected)``; none is empty.

    Raises:
        MissingFileError: a data or delete file is gone.
        CorruptDataFileError: a file is damaged.
        TypeMismatchError: a file's column cannot become the table's type.
    """
    tasks = plan.tasks()
    return read_tasks(
        tasks,
        plan.schema,
        projected,
        metadata,
        storage,
        batch_rows=batch_rows,
        workers=workers or default_workers(len(plan), not parse_location(metadata.location).is_local),
        buffer_bytes=buffer_bytes,
    )


def read_tasks(
    tasks: Iterable[FileScanTask],
    filter_schema: Schema,
    projected: Schema,
    metadata: TableMetadata,
    storage: Storage,
    *,
    batch_rows: int = _BATCH_ROWS,
    workers: int = 1,
    buffer_bytes: int = _BUFFER_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The rows of some tasks of a scan; see ``scan_to_batches``.

    Args:
        tasks: the files with their deletes and residual filters.
        filter_schema: the schema that the residuals are bound to.
        projected: the columns of the result.
        metadata: the table.
        storage: where its files are.
        batch_rows: at most so many rows a batch.
        workers: files read at once.
        buffer_bytes: batches that wait for the reader, in bytes.
    """
    context = ScanContext(metadata, storage, filter_schema, projected, batch_rows)
    return read_in_order(tasks, lambda task: read_task(context, task), workers, buffer_bytes)


def scan_to_table(plan: ScanPlan, projected: Schema, metadata: TableMetadata, storage: Storage) -> pa.Table:
    """All rows of a scan as one Arrow table; arguments and errors as of ``scan_to_batches``."""
    batches = list(scan_to_batches(plan, projected, metadata, storage))
    return pa.Table.from_batches(batches, to_arrow(projected))
