"""Delete files as they are read: positions and vectors per data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.deletes.united_deletes import UnitedDeletes
from hms_iceberg.arrow.formats.content_files import ContentReader, check_row_count, open_reader
from hms_iceberg.arrow.parallel import SharedCache, in_parallel
from hms_iceberg.errors import MissingFileError
from hms_iceberg.scan.task_deletes import DeleteFiles, DeleteGroup
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
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
_ByDataFile = dict[str, list[tuple[int, Any]]]
# Positions of delete files about several data files that a scan keeps.
_CACHE_BYTES = 128 * 1024 * 1024


class PositionDeletes:
    """Loads delete files once a scan."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: SharedCache[str, dict[str, Any]] = SharedCache(_bytes_of, _CACHE_BYTES)
        self._united = UnitedDeletes(self._by_data_file, _bytes_of_all)

    def of_task(self, data_file: str, deletes: DeleteFiles) -> Any | None:
        """The deleted positions of a data file of a plan, as `positions` gives them."""
        parts: list[Any] = []
        few: list[DataFile] = []
        for group in deletes.position_groups():
            if self._united.is_worth_it(group) and not group.names_data_files:
                found = self._united.since_first(group).get(data_file, ())
                parts += (positions for row, positions in found if row >= group.first)
            else:
                few += group.files
        own = self.positions(data_file, few)
        return _united([*parts, *(() if own is None else (own,))])

    def _by_data_file(self, group: DeleteGroup, rows: range, later: _ByDataFile | None) -> _ByDataFile:
        """The positions in delete files of a group by data file, each with the row of its delete file."""
        found = {path: list(parts) for path, parts in (later or {}).items()}
        files = group.plan.files
        read = in_parallel(lambda row: read_position_deletes(self._storage, files[row]), rows, files[rows[0]].file_path)
        for row, positions in zip(rows, read, strict=True):
            for path, each in positions.items():
                found.setdefault(path, []).append((row, each))
        return found

    def positions(self, data_file: str, deletes: Iterable[DataFile]) -> Any | None:
        """The deleted positions of a data file, ascending without duplicates; None if there are none. A deletion vector
        holds all deletes of its file, so that position delete files beside it are left out."""
        found = list(deletes)
        vectors = [file for file in found if file.file_format.upper() == "PUFFIN"]
        if vectors:
            parts = [read_deletion_vector(self._storage, vector) for vector in vectors]
        else:
            parts = [self._load(file).get(data_file) for file in found]
        return _united([part for part in parts if part is not None and len(part)])

    def _load(self, file: DataFile) -> dict[str, Any]:
        found = self._files.get(file.file_path, lambda: read_position_deletes(self._storage, file))
        if len(found) <= 1:  # nobody else will ask, and a scan may have very many of them
            self._files.forget(file.file_path)
        return found


def _united(parts: list[Any]) -> Any | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


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


def _bytes_of_all(found: _ByDataFile) -> int:
    return sum(len(path) + sum(each.nbytes for _, each in parts) for path, parts in found.items())
