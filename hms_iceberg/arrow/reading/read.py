"""Reading a planned scan to Arrow: columns by field id, deletes applied, the filter applied exactly.

Source: Iceberg specification, "Scan Planning", "Column Projection", "Delete Formats", "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import cast

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.frames import empty_frame, to_polars
from hms_iceberg.arrow.parallel import default_workers, read_in_order
from hms_iceberg.arrow.reading.file_runs import read_run, runs
from hms_iceberg.arrow.reading.scan_context import KEPT_BYTES, STREAMED_BYTES, FrameRows, ScanContext, WantedFrame
from hms_iceberg.arrow.reading.task_reader import count_live
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.lazy import pl
from hms_iceberg.scan.splitting import split
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_BUFFER_BYTES = 256 * 1024 * 1024
_BATCH_ROWS = 131_072
# If all batches are kept, fewer and larger ones cost less, and none has to wait for its turn.
_WHOLE_BATCH_ROWS = 1 << 20
_WHOLE_BYTES = 1 << 62
_MANY = 1 << 20
# So many bytes of batches become a frame at once.
_FRAME_BYTES = 8 * 1024 * 1024
# One thread decodes an ORC file, stripe after stripe: parts of a larger one are read side by side, if all is kept.
_ORC_PART_BYTES = 64 * 1024 * 1024


def scan_to_batches(
    plan: ScanPlan, projected: Schema, metadata: TableMetadata, storage: Storage
) -> Iterator[pa.RecordBatch]:
    """The rows of a scan as batches, none empty, in the order of the plan's files, with its filter and deletes applied;
    `projected` may hold metadata columns, or nothing (then only rows are counted)."""
    return read_tasks(plan.tasks(), plan.schema, projected, metadata, storage)


def read_tasks(
    tasks: Iterable[FileScanTask],
    filter_schema: Schema,
    projected: Schema,
    metadata: TableMetadata,
    storage: Storage,
    *,
    batch_rows: int = _BATCH_ROWS,
    workers: int | None = None,
    buffer_bytes: int = _BUFFER_BYTES,
    marks_deleted: bool = False,
    decoded_bytes: int = STREAMED_BYTES,
    most_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some tasks of a scan (see `scan_to_batches`): `workers` files are read at once, and `buffer_bytes` of
    batches wait for the reader. `marks_deleted` reads deleted rows too, told by `_deleted`; a range decoded whole takes
    at most `decoded_bytes`. Who takes only the first `most_rows` says so: fewer are decoded then."""
    context = ScanContext(
        metadata, storage, filter_schema, projected, batch_rows, marks_deleted, None, decoded_bytes, most_rows
    )
    return cast("Iterator[pa.RecordBatch]", _read(context, tasks, buffer_bytes, workers))


def _read(
    context: ScanContext, tasks: Iterable[FileScanTask], buffer_bytes: int, workers: int | None = None
) -> Iterator[pa.RecordBatch | FrameRows]:
    together = runs(context, tasks)
    if workers is None:
        is_remote = not parse_location(context.metadata.location).is_local
        first = list(islice(together, default_workers(_MANY, is_remote)))
        together, workers = chain(first, together), max(len(first), 1)
    return read_in_order(together, lambda run: read_run(context, run), workers, buffer_bytes)


def read_frames(
    tasks: Iterable[FileScanTask],
    filter_schema: Schema,
    projected: Schema,
    metadata: TableMetadata,
    storage: Storage,
    wanted: WantedFrame,
    buffer_bytes: int = _BUFFER_BYTES,
) -> Iterator[pl.DataFrame]:
    """The rows of some tasks of a scan as frames of polars, those that match the test of `wanted`, too."""
    context = ScanContext(metadata, storage, filter_schema, projected, _BATCH_ROWS, False, wanted, KEPT_BYTES)
    for rows in _joined(_read(context, tasks, buffer_bytes)):
        if isinstance(rows, FrameRows):
            yield rows.frame
            continue
        frame = to_polars(rows)
        yield frame if wanted.test is None else frame.filter(wanted.test)


def _joined(rows: Iterable[pa.RecordBatch | FrameRows]) -> Iterator[pa.Table | FrameRows]:
    """Batches that follow one another as tables of some size, since each becomes a frame at a cost of its own."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for each in rows:
        if waiting and (isinstance(each, FrameRows) or size >= _FRAME_BYTES):
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
        if isinstance(each, FrameRows):
            yield each
        else:
            waiting.append(each)
            size += each.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting)


def read_whole_frame(
    tasks: Iterable[FileScanTask],
    filter_schema: Schema,
    projected: Schema,
    metadata: TableMetadata,
    storage: Storage,
) -> pl.DataFrame:
    """The rows of some tasks of a scan as one frame of polars."""
    empty = empty_frame(projected)
    wanted = WantedFrame(empty.schema)
    frames = read_frames(tasks, filter_schema, projected, metadata, storage, wanted, _WHOLE_BYTES)
    return pl.concat([empty, *frames])


def read_all(
    tasks: Iterable[FileScanTask], filter_schema: Schema, projected: Schema, metadata: TableMetadata, storage: Storage
) -> pa.Table:
    """The rows of some tasks of a scan as one table."""
    batches = read_tasks(
        chain.from_iterable(map(_parts, tasks)),
        filter_schema,
        projected,
        metadata,
        storage,
        batch_rows=_WHOLE_BATCH_ROWS,
        buffer_bytes=_WHOLE_BYTES,
        decoded_bytes=KEPT_BYTES,
    )
    return pa.Table.from_batches(list(batches), to_arrow(projected))


def _parts(task: FileScanTask) -> Iterable[FileScanTask]:
    """The parts of a file that several threads read."""
    return split(task, _ORC_PART_BYTES) if task.file.file_format.upper() == "ORC" else (task,)


def count_rows(plans: Iterable[ScanPlan], metadata: TableMetadata, storage: Storage) -> int:
    """Counts live, matching rows; no data file is opened if metadata and position deletes tell the number. The plans
    must know of which files every row matches (`ScanRequest.decide`)."""
    nothing = Schema()
    total = 0
    for plan in plans:
        files = plan.files.with_row_index("data_file").filter(plan.count_deletes() == 0)
        known = files.filter(pl.col("all_match") & (pl.col("record_count") >= 0))
        total += int(known["record_count"].sum())
        if known.height == len(plan):
            continue
        is_known = pl.Series([False]).new_from_index(0, len(plan)).scatter(known["data_file"], True).to_list()
        context = ScanContext(metadata, storage, plan.schema, nothing, _BATCH_ROWS)
        unread = []
        for done, task in zip(is_known, plan.tasks(), strict=True):
            counted = None if done else count_live(context, task)
            total += counted or 0
            if not done and counted is None:
                unread.append(task)
        batches = read_tasks(unread, plan.schema, nothing, metadata, storage, decoded_bytes=KEPT_BYTES)
        total += sum(batch.num_rows for batch in batches)
    return total


def up_to(tasks: Iterable[FileScanTask], limit: int | None) -> Iterator[FileScanTask]:
    """The first tasks that certainly have `limit` rows; all of them if it is not certain, or the limit is None."""
    rows = 0
    for task in tasks:
        if limit is not None and rows >= limit:
            return
        yield task
        if limit is not None and isinstance(task.residual, AlwaysTrue) and not task.delete_files:
            rows += task.file.record_count
