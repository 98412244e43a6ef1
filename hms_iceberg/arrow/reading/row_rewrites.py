"""Rows of data files that are to be deleted or changed: finding them, and what is to be written in their place.

Source: Iceberg specification, "Row Lineage": a row that is written anew keeps `_row_id`, and
`_last_updated_sequence_number` where it was not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.nested import conform
from hms_iceberg.arrow.deletes.deleted_rows import PositionDeletes
from hms_iceberg.arrow.parallel import default_workers, read_in_order
from hms_iceberg.arrow.reading.scan_context import ScanContext
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, POSITION, ROW_ID
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

T = TypeVar("T")
_BATCH_ROWS = 131_072
_BUFFER_BYTES = 256 * 1024 * 1024
# A name that no column of a table has.
_POSITION = replace(POSITION, name="position in the file \x00")


@dataclass(frozen=True)
class AffectedRows:
    """Live rows of one data file that a change deletes or replaces. Positions are ascending. `sources` holds for each
    of them the row that replaces it, if rows replace rows."""

    task: FileScanTask
    positions: Any
    sources: Any | None = None

    @property
    def file(self) -> DataFile:
        return self.task.file

    @property
    def is_whole_file(self) -> bool:
        """Whether certainly no other row of the file is live."""
        return len(self.positions) == self.file.record_count


# New values of some rows: the affected rows' file, the rows as they are (the table's columns), and which of the file's
# affected rows they are. Answers arrays by the column's place in the table's schema.
Replacement = Callable[[AffectedRows, pa.RecordBatch, slice], Mapping[int, pa.Array]]


class RowRewriter:
    """Reads rows of a table to delete or change them."""

    def __init__(self, metadata: TableMetadata, storage: Storage, filter_schema: Schema | None = None) -> None:
        self._metadata = metadata
        self._storage = storage
        self._filter_schema = filter_schema or metadata.schema()
        self._lineage = metadata.format_version >= 3

    @property
    def schema(self) -> Schema:
        """The columns of rows that are written anew: the table's, and from format version 3 on their lineage."""
        table = self._metadata.schema()
        if not self._lineage:
            return table
        return Schema(*table.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER, schema_id=table.schema_id)

    def context(self, schema: Schema, batch_rows: int = _BATCH_ROWS) -> ScanContext:
        """State shared by reads of some columns of several files; the last column is the position in the file."""
        projected = Schema(*schema.fields, _POSITION, schema_id=schema.schema_id)
        return ScanContext(self._metadata, self._storage, self._filter_schema, projected, batch_rows)

    def _workers(self, files: int) -> int:
        return default_workers(files, not parse_location(self._metadata.location).is_local)

    # -------------------------------------------------------------------------------------------- finding

    def matching(self, tasks: Sequence[FileScanTask]) -> list[AffectedRows]:
        """The live rows that match the tasks' residual filters; files without any are left out."""
        context = self.context(Schema())

        def find(task: FileScanTask) -> AffectedRows:
            parts = [positions_of(batch) for batch in read_task(context, task)]
            return AffectedRows(task, np.concatenate(parts) if parts else np.empty(0, np.int64))

        return [each for each in self.map(find, tasks) if len(each.positions)]

    def map(self, find: Callable[[FileScanTask], T], tasks: Sequence[FileScanTask]) -> Iterator[T]:
        """Answers tasks, several at once, in their order."""
        with ThreadPoolExecutor(self._workers(len(tasks)), thread_name_prefix="iceberg-find") as pool:
            yield from pool.map(find, tasks)

    # ------------------------------------------------------------------------------------------- rewriting

    def rewritten(
        self, affected: Sequence[AffectedRows], replacement: Replacement | None = None
    ) -> pa.RecordBatchReader:
        """Reads the live rows of files, the affected ones replaced, or left out; each file is opened when it is its
        turn."""

        def read(each: AffectedRows) -> Iterator[pa.RecordBatch]:
            if replacement is None and each.is_whole_file:
                return
            for batch, first, inside in self.batches(context, each):
                result = self._rewritten_batch(each, batch, first, inside, replacement)
                if result.num_rows:
                    yield result

        context = self.context(self.schema)
        return self._reader(affected, read)

    def replaced(self, affected: Sequence[AffectedRows], replacement: Replacement) -> pa.RecordBatchReader:
        """Reads the affected rows of files with their new values; each file is opened when it is its turn."""

        def read(each: AffectedRows) -> Iterator[pa.RecordBatch]:
            for batch, first, inside in self.batches(context, each):
                if len(inside):
                    chosen = batch if len(inside) == batch.num_rows else batch.take(pa.array(inside))
                    yield self._replaced_rows(each, chosen, first, replacement)

        context = self.context(self.schema)
        return self._reader(affected, read)

    def _reader(
        self, affected: Sequence[AffectedRows], read: Callable[[AffectedRows], Iterator[pa.RecordBatch]]
    ) -> pa.RecordBatchReader:
        batches = read_in_order(affected, read, self._workers(len(affected)), _BUFFER_BYTES)
        return pa.RecordBatchReader.from_batches(to_arrow(self.schema), batches)

    def batches(self, context: ScanContext, each: AffectedRows) -> Iterator[tuple[pa.RecordBatch, int, Any]]:
        """Reads the live rows of a file, batch by batch. With each batch come the number of affected rows of the file
        before it, and the places of affected rows in it."""
        task = each.task
        unfiltered = FileScanTask.of(
            task.file,
            task.delete_files,
            AlwaysTrue(),
            task.data_sequence_number,
            task.file_sequence_number,
            task.delete_sequence_numbers,
        )
        for batch in read_task(context, unfiltered):
            positions = positions_of(batch)
            first, last = np.searchsorted(each.positions, (positions[0], positions[-1] + 1)).tolist()
            inside = np.searchsorted(positions, each.positions[first:last])
            yield batch.select(range(batch.num_columns - 1)), first, inside

    def _rewritten_batch(
        self, each: AffectedRows, batch: pa.RecordBatch, first: int, inside: Any, replacement: Replacement | None
    ) -> pa.RecordBatch:
        if not len(inside):
            return batch
        mask = np.zeros(batch.num_rows, np.bool_)
        mask[inside] = True
        if replacement is None:
            return batch.filter(pa.array(~mask))
        rows = batch.take(pa.array(inside))
        changed = self._replaced_rows(each, rows, first, replacement)
        columns = [
            old if new is taken else _mixed(old, mask, new)
            for old, taken, new in zip(batch.columns, rows.columns, changed.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _replaced_rows(
        self, each: AffectedRows, rows: pa.RecordBatch, first: int, replacement: Replacement
    ) -> pa.RecordBatch:
        """The rows with their new values; the row ids stay, the sequence numbers are those of the commit."""
        fields = len(self._metadata.schema().fields)
        new = replacement(each, rows.select(range(fields)), slice(first, first + rows.num_rows))
        columns = list(rows.columns)
        for index, array in new.items():
            columns[index] = conform(array, rows.schema.field(index).type)
        if self._lineage:
            columns[-1] = pa.nulls(rows.num_rows, pa.int64())
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def positions_of(batch: pa.RecordBatch) -> Any:
    """The last column of a batch that was read with positions, as a numpy array."""
    return batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)


def _mixed(old: pa.Array, mask: Any, new: pa.Array) -> pa.Array:
    """The old values, and where the mask is true the new ones in their order."""
    if not pa.types.is_nested(old.type) and not isinstance(old, pa.ExtensionArray):
        return pc.replace_with_mask(old, pa.array(mask), new)
    choice = np.arange(len(old))
    choice[mask] = len(old) + np.arange(len(new))
    return pa.concat_arrays([old, new]).take(pa.array(choice))


def earlier_positions(
    storage: Storage, task: FileScanTask, format_version: int, deletes: PositionDeletes | None = None
) -> tuple[Any | None, tuple[DataFile, ...]]:
    """Deleted positions of a data file that its new deletes must repeat, and the delete files that they replace: a
    deletion vector repeats all, a position delete file those of files about no other data file."""
    found = [file for file in task.delete_files if file.content is DataFileContent.POSITION_DELETES]
    own = [file for file in found if file.referenced_data_file == task.file.file_path]
    repeated = found if format_version >= 3 else own
    if not repeated:
        return None, ()
    return (deletes or PositionDeletes(storage)).positions(task.file.file_path, repeated), tuple(own)
