"""Data files and delete files without the rows that are to be forgotten.

A file is written anew once, whatever versions of the table name it. Row ids and sequence numbers of the rows that stay
are kept, and deletes find the rows at their new positions.

Source: Iceberg specification, "Row Lineage", "Position Delete Files", "Deletion Vectors", "Equality Delete Files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import child_fields, field_id_of
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, PositionDeleteWriter
from hms_iceberg.arrow.deletes.deleted_rows import read_position_deletes
from hms_iceberg.arrow.deletes.puffin import read_deletion_vector, write_deletion_vectors
from hms_iceberg.arrow.formats.content_files import ContentFormat, delete_properties, open_reader
from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.arrow.reading.row_rewrites import RowRewriter
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.arrow.storage.data_locations import DataLocations
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import CorruptDataFileError, TypeMismatchError, UnsupportedError
from hms_iceberg.maintenance.erasure.forgotten_rows import FoundRows, RowFinder, batches_without
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POSITION,
    LAST_UPDATED_SEQUENCE_NUMBER,
    LINEAGE,
    ROW_ID,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import PARQUET_ROW_GROUP_BYTES, PARQUET_ROW_GROUP_ROWS
from hms_iceberg.storage import Storage

OnCreate = Callable[[str], None]


@dataclass(frozen=True)
class DataFileWriter:
    """Writes data files, and equality delete files, anew without some of their rows."""

    metadata: TableMetadata
    storage: Storage
    on_create: OnCreate
    _locations: DataLocations = field(init=False, compare=False)

    def __post_init__(self) -> None:
        locations = DataLocations(self.metadata.location, self.metadata.properties)
        object.__setattr__(self, "_locations", locations)

    def without(
        self, file: DataFile, gone: FoundRows, sequence_number: int, only: frozenset[int] | None = None
    ) -> DataFile:
        """A file with the same columns in the same format, or with `only` some of them; rows keep their order."""
        columns = self._columns(file)
        if only is not None:
            columns = Schema(*columns.fields).select_ids(only)
        if file.first_row_id is not None:
            columns = Schema(*columns.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        context = RowRewriter(self.metadata, self.storage).context(columns)
        rows = batches_without(read_task(context, FileScanTask.of(file, (), None, sequence_number)), gone)
        return self._written(file, columns, rows)

    def _written(self, file: DataFile, columns: Schema, rows: Iterator[pa.RecordBatch]) -> DataFile:
        properties = dict(self.metadata.properties) if file.is_data else delete_properties(self.metadata.properties)
        modes = metrics_modes(columns, properties)
        name = file.file_format.lower()
        location = self._locations.next(self._partition_path(file), name)
        self.on_create(location)
        writer = ContentFormat(self.storage, name, columns, properties, modes).open(location)
        try:
            for group in _groups(rows, properties):
                writer.write_row_group(group)
        except BaseException:
            with suppress(Exception):
                writer.abandon()
            raise
        written = writer.close(
            content=file.content,
            spec_id=file.spec_id,
            partition=file.partition,
            sort_order_id=file.sort_order_id,
            equality_ids=file.equality_ids,
        )
        return replace(written, first_row_id=file.first_row_id)

    def _partition_path(self, file: DataFile) -> str:
        spec = self.metadata.spec_by_id(file.spec_id)
        if spec.is_unpartitioned():
            return ""
        return spec.partition_to_path(file.partition, self.metadata.schema_for_spec(spec))

    def _columns(self, file: DataFile) -> Schema:
        """The columns that a file has, as the schema that it was written with has them."""
        mapping = self.metadata.name_mapping()
        reader = open_reader(self.storage, file.file_path, file.file_format, mapping, file.key_metadata)
        try:
            fields = [
                self._column(each, reader.schema, file.file_path)
                for each in reader.schema
                if field_id_of(each) is not None and field_id_of(each) not in LINEAGE
            ]
        finally:
            reader.close()
        return Schema(*(each for each in fields if each is not None))

    def _column(self, stored: pa.Field, schema: pa.Schema, location: str) -> NestedField | None:
        """A column of a file in the narrowest form that any schema gives it and that the file fits. None for one that
        no schema has: no version of the table can read it."""
        field_id = field_id_of(stored)
        own = set(_nested_ids(stored))
        known: list[NestedField] = []
        for each in sorted(self.metadata.schemas, key=lambda each: each.schema_id):
            known += [column for column in each.fields if column.field_id == field_id and column not in known]
        for column in known:
            inner = Schema(column).index_by_id.keys()
            if own & self._all_ids <= inner:
                with suppress(TypeMismatchError, CorruptDataFileError):
                    FileProjection(schema, (column,), {}, location)
                    return replace(column, name=stored.name)  # no two columns of a file have one name
        if not known:
            return None
        raise UnsupportedError(
            f"Cannot write {location} anew: its column {stored.name!r} ({stored.type}) is that of no schema of the "
            f"table. Rewrite the table's data files, expire the snapshots that have it, and forget the rows then."
        )

    @cached_property
    def _all_ids(self) -> set[int]:
        return {field_id for schema in self.metadata.schemas for field_id in schema.index_by_id}


def _nested_ids(stored: pa.Field) -> Iterator[int]:
    """The ids of a column of a file and of all fields in it."""
    field_id = field_id_of(stored)
    if field_id is not None:
        yield field_id
    for child in child_fields(stored.type):
        yield from _nested_ids(child)


def _groups(rows: Iterable[pa.RecordBatch], properties: Mapping[str, str]) -> Iterator[list[pa.RecordBatch]]:
    """Batches in groups of the table's size."""
    most_bytes, most_rows = PARQUET_ROW_GROUP_BYTES.of(properties), PARQUET_ROW_GROUP_ROWS.of(properties)
    group: list[pa.RecordBatch] = []
    size = count = 0
    for batch in rows:
        group.append(batch)
        size, count = size + batch.nbytes, count + batch.num_rows
        if size >= most_bytes or count >= most_rows:
            yield group
            group, size, count = [], 0, 0
    if group:
        yield group


# ------------------------------------------------------------------------------------------------- deletes


@dataclass(frozen=True)
class RewrittenData:
    """The result of rewriting a data file: the rows that go, and the new files by the first row id that they are read
    with, of which branches of an upgraded table may have several."""

    gone: FoundRows
    files: Mapping[int | None, DataFile]

    def file(self, first_row_id: int | None) -> DataFile | None:
        """The new file for an entry that gives the rows these ids; None if no row is left."""
        found = self.files.get(first_row_id) or next(iter(self.files.values()), None)
        return None if found is None else replace(found, first_row_id=first_row_id)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.file_path for each in self.files.values()))


@dataclass(frozen=True)
class DeleteFileWriter:
    """Writes delete files anew, for data files that were written anew. `rewritten` are these by their old location,
    `data_files` all that any version of the table names."""

    data: DataFileWriter
    finder: RowFinder
    rewritten: Mapping[str, RewrittenData]
    data_files: frozenset[str]

    @property
    def _storage(self) -> Storage:
        return self.data.storage

    def positions(self, file: DataFile) -> tuple[DataFile, ...] | None:
        """The position delete file for the new data files: none if nothing is left of it, None if it stays as it is.
        Rows that it repeats beside their positions are left out: no reader needs them."""
        if self.finder.matches_partition(file):
            return ()
        found = read_position_deletes(self._storage, file)
        moved = {path: self._moved(path, positions) for path, positions in found.items()}
        if all(each is None for each in moved.values()) and not self.has_rows(file):
            return None
        deleted = [
            DeletedPositions(replace(file, file_path=new), positions)
            for path, old in found.items()
            for new, positions in moved[path] or ([(path, old)] if moved[path] is None else ())
            if len(positions)
        ]
        if not deleted:
            return ()
        metadata = self.data.metadata
        return (PositionDeleteWriter.of(metadata, self._storage, self.data.on_create).write(deleted),)

    def vectors(self, files: Iterable[DataFile]) -> dict[int | None, tuple[DataFile, ...]] | None:
        """The deletion vectors of a Puffin file by their old offset; None if they stay as they are."""
        every = list(files)
        if not any(self._is_moved(str(file.referenced_data_file)) for file in every):
            return None
        owners: list[tuple[int | None, DataFile, Any]] = []
        for file in every:
            path, positions = str(file.referenced_data_file), read_deletion_vector(self._storage, file)
            moved = self._moved(path, positions)
            for new, left in [(path, positions)] if moved is None else moved:
                if len(left):
                    owners.append((file.content_offset, replace(file, file_path=new), left))
        result: dict[int | None, tuple[DataFile, ...]] = {file.content_offset: () for file in every}
        if owners:
            metadata = self.data.metadata
            location = DataLocations(metadata.location, metadata.properties, suffix="deletes").next("", "puffin")
            self.data.on_create(location)
            pairs = [(file, left) for _, file, left in owners]
            written = write_deletion_vectors(self._storage, location, pairs, metadata.properties)
            for (offset, _, _), made in zip(owners, written, strict=True):
                result[offset] += (made,)
        return result

    def keys(self, file: DataFile, sequence_number: int) -> tuple[DataFile, ...] | None:
        """The equality delete file without the keys of forgotten rows: none if nothing is left, None if it stays."""
        if not self.has_keys(file, sequence_number):
            return None
        gone = self._forgotten_keys(file, sequence_number)
        if gone.is_whole:
            return ()
        return (self.data.without(file, gone, sequence_number, only=frozenset(file.equality_ids or ())),)

    def has_keys(self, file: DataFile, sequence_number: int) -> bool:
        """Whether an equality delete file holds keys of forgotten rows, or may hold more of such rows than keys."""
        if len(self._forgotten_keys(file, sequence_number)):
            return True
        return bool(self._columns_beside(file)) and self.finder.may_hold(file)

    def _forgotten_keys(self, file: DataFile, sequence_number: int) -> FoundRows:
        """The rows of an equality delete file all of whose data rows match, as the key and the partition tell."""
        key = frozenset(file.equality_ids or ())
        spec = self.data.metadata.spec_by_id(file.spec_id)
        told = key | {each.source_id for each in spec.fields if each.transform.is_identity}
        readings = tuple(each for each in self.finder.readings if each.field_ids <= told)
        return RowFinder(self.data.metadata, self._storage, readings).found(file, sequence_number)

    def _columns_beside(self, file: DataFile) -> frozenset[int]:
        """The columns of an equality delete file that are not of its key."""
        mapping = self.data.metadata.name_mapping()
        reader = open_reader(self._storage, file.file_path, file.file_format, mapping, file.key_metadata)
        try:
            tops = {field_id for each in reader.schema if (field_id := field_id_of(each)) is not None}
        finally:
            reader.close()
        return frozenset(tops - frozenset(file.equality_ids or ()))

    def has_rows(self, file: DataFile) -> bool:
        """Whether a position delete file has columns beside paths and positions."""
        reader = open_reader(self._storage, file.file_path, file.file_format, None, file.key_metadata)
        try:
            usual = {DELETE_FILE_PATH.field_id, DELETE_FILE_POSITION.field_id}
            return any(field_id_of(each) not in usual for each in reader.schema)
        finally:
            reader.close()

    def _is_moved(self, path: str) -> bool:
        return path in self.rewritten or path not in self.data_files

    def _moved(self, path: str, positions: Any) -> list[tuple[str, Any]] | None:
        """The new data files with the new positions; None if the data file stays, none if no version names it."""
        if not self._is_moved(path):
            return None
        rewritten = self.rewritten.get(path)
        if rewritten is None or rewritten.gone.is_whole:
            return []
        shifted = rewritten.gone.shifted(np.asarray(positions))
        return [(new, shifted) for new in rewritten.paths]


def is_positions(file: DataFile) -> bool:
    """Whether a file is a position delete file, and no deletion vector."""
    return file.content is DataFileContent.POSITION_DELETES and not file.is_deletion_vector
