"""Writing row deletes: position delete files, deletion vectors and equality delete files.

Source: Iceberg specification, "Delete Formats"; Iceberg documentation, "Configuration" (``write.delete.*``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.deletes.puffin import write_deletion_vectors
from hms_iceberg.arrow.formats.content_files import ContentFormat, delete_properties, format_name
from hms_iceberg.arrow.metrics.footer_metrics import FULL
from hms_iceberg.arrow.parallel import default_workers
from hms_iceberg.arrow.storage.data_locations import DataLocations
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import DELETE_GRANULARITY, PARQUET_DICTIONARIES
from hms_iceberg.storage import Storage

_ROWS_AT_ONCE = 1 << 20


class RowDeletes(Protocol):
    """Rows of one data file to delete; how many are new is their length."""

    @property
    def file(self) -> DataFile: ...

    def __len__(self) -> int: ...

    def merged(self) -> Any:
        """All positions, also those that were deleted earlier; an ascending numpy array of int64."""
        ...


@dataclass(frozen=True)
class DeletedPositions:
    """Rows of one data file to delete: ascending positions, and those that are deleted already and are written anew."""

    file: DataFile
    positions: Any
    earlier: Any | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def merged(self) -> Any:
        if self.earlier is None or not len(self.earlier):
            return self.positions
        return np.union1d(self.earlier, self.positions)


def write_row_deletes(
    metadata: TableMetadata,
    storage: Storage,
    deleted: Sequence[RowDeletes],
    on_create: Callable[[str], None] | None = None,
) -> list[DataFile]:
    """Writes deletes of single rows: deletion vectors from format version 3 on, else position delete files by
    `write.delete.granularity`. `on_create` gets each location before its file is made."""
    found = [each for each in deleted if len(each)]
    if not found:
        return []
    if metadata.format_version >= 3:
        properties = delete_properties(metadata.properties)
        location = DataLocations(metadata.location, properties, suffix="deletes").next("", "puffin")
        if on_create is not None:
            on_create(location)
        return write_deletion_vectors(
            storage, location, ((each.file, each.merged()) for each in found), metadata.properties
        )
    writer = PositionDeleteWriter.of(metadata, storage, on_create)
    if DELETE_GRANULARITY.of(metadata.properties) == "file":
        groups = [[each] for each in found]
    else:
        ordered = sorted(found, key=lambda each: (each.file.spec_id, repr(each.file.partition), each.file.file_path))
        by_partition = groupby(ordered, key=lambda each: (each.file.spec_id, repr(each.file.partition)))
        groups = [list(group) for _, group in by_partition]
    workers = default_workers(len(groups), not parse_location(metadata.location).is_local)
    with ThreadPoolExecutor(workers, thread_name_prefix="iceberg-deletes") as pool:
        return list(pool.map(writer.write, groups))


def with_metrics_of_deletes(file: DataFile) -> DataFile:
    """A position delete file with bounds if it is about one data file, and no counts, like Java's
    `PositionDeleteWriter`."""
    bounds = [(of or {}).get(DELETE_FILE_PATH.field_id) for of in (file.lower_bounds, file.upper_bounds)]
    about_one = bounds[0] is not None and bounds[0] == bounds[1]
    return replace(
        file,
        column_sizes=file.column_sizes or None,
        value_counts=None,
        null_value_counts=None,
        nan_value_counts=None,
        lower_bounds=file.lower_bounds if about_one else None,
        upper_bounds=file.upper_bounds if about_one else None,
    )


class PositionDeleteWriter:
    """Writes position delete files of a table, whatever its format version is by now."""

    @classmethod
    def of(
        cls, metadata: TableMetadata, storage: Storage, on_create: Callable[[str], None] | None = None
    ) -> PositionDeleteWriter:
        """A writer by the table's rules; `on_create` gets each location before its file is made."""
        properties = delete_properties(metadata.properties)
        locations = DataLocations(metadata.location, properties, suffix="deletes")
        return cls(metadata, storage, properties, locations, on_create)

    def __init__(
        self,
        metadata: TableMetadata,
        storage: Storage,
        properties: Mapping[str, str],
        locations: DataLocations,
        on_create: Callable[[str], None] | None,
    ) -> None:
        self._metadata = metadata
        self._locations = locations
        self._on_create = on_create
        schema = Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION)
        # Whole bounds: they say which data file the deletes are about.
        modes = {field.field_id: FULL for field in schema.fields}
        name = format_name(metadata.properties, deletes=True)
        # No position comes twice: a dictionary of them makes a file of scattered ones three times as large.
        properties = {f"{PARQUET_DICTIONARIES.name}{DELETE_FILE_POSITION.name}": "false"} | dict(properties)
        self._format = ContentFormat(storage, name, schema, properties, modes)

    def write(self, group: Sequence[RowDeletes]) -> DataFile:
        """One delete file, sorted by data file and position."""
        file = group[0].file
        spec = self._metadata.spec_by_id(file.spec_id)
        schema = self._metadata.schema_for_spec(spec)
        path = "" if spec.is_unpartitioned() else spec.partition_to_path(file.partition, schema)
        location = self._locations.next(path, self._format.name)
        if self._on_create is not None:
            self._on_create(location)
        writer = self._format.open(location)
        try:
            for each in sorted(group, key=lambda one: one.file.file_path):
                for batch in _position_batches(each):
                    writer.write_row_group([batch])
        except BaseException:
            with suppress(Exception):
                writer.abandon()
            raise
        written = writer.close(content=DataFileContent.POSITION_DELETES, spec_id=file.spec_id, partition=file.partition)
        return replace(
            with_metrics_of_deletes(written), referenced_data_file=file.file_path if len(group) == 1 else None
        )


def _position_batches(deleted: RowDeletes) -> Iterable[pa.RecordBatch]:
    positions = deleted.merged()
    for start in range(0, len(positions), _ROWS_AT_ONCE):
        part = pa.array(positions[start : start + _ROWS_AT_ONCE], pa.int64())
        paths = pa.repeat(pa.scalar(deleted.file.file_path), len(part))
        yield pa.RecordBatch.from_arrays(
            [paths, part],
            schema=pa.schema([pa.field("file_path", pa.string(), False), pa.field("pos", pa.int64(), False)]),
        )
