"""The layout of an ORC file: its tail, its stripes, the streams of a stripe.

pyarrow's reader shows none of it. Source: Apache ORC specification v1, "File Tail", "Compression", "Stripes".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import UnsupportedError

_NONE, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
_TAIL_GUESS = 16 * 1024

PRESENT, DATA, SECONDARY, ROW_INDEX, BLOOM_FILTERS = 0, 1, 5, 6, (7, 8)
_MAGIC = b"ORC"
DIRECT, DIRECT_V2 = 0, 2
LIST, MAP, STRUCT, UNION, CHAR = 10, 11, 12, 13, 17
_NESTED = (LIST, MAP, STRUCT, UNION)
UTC_NAMES = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", ""})


@dataclass(frozen=True, slots=True)
class Stripe:
    """The place of a stripe, in bytes, and its number of rows."""

    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int


@dataclass(frozen=True, slots=True)
class StripeFooter:
    """The streams of a stripe (kind and column, first byte and length), encodings by column, and the time zone."""

    streams: dict[tuple[int, int], tuple[int, int]]
    encodings: list[int]
    timezone: str


class OrcLayout:
    """The tail of an ORC file that is open and seekable."""

    def __init__(self, file: Any, size: int, location: str) -> None:
        self._file = file
        self._location = location
        with decoding(location, "ORC", "its tail"):
            self._read_tail(size)

    def _read_tail(self, size: int) -> None:
        tail = self._bytes(max(0, size - _TAIL_GUESS), min(size, _TAIL_GUESS))
        postscript_length = tail[-1]
        postscript = message(tail[-1 - postscript_length : -1])
        if postscript.get(8000) != [b"ORC"]:
            raise ValueError("it has no postscript")
        footer_length = _number(postscript, 1)
        self._compression = _number(postscript, 2)
        self._block_size = _number(postscript, 3)
        start = size - 1 - postscript_length - footer_length
        footer = message(self._decompressed(self._bytes(start, footer_length)))
        self.stripes = [_stripe(message(each)) for each in footer.get(3, [])]
        self._encoded_types = footer.get(4, [])
        self.rows = _number(footer, 6)
        rows = sum(each.rows for each in self.stripes)
        if rows != self.rows:
            raise ValueError(f"its stripes hold {rows:,} rows, its footer says {self.rows:,}")
        # Java's first writer, before HIVE-8732.
        self.merges_texts_wrongly = _number(postscript, 6) == 0 and _number(footer, 9) == 0
        self.is_proleptic = _number(footer, 11) == 2
        self._statistics = footer.get(7, [])
        self._tail_fields = footer, postscript

    @cached_property
    def _types(self) -> list[dict[int, list[Any]]]:
        return [message(each) for each in self._encoded_types]

    def top_level_columns(self) -> dict[str, int]:
        root = self._types[0]
        numbers = list(_packed(root.get(2, [])))
        return {name.decode(): number for name, number in zip(root.get(3, []), numbers, strict=True)}

    def leaf_columns(self) -> list[int]:
        return [number for number, kind in enumerate(self._types) if _number(kind, 1) not in _NESTED]

    def kind(self, column: int) -> int:
        """The type of a column, as ORC numbers them."""
        return _number(self._types[column], 1)

    def statistics(self, column: int) -> dict[int, list[Any]] | None:
        """The statistics of a column in the whole file, as fields of a message; None if there are none."""
        return message(self._statistics[column]) if column < len(self._statistics) else None

    def footer(self, stripe: Stripe) -> StripeFooter:
        footer = self.footer_fields(stripe)
        streams = {}
        at = stripe.offset
        for each in map(message, footer.get(1, [])):
            length = _number(each, 3)
            streams[(_number(each, 1), _number(each, 2))] = (at, length)
            at += length
        encodings = [_number(message(each), 1) for each in footer.get(2, [])]
        timezone = footer.get(3, [b"UTC"])[0].decode()
        return StripeFooter(streams, encodings, timezone)

    @property
    def header(self) -> bytes:
        return _MAGIC

    def tail_fields(self) -> tuple[dict[int, list[Any]], dict[int, list[Any]]]:
        return self._tail_fields

    def footer_fields(self, stripe: Stripe) -> dict[int, list[Any]]:
        start = stripe.offset + stripe.index_length + stripe.data_length
        return message(self._decompressed(self._bytes(start, stripe.footer_length)))

    def pieces(self, start: int, length: int, most: int) -> Iterator[bytes]:
        """Bytes of the file, at most `most` at once."""
        for at in range(start, start + length, most):
            yield self._bytes(at, min(most, start + length - at))

    def framed(self, data: bytes) -> bytes:
        """Bytes in the form that streams and footers have in this file, not compressed."""
        if self._compression == _NONE:
            return data
        chunks = []
        for at in range(0, len(data), self._block_size):
            chunk = data[at : at + self._block_size]
            chunks += [(len(chunk) << 1 | 1).to_bytes(3, "little"), chunk]
        return b"".join(chunks)

    def stream(self, footer: StripeFooter, kind: int, column: int) -> bytes | None:
        """The bytes of a stream, decompressed; None if the column has no such stream."""
        found = footer.streams.get((kind, column))
        return None if found is None else self._decompressed(self._bytes(*found))

    def _bytes(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        return bytes(self._file.read(length))

    def _decompressed(self, data: bytes) -> bytes:
        if self._compression == _NONE:
            return data
        parts = []
        at = 0
        while at < len(data):
            header = int.from_bytes(data[at : at + 3], "little")
            length = header >> 1
            chunk = data[at + 3 : at + 3 + length]
            parts.append(chunk if header & 1 else self._chunk(chunk))
            at += 3 + length
        return b"".join(parts)

    def _chunk(self, chunk: bytes) -> bytes:
        if self._compression == _ZLIB:
            return zlib.decompress(chunk, -15)
        if self._compression == _ZSTD:
            with pa.input_stream(pa.BufferReader(chunk), compression="zstd") as stream:
                return bytes(stream.read())
        if self._compression == _LZ4:
            return _lz4(chunk, self._block_size)
        if self._compression == _SNAPPY:
            size, _ = _varint(chunk, 0)
            return bytes(pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True))
        raise UnsupportedError(
            f"Cannot read timestamps outside of 1677 to 2262 from {self._location}: its compression (number "
            f"{self._compression}) is not supported for them. Rewrite the file with zlib, zstd, snappy or lz4."
        )


def _lz4(chunk: bytes, most: int) -> bytes:
    """An LZ4 block of at most so many bytes, decompressed."""
    import cramjam

    out = bytearray(most)
    try:
        return bytes(out[: cramjam.lz4.decompress_block_into(chunk, out, output_len=most)])
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error


def _stripe(fields: dict[int, list[Any]]) -> Stripe:
    return Stripe(*(_number(fields, number) for number in range(1, 6)))


# --------------------------------------------------------------------------------------------- protocol buffers


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field is cut off")
            yield key >> 3, data[at : at + length]
            at += length
        elif wire in (1, 5):
            width = 8 if wire == 1 else 4
            yield key >> 3, data[at : at + width]
            at += width
        else:
            raise ValueError(f"unknown wire type {wire}")


def message(data: bytes) -> dict[int, list[Any]]:
    """A protocol buffer message: field number to its values."""
    found: dict[int, list[Any]] = {}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    return found


def encoded_message(fields: dict[int, list[Any]]) -> bytes:
    """A message of numbers, and of texts and messages as bytes."""
    out = bytearray()
    for number, values in sorted(fields.items()):
        for value in values:
            wire = 0 if isinstance(value, int) else 2
            _put_varint(out, number << 3 | wire)
            _put_varint(out, value if isinstance(value, int) else len(value))
            if not isinstance(value, int):
                out += value
    return bytes(out)


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _number(fields: dict[int, list[Any]], number: int) -> int:
    return int(fields.get(number, [0])[-1])


def _packed(values: list[Any]) -> Iterator[int]:
    """Numbers of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            yield number
