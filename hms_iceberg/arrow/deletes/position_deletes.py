"""Delete files as they are read, and the positions that position deletes and vectors delete, per data file.

Source: Iceberg specification, "Position Delete Files", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.puffin import read_deletion_vector
from hms_iceberg.arrow.formats.readers import ContentReader, check_row_count, open_reader
from hms_iceberg.arrow.parallel import SharedCache
from hms_iceberg.errors import MissingFileError
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.storage import Storage


@contextmanager
def open_delete_file(storage: Storage, file: DataFile, mapping: NameMapping | None = None) -> Iterator[ContentReader]:
    """A reader of a position or equality delete file, closed at the end.

    Args:
        storage: where it is.
        file: the delete file.
        mapping: the table's name mapping, for files without field ids.

    Raises:
        MissingFileError: it is gone; the error says that it is a delete file.
        CorruptDataFileError: it is damaged, or has not the rows that its manifest entry promises.
    """
    try:
        reader = open_reader(storage, file.file_path, file.file_format, mapping)
    except MissingFileError as error:
        raise MissingFileError(f"Cannot tell which rows are deleted, as a delete file is missing: {error}") from error
    try:
        check_row_count(reader, file)
        yield reader
    finally:
        reader.close()


_BATCH_ROWS = 1 << 18
# Positions of delete files about several data files that a scan keeps.
_CACHE_BYTES = 128 * 1024 * 1024


class PositionDeletes:
    """Loads delete files once a scan and answers per data file.

    Args:
        storage: where the files are.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: SharedCache[str, dict[str, Any]] = SharedCache(_bytes_of, _CACHE_BYTES)
        self._lock = Lock()

    def positions(self, data_file: str, deletes: Iterable[DataFile]) -> Any | None:
        """The deleted positions of a data file.

        Args:
            data_file: its location.
            deletes: the position delete files and deletion vectors that apply to it. A deletion vector holds all
                deletes of its file, so that position delete files beside it are left out.

        Returns:
            An ascending numpy array of int64 without duplicates, or None if nothing is deleted.

        Raises:
            MissingFileError, CorruptDataFileError: a delete file cannot be read.
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
    """The positions that a position delete file holds.

    Args:
        storage: where it is.
        file: the delete file.

    Returns:
        Location of a data file to ascending int64 positions without duplicates.
    """
    only = file.referenced_data_file
    columns = (DELETE_FILE_POSITION,) if only is not None else (DELETE_FILE_POSITION, DELETE_FILE_PATH)
    with open_delete_file(storage, file) as reader:
        projection = FileProjection(reader.schema, columns, {}, file.file_path, reader.reads_nested_fields)
        found = [
            projection.project(batch)
            for rows in reader.ranges()
            for _, batch in reader.read(rows, projection.leaves, _BATCH_ROWS, False)
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
    """Without duplicates; writers sort them."""
    return positions if bool(np.all(positions[1:] > positions[:-1])) else np.unique(positions)


def _bytes_of(positions: dict[str, Any]) -> int:
    return sum(len(path) + each.nbytes for path, each in positions.items())
