"""Metadata columns of rows, as a task tells them: the file, its partition, where a row is, and row lineage.

Source: Iceberg specification, "Reserved Field IDs", "Row Lineage".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import constant
from hms_iceberg.arrow.columns.nested import rows_only
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec import metadata_columns as columns
from hms_iceberg.spec.data_types import NestedField, StringType, StructType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema


@dataclass(frozen=True)
class TaskColumns:
    """The metadata columns of a task's rows."""

    task: FileScanTask
    metadata: TableMetadata

    @staticmethod
    def needs_positions(projected: Schema) -> bool:
        """Whether some columns depend on where rows are in their file."""
        ids = (columns.POSITION.field_id, columns.ROW_ID.field_id)
        return any(field.field_id in ids for field in projected.fields)

    def column(self, field: NestedField, rows: int, positions: Any, removed: Any | None = None) -> pa.Array:
        """A column that is not in the file, of rows at some positions; `removed` tells which of them are deleted."""
        file = self.task.file
        if field.field_id == columns.DELETED.field_id and removed is not None:
            return pa.array(removed)
        if field.field_id == columns.POSITION.field_id:
            return pa.array(positions, pa.int64())
        if field.field_id == columns.FILE.field_id:
            return constant(file.file_path, StringType(), rows)
        if field.field_id == columns.PARTITION_ID:
            return self._partition(field, rows)
        value: Any = file.spec_id if field.field_id == columns.SPEC_ID.field_id else False
        return constant(value, field.field_type, rows)

    def _partition(self, field: NestedField, rows: int) -> pa.Array:
        assert isinstance(field.field_type, StructType)
        spec = self.metadata.spec_by_id(self.task.file.spec_id)
        values = {each.field_id: value for each, value in zip(spec.fields, self.task.file.partition, strict=True)}
        children = [constant(values.get(child.field_id), child.field_type, rows) for child in field.field_type.fields]
        if not children:
            return rows_only(rows)
        return pa.StructArray.from_arrays(children, names=[child.name for child in field.field_type.fields])

    def inherited(self, field: NestedField, array: pa.Array, positions: Any) -> pa.Array:
        """A column of a file whose nulls, if it is one of row lineage, are filled by inheritance."""
        if field.field_id == columns.ROW_ID.field_id:
            first = self.task.file.first_row_id
            if first is None:
                return pa.nulls(len(array), pa.int64())
            return pc.coalesce(array, pa.array(positions + first, pa.int64())) if array.null_count else array
        if field.field_id == columns.LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            if self.task.file.first_row_id is None:
                return pa.nulls(len(array), pa.int64())
            return array.fill_null(self.task.data_sequence_number) if array.null_count else array
        return array
