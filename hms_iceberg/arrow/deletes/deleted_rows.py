"""Delete files as they are read: positions and vectors per data file, and rows that equality deletes delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import constant
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.content_files import ContentReader, check_row_count, open_reader
from hms_iceberg.arrow.parallel import SharedCache
from hms_iceberg.arrow.rows.row_identity import comparable
from hms_iceberg.errors import CorruptDataFileError, MissingFileError
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage


@contextmanager
def open_delete_file(storage: Storage, file: DataFile, mapping: NameMapping | None = None) -> Iterator[ContentReader]:
    """A reader of a position or equality delete file, which has the rows that its manifest entry promises."""
    try:
        reader = open_reader(storage, file.file_path, file.file_format, mapping, file.key_metadata)
    except MissingFileError as error:
        raise MissingFileError(f"Cannot tell which rows are deleted, as a delete file is missing: {error}") from error
    try:
        check_row_count(reader, file)
        yield reader
    finally:
        reader.close()


_ROWS_AT_ONCE = 1 << 18
# Positions of delete files about several data files that a scan keeps.
_CACHE_BYTES = 128 * 1024 * 1024


class PositionDeletes:
    """Loads delete files once a scan and answers per data file."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: SharedCache[str, dict[str, Any]] = SharedCache(_bytes_of, _CACHE_BYTES)
        self._lock = Lock()

    def positions(self, data_file: str, deletes: Iterable[DataFile]) -> Any | None:
        """The deleted positions of a data file, ascending without duplicates; None if there are none.

        A deletion vector holds all deletes of its file, so that position delete files beside it are left out.
        """
        found = list(deletes)
        vectors = [file for file in found if file.file_format.upper() == "PUFFIN"]
        if vectors:
            parts = [read_deletion_vector(self._storage, vector) for vector in vectors]
        else:
            parts = [self._load(file).get(data_file) for file in found]
        parts = [part for part in parts if part is not None and len(part)]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))

    def _load(self, file: DataFile) -> dict[str, Any]:
        found = self._files.get(file.file_path, lambda: read_position_deletes(self._storage, file))
        if len(found) <= 1:  # nobody else will ask, and a scan may have very many of them
            self._files.forget(file.file_path)
        return found


def read_position_deletes(storage: Storage, file: DataFile) -> dict[str, Any]:
    """Location of a data file to ascending int64 positions without duplicates."""
    only = file.referenced_data_file
    columns = (DELETE_FILE_POSITION,) if only is not None else (DELETE_FILE_POSITION, DELETE_FILE_PATH)
    with open_delete_file(storage, file) as reader:
        projection = FileProjection(reader.schema, columns, {}, file.file_path, reader.reads_nested_fields)
        found = [
            projection.project(batch)
            for rows in reader.ranges()
            for _, batch in reader.read(rows, projection.leaves, _ROWS_AT_ONCE, False)
        ]
    if not found:
        return {}
    positions, *paths = (pa.chunked_array(parts).combine_chunks() for parts in zip(*found, strict=True))
    values = positions.to_numpy(zero_copy_only=False)
    return {only: _ascending(values)} if only is not None else _grouped(paths[0].dictionary_encode(), values)


def _grouped(encoded: pa.DictionaryArray, values: Any) -> dict[str, Any]:
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        return {names[0]: _ascending(values)}
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    grouped = values[order]
    return {name: np.unique(grouped[bounds[index] : bounds[index + 1]]) for index, name in enumerate(names)}


def _ascending(positions: Any) -> Any:
    """Positions in ascending order without duplicates; they are sorted only if the writer did not."""
    return positions if bool(np.all(positions[1:] > positions[:-1])) else np.unique(positions)


def _bytes_of(positions: dict[str, Any]) -> int:
    return sum(len(path) + each.nbytes for path, each in positions.items())


# Keys that a scan keeps, of single files and of sets of them.
_KEYS_CACHE_BYTES = 128 * 1024 * 1024


class EqualityDeletes:
    """Loads equality delete files once a scan and answers per batch; keys have types of all schemas of the table."""

    def __init__(self, storage: Storage, metadata: TableMetadata) -> None:
        self._storage = storage
        self._metadata = metadata
        self._mapping = metadata.name_mapping()
        self._rows: SharedCache[str, pl.DataFrame] = SharedCache(_frame_bytes, _KEYS_CACHE_BYTES)
        self._sets: SharedCache[tuple[str, ...], pl.DataFrame] = SharedCache(_frame_bytes, _KEYS_CACHE_BYTES)
        self._schemas = (
            metadata.schema(),
            *sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True),
        )

    def key_schema(self, field_id: int) -> Schema:
        """The newest schema that has a field, so that its type is the widest."""
        for schema in self._schemas:
            if schema.has_field(field_id):
                return schema
        raise CorruptDataFileError(
            f"Cannot apply an equality delete of the table at {self._metadata.location}: no schema of the table has "
            f"its key column, field id {field_id}."
        )

    def column(self, field_id: int) -> NestedField:
        """A key as a column to read: the top-level column around it, pruned to it."""
        schema = self.key_schema(field_id)
        (top,) = schema.select_ids([field_id]).fields
        return replace(top, required=False)  # files that were rewritten after a key was dropped lack it

    def keys(self, deletes: Sequence[DataFile]) -> list[KeySet]:
        """Lookup tables of deleted keys, one for each set of equality ids."""
        by_ids: dict[tuple[int, ...], list[DataFile]] = {}
        for file in deletes:
            if not file.equality_ids:
                raise CorruptDataFileError(
                    f"Cannot apply {file.file_path}: its manifest entry lists no equality ids, so its key is unknown."
                )
            by_ids.setdefault(tuple(sorted(file.equality_ids)), []).append(file)
        return [self._key_set(ids, files) for ids, files in by_ids.items()]

    def _key_set(self, ids: tuple[int, ...], files: list[DataFile]) -> KeySet:
        columns = [self.column(field_id) for field_id in ids]
        names = tuple(sorted(file.file_path for file in files))

        def unite() -> pl.DataFrame:
            frames = [self._rows.get(file.file_path, partial(self._read, file, ids, columns)) for file in files]
            return (pl.concat(frames) if len(frames) > 1 else frames[0]).unique()

        return KeySet(ids, columns, self._sets.get(names, unite))

    def _read(self, file: DataFile, ids: tuple[int, ...], columns: list[NestedField]) -> pl.DataFrame:
        with open_delete_file(self._storage, file, self._mapping) as reader:
            projection = FileProjection(reader.schema, columns, {}, file.file_path, reader.reads_nested_fields)
            frames = [
                _frame(ids, columns, projection.project(batch))
                for rows in reader.ranges()
                for _, batch in reader.read(rows, projection.leaves, _ROWS_AT_ONCE, False)
            ]
        if not frames:
            return _frame(ids, columns, [constant(None, column.field_type, 0) for column in columns])
        return pl.concat(frames)


class KeySet:
    """The distinct deleted keys over one set of columns, with the top-level column to read for each ascending equality
    id.
    """

    def __init__(self, ids: tuple[int, ...], columns: list[NestedField], deleted: pl.DataFrame) -> None:
        self.ids = ids
        self.columns = columns
        self._deleted = deleted

    def deleted(self, columns: Sequence[pa.Array]) -> Any:
        """A mask of the rows whose keys are deleted."""
        frame = _frame(self.ids, self.columns, columns)
        names = self._deleted.columns
        if len(names) == 1 and frame.dtypes[0].is_integer():  # a fifth of the time of a join; text gains nothing
            return frame[names[0]].is_in(self._deleted[names[0]].implode(), nulls_equal=True).to_numpy()
        found = frame.with_row_index("row").join(self._deleted, on=names, how="semi", nulls_equal=True)
        mask = np.zeros(frame.height, np.bool_)
        mask[found["row"].to_numpy()] = True
        return mask


def _frame(ids: Sequence[int], columns: Sequence[NestedField], arrays: Sequence[pa.Array]) -> pl.DataFrame:
    """Key values in the form in which equal bytes mean equal keys."""
    found = {f"k{field_id}": comparable(_leaf(array)) for field_id, array in zip(ids, arrays, strict=True)}
    frame = pl.from_arrow(pa.table(found))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _frame_bytes(frame: pl.DataFrame) -> int:
    return int(frame.estimated_size())


def _leaf(array: pa.Array) -> pa.Array:
    """The only leaf below structs, null if a struct around it is."""
    while pa.types.is_struct(array.type):
        array = pc.struct_field(array, [0])
    return array
