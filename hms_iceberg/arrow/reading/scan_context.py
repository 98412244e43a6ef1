"""The state that all tasks of a scan share, and rows as frames of polars."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.projection import FileProjection
from hms_iceberg.arrow.deletes.deleted_rows import PositionDeletes
from hms_iceberg.arrow.deletes.equality_deletes import EqualityDeletes
from hms_iceberg.arrow.formats.content_files import ContentReader
from hms_iceberg.arrow.rows.row_masks import Prefilter
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.lazy import pl
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_PROCESSORS = os.cpu_count() or 1
# The most that a range may take while it is decoded whole: if its rows are let go one after another, and if whoever
# reads keeps the rows or takes whole ranges.
STREAMED_BYTES, KEPT_BYTES = 64 * 1024 * 1024, 512 * 1024 * 1024


@dataclass(frozen=True)
class FrameRows:
    """Rows as a frame of the names and types that polars has for the wanted columns; `nbytes` is about what they take
    of memory. Polars' own estimate reads all text."""

    frame: pl.DataFrame
    nbytes: int


@dataclass(frozen=True)
class WantedFrame:
    """The types of a scan's columns in polars, and a test of them that rows have to match, too."""

    dtypes: Mapping[str, Any]
    test: pl.Expr | None = None


class ScanContext:
    """State that all tasks of a scan share. `marks_deleted` reads deleted rows too, told by `_deleted`; with `frame`
    rows come as frames where that is quicker; a range decoded whole takes at most `decoded_bytes`. Nobody takes more
    than the first `most_rows` of them all."""

    def __init__(
        self,
        metadata: TableMetadata,
        storage: Storage,
        filter_schema: Schema,
        projected: Schema,
        batch_rows: int,
        marks_deleted: bool = False,
        frame: WantedFrame | None = None,
        decoded_bytes: int = STREAMED_BYTES,
        most_rows: int | None = None,
    ) -> None:
        self.most_rows = most_rows
        self.frame = frame
        self.decoded_bytes = decoded_bytes
        self.metadata = metadata
        self.storage = storage
        self.filter_schema = filter_schema
        self.projected = projected
        self.arrow_schema = to_arrow(projected)
        self.batch_rows = batch_rows
        self.marks_deleted = marks_deleted
        self.mapping = metadata.name_mapping()
        self.prefilter = Prefilter()
        self.positions = PositionDeletes(storage)
        self.equality = EqualityDeletes(storage, metadata)
        self._projections: deque[FileProjection] = deque(maxlen=8)
        self._lock = Lock()
        self._reading = 0

    def is_local(self, location: str) -> bool:
        """Whether a file is known to be one of this machine's file system."""
        return isinstance(self.storage, ArrowStorage) and self.storage.is_local(location)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Counts a file as being read."""
        with self._lock:
            self._reading += 1
        try:
            yield
        finally:
            with self._lock:
                self._reading -= 1

    @property
    def spare_processors(self) -> bool:
        """Whether fewer files are read now than there are processors; else each is decoded best by one thread."""
        return self._reading < _PROCESSORS

    def projection(
        self, reader: ContentReader, wanted: tuple[NestedField, ...], file: DataFile, schema: pa.Schema | None = None
    ) -> FileProjection:
        """The projection of a file, or another schema of it, to the wanted columns; files of the same columns share
        it."""
        schema = reader.schema if schema is None else schema
        constants = self.constants(file)
        for known in tuple(self._projections):
            if known.fits(schema, wanted, constants):
                return known
        made = FileProjection(schema, wanted, constants, file.file_path, reader.reads_nested_fields)
        self._projections.append(made)
        return made

    def constants(self, file: DataFile) -> dict[int, Any]:
        """Identity partition values of a file by source column, for columns that the file lacks."""
        spec = self.metadata.spec_by_id(file.spec_id)
        return {
            field.source_id: value
            for field, value in zip(spec.fields, file.partition, strict=True)
            if field.transform.is_identity
        }
