"""One way to read and to write a content file, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from hms_iceberg.arrow.formats.avro.avro_reader import AvroReader
from hms_iceberg.arrow.formats.avro.avro_writer import AvroContentWriter
from hms_iceberg.arrow.formats.file_layout import FileLayout
from hms_iceberg.arrow.formats.orc.orc_reader import OrcReader
from hms_iceberg.arrow.formats.orc.orc_writer import OrcContentWriter, with_stripes_below
from hms_iceberg.arrow.formats.parquet_frames import FrameReader
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader, RangesTest, RowRange
from hms_iceberg.arrow.formats.parquet_writer import (
    ParquetContentWriter,
    Repetition,
    parquet_options,
    repetitions,
    with_useful_dictionaries,
)
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode
from hms_iceberg.encryption.encrypted_tables import new_file_key, refuse_encrypted
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.data_types import VariantType
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import (
    DELETE_FILE_FORMAT,
    FILE_FORMAT,
    PARQUET_DICTIONARIES,
    PARQUET_SHREDS,
    PARQUET_VARIANT_ROWS,
)
from hms_iceberg.storage import Storage

FORMATS = ("parquet", "orc", "avro")
_DELETE_PREFIX = "write.delete."
# Memory of a file that is being written: of any, and for each column of an ORC file.
_FILE_BYTES, _ORC_COLUMN_BYTES = 768 * 1024, 640 * 1024


class ContentWriter(Protocol):
    """A content file that is being written; it appears when it is closed."""

    location: str

    @property
    def size(self) -> int:
        """Bytes written so far."""

    @property
    def held(self) -> int:
        """Bytes of memory that the open file keeps after a group was written, about."""

    def write_row_group(self, batches: list[pa.RecordBatch]) -> None:
        """Writes plain batches of the schema's columns as one group of rows, if the format has such."""

    def close(self, **fields: Any) -> DataFile:
        """Finishes the file and makes it visible; `fields` are members of `DataFile` that the writer cannot know."""

    def abandon(self) -> None: ...


class ContentFormat:
    """Opens files of one format with one schema; an open file takes about `open_bytes` of memory beside its rows."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        schema: Schema,
        properties: Mapping[str, str],
        modes: Mapping[int, MetricsMode],
    ) -> None:
        self.name = name
        self._storage = storage
        self._schema = schema
        self._modes = modes
        self._layout = FileLayout(schema)
        check_writable(name, schema, properties)
        self._properties = properties
        self._parquet = parquet_options(schema, self._layout, properties) if name == "parquet" else {}
        self._repeated: Mapping[str, Repetition] = {}
        leaves = sum(not field.field_type.is_nested for field in schema.index_by_id.values())
        self.open_bytes = _FILE_BYTES + (_ORC_COLUMN_BYTES * leaves if name == "orc" else 0)

    def adapt(self, rows: list[pa.RecordBatch], held_bytes: int) -> None:
        """Chooses what the table's properties leave open, from the first rows, before the first file is opened;
        `held_bytes` is what an open file may keep in memory."""
        if self.name == "orc":
            self._properties = with_stripes_below(self._properties, held_bytes)
        if self.name == "parquet" and not any(PARQUET_DICTIONARIES.matches(name) for name in self._properties):
            self._repeated = repetitions(self._schema, rows)

    def open(self, location: str, rows: int = 0) -> ContentWriter:
        """Begins a file; `rows` go into its first group, if that is known."""
        key = new_file_key(self._properties)
        if self.name == "parquet":
            options: Mapping[str, Any] = self._parquet
            if self._repeated and rows:
                options = with_useful_dictionaries(options, self._schema, self._layout, self._repeated, rows)
            shred_by = PARQUET_VARIANT_ROWS.of(self._properties) if PARQUET_SHREDS.of(self._properties) else 0
            return ParquetContentWriter(
                self._storage, location, self._layout, self._schema, options, self._modes, shred_by, key
            )
        if self.name == "avro":
            return AvroContentWriter(self._storage, location, self._layout, self._properties, self._modes, key)
        return OrcContentWriter(self._storage, location, self._layout, self._properties, self._modes)


def check_writable(name: str, schema: Schema, properties: Mapping[str, str]) -> None:
    """Refuses a format that cannot hold the columns, or cannot be encrypted."""
    if name == "orc":
        refuse_encrypted(properties, "a table", "Cannot write ORC files of", f"Set {FILE_FORMAT.name} to parquet.")
    if name == "parquet":
        return
    for field_id, field in schema.index_by_id.items():
        if isinstance(field.field_type, VariantType):
            raise UnsupportedError(
                f"Cannot write column {schema.find_column_name(field_id)!r} to {name} files: variants are written to "
                f"Parquet files only. Set {FILE_FORMAT.name} to parquet."
            )


def format_name(properties: Mapping[str, str], deletes: bool = False) -> str:
    """The format of new data files (`write.format.default`) or delete files (`write.delete.format.default`)."""
    of_deletes = deletes and DELETE_FILE_FORMAT.name in properties
    return (DELETE_FILE_FORMAT if of_deletes else FILE_FORMAT).of(properties)


def delete_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The table's properties for delete files: `write.delete.<format>.*` overrides `write.<format>.*`."""
    result = dict(properties)
    for name, value in properties.items():
        if name.startswith(tuple(f"{_DELETE_PREFIX}{each}." for each in FORMATS)):
            result["write." + name[len(_DELETE_PREFIX) :]] = value
    return result


class ContentReader(Protocol):
    # Whether single leaves of a nested column can be read; otherwise it comes whole.
    reads_nested_fields: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are read, with field ids."""

    @property
    def frames(self) -> FrameReader | None:
        """Reads some ranges faster; None for files that have none such."""

    def ranges(self) -> list[RowRange]:
        """All ranges of rows that can be read on their own."""

    def matching(
        self, ranges: Sequence[RowRange], schema: Schema, field_ids: set[int], may_match: RangesTest
    ) -> list[RowRange]: ...

    def read(
        self, rows: RowRange, leaves: Sequence[int], batch_rows: int, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of a range with the position of their first row."""

    def is_int96(self, leaf: int) -> bool: ...

    def is_uuid(self, path: tuple[str, ...]) -> bool | None:
        """Whether a leaf of bytes is marked as UUIDs, so that Java reads them as such; None if it needs no mark."""

    def problems(self) -> list[str]:
        """Why Apache Iceberg in Java would fail to read the file, or read other values: parts of a sentence."""

    def bytes_of(self, rows: RowRange, leaves: Sequence[int]) -> int:
        """Compressed bytes of some leaves of a range; of the whole range if the format does not tell."""

    def close(self) -> None: ...


def open_reader(
    storage: Storage,
    location: str,
    file_format: str,
    mapping: NameMapping | None = None,
    key_metadata: bytes | None = None,
) -> ContentReader:
    """Opens a content file of a format as manifests name it, in any case; its caller closes the reader."""
    name = file_format.upper()
    if name == "PARQUET":
        return ParquetReader(storage, location, mapping, key_metadata)
    if name == "ORC":
        if key_metadata is not None:
            raise UnsupportedError(f"Cannot read {location}: encrypted ORC files are not supported.")
        return OrcReader(storage, location, mapping)
    if name == "AVRO":
        return AvroReader(storage, location, mapping, key_metadata)
    raise UnsupportedError(
        f"Cannot read {location}: files of format {file_format} are unknown; known are PARQUET, ORC and AVRO."
    )


def check_row_count(reader: ContentReader, file: DataFile) -> None:
    """Refuses a file that does not hold the rows that its manifest entry promises."""
    found = sum(rows.rows for rows in reader.ranges())
    if found != file.record_count:
        raise CorruptDataFileError(
            f"Cannot read {file.file_path}: it holds {found:,} rows, its manifest entry says {file.record_count:,}. "
            f"The file was changed or damaged after it was committed; restore it."
        )
