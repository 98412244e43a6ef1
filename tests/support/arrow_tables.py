"""Tables of Arrow rows without manifests: files are written, and read back as tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_schema import from_stored, to_arrow
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import IcebergType, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema


@dataclass
class FileTable:
    """A table as a list of data files, each with the delete files that apply to it."""

    folder: Path
    schema: Schema
    spec: PartitionSpec = UNPARTITIONED
    properties: dict[str, str] = field(default_factory=dict)
    old_schemas: tuple[Schema, ...] = ()
    storage: ArrowStorage = field(default_factory=ArrowStorage)
    files: list[DataFile] = field(default_factory=list)
    deletes: dict[str, list[DataFile]] = field(default_factory=dict)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata as far as reading and writing need it."""
        return TableMetadata(
            format_version=3,
            table_uuid=None,
            location=str(self.folder),
            last_updated_ms=0,
            last_column_id=100,
            schemas=(*self.old_schemas, self.schema),
            current_schema_id=self.schema.schema_id,
            partition_specs=(self.spec,),
            default_spec_id=self.spec.spec_id,
            properties=self.properties,
        )

    def append(self, rows: Any) -> list[DataFile]:
        """Writes rows and adds the files."""
        added = list(write_data_files(self.metadata, self.storage, rows))
        self.files += added
        return added

    def delete(self, data_files: Iterable[DataFile], delete_file: DataFile) -> None:
        """Makes a delete file apply to data files."""
        for file in data_files:
            self.deletes.setdefault(file.file_path, []).append(delete_file)

    def position_deletes(self, pairs: Sequence[tuple[str, int]], name: str = "positions.parquet") -> DataFile:
        """A position delete file."""
        schema = to_arrow(Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION))
        paths, positions = [path for path, _ in pairs], [position for _, position in pairs]
        return self._delete_file(pa.table([paths, positions], schema=schema), name, DataFileContent.POSITION_DELETES)

    def equality_deletes(
        self, rows: pa.Table, schema: Schema, ids: tuple[int, ...], name: str = "equality.parquet"
    ) -> DataFile:
        """An equality delete file; `schema` has the columns of the rows with their ids."""
        return self._delete_file(rows.cast(to_arrow(schema)), name, DataFileContent.EQUALITY_DELETES, equality_ids=ids)

    def _delete_file(self, rows: pa.Table, name: str, content: DataFileContent, **fields: Any) -> DataFile:
        location = str(self.folder / name)
        self.folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, location, row_group_size=3)
        return DataFile(
            file_path=location,
            file_format="PARQUET",
            record_count=rows.num_rows,
            file_size_in_bytes=self.storage.length(location),
            content=content,
            **fields,
        )

    def task(self, file: DataFile, row_filter: BooleanExpression | str | None = None) -> FileScanTask:
        """The task of a file."""
        expression = parse(row_filter) if isinstance(row_filter, str) else row_filter or AlwaysTrue()
        return FileScanTask.of(
            file=file,
            delete_files=tuple(self.deletes.get(file.file_path, ())),
            residual=bind(self.schema, expression),
            data_sequence_number=7,
        )

    def read(
        self,
        row_filter: BooleanExpression | str | None = None,
        projected: Schema | None = None,
        *,
        batch_rows: int = 1000,
        workers: int = 1,
        **options: Any,
    ) -> pa.Table:
        """The live, matching rows of all files; `options` go to `read_tasks`."""
        projected = projected or self.schema
        options.update(batch_rows=batch_rows, workers=workers)
        tasks = [self.task(file, row_filter) for file in self.files]
        batches = list(read_tasks(tasks, self.schema, projected, self.metadata, self.storage, **options))
        assert all(batch.num_rows for batch in batches)
        return pa.Table.from_batches(batches, to_arrow(projected))


def arrow_rows(rows: Sequence[tuple[Any, ...]], schema: Schema) -> pa.Table:
    """Rows of stored values as an Arrow table; a struct is a tuple or None."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.fields)
    arrays = [_array(list(values), kind.field_type) for values, kind in zip(columns, schema.fields, strict=True)]
    fields = [pa.field(each.name, array.type) for each, array in zip(schema.fields, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _array(values: list[Any], kind: IcebergType) -> pa.Array:
    if not isinstance(kind, StructType):
        return from_stored(values, kind)
    children = [
        _array([None if value is None else value[index] for value in values], child.field_type)
        for index, child in enumerate(kind.fields)
    ]
    fields = [pa.field(child.name, array.type) for child, array in zip(kind.fields, children, strict=True)]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
