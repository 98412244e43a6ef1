"""Metadata columns of rows, as a task tells them: the file, its partition, where a row is, and row lineage.

Source: Iceberg specification, "Reserved Field IDs", "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import constant
from hms_iceberg.arrow.columns.nested import rows_only
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec import metadata_columns as columns
from hms_iceberg.spec.data_types import NestedField, StringType, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema

LINEAGE = frozenset((columns.ROW_ID.field_id, columns.LAST_UPDATED_SEQUENCE_NUMBER.field_id))


class TaskColumns:
    """The metadata columns of rows of some tasks, whose positions go on from one file to the next. Of several files all
    or none have row ids, and only columns of row lineage are asked for."""

    def __init__(self, tasks: Sequence[FileScanTask], metadata: TableMetadata) -> None:
        self._tasks = tasks
        self._metadata = metadata

    def needs_positions(self, projected: Schema) -> bool:
        """Whether some columns depend on where rows are."""
        ids = (columns.POSITION.field_id, columns.ROW_ID.field_id)
        return any(
            field.field_id in ids or (field.field_id in LINEAGE and len(self._tasks) > 1) for field in projected.fields
        )

    def column(self, field: NestedField, rows: int, positions: Any, removed: Any | None = None) -> pa.Array:
        """A column that is not in the file, of rows at some positions; `removed` tells which of them are deleted."""
        (task,) = self._tasks
        if field.field_id == columns.DELETED.field_id and removed is not None:
            return pa.array(removed)
        if field.field_id == columns.POSITION.field_id:
            return pa.array(positions, pa.int64())
        if field.field_id == columns.FILE.field_id:
            return constant(task.file.file_path, StringType(), rows)
        if field.field_id == columns.PARTITION_ID:
            return self._partition(field, task.file, rows)
        value: Any = task.file.spec_id if field.field_id == columns.SPEC_ID.field_id else False
        return constant(value, field.field_type, rows)

    def _partition(self, field: NestedField, file: DataFile, rows: int) -> pa.Array:
        assert isinstance(field.field_type, StructType)
        spec = self._metadata.spec_by_id(file.spec_id)
        values = {each.field_id: value for each, value in zip(spec.fields, file.partition, strict=True)}
        children = [constant(values.get(child.field_id), child.field_type, rows) for child in field.field_type.fields]
        if not children:
            return rows_only(rows)
        return pa.StructArray.from_arrays(children, names=[child.name for child in field.field_type.fields])

    def inherited(self, field: NestedField, array: pa.Array, positions: Any) -> pa.Array:
        """A column of a file whose nulls, if it is one of row lineage, are filled by inheritance."""
        if field.field_id not in LINEAGE:
            return array
        if self._tasks[0].file.first_row_id is None:
            return pa.nulls(len(array), pa.int64())
        if not array.null_count:
            return array
        if field.field_id == columns.ROW_ID.field_id:
            firsts = [task.file.first_row_id or 0 for task in self._tasks]
            shifts = [first - start for first, start in zip(firsts, self._starts, strict=True)]
            values = positions + self._by_row(shifts, positions)
        else:
            values = self._by_row([task.data_sequence_number for task in self._tasks], positions)
        return pc.coalesce(array, pa.array(values, pa.int64()) if isinstance(values, np.ndarray) else values)

    @cached_property
    def _starts(self) -> list[int]:
        """The position of each file's first row."""
        return [0, *accumulate(task.file.record_count for task in self._tasks[:-1])]

    def _by_row(self, values: Sequence[int], positions: Any) -> Any:
        """What a value of each task is for the rows at some positions; a number if it is the same for all."""
        if len(values) == 1:
            return values[0]
        return np.array(values, np.int64)[np.searchsorted(self._starts, positions, "right") - 1]
