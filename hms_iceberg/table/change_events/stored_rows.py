"""The rows of a table that have the keys of some events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.nested import combine
from hms_iceberg.arrow.reading.row_rewrites import AffectedRows, positions_of
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.arrow.rows.row_identity import differs, key_frame
from hms_iceberg.lazy import pl
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.metadata_columns import ROW_ID
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.change_events.events import sortable
from hms_iceberg.table.changes.key_columns import KEY_BATCH_ROWS, KeyColumn
from hms_iceberg.table.changes.row_change import RowChange


@dataclass(frozen=True)
class StoredRows:
    """Live rows of one data file with the keys of events: their positions, ascending, and for each of them the event,
    whether the row is newer than that, and in format version 3 its row id."""

    task: FileScanTask
    positions: Any
    events: Any
    is_newer: Any
    row_ids: Any | None

    def affected(self, mask: Any) -> AffectedRows:
        """The rows that a mask keeps."""
        return AffectedRows(self.task, self.positions[mask], self.events[mask])


class StoredRowFinder:
    """Finds the rows of a table by key; reads the key columns and those of the order, and nothing else."""

    def __init__(
        self,
        change: RowChange,
        keys: Sequence[KeyColumn],
        frame: pl.DataFrame,
        order_fields: Sequence[NestedField],
        order: Sequence[pa.Array],
    ) -> None:
        """`frame` has the keys of the events, as of `key_frame`; `order` their order, if stored rows are compared with
        it."""
        self._change = change
        self._keys = keys
        self._on = frame.columns
        self._frame = frame.with_row_index("source")
        self._order_fields = order_fields
        self._order = order

    def find(self, tasks: Sequence[FileScanTask]) -> list[StoredRows]:
        """The rows of some files; files without any are left out."""
        change = self._change
        schema = change.metadata.schema()
        ids = [key.field.field_id for key in self._keys] + [field.field_id for field in self._order_fields]
        columns = schema.select_ids(ids)
        has_lineage = change.metadata.format_version >= 3
        names = [field.name for field in columns.fields]
        projected = Schema(*columns.fields, *((ROW_ID,) if has_lineage else ()))
        context = change.rewriter.context(projected, KEY_BATCH_ROWS)

        def find(task: FileScanTask) -> StoredRows:
            positions, events, newer, row_ids = [], [], [], []
            for batch in read_task(context, task):
                stored = key_frame(key.values(batch, names) for key in self._keys).with_row_index("row")
                found = stored.join(self._frame, on=self._on, how="inner").sort("row")
                if not found.height:
                    continue
                rows, sources = found["row"].to_numpy(), found["source"].to_numpy()
                positions.append(positions_of(batch)[rows])
                events.append(sources)
                newer.append(self._is_newer(batch, names, rows, sources))
                if has_lineage:
                    row_ids.append(batch.column(len(names)).take(pa.array(rows)))
            if not positions:
                return StoredRows(task, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_), None)
            return StoredRows(
                task,
                np.concatenate(positions),
                np.concatenate(events).astype(np.int64),
                np.concatenate(newer),
                pa.concat_arrays(row_ids) if has_lineage else None,
            )

        return [each for each in change.rewriter.map(find, tasks) if len(each.positions)]

    def _is_newer(self, batch: pa.RecordBatch, names: Sequence[str], rows: Any, sources: Any) -> Any:
        """Which of the stored rows have a greater order than their event; null is less than every value."""
        newer = np.zeros(len(rows), np.bool_)
        same = np.ones(len(rows), np.bool_)
        for field, order in zip(self._order_fields, self._order, strict=True):
            stored = sortable(batch.column(names.index(field.name)).take(pa.array(rows)))
            given = order.take(pa.array(sources))
            newer |= same & _exceeds(stored, given)
            same &= ~differs(stored, given)
        return newer


def _exceeds(left: pa.Array, right: pa.Array) -> Any:
    """Where the left value is the greater one; NaN is the greatest, null is never."""
    if left.type != right.type:
        right = right.cast(left.type)
    greater = pc.fill_null(pc.greater(left, right), False)
    if pa.types.is_floating(left.type):
        nan = pc.fill_null(pc.and_(pc.is_nan(left), pc.invert(pc.is_nan(right))), False)
        greater = pc.or_(greater, nan)
    return combine(greater).to_numpy(zero_copy_only=False)
