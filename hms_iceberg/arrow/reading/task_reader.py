"""Reading one task of a scan: a data file, the deletes that apply to it, and what is left of the filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import constant, field_id_of
from hms_iceberg.arrow.columns.nested import RowSelection, conform, rows_only
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.formats.content_files import ContentReader, check_row_count, open_reader
from hms_iceberg.arrow.formats.parquet_frames import DecodedRows, FrameColumns, FrameReader
from hms_iceberg.arrow.formats.parquet_reader import RangeMetrics, RowRange
from hms_iceberg.arrow.metrics.footer_metrics import ColumnMetrics
from hms_iceberg.arrow.reading.scan_context import STREAMED_BYTES, FrameRows, ScanContext
from hms_iceberg.arrow.reading.task_columns import LINEAGE, TaskColumns
from hms_iceberg.arrow.reading.task_deletes import BatchColumns, TaskDeletes, WantedColumns
from hms_iceberg.arrow.rows.frame_tests import FrameTest, file_column
from hms_iceberg.arrow.rows.row_masks import matching_rows
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.expressions.bound import BoundReference
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import bound_predicates, referenced_field_ids
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_source import named_snapshot
from hms_iceberg.scan.metadata_filter import is_of_table, only_tests
from hms_iceberg.scan.metrics_filter import files_may_match
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec import metadata_columns as columns
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import to_bytes

# Keys of equality deletes are looked up in larger batches, since each look-up has a cost of its own.
_KEYED_BATCH_ROWS = 1 << 20
# So few values are decoded sooner than it is found out whether any of them matches.
_FEW_VALUES = 100_000
_POSITION = columns.POSITION.field_id


def read_task(
    context: ScanContext, task: FileScanTask, deleted_by: Sequence[DataFile] | None = None
) -> Iterator[pa.RecordBatch]:
    """The live, matching rows of a task's data file; those that one of `deleted_by` removes if it is given. No batch is
    empty."""
    assert context.frame is None
    return cast("Iterator[pa.RecordBatch]", read_rows(context, task, deleted_by))


def read_rows(
    context: ScanContext, task: FileScanTask, deleted_by: Sequence[DataFile] | None = None
) -> Iterator[pa.RecordBatch | FrameRows]:
    """The rows of `read_task` as batches, or frames if the context wants some; a frame's rows match its test, too."""
    if isinstance(task.residual, AlwaysFalse):
        return
    with named_snapshot(task.snapshot_id, context.metadata.location), context.reading():
        yield from _read(context, task, deleted_by)


def _read(
    context: ScanContext, task: FileScanTask, deleted_by: Sequence[DataFile] | None
) -> Iterator[pa.RecordBatch | FrameRows]:
    wanted = WantedColumns()
    deletes = TaskDeletes(context, task.file, task.delete_files, wanted)
    only = None if deleted_by is None else TaskDeletes(context, task.file, deleted_by, wanted)
    if only is not None and only.removes_nothing_beyond(deletes):
        return
    file = task.file
    reader = open_reader(context.storage, file.file_path, file.file_format, context.mapping, file.key_metadata)
    try:
        check_row_count(reader, file)
        frames = reader.frames if reader.frames is not None and reader.frames.may_be_quick else None
        yield from TaskReader(context, task, reader, frames, wanted, deletes, only).batches()
    finally:
        reader.close()


def count_live(context: ScanContext, task: FileScanTask) -> int | None:
    """Counts the live, matching rows of a task's file by metadata and position deletes; None if rows must be read."""
    rows = task.file.record_count
    if not isinstance(task.residual, AlwaysTrue) or rows < 0:
        return None
    if task.delete_files.has_equality_deletes:
        return None
    return rows - TaskDeletes(context, task.file, task.delete_files, WantedColumns()).positions_in(
        RowRange(0, 0, rows, 0)
    )


class TaskReader:
    """Reads the rows of an open file that a task wants, by `frames`, if they are given, where that is quicker; with
    `only` those that some other deletes remove."""

    def __init__(
        self,
        context: ScanContext,
        task: FileScanTask,
        reader: ContentReader,
        frames: FrameReader | None,
        wanted: WantedColumns,
        deletes: TaskDeletes,
        only: TaskDeletes | None = None,
    ) -> None:
        self._context = context
        self._task = task
        self._reader = reader
        self._frames = frames
        self._told = TaskColumns((task,), context.metadata)
        self._deletes = deletes
        self._only = only
        self._outputs = [self._output(wanted, field) for field in context.projected.fields]
        self._quick = FrameTest.of(task.residual, frames)
        self._filter_columns: dict[BoundReference, int | None] = {}
        self._add_filter_columns(wanted, self._quick.rest)
        quick = wanted.fields  # without the columns that only Polars tests
        self._add_filter_columns(wanted, task.residual)
        self._wanted = wanted.fields
        self._quick_wanted = quick

    def _add_filter_columns(self, wanted: WantedColumns, expression: BooleanExpression) -> None:
        for each in bound_predicates(expression):
            self._filter_columns[each.ref] = self._filter_column(wanted, each.ref)

    def _filter_column(self, wanted: WantedColumns, ref: BoundReference) -> int | None:
        """The place of a column of the filter among those made of the file; None for one that is not in files."""
        if columns.is_metadata_column(ref.field_id):
            return self._output(wanted, ref.field)
        return wanted.index(_pruned(self._context.filter_schema, ref.field_id))

    def _output(self, wanted: WantedColumns, field: NestedField) -> int | None:
        """The place of an output column among those made of the file; None for one that is not in files."""
        if field.field_id in (columns.ROW_ID.field_id, columns.LAST_UPDATED_SEQUENCE_NUMBER.field_id):
            return wanted.index(NestedField(field.field_id, field.name, LongType()))
        return None if columns.is_metadata_column(field.field_id) else wanted.index(field)

    @cached_property
    def _projection(self) -> FileProjection:
        return self._context.projection(self._reader, self._wanted, self._task.file)

    @cached_property
    def _quick_projection(self) -> FileProjection:
        if self._frames is None:
            return self._projection
        return self._context.projection(self._reader, self._quick_wanted, self._task.file, self._frames.schema)

    # --------------------------------------------------------------------------------- several files together

    @property
    def may_be_joined(self) -> bool:
        """Whether rows of other files may come with those of this one, as Polars decodes them all, and nothing but
        deletes depends on where a row is."""
        if self._frames is None or not self._is_read_whole(self._reader):
            return False
        ids = [ref.field_id for ref in self._filter_columns]
        ids += [each.field_id for each in self._context.projected.fields if each.field_id not in LINEAGE]
        if any(map(columns.is_metadata_column, ids)):
            return False
        return self._frames.reads_all({*self._quick_projection.leaves, *self._quick.leaves})

    def may_take(self, task: FileScanTask, reader: ContentReader) -> bool:
        """Whether the rows of another file, without deletes by key, are made of its columns in the same way."""
        frames, constants = reader.frames, self._context.constants(task.file)
        return (
            self._frames is not None
            and frames is not None
            and task.residual == self._task.residual
            and (task.file.first_row_id is None) == (self._task.file.first_row_id is None)
            and frames.is_like(self._frames)
            and self._quick_projection.fits(frames.schema, self._quick_wanted, constants)
            and self._is_read_whole(reader)
        )

    def _is_read_whole(self, reader: ContentReader) -> bool:
        """Whether the statistics of a file leave out none of its row groups, or are not worth being asked."""
        if isinstance(self._task.residual, AlwaysTrue):
            return True
        ranges = reader.ranges()
        if len(ranges) == 1 and ranges[0].rows * len(self._filter_columns) < _FEW_VALUES:
            return True
        return len(self._matching(reader, ranges)) == len(ranges)

    def joined(
        self, tasks: Sequence[FileScanTask], others: Sequence[FrameReader], removed: Any | None
    ) -> Iterable[pa.RecordBatch | FrameRows | None] | None:
        """The rows of the file and of others that it may take, of `tasks`, without those at the positions `removed` of
        them all; None if they are to be read one by one."""
        assert self._frames is not None
        told = TaskColumns(tasks, self._context.metadata)
        numbered = told.needs_positions(self._context.projected)
        leaves, tested = self._quick_projection.leaves, self._quick.leaves
        rows = self._frames.rows + sum(each.rows for each in others)
        size = self._frames.decoded_bytes(self._frames.groups, leaves, others)
        if not self._frames.is_enough(rows, leaves, tested) or size > self._context.decoded_bytes:
            return None
        decoded = self._frames.read(
            self._frames.groups,
            0,
            leaves,
            self._quick.test,
            tested,
            removed,
            self._frame_columns,
            numbered,
            None,
            others,
        )
        if decoded is None:
            return None
        return self._made(decoded, size * decoded.count // rows, self._context.batch_rows, told)

    # -------------------------------------------------------------------------------------------- reading

    def batches(self) -> Iterator[pa.RecordBatch | FrameRows]:
        batch_rows = self._context.batch_rows
        if self._deletes.has_keys or (self._only is not None and self._only.has_keys):
            batch_rows = max(_KEYED_BATCH_ROWS, batch_rows)
        for run in self._runs():
            for result in self._results(run, batch_rows):
                if result is not None:
                    yield result

    def _runs(self) -> Iterator[list[RowRange]]:
        """Ranges that follow one another, so many as Polars reads together; twice as many each time, as the first rows
        may be enough."""
        run: list[RowRange] = []
        most = 1
        for rows in self._ranges():
            is_next = bool(run) and rows.index == run[-1].index + 1
            if run and not (is_next and len(run) < most and self._is_quick([*run, rows], STREAMED_BYTES)):
                yield run
                run, most = [], 2 * most
            run.append(rows)
        if run:
            yield run

    def _results(self, run: Sequence[RowRange], batch_rows: int) -> Iterator[pa.RecordBatch | FrameRows | None]:
        decoded = self._decoded(run)
        if decoded is None:
            for rows in run:
                yield from self._read_on_its_own(rows, batch_rows)
            return
        assert self._frames is not None
        size = self._frames.decoded_bytes([rows.index for rows in run], self._quick_projection.leaves)
        yield from self._made(decoded, size * decoded.count // sum(rows.rows for rows in run), batch_rows, self._told)

    def _made(
        self, decoded: DecodedRows, size: int, batch_rows: int, told: TaskColumns
    ) -> Iterator[pa.RecordBatch | FrameRows | None]:
        """What is wanted of rows that Polars decoded, which take about `size` bytes."""
        if self._frame_columns is not None:
            yield FrameRows(decoded.frame, size) if decoded.count else None
            return
        for where, batch in decoded.batches(batch_rows):
            marks = self._context.marks_deleted
            yield self._result(where, batch, self._quick_projection, self._quick.rest, told, by_position=marks)

    def _read_on_its_own(self, rows: RowRange, batch_rows: int) -> Iterator[pa.RecordBatch | None]:
        if self._holds_no_match(rows):
            return
        spare = self._context.spare_processors and not self._is_small(rows)
        for position, batch in self._reader.read(rows, self._projection.leaves, batch_rows, spare):
            yield self._result(position, batch, self._projection, self._task.residual, self._told)

    def _is_quick(self, run: Sequence[RowRange], most_bytes: int) -> bool:
        groups = [rows.index for rows in run]
        frames, tested = self._frames, self._quick.leaves
        return frames is not None and frames.is_quick(groups, self._quick_projection.leaves, tested, most_bytes)

    def _decoded(self, run: Sequence[RowRange]) -> DecodedRows | None:
        """The rows of ranges that Polars finds to match its part of the filter; None if each is read on its own."""
        frames = self._frames
        if frames is None or not self._is_quick(run, self._context.decoded_bytes):
            return None
        removed = None if self._context.marks_deleted else self._deletes.positions
        return frames.read(
            [rows.index for rows in run],
            run[0].start,
            self._quick_projection.leaves,
            self._quick.test,
            self._quick.leaves,
            removed,
            self._frame_columns,
            self._asks_for_positions,
            self._context.most_rows if self._takes_all else None,
        )

    @property
    def _takes_all(self) -> bool:
        """Whether every row of the file is a row of the result."""
        has_deletes = self._deletes.has_keys or self._deletes.positions is not None
        return isinstance(self._task.residual, AlwaysTrue) and not has_deletes and self._only is None

    @cached_property
    def _asks_for_positions(self) -> bool:
        """Whether anything but the filter of Polars may depend on where rows are in the file."""
        return self._context.marks_deleted or self._only is not None or self._asks_for_places

    @property
    def _asks_for_places(self) -> bool:
        """Whether a column of the result or the filter tells of the file or the place of a row in it."""
        ids = [field.field_id for field in self._context.projected.fields]
        ids += [ref.field_id for ref in self._filter_columns]
        return any(map(columns.is_metadata_column, ids))

    @cached_property
    def _frame_columns(self) -> FrameColumns | None:
        """How the wanted columns are made of the file's as frames; None if batches have to be made of them first."""
        wanted, frames = self._context.frame, self._frames
        is_done = isinstance(self._quick.rest, AlwaysTrue) and not self._deletes.has_keys and self._only is None
        if wanted is None or frames is None or not is_done or self._context.marks_deleted:
            return None
        made, is_of_file = [], False
        constants = self._context.constants(self._task.file)
        for field in self._context.projected.fields:
            if columns.is_metadata_column(field.field_id):
                return None
            dtype = wanted.dtypes[field.name]
            column = file_column(frames, field, dtype)
            if column is None and any(field_id_of(each) == field.field_id for each in frames.schema):
                return None
            is_of_file |= column is not None
            if column is None:
                value = constant(constants.get(field.field_id, field.initial_default), field.field_type, 1)
                column = pl.lit(pl.Series(pl.from_arrow(value)).cast(dtype)).first()
            made.append(column.alias(field.name))
        if not is_of_file:
            return None
        return FrameColumns(made, [wanted.dtypes[each.name] for each in self._context.projected.fields], wanted.test)

    def _ranges(self) -> Sequence[RowRange]:
        ranges = self._reader.ranges()
        if self._task.byte_range is not None:
            first, length = self._task.byte_range
            self._check_length(ranges)
            ranges = [each for each in ranges if first <= each.offset < first + length]
        # The manifest has been asked about a file of one range.
        if len(ranges) != 1 or not self._is_small(ranges[0]):
            ranges = self._matching(self._reader, ranges)
        tests = only_tests(self._task.residual, lambda predicate: predicate.ref.field_id == _POSITION)
        if not isinstance(tests, AlwaysTrue):
            may = files_may_match(tests, [_positions_of(each) for each in ranges])
            ranges = [each for each, wanted in zip(ranges, may, strict=True) if wanted]
        return [each for each in ranges if each.rows and self._has_rows(each)]

    def _matching(self, reader: ContentReader, ranges: list[RowRange]) -> list[RowRange]:
        """The ranges of a file that its statistics do not rule out."""
        tests = only_tests(self._task.residual, is_of_table)
        if isinstance(tests, AlwaysTrue) or not ranges:
            return ranges
        may_match = partial(files_may_match, tests)
        return reader.matching(ranges, self._context.filter_schema, referenced_field_ids(tests), may_match)

    def _check_length(self, ranges: Sequence[RowRange]) -> None:
        """Refuses a file that is longer than its parts, since rows after the last part would never be read."""
        file = self._task.file
        if ranges and ranges[-1].offset >= file.file_size_in_bytes:
            raise CorruptDataFileError(
                f"Cannot read a part of {file.file_path}: its manifest entry says {file.file_size_in_bytes:,} bytes, "
                f"but rows begin at byte {ranges[-1].offset:,}. It was changed since it was committed; restore it."
            )

    def _is_small(self, rows: RowRange) -> bool:
        return rows.rows * len(self._projection.leaves) < _FEW_VALUES

    def _has_rows(self, rows: RowRange) -> bool:
        if self._deletes.positions_in(rows) == rows.rows and not self._context.marks_deleted:
            return False
        return self._only is None or self._only.has_keys or self._only.positions_in(rows) > 0

    def _holds_no_match(self, rows: RowRange) -> bool:
        """Whether the columns of the filter, read on their own, show that no row of the range matches."""
        if not self._filter_columns or any(columns.is_metadata_column(ref.field_id) for ref in self._filter_columns):
            return False
        if self._is_small(rows):
            return False
        own = {ref: self._wanted[index] for ref, index in self._filter_columns.items() if index is not None}
        fields = tuple(dict.fromkeys(own.values()))
        places = {ref: fields.index(field) for ref, field in own.items()}
        projection = self._context.projection(self._reader, fields, self._task.file)

        def matches(batch: pa.RecordBatch) -> bool:
            made = projection.project(batch)
            mask = matching_rows(self._task.residual, lambda ref: _values(ref, made[places[ref]]), batch.num_rows)
            return bool(mask.true_count)

        return self._context.prefilter.rules_out(
            self._reader,
            rows,
            projection.leaves,
            self._projection.leaves,
            matches,
            self._context.spare_processors,
        )

    def _result(
        self,
        where: Any,
        batch: pa.RecordBatch,
        projection: FileProjection,
        rest: BooleanExpression,
        told: TaskColumns,
        by_position: bool = True,
    ) -> pa.RecordBatch | None:
        """The rows of a batch that match the rest of the filter and are not deleted; not `by_position`, if those are
        gone. The batch is at positions `where`, or from the position `where` on."""
        made = BatchColumns(projection, batch)
        count = batch.num_rows
        removed = self._deletes.removed(where, count, made, by_position)
        keep = self._wanted_rows(removed, where, count, made, rest)
        chosen = None if keep is None else RowSelection(keep)
        rows = count if chosen is None else chosen.rows
        if rows == 0:
            return None
        if rows == count:
            keep = chosen = None
        positions = None
        if told.needs_positions(self._context.projected):
            positions = _all_positions(where, count)
            positions = positions if keep is None else positions[keep]
        if not self._context.marks_deleted:
            removed = None  # they are left out
        elif removed is not None and keep is not None:
            removed = removed[keep]
        arrays = [
            told.column(field, rows, positions, removed)
            if index is None
            else told.inherited(field, made.kept(index, chosen), positions)
            for index, field in zip(self._outputs, self._context.projected.fields, strict=True)
        ]
        return _batch(arrays, rows, self._context.arrow_schema)

    def _wanted_rows(
        self, removed: Any | None, where: Any, count: int, made: BatchColumns, rest: BooleanExpression
    ) -> Any | None:
        """A mask of the rows that are neither deleted (unless marked) nor filtered out; None for all."""
        keep = None if removed is None or self._context.marks_deleted else ~removed
        if self._only is not None:
            chosen = self._only.removed(where, count, made)
            if chosen is None:
                return np.zeros(count, np.bool_)
            keep = chosen if keep is None else keep & chosen
        if not isinstance(rest, AlwaysTrue):
            mask = matching_rows(rest, lambda ref: self._tested(ref, where, count, made), count)
            matching = mask.to_numpy(zero_copy_only=False)
            keep = matching if keep is None else keep & matching
        return keep

    def _tested(self, ref: BoundReference, where: Any, count: int, made: BatchColumns) -> pa.Array:
        """The values of a column of the filter in a batch."""
        index = self._filter_columns[ref]
        if not columns.is_metadata_column(ref.field_id):
            assert index is not None
            return _values(ref, made[index])
        positions = _all_positions(where, count)
        if index is None:
            return self._told.column(ref.field, count, positions)
        return self._told.inherited(ref.field, made[index], positions)


def _values(ref: BoundReference, column: pa.Array) -> pa.Array:
    """The values of a field in the pruned column around it, null if a struct around it is."""
    for _ in ref.path[1:]:
        column = pc.struct_field(column, [0])
    return column


def _pruned(schema: Schema, field_id: int) -> NestedField:
    """The top-level column that holds a field, with nothing but it."""
    (field,) = schema.select_ids([field_id]).fields
    return field


def _all_positions(where: Any, count: int) -> Any:
    return np.arange(where, where + count) if isinstance(where, int) else where


def _positions_of(rows: RowRange) -> RangeMetrics:
    """The least and the greatest position of a range of rows, as metrics."""
    first, last = (to_bytes(LongType(), each) for each in (rows.start, rows.start + rows.rows - 1))
    return RangeMetrics(rows.rows, ColumnMetrics(lower_bounds={_POSITION: first}, upper_bounds={_POSITION: last}))


def _batch(arrays: list[pa.Array], rows: int, schema: pa.Schema) -> pa.RecordBatch:
    if not arrays:
        return pa.RecordBatch.from_struct_array(rows_only(rows))
    conformed = [conform(array, field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(conformed, schema=schema)
