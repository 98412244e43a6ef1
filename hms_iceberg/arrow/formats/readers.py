"""One way to read a content file, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from hms_iceberg.arrow.formats.avro.avro_reader import AvroReader
from hms_iceberg.arrow.formats.orc.orc_reader import OrcReader
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader, RangesTest, RowRange
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage


class ContentReader(Protocol):
    """An open content file; see ``ParquetReader`` for what its methods promise."""

    schema: pa.Schema
    # Whether single leaves of a nested column can be read; otherwise it comes whole.
    reads_nested_fields: bool

    def ranges(self) -> list[RowRange]:
        """All ranges of rows that can be read on their own."""

    def matching(
        self, ranges: Sequence[RowRange], schema: Schema, field_ids: set[int], may_match: RangesTest
    ) -> list[RowRange]:
        """The ranges whose statistics do not rule a filter out."""

    def read(
        self, rows: RowRange, leaves: Sequence[int], batch_rows: int, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of a range with the position of their first row."""

    def is_int96(self, leaf: int) -> bool:
        """Whether a leaf holds Parquet's INT96 timestamps."""

    def is_uuid(self, path: tuple[str, ...]) -> bool | None:
        """Whether a leaf of bytes is marked as UUIDs, so that Java reads them as such; None if it needs no mark."""

    def problems(self) -> list[str]:
        """Why Apache Iceberg in Java would fail to read the file, or read other values: parts of a sentence."""

    def bytes_of(self, rows: RowRange, leaves: Sequence[int]) -> int:
        """Compressed bytes of some leaves of a range; of the whole range if the format does not tell."""

    def close(self) -> None:
        """Closes the file."""


def open_reader(storage: Storage, location: str, file_format: str, mapping: NameMapping | None = None) -> ContentReader:
    """Opens a content file.

    Args:
        storage: where it is.
        location: the file.
        file_format: as manifests name it, in any case.
        mapping: the table's name mapping, for files without field ids.

    Raises:
        MissingFileError, CorruptDataFileError: it cannot be opened.
        UnsupportedError: the format is unknown.
    """
    name = file_format.upper()
    if name == "PARQUET":
        return ParquetReader(storage, location, mapping)
    if name == "ORC":
        return OrcReader(storage, location, mapping)
    if name == "AVRO":
        return AvroReader(storage, location, mapping)
    raise UnsupportedError(
        f"Cannot read {location}: files of format {file_format} are unknown; known are PARQUET, ORC and AVRO."
    )


def check_row_count(reader: ContentReader, file: DataFile) -> None:
    """Refuses a file that does not hold the rows that its manifest entry promises.

    Raises:
        CorruptDataFileError: the numbers differ.
    """
    found = sum(rows.rows for rows in reader.ranges())
    if found != file.record_count:
        raise CorruptDataFileError(
            f"Cannot read {file.file_path}: it holds {found:,} rows, its manifest entry says {file.record_count:,}. "
            f"The file was changed or damaged after it was committed; restore it."
        )
