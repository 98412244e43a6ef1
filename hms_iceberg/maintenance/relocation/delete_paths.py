"""Position delete files and deletion vectors of data files that get other paths.

Source: Iceberg specification, "Position Delete Files", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.delete_writer import with_metrics_of_deletes
from hms_iceberg.arrow.deletes.deleted_rows import open_delete_file
from hms_iceberg.arrow.deletes.puffin import copy_puffin
from hms_iceberg.arrow.formats.content_files import ContentFormat, delete_properties
from hms_iceberg.arrow.metrics.footer_metrics import FULL
from hms_iceberg.maintenance.relocation.metadata_paths import PrefixChange
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_SCHEMA = Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION)
_BATCH_ROWS = 1 << 18
# What a file's own bytes say of it.
_MEASURED = (
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "split_offsets",
)


class PositionDeleteMover:
    """Writes position deletes anew, each file once, into the staging folder.

    The rows that an old position delete file may repeat beside their positions are left out: no reader needs them.

    Args:
        storage: where the files are.
        properties: of the table.
        change: what becomes of paths.
        created: gets the location of each new file before it is made.
    """

    def __init__(
        self, storage: Storage, properties: Mapping[str, str], change: PrefixChange, created: list[str]
    ) -> None:
        self._storage = storage
        self._properties = delete_properties(properties)
        self._change = change
        self._created = created
        self._files: dict[str, DataFile] = {}
        self._sizes: dict[str, int] = {}

    def rewritten(self, file: DataFile) -> DataFile:
        """A position delete file or deletion vector, as before, but for the size and metrics of the new file.

        Raises:
            InvalidInputError: it deletes rows of a data file that is not under the prefix.
            MissingFileError, CorruptDataFileError: it cannot be read.
        """
        if file.is_deletion_vector:
            return replace(file, file_size_in_bytes=self._size_of_vectors(file.file_path))
        found = self._files.get(file.file_path)
        if found is None:
            found = self._files[file.file_path] = self._rewrite(file)
        return replace(file, **{name: getattr(found, name) for name in _MEASURED})

    def _size_of_vectors(self, location: str) -> int:
        if location not in self._sizes:
            staged = self._change.staged_path(location)
            self._created.append(staged)
            self._sizes[location] = copy_puffin(self._storage, location, staged, self._change.new_path)
        return self._sizes[location]

    def _rewrite(self, file: DataFile) -> DataFile:
        staged = self._change.staged_path(file.file_path)
        self._created.append(staged)
        # Whole bounds: they say which data file the deletes are about.
        modes = {field.field_id: FULL for field in _SCHEMA.fields}
        name = file.file_format.lower()
        writer = ContentFormat(self._storage, name, _SCHEMA, self._properties, modes).open(staged)
        try:
            for batch in self._batches(file):
                writer.write_row_group([batch])
        except BaseException:
            with suppress(Exception):
                writer.abandon()
            raise
        return with_metrics_of_deletes(writer.close(content=DataFileContent.POSITION_DELETES))

    def _batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        names = [field.name for field in _SCHEMA.fields]
        with open_delete_file(self._storage, file) as reader:
            projection = FileProjection(reader.schema, _SCHEMA.fields, {}, file.file_path, reader.reads_nested_fields)
            for rows in reader.ranges():
                for _, batch in reader.read(rows, projection.leaves, _BATCH_ROWS, False):
                    path, position = projection.project(batch)
                    yield pa.record_batch([self._new_paths(path), position], names=names)

    def _new_paths(self, paths: pa.Array) -> pa.Array:
        encoded = pc.dictionary_encode(paths)
        renamed = pa.array([self._change.new_path(path) for path in encoded.dictionary.to_pylist()], pa.string())
        return renamed.take(encoded.indices)
