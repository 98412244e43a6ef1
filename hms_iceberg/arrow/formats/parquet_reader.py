"""Reading one Parquet file: row groups that may match, the leaves that are needed, in batches with their positions.

Row groups are the finest that can be left out: pyarrow says whether a column has a page index, but neither reads the
index nor a part of a row group; and it reads neither a dictionary alone nor a bloom filter. In their place `prefilter`
decodes the columns of a filter before the others, and with a dictionary that is about as quick.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.legacy_calendar import Rule, has_old_values, old_times, proleptic_columns
from hms_iceberg.arrow.columns.nested import rows_only
from hms_iceberg.arrow.columns.projection import FileLeaf, identified
from hms_iceberg.arrow.formats.parquet_columns import ParquetColumns
from hms_iceberg.arrow.formats.parquet_encryption import decrypting, decryption
from hms_iceberg.arrow.formats.parquet_frames import FrameReader
from hms_iceberg.arrow.metrics.file_footer import FileFooter
from hms_iceberg.arrow.metrics.footer_metrics import (
    AS_STORED,
    FULL,
    ColumnFile,
    ColumnMetrics,
    footer_of,
    metrics_from_footer,
)
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage, open_for_arrow
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_FORM = "Parquet"
# Wide rows come in batches of fewer rows.
_BATCH_BYTES = 64 * 1024 * 1024
_LEAST_BATCH_ROWS = 1024
# Rows of one column that are looked at together.
_OLD_ROWS = 1 << 16
# Text is read as codes of its dictionary if a row group has so many rows, and the dictionary at most so many bytes.
_CODED_ROWS = 10_000
_CODED_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows of a file that are read together: a row group of Parquet, a stripe of ORC, a run of Avro blocks. `start` is
    the position of its first row, `offset` its first byte; its columns take about `bytes` on disk."""

    index: int
    start: int
    rows: int
    bytes: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class RangeMetrics:
    """Column metrics of a range of rows by field id, in the form that `scan.metrics_filter` evaluates."""

    record_count: int
    metrics: ColumnMetrics

    @property
    def value_counts(self) -> dict[int, int]:
        return self.metrics.value_counts

    @property
    def null_value_counts(self) -> dict[int, int]:
        return self.metrics.null_value_counts

    @property
    def nan_value_counts(self) -> dict[int, int]:
        """Unknown here."""
        return self.metrics.nan_value_counts

    @property
    def lower_bounds(self) -> dict[int, bytes]:
        return self.metrics.lower_bounds

    @property
    def upper_bounds(self) -> dict[int, bytes]:
        return self.metrics.upper_bounds


RangesTest = Callable[[Sequence[RangeMetrics]], Sequence[bool]]


class ParquetReader:
    """An open Parquet file; its columns must not be encrypted with keys of Parquet's own."""

    reads_nested_fields = True

    def __init__(
        self, storage: Storage, location: str, mapping: NameMapping | None, key_metadata: bytes | None = None
    ) -> None:
        self._storage = storage
        self._location = location
        self._mapping = mapping
        self._key = None if key_metadata is None else FileKey.decode(key_metadata, location)
        self._path: str | None = None
        try:
            with self._decoding():
                self._columns = self._remembered_columns()
        except BaseException:
            self.close()
            raise

    @cached_property
    def _file(self) -> pa.NativeFile:
        return open_for_arrow(self._storage, self._location)

    def _remembered_columns(self) -> ParquetColumns:
        """The columns, which a storage remembers of a local file that is what it was when it was opened last."""
        if self._key is not None or not isinstance(self._storage, ArrowStorage):
            return self._read_columns()
        version = self._storage.local_version(self._location)
        if version is None:
            return self._read_columns()
        known, key = self._storage.parquet_columns, (version, self._mapping)
        found: ParquetColumns | None = known.get(key)
        if found is None:
            found = self._read_columns()
            if not isinstance(self._file, pa.OSFile):
                return found
            known.put(key, found)
        self._path = version.path
        return found

    def _read_columns(self) -> ParquetColumns:
        if self._key is None:
            footer = footer_of(self._file, self._location)
        else:
            opened = self._opened()
            footer = FileFooter(opened.metadata, schema=opened.schema_arrow)
        return ParquetColumns(footer, identified(footer.schema, self._mapping))

    @cached_property
    def frames(self) -> FrameReader | None:
        """Reads row groups by Polars; None for a file that Polars cannot open."""
        return None if self._path is None else FrameReader(self._path, self._columns)

    @cached_property
    def _coded(self) -> list[int]:
        return _coded_columns(self.footer, self._columns.leaves)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as they are read, with field ids; text that comes as codes of a dictionary has its type."""
        with self._decoding():
            return identified(self._parquet.schema_arrow, self._mapping) if self._coded else self._columns.schema

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        return self._opened(metadata=self.footer, read_dictionary=self._coded)

    def _opened(self, **more: Any) -> pq.ParquetFile:
        return ColumnFile(
            self._file,
            pre_buffer=not isinstance(self._file, pa.OSFile),  # gathers small reads of remote stores
            page_checksum_verification=True,  # costs 3%, and damage never becomes wrong rows
            decryption_properties=None if self._key is None else decryption(self._key),
            **AS_STORED,
            **more,
        )

    def _decoding(self) -> AbstractContextManager[None]:
        return decoding(self._location, _FORM) if self._key is None else decrypting(self._location)

    @property
    def footer(self) -> pq.FileMetaData:
        return self._columns.footer.metadata

    def ranges(self) -> list[RowRange]:
        found = []
        start = 0
        for index in range(self.footer.num_row_groups):
            group = self.footer.row_group(index)
            found.append(RowRange(index, start, group.num_rows, group.total_byte_size, _first_byte(group)))
            start += group.num_rows
        return found

    def matching(
        self, ranges: Sequence[RowRange], schema: Schema, field_ids: set[int], may_match: RangesTest
    ) -> list[RowRange]:
        """The row groups whose statistics do not rule out a filter on `field_ids`, bound to `schema`."""
        found = [RangeMetrics(each.rows, self.metrics(schema, field_ids, [each.index])) for each in ranges]
        return [each for each, may in zip(ranges, may_match(found), strict=True) if may]

    def metrics(self, schema: Schema, field_ids: set[int], row_groups: list[int] | None = None) -> ColumnMetrics:
        """The metrics of some columns by what may be believed of the footer, of all row groups unless given."""
        leaves = [leaf for leaf in self._columns.leaves if leaf.owner_id in field_ids]
        modes = dict.fromkeys(field_ids, FULL)
        return metrics_from_footer(
            self._columns.footer, leaves, schema, modes, {}, row_groups, rules=self._columns.rules
        )

    def read(
        self, rows: RowRange, leaves: Sequence[int], batch_rows: int, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of a row group, each with the position of its first row in the file; no leaves give batches without
        columns."""
        position = rows.start
        end = rows.start + rows.rows
        rules = [self._columns.rules.get(leaf) for leaf in leaves]
        if not leaves:
            yield from empty_batches(position, end, batch_rows)
            return
        with self._decoding():
            batches = self._parquet.reader.iter_batches(
                min(batch_rows, self._rows_within_bytes(rows, leaves)),
                row_groups=[rows.index],
                column_indices=list(leaves),
                use_threads=use_threads,
            )
        while True:
            with self._decoding():
                batch = next(batches, None)
            if batch is None:
                break
            yield position, proleptic_columns(batch, rules) if any(rules) else batch
            position += batch.num_rows
        if position != end:
            raise CorruptDataFileError(
                f"Cannot read {self._location}: row group {rows.index} should hold {rows.rows:,} rows, found "
                f"{position - rows.start:,}."
            )

    def is_int96(self, leaf: int) -> bool:
        return self._columns.is_int96(leaf)

    def is_uuid(self, path: tuple[str, ...]) -> None:
        """Java's readers need no mark."""
        return

    def problems(self) -> list[str]:
        """Columns with values that the writer counted in the Julian calendar, or by old rules of time zones; readers of
        other engines take them as they stand."""
        return old_times(
            ".".join(self._columns.leaves[index].path)
            for index, rule in self._columns.rules.items()
            if any(
                self._holds_old_values(self._columns.leaves[index], rule, group)
                for group in range(self.footer.num_row_groups)
            )
        )

    def _holds_old_values(self, leaf: FileLeaf, rule: Rule, group: int) -> bool:
        extremes = self._columns.footer.statistics(group, leaf.index).extremes
        if extremes is not None and isinstance(extremes[0], int):
            return rule.changes(leaf.type, extremes[0])
        with self._decoding():
            batches = self._parquet.reader.iter_batches(_OLD_ROWS, row_groups=[group], column_indices=[leaf.index])
            return any(has_old_values(batch, [rule]) for batch in batches)

    def bytes_of(self, rows: RowRange, leaves: Sequence[int]) -> int:
        group = self.footer.row_group(rows.index)
        return sum(group.column(leaf).total_compressed_size for leaf in leaves)

    def _rows_within_bytes(self, rows: RowRange, leaves: Sequence[int]) -> int:
        """The number of rows of the row group that take about `_BATCH_BYTES` in memory."""
        group = self.footer.row_group(rows.index)
        size = sum(group.column(leaf).total_uncompressed_size for leaf in leaves)
        return max(_LEAST_BATCH_ROWS, _BATCH_BYTES * rows.rows // max(size, 1))

    def close(self) -> None:
        if "_file" in self.__dict__:
            with contextlib.suppress(OSError, pa.ArrowException):
                self._file.close()


def _coded_columns(footer: pq.FileMetaData, leaves: Sequence[FileLeaf]) -> list[int]:
    """The leaves of text in large row groups that have small dictionaries, to be read as codes, in half the time; only
    the outermost row groups are asked."""
    groups = [footer.row_group(index) for index in sorted({0, footer.num_row_groups - 1}) if index >= 0]
    if not groups or min(group.num_rows for group in groups) < _CODED_ROWS:
        return []
    found = []
    for leaf in leaves:
        if len(leaf.path) == 1 and (pa.types.is_string(leaf.type) or pa.types.is_binary(leaf.type)):
            columns = [group.column(leaf.index) for group in groups]
            if all(
                each.dictionary_page_offset and 0 < each.data_page_offset - each.dictionary_page_offset <= _CODED_BYTES
                for each in columns
            ):
                found.append(leaf.index)
    return found


def _first_byte(group: pq.RowGroupMetaData) -> int:
    if not group.num_columns:
        return 0
    column = group.column(0)
    # Some writers say 0 if there is no dictionary.
    return min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)


class WholeRanges:
    """Reads ranges as a whole, for formats without usable statistics (Avro, ORC by pyarrow)."""

    reads_nested_fields = False
    frames = None

    def matching(
        self, ranges: Sequence[RowRange], schema: Schema, field_ids: set[int], may_match: RangesTest
    ) -> list[RowRange]:
        """Every range, since there are no statistics to rule one out by."""
        return list(ranges)

    def is_int96(self, leaf: int) -> bool:
        """False: only Parquet has INT96 timestamps."""
        return False

    def bytes_of(self, rows: RowRange, leaves: Sequence[int]) -> int:
        """The bytes of the whole range, whichever leaves are read."""
        return rows.bytes


def empty_batches(start: int, end: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches without columns, which still have a number of rows."""
    while start < end:
        count = min(batch_rows, end - start)
        yield start, pa.RecordBatch.from_struct_array(rows_only(count))
        start += count
