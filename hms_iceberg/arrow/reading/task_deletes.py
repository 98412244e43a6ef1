"""The deletes of a task, and the columns that they and the filter want of its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.nested import RowSelection
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.equality_deletes import KeySet
from hms_iceberg.arrow.formats.parquet_frames import are_among
from hms_iceberg.arrow.formats.parquet_reader import RowRange
from hms_iceberg.arrow.reading.scan_context import ScanContext
from hms_iceberg.scan.task_deletes import DeleteFiles
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile


class WantedColumns:
    """The columns to make of a file, each once."""

    def __init__(self) -> None:
        self._places: dict[NestedField, int] = {}

    @property
    def fields(self) -> tuple[NestedField, ...]:
        return tuple(self._places)

    def index(self, field: NestedField) -> int:
        return self._places.setdefault(field, len(self._places))


class BatchColumns:
    """The wanted columns of a batch, each built on first use: those of filters and keys of all rows, others only of the
    rows that are kept."""

    def __init__(self, projection: FileProjection, batch: pa.RecordBatch) -> None:
        self._projection = projection
        self._batch = batch
        self._whole: dict[int, pa.Array] = {}

    def __getitem__(self, index: int) -> pa.Array:
        if index not in self._whole:
            self._whole[index] = self._projection.column(index, self._batch)
        return self._whole[index]

    def kept(self, index: int, rows: RowSelection | None) -> pa.Array:
        """A column of some rows only; None for all."""
        if index in self._whole or rows is None:
            return self[index] if rows is None else rows.of(self[index])
        return self._projection.column(index, self._batch, rows)


class TaskDeletes:
    """The rows of a data file that some delete files remove, by key or by position."""

    def __init__(
        self, context: ScanContext, file: DataFile, delete_files: Sequence[DataFile], wanted: WantedColumns
    ) -> None:
        deletes = DeleteFiles.of(delete_files)
        self._keys: list[tuple[KeySet, list[int]]] = [
            (keys, [wanted.index(column) for column in keys.columns]) for keys in context.equality.keys(deletes)
        ]
        self._positions = context.positions.of_task(file.file_path, deletes)

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    @property
    def positions(self) -> Any | None:
        """The ascending positions of removed rows, beside those that keys remove; None for none."""
        return self._positions

    def removes_nothing_beyond(self, other: TaskDeletes) -> bool:
        """Whether certainly every row that these remove is removed by the others."""
        if self._keys:
            return False
        if self._positions is None:
            return True
        return other._positions is not None and not len(np.setdiff1d(self._positions, other._positions, True))

    def positions_in(self, rows: RowRange) -> int:
        """The number of rows of a range that are removed by their position."""
        if self._positions is None:
            return 0
        first, last = np.searchsorted(self._positions, (rows.start, rows.start + rows.rows))
        return int(last - first)

    def removed(self, where: Any, count: int, made: BatchColumns, by_position: bool = True) -> Any | None:
        """A mask of the rows of a batch that are removed by key, and `by_position`; None for none. The batch is at
        positions `where`, or from the position `where` on."""
        mask = None
        positions = self._positions if by_position else None
        if positions is not None and not isinstance(where, int):
            mask = are_among(where, positions)
        elif positions is not None:
            first, last = np.searchsorted(positions, (where, where + count))
            if last > first:
                mask = np.zeros(count, np.bool_)
                mask[positions[first:last] - where] = True
        for keys, indices in self._keys:
            found = keys.deleted([made[index] for index in indices])
            if found.any():
                mask = found if mask is None else mask | found
        return mask
