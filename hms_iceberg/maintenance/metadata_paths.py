"""Paths below one prefix moved to another: in table metadata and in delete files.

Source: Iceberg specification, "Table Metadata Fields", "Snapshots", "Path Construction"; Iceberg specification,
"Position Delete Files", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.delete_writer import with_metrics_of_deletes
from hms_iceberg.arrow.deletes.deleted_rows import open_delete_file
from hms_iceberg.arrow.deletes.puffin import copy_puffin
from hms_iceberg.arrow.formats.content_files import ContentFormat, delete_properties
from hms_iceberg.arrow.metrics.footer_metrics import FULL
from hms_iceberg.errors import FileAlreadyExistsError, InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.places import Place, has_dot_segments
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.table_properties import DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH
from hms_iceberg.storage import Storage


@dataclass(frozen=True)
class PrefixChange:
    """Replaces the prefix of paths."""

    source: str  # the prefix that goes; with or without a slash at its end
    target: str  # what takes its place
    staging: str  # the folder in which files that are written anew lie until they are copied

    def new_path(self, path: str) -> str:
        """The path under the target; InvalidInputError if it is not under the source."""
        return _joined(self.target, self._relative(path))

    def staged_path(self, path: str) -> str:
        """The place below the staging folder for a rewritten file; InvalidInputError if it is not under the source."""
        return _joined(self.staging, self._relative(path))

    def _relative(self, path: str) -> str:
        """The part of a location below the source prefix; empty for the prefix itself."""
        source = self.source.rstrip("/") + "/"
        if path.startswith(source) and "//" not in (below := path[len(source) :]) and not has_dot_segments(below):
            return below.rstrip("/")
        folder, place = Place.of(self.source), Place.of(path)
        if not place.is_in(folder):
            raise InvalidInputError(
                f"Cannot replace the prefix of {path}: it is not under {self.source}. Every path of the table has to "
                "be; give a prefix that all of them have."
            )
        return place.below(folder)


@contextmanager
def noted(created: list[str], location: str) -> Iterator[None]:
    """Notes a file that is made in the block, so that it can be deleted; not if somebody else's is there already."""
    created.append(location)
    try:
        yield
    except FileAlreadyExistsError:
        created.remove(location)
        raise


def _joined(folder: str, relative: str) -> str:
    return f"{folder.rstrip('/')}/{relative}" if relative else folder


# Properties that name folders.
_FOLDERS = tuple(each.name for each in (DATA_PATH, METADATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH))


def with_new_paths(metadata: TableMetadata, change: PrefixChange) -> TableMetadata:
    """Table metadata in which every path has its new prefix; InvalidInputError if one is not under the old prefix."""
    new = change.new_path
    return replace(
        metadata,
        location=new(metadata.location),
        properties=_properties(metadata.properties, change),
        snapshots=tuple(_snapshot(snapshot, change) for snapshot in metadata.snapshots),
        metadata_log=tuple(replace(each, metadata_file=new(each.metadata_file)) for each in metadata.metadata_log),
        statistics=tuple(replace(each, statistics_path=new(each.statistics_path)) for each in metadata.statistics),
        partition_statistics=tuple(
            replace(each, statistics_path=new(each.statistics_path)) for each in metadata.partition_statistics
        ),
    )


def _properties(properties: Mapping[str, str], change: PrefixChange) -> dict[str, str]:
    """The table's properties with moved paths; relative paths stay, since they move with the table."""

    def moved(name: str, value: str) -> str:
        is_absolute = value.startswith("/") or value.split("/", 1)[0].endswith(":")
        return change.new_path(value) if name in _FOLDERS and is_absolute else value

    return {name: moved(name, value) for name, value in properties.items()}


def _snapshot(snapshot: Snapshot, change: PrefixChange) -> Snapshot:
    listed, manifests = snapshot.manifest_list, snapshot.manifest_locations
    return replace(
        snapshot,
        manifest_list=None if listed is None else change.new_path(listed),
        manifest_locations=None if manifests is None else tuple(map(change.new_path, manifests)),
    )


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
    """Writes position delete files with the new paths into the staging folder, each file once. The rows that an old
    position delete file may repeat beside their positions are left out: no reader needs them."""

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
        """The file with its new size and metrics; InvalidInputError if it deletes rows outside of the prefix."""
        if file.is_deletion_vector:
            return replace(file, file_size_in_bytes=self._size_of_vectors(file.file_path))
        found = self._files.get(file.file_path)
        if found is None:
            found = self._files[file.file_path] = self._rewrite(file)
        return replace(file, **{name: getattr(found, name) for name in _MEASURED})

    def _size_of_vectors(self, location: str) -> int:
        if location not in self._sizes:
            staged = self._change.staged_path(location)
            with noted(self._created, staged):
                self._sizes[location] = copy_puffin(self._storage, location, staged, self._change.new_path)
        return self._sizes[location]

    def _rewrite(self, file: DataFile) -> DataFile:
        staged = self._change.staged_path(file.file_path)
        with noted(self._created, staged):
            return self._written(file, staged)

    def _written(self, file: DataFile, staged: str) -> DataFile:
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
