"""Rows that equality deletes delete, looked up by their keys.

However many delete files there are, each of their keys is united once for all data files of a scan: with the newest
delete file that holds it, since a data file is concerned by those from one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import constant
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.deleted_rows import open_delete_file
from hms_iceberg.arrow.deletes.united_deletes import UnitedDeletes
from hms_iceberg.arrow.parallel import SharedCache, in_parallel
from hms_iceberg.arrow.rows.row_identity import comparable
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.task_deletes import DeleteFiles, DeleteGroup
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_ROWS_AT_ONCE = 1 << 18
# Keys that a scan keeps, of single files and of sets of them.
_KEYS_CACHE_BYTES = 128 * 1024 * 1024
# Keys are looked up by their hashes if there are so many times as many deleted ones.
_SMALL = 16
_NEWEST = "newest"


class EqualityDeletes:
    """Loads equality delete files once a scan and answers per batch."""

    def __init__(self, storage: Storage, metadata: TableMetadata) -> None:
        self._storage = storage
        self._metadata = metadata
        self._mapping = metadata.name_mapping()
        self._rows: SharedCache[str, pl.DataFrame] = SharedCache(_frame_bytes, _KEYS_CACHE_BYTES)
        self._sets: SharedCache[tuple[str, ...], DeletedKeys] = SharedCache(_keys_bytes, _KEYS_CACHE_BYTES)
        self._united = UnitedDeletes(self._newest, _keys_bytes)
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

    def keys(self, deletes: DeleteFiles) -> list[KeySet]:
        found = []
        few: dict[tuple[int, ...], list[DataFile]] = {}
        for group in deletes.equality_groups():
            ids = _key_of(group)
            if self._united.is_worth_it(group):
                columns = [self.column(field_id) for field_id in ids]
                found.append(KeySet(ids, columns, self._united.since_first(group), group.first))
            else:
                few.setdefault(ids, []).extend(group.files)
        return [*found, *(self._key_set(ids, files) for ids, files in few.items())]

    def _newest(self, group: DeleteGroup, rows: range, later: DeletedKeys | None) -> DeletedKeys:
        """The keys of delete files of a group, with the newest that holds each."""
        files, ids = group.plan.files, _key_of(group)
        columns = [self.column(field_id) for field_id in ids]
        read = in_parallel(
            lambda row: self._read(files[row], ids, columns).with_columns(pl.lit(row, pl.UInt32).alias(_NEWEST)),
            rows,
            self._metadata.location,
        )
        frames = [*read, *([] if later is None else [later.rows])]
        return DeletedKeys(pl.concat(frames).group_by(pl.exclude(_NEWEST)).agg(pl.col(_NEWEST).max()))

    def _key_set(self, ids: tuple[int, ...], files: list[DataFile]) -> KeySet:
        columns = [self.column(field_id) for field_id in ids]
        names = tuple(sorted(file.file_path for file in files))

        def unite() -> DeletedKeys:
            frames = [self._rows.get(file.file_path, partial(self._read, file, ids, columns)) for file in files]
            return DeletedKeys((pl.concat(frames) if len(frames) > 1 else frames[0]).unique())

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


class DeletedKeys:
    """Distinct deleted keys; `newest` has the row of the newest delete file that holds each, if that matters."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self._names = [name for name in rows.columns if name != _NEWEST]
        self._lock = Lock()
        self._sorted: tuple[pl.Series, pl.DataFrame] | None = None

    def mask(self, keys: pl.DataFrame, since: int) -> Any:
        """Which keys are deleted by any delete file from one on, as a numpy array of booleans."""
        if keys.height * _SMALL < self.rows.height:
            return self._searched(keys, since)
        rows = self.rows.filter(pl.col(_NEWEST) >= since) if _NEWEST in self.rows.columns else self.rows
        if len(self._names) == 1 and keys.dtypes[0].is_integer():  # a fifth of the time of a join; text gains nothing
            (name,) = self._names
            return keys[name].is_in(rows[name].implode(), nulls_equal=True).to_numpy()
        found = keys.with_row_index("row").join(rows, on=self._names, how="semi", nulls_equal=True)
        return _mask(keys.height, found["row"])

    def _searched(self, keys: pl.DataFrame, since: int) -> Any:
        """Looks a few keys up among many, without a pass over these."""
        with self._lock:
            if self._sorted is None:
                hashes = self.rows.select(self._names).hash_rows().alias("")
                order = hashes.arg_sort()
                self._sorted = hashes.gather(order), self.rows[order]
        hashes, rows = self._sorted
        asked = keys.select(self._names).hash_rows()
        first, end = (hashes.search_sorted(asked, side).cast(pl.Int64) for side in ("left", "right"))
        places = (
            pl.DataFrame({"first": first, "end": end}).with_row_index("row").filter(pl.col("first") < pl.col("end"))
        )
        pairs = places.select("row", pl.int_ranges("first", "end").alias("place")).explode("place")
        here, there = keys[pairs["row"]], rows[pairs["place"]]
        equal = pl.repeat(True, pairs.height, dtype=pl.Boolean, eager=True)
        for name in self._names:
            equal &= here[name].eq_missing(there[name])
        if _NEWEST in rows.columns:
            equal &= there[_NEWEST] >= since
        return _mask(keys.height, pairs["row"].filter(equal))


class KeySet:
    """The deleted keys over one set of columns: for each ascending equality id, the top-level column to read."""

    def __init__(self, ids: tuple[int, ...], columns: list[NestedField], deleted: DeletedKeys, since: int = 0) -> None:
        self.ids = ids
        self.columns = columns
        self._deleted = deleted
        self._since = since

    def deleted(self, columns: Sequence[pa.Array]) -> Any:
        """A numpy array of booleans: which rows are deleted."""
        return self._deleted.mask(_frame(self.ids, self.columns, columns), self._since)


def _key_of(group: DeleteGroup) -> tuple[int, ...]:
    file = group.plan.files[group.first]
    if not file.equality_ids:
        raise CorruptDataFileError(
            f"Cannot apply {file.file_path}: its manifest entry lists no equality ids, so its key is unknown."
        )
    return tuple(sorted(file.equality_ids))


def _mask(count: int, rows: pl.Series) -> Any:
    mask = np.zeros(count, np.bool_)
    mask[rows.to_numpy()] = True
    return mask


def _frame(ids: Sequence[int], columns: Sequence[NestedField], arrays: Sequence[pa.Array]) -> pl.DataFrame:
    """Key values in the form in which equal bytes mean equal keys."""
    found = {f"k{field_id}": comparable(_leaf(array)) for field_id, array in zip(ids, arrays, strict=True)}
    frame = pl.from_arrow(pa.table(found))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _frame_bytes(frame: pl.DataFrame) -> int:
    return int(frame.estimated_size())


def _keys_bytes(keys: DeletedKeys) -> int:
    return _frame_bytes(keys.rows)


def _leaf(array: pa.Array) -> pa.Array:
    """The only leaf below structs, null if a struct around it is."""
    while pa.types.is_struct(array.type):
        array = pc.struct_field(array, [0])
    return array
