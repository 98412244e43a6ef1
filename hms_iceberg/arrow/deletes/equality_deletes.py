"""Rows that equality delete files delete.

Keys are compared as the specification says: null equals null, NaN equals NaN, and -0.0 differs from 0.0. A key column
may have been renamed, promoted or dropped since; it is found by its id in any schema of the table. Source: Iceberg
specification, "Equality Delete Files".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.columns.values import constant
from hms_iceberg.arrow.deletes.position_deletes import open_delete_file
from hms_iceberg.arrow.parallel import SharedCache
from hms_iceberg.arrow.rows.row_identity import comparable
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_BATCH_ROWS = 1 << 18
# Keys that a scan keeps, of single files and of sets of them.
_CACHE_BYTES = 128 * 1024 * 1024


class EqualityDeletes:
    """Loads equality delete files once a scan and answers per batch.

    Args:
        storage: where the files are.
        metadata: the table, whose schemas, old ones included, give the keys' types.
    """

    def __init__(self, storage: Storage, metadata: TableMetadata) -> None:
        self._storage = storage
        self._metadata = metadata
        self._mapping = metadata.name_mapping()
        self._rows: SharedCache[str, pl.DataFrame] = SharedCache(_bytes_of, _CACHE_BYTES)
        self._sets: SharedCache[tuple[str, ...], pl.DataFrame] = SharedCache(_bytes_of, _CACHE_BYTES)
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
        """Lookup tables of deleted keys, one for each set of equality ids.

        Args:
            deletes: the equality delete files that apply to a data file.

        Raises:
            MissingFileError, CorruptDataFileError: a delete file cannot be read.
        """
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
                for _, batch in reader.read(rows, projection.leaves, _BATCH_ROWS, False)
            ]
        if not frames:
            return _frame(ids, columns, [constant(None, column.field_type, 0) for column in columns])
        return pl.concat(frames)


class KeySet:
    """The deleted keys over one set of columns.

    Args:
        ids: the equality ids, ascending.
        columns: for each id the top-level column to read.
        deleted: the distinct keys.
    """

    def __init__(self, ids: tuple[int, ...], columns: list[NestedField], deleted: pl.DataFrame) -> None:
        self.ids = ids
        self.columns = columns
        self._deleted = deleted

    def deleted(self, columns: Sequence[pa.Array]) -> Any:
        """Which rows are deleted.

        Args:
            columns: the arrays of ``self.columns``.

        Returns:
            A numpy array of booleans.
        """
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


def _bytes_of(frame: pl.DataFrame) -> int:
    return int(frame.estimated_size())


def _leaf(array: pa.Array) -> pa.Array:
    """The only leaf below structs, null if a struct around it is."""
    while pa.types.is_struct(array.type):
        array = pc.struct_field(array, [0])
    return array
