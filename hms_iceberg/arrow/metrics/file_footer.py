"""The footer of a Parquet file: how many rows it tells of, and which statistics of a column chunk may be believed.

Footers have two pairs of a least and a greatest value. The new pair counts where the footer says that a column has the
order of its type; pyarrow takes the old pair where it does not. The old one was made with the order of signed numbers,
or of signed bytes, whatever the type.

| column                             | believed                                                                  |
|------------------------------------|---------------------------------------------------------------------------|
| booleans, signed numbers and times | always; not NaN, and of either zero both                                  |
| float, double                      | not of writers that lost values beside NaN                                |
| text, bytes, fixed, UUID           | in the order of their type, or if least and greatest are the same         |
| int32, int64 as decimals           | the same                                                                  |
| unsigned, decimals in bytes        | the same, in the order of their type of writers that are known to know it |
| INT96, intervals, what is unknown  | never                                                                     |

The same value twice in the old pair is not believed of bytes of writers that overwrote them. What lies the wrong way
round never is.

Source: Apache Parquet, "parquet.thrift" (``Statistics``, ``ColumnOrder``, ``FileMetaData``); Apache Parquet Java,
``ParquetMetadataConverter`` and ``CorruptStatistics``; PARQUET-251, 297, 686, 1025, 1222, 1225, 1246, 1655, 2003;
IMPALA-6527.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.metrics.compact_thrift import LIST, STRUCT, CompactThrift
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import CorruptDataFileError

_COLUMN_ORDERS, _ENCRYPTION, _TYPE_ORDER = 7, 8, 1
# A column order that is the type's: the field 1, an empty struct.
_OF_TYPE = bytes((_TYPE_ORDER << 4 | STRUCT, 0, 0))
_BYTES = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
# Without an order, or of no use to any column of Iceberg.
_UNORDERED = ("INTERVAL", "UNKNOWN", "UNDEFINED", "GEOMETRY", "GEOGRAPHY", "VARIANT", "FLOAT16")


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """The credible statistics of a column in one row group. Nulls are None if nothing tells them. `extremes` are in the
    file's form, None if nothing tells them or no value has any."""

    values: int
    nulls: int | None
    extremes: tuple[Any, Any] | None

    @property
    def is_null(self) -> bool:
        return self.nulls == self.values


class FileFooter:
    """The footer of a Parquet file. `end` is None for a file whose writer is known to tell the order of each column:
    one that was written just now, or an encrypted one. `schema` is the file's, of a file that was opened; `intact` are
    the row groups and leaves whose checksums were found right."""

    def __init__(
        self, metadata: pq.FileMetaData, end: FooterEnd | None = None, schema: pa.Schema | None = None
    ) -> None:
        self.metadata = metadata
        self.schema = schema
        self.intact: set[tuple[int, int]] = set()
        self._end = end
        self._orders: dict[int, _Order] = {}

    @property
    def rows(self) -> int:
        """The number of rows of the row groups, which readers go by, as some writers left the footer's own number 0."""
        return sum(self.metadata.row_group(index).num_rows for index in range(self.metadata.num_row_groups))

    def check(self, location: str) -> None:
        """Refuses a footer with negative numbers, or with numbers of rows that contradict each other."""
        for wrong in self._contradictions():
            raise CorruptDataFileError(
                f"Cannot read the footer of {location}: {wrong}. The file is damaged, or its writer is wrong; write it "
                "anew."
            )

    def _contradictions(self) -> Iterator[str]:
        found = self.metadata
        repeated = [found.schema.column(index).max_repetition_level > 0 for index in range(found.num_columns)]
        for index in range(found.num_row_groups):
            group = found.row_group(index)
            if group.num_rows < 0 or group.total_byte_size < 0:
                yield f"its row group {index} has {group.num_rows:,} rows in {group.total_byte_size:,} bytes"
            for place in range(group.num_columns):
                chunk = group.column(place)
                values, size = chunk.num_values, chunk.total_compressed_size
                what = f"its column {chunk.path_in_schema!r} has {values:,} values in {size:,} bytes"
                if min(size, chunk.total_uncompressed_size, chunk.data_page_offset) < 0:
                    yield f"{what} from byte {chunk.data_page_offset:,} on in row group {index}"
                if values < group.num_rows or (values > group.num_rows and not repeated[place]):
                    yield f"{what} in row group {index}, which has {group.num_rows:,} rows"
        if found.num_rows not in (0, self.rows):
            yield f"it says {found.num_rows:,} rows, its row groups {self.rows:,}"

    def statistics(self, group: int, leaf: int) -> ChunkStatistics:
        """The statistics of a column chunk that may be believed."""
        chunk = self.metadata.row_group(group).column(leaf)
        found = chunk.statistics
        if found is None:
            return ChunkStatistics(chunk.num_values, None, None)
        nulls = found.null_count if found.has_null_count and 0 <= found.null_count <= chunk.num_values else None
        extremes = (found.min_raw, found.max_raw) if found.has_min_max else None
        if extremes is not None:
            if leaf not in self._orders:
                self._orders[leaf] = _Order.of(self.metadata.schema.column(leaf))
            extremes = self._believed(self._orders[leaf], leaf, *extremes)
        return ChunkStatistics(chunk.num_values, nulls, extremes)

    def _believed(self, order: _Order, leaf: int, low: Any, high: Any) -> tuple[Any, Any] | None:
        if not order.is_known:
            return None
        if isinstance(low, float):
            return _floats(low, high) if self._writer.keeps_values_beside_nan else None
        if not order.is_signed and not self._is_ordered(leaf):
            overwritten = order.is_of_bytes and self._writer.overwrites_bytes
            return (low, high) if low == high and not overwritten else None
        if order.is_often_wrong and low != high and not self._writer.knows_order_of_types:
            return None
        return (low, high) if order.is_ascending(low, high) else None

    def _is_ordered(self, leaf: int) -> bool:
        """Whether the footer says that a column's values are ordered as its type is, so that pyarrow took the new
        pair."""
        return self._end is None or self._end.ordered is None or leaf in self._end.ordered

    @cached_property
    def _writer(self) -> _Writer:
        return _Writer.of(self.metadata.created_by or "")


@dataclass(frozen=True, slots=True)
class FooterEnd:
    """The facts that pyarrow does not tell: the columns whose values are `ordered` by their type (None for all), and
    whether the file `is_encrypted` with Parquet's own keys, for which pyarrow ends the process."""

    ordered: frozenset[int] | None
    is_encrypted: bool = False

    @classmethod
    def of(cls, metadata: pq.FileMetaData, raw: bytes) -> FooterEnd:
        count = metadata.num_columns
        kinds = bytes((min(count, 15) << 4 | STRUCT,)) + (_varint(count) if count >= 15 else b"")
        writer = (metadata.created_by or "").encode()
        # Right after the writer's name; of a footer that ends otherwise everything is read, which takes longer.
        end = raw.rpartition(writer)[2] if writer else None
        if end == bytes((1 << 4 | LIST,)) + kinds + _OF_TYPE * count + b"\0":
            return cls(None)
        return cls(frozenset()) if end == b"\0" else cls._whole(CompactThrift(raw))

    @classmethod
    def _whole(cls, footer: CompactThrift) -> FooterEnd:
        ordered, is_encrypted = set(), False
        for number, kind in footer.fields():
            is_encrypted |= number == _ENCRYPTION
            if number != _COLUMN_ORDERS:
                footer.skip(kind)
                continue
            for place in range(footer.list_header()[1]):
                for order, of in footer.fields():
                    footer.skip(of)
                    if order == _TYPE_ORDER:
                        ordered.add(place)
        return cls(frozenset(ordered), is_encrypted)


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes((low | 128,)) + _varint(rest) if rest else bytes((low,))


def _floats(low: float, high: float) -> tuple[float, float] | None:
    if not low <= high:  # NaN among them
        return None
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of a column's values, if it is known, by their storage as bytes, decimals or unsigned numbers."""

    is_known: bool
    is_of_bytes: bool
    is_decimal: bool
    is_unsigned: bool

    @classmethod
    def of(cls, column: Any) -> _Order:
        physical, converted = column.physical_type, column.converted_type
        is_known = physical != "INT96" and converted != "INTERVAL" and column.logical_type.type not in _UNORDERED
        return cls(is_known, physical in _BYTES, converted == "DECIMAL", converted.startswith("UINT"))

    @property
    def is_signed(self) -> bool:
        """Whether every writer has ordered values rightly at all times."""
        return not (self.is_of_bytes or self.is_decimal or self.is_unsigned)

    @property
    def is_often_wrong(self) -> bool:
        """Whether writers have ordered values by what stores them, and not by their type."""
        return self.is_unsigned or (self.is_of_bytes and self.is_decimal)

    def is_ascending(self, low: Any, high: Any) -> bool:
        """Whether one value, as the file has it, is not above another one."""
        if self.is_unsigned:
            return bool((low < 0, low) <= (high < 0, high))  # the upper half is read as negative numbers
        if self.is_of_bytes and self.is_decimal:
            low, high = (int.from_bytes(bytes(each), "big", signed=True) for each in (low, high))
        return bool(low <= high)


# ------------------------------------------------------------------------------------------------------ writers


_CREATED_BY = re.compile(r"(.*?)\s+version\s*(?:([^(]*?)\s*(?:\(\s*build\s*([^)]*?)\s*\))?)?", re.DOTALL)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)", re.DOTALL)
_Version = tuple[int, int, int, bool]


def _version(text: str) -> _Version | None:
    """A version that can be compared; before its release come others with something behind the numbers."""
    match = _VERSION.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]), not match[4] or match[4][0] == "+")


_FIXED_BYTES, _FIXED_ORDERS = (1, 8, 0, True), (1, 10, 0, True)
_FIXED_NAN = {"parquet-cpp": (1, 4, 0, True), "impala": (2, 12, 0, True)}
# Right from the first, as far as they say which order a column has. Others compared decimals as unsigned bytes.
_KNOWS_ORDERS = ("parquet-cpp-arrow", "parquet-mr-trino", "impala", "duckdb")


@dataclass(frozen=True, slots=True)
class _Writer:
    """Known faults of the program that wrote a file: least and greatest bytes may be overwritten, decimals and unsigned
    numbers ordered by another type, bounds of floats wrong beside NaN."""

    overwrites_bytes: bool
    knows_order_of_types: bool
    keeps_values_beside_nan: bool

    @classmethod
    def of(cls, created_by: str) -> _Writer:
        match = _CREATED_BY.fullmatch(created_by)
        if match is None or not match[1]:
            name = created_by.split(" ", 1)[0].lower()
            return cls(True, name in _KNOWS_ORDERS, True)
        name, version = match[1].lower(), _version(match[2] or "")
        needed = _FIXED_NAN.get(name)
        keeps = needed is None or (version is not None and version >= needed)
        if name != "parquet-mr":
            return cls(False, name in _KNOWS_ORDERS, keeps)
        if version is None:
            return cls(True, False, keeps)
        return cls(version < _FIXED_BYTES, version >= _FIXED_ORDERS, keeps)
