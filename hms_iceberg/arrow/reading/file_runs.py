"""Small files that are read together: a file of its own takes as long to begin with as thousands of rows.

Polars reads the files of one layout in one scan, in the order of their tasks. A file that cannot be joined with the
others, or that Polars refuses, is read on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.formats.content_files import check_row_count, open_reader
from hms_iceberg.arrow.reading.scan_context import FrameRows, ScanContext
from hms_iceberg.arrow.reading.task_columns import LINEAGE
from hms_iceberg.arrow.reading.task_deletes import TaskDeletes, WantedColumns
from hms_iceberg.arrow.reading.task_reader import TaskReader, read_rows
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.expressions.tree import AlwaysFalse
from hms_iceberg.scan.manifests.manifest_source import named_snapshot
from hms_iceberg.scan.splitting import packed
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec import metadata_columns as columns

# Files are read together of whose columns so many bytes are read, and so many of them; others are read meanwhile.
_RUN_BYTES = 16 * 1024 * 1024
_RUN_FILES = 64
Rows: TypeAlias = pa.RecordBatch | FrameRows


def runs(context: ScanContext, tasks: Iterable[FileScanTask]) -> Iterator[Sequence[FileScanTask]]:
    """Tasks in their order, those of small files that follow one another together."""
    fields = context.projected.fields
    are_flat = all(
        each.field_id in LINEAGE or (each.field_type.is_primitive and not columns.is_metadata_column(each.field_id))
        for each in fields
    )
    if not are_flat or context.marks_deleted or context.most_rows is not None:
        yield from ((task,) for task in tasks)
        return
    part = min(1.0, (len(fields) + 1) / max(len(context.filter_schema.fields), 1))  # the filter's column, too

    def size(task: FileScanTask) -> int:
        return int(task.file.file_size_in_bytes * part) if _may_be_joined(context, task) else _RUN_BYTES

    wanted = (each for each in tasks if not isinstance(each.residual, AlwaysFalse))
    yield from packed(wanted, size, _RUN_BYTES, _RUN_FILES)


def _may_be_joined(context: ScanContext, task: FileScanTask) -> bool:
    """Whether a file may be read with others, as far as it can be told before it is opened. Those of remote stores are
    opened side by side, each by a thread of its own."""
    is_whole = task.byte_range is None and not task.delete_files.has_equality_deletes
    is_plain = task.file.file_format.upper() == "PARQUET" and task.file.key_metadata is None
    return is_whole and is_plain and context.is_local(task.file.file_path)


def read_run(context: ScanContext, tasks: Sequence[FileScanTask]) -> Iterator[Rows]:
    """The rows of a run's tasks; see `read_rows`."""
    if len(tasks) == 1:
        yield from read_rows(context, tasks[0])
        return
    alike: list[_OpenedFile] = []
    for task in tasks:
        opened = _OpenedFile(context, task)
        if alike and not alike[0].may_take(opened):
            yield from _rows_of(context, alike)
            alike = []
        alike.append(opened)
    yield from _rows_of(context, alike)


def _rows_of(context: ScanContext, files: Sequence[_OpenedFile]) -> Iterator[Rows]:
    """The rows of files that may be read together."""
    rows = None
    if len(files) > 1:
        with context.reading():
            rows = files[0].joined(files)
    if rows is None:
        rows = chain.from_iterable(read_rows(context, each.task) for each in files)
    yield from (each for each in rows if each is not None)


class _OpenedFile:
    """A file whose footer was read."""

    def __init__(self, context: ScanContext, task: FileScanTask) -> None:
        self.task = task
        self._wanted = WantedColumns()
        self._context = context
        with named_snapshot(task.snapshot_id, context.metadata.location):
            file = task.file
            self._deletes = TaskDeletes(context, file, task.delete_files, self._wanted)
            self._content = open_reader(context.storage, file.file_path, file.file_format, context.mapping)
            self._content.close()
            check_row_count(self._content, file)

    @cached_property
    def _reader(self) -> TaskReader:
        frames = self._content.frames
        return TaskReader(self._context, self.task, self._content, frames, self._wanted, self._deletes)

    @cached_property
    def _takes_others(self) -> bool:
        return self._reader.may_be_joined

    def may_take(self, other: _OpenedFile) -> bool:
        """Whether the rows of another file may come with those of this one."""
        return self._takes_others and self._reader.may_take(other.task, other._content)

    def joined(self, files: Sequence[_OpenedFile]) -> Iterable[Rows | None] | None:
        """The rows of this file and others, read together; None if they are to be read one by one."""
        removed, start = [], 0
        for each in files:
            if each._deletes.positions is not None:
                removed.append(each._deletes.positions + start)
            start += each.task.file.record_count
        others = [each._content.frames for each in files[1:] if each._content.frames is not None]
        tasks = [each.task for each in files]
        return self._reader.joined(tasks, others, np.concatenate(removed) if removed else None)
