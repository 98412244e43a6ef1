"""Footers of Parquet files with what pyarrow's writer cannot say: which columns are variants, or geographies with edges
other than spherical ones.

Source: Apache Parquet, "parquet.thrift" (``SchemaElement``, ``LogicalType``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.metrics.compact_thrift import BINARY, BYTE, INT, STRUCT, CompactThrift
from hms_iceberg.spec.data_types import (
    DEFAULT_EDGE_ALGORITHM,
    EDGE_ALGORITHMS,
    GeographyType,
    GeometryType,
    IcebergType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema

_MAGIC = b"PAR1"
_NAMES_SHAPES = int(pa.__version__.split(".")[0]) >= 21
_SCHEMA, _FIELD_ID, _LOGICAL_TYPE = 2, 9, 10
# The logical type VARIANT (number 16 of its union) of version 1, and the ends of both structs.
_VARIANT = bytes((STRUCT, 16 << 1, 1 << 4 | BYTE, 1, 0, 0))


def unnamed_types(schema: Schema) -> dict[int, bytes]:
    """The logical types that pyarrow's writer cannot name, by field id."""
    return {
        field_id: _logical_type(each.field_type)
        for field_id, each in schema.index_by_id.items()
        if has_no_name(each.field_type)
    }


def has_no_name(kind: IcebergType) -> bool:
    """Whether pyarrow's writer cannot name a type: variant, geography with other edges than spherical ones, and before
    version 21 any shapes."""
    if isinstance(kind, GeographyType) and kind.algorithm != DEFAULT_EDGE_ALGORITHM:
        return True
    return isinstance(kind, VariantType) or (isinstance(kind, (GeometryType, GeographyType)) and not _NAMES_SHAPES)


def _logical_type(kind: IcebergType) -> bytes:
    if not isinstance(kind, (GeometryType, GeographyType)):
        return _VARIANT
    crs = kind.crs.encode()
    number, edges = 17, b""
    if isinstance(kind, GeographyType):
        number, edges = 18, bytes((1 << 4 | INT, EDGE_ALGORITHMS.index(kind.algorithm) << 1))
    return bytes((STRUCT, number << 1, 1 << 4 | BINARY)) + _varint(len(crs)) + crs + edges + bytes(2)


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes((low | 128,)) + _varint(rest) if rest else bytes((low,))


class NamingOutput:
    """The file that pyarrow writes to if its types include some that it cannot name: the footer then names them."""

    def __init__(self, stream: Any, types: Mapping[int, bytes]) -> None:
        self._stream = stream
        self._types = types
        self._end: list[bytes] | None = None
        self.closed = False

    def write(self, data: bytes) -> int:
        """Passes bytes on, or holds them if the end has begun."""
        if self._end is None:
            self._stream.write(data)
        else:
            self._end.append(bytes(data))
        return len(data)

    def hold_end(self) -> None:
        """Says that nothing but the end is left to write: indexes and the footer."""
        self._end = []

    def write_end(self) -> None:
        """Writes the end that was held, with its footer changed."""
        self._stream.write(with_types(b"".join(self._end or ()), self._types))

    def flush(self) -> None:
        """Does nothing; whoever has the stream flushes it."""

    def close(self) -> None:
        """Marks it as closed; the stream stays open."""
        self.closed = True


def with_types(end: bytes, types: Mapping[int, bytes]) -> bytes:
    """The last bytes of a Parquet file, with the types of some more columns named in its footer."""
    start = len(end) - 8 - int.from_bytes(end[-8:-4], "little")
    footer = end[start:-8]
    parts = [end[:start]]
    done = 0
    for at, last, field_id in _ends(CompactThrift(footer), types):
        parts += [footer[done:at], bytes((_LOGICAL_TYPE - last << 4 | STRUCT,)), types[field_id]]
        done = at
    parts.append(footer[done:])
    length = sum(map(len, parts[1:]))
    return b"".join([*parts, length.to_bytes(4, "little"), _MAGIC])


def _ends(footer: CompactThrift, types: Mapping[int, bytes]) -> Iterator[tuple[int, int, int]]:
    """For each column to change: the offset of its element's end, the number of its last field, and the column's id."""
    for number, kind in footer.fields():
        if number != _SCHEMA:
            footer.skip(kind)
            continue
        for _ in range(footer.list_header()[1]):
            field_id, last = -1, 0
            for last, of in footer.fields():
                if last == _FIELD_ID:
                    field_id = footer.integer()
                else:
                    footer.skip(of)
            if field_id in types:
                yield footer.at - 1, last, field_id
        return
