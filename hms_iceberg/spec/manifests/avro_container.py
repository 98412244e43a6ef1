"""Avro object container files: header, blocks, sync markers.

Manifests and manifest lists are small files of which many are read and written. fastavro parses the schema of each
file anew; here a schema is parsed once per distinct text, and records go through fastavro's record codec. The pieces
are kept apart (header, body) so that a reader may put another header before the same blocks.

Source: Avro specification, "Object Container Files".
"""

from __future__ import annotations

import bz2
import importlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
from isal import isal_zlib

from hms_iceberg.errors import CorruptFileError, UnsupportedError
from hms_iceberg.spec.read_limit import DEFAULT_LIMIT, READ_LIMIT, ReadLimit, most_bytes, whole_frame

_DEFLATE_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # its stub forgets that it is a class
MAGIC = b"Obj\x01"
SYNC_SIZE = 16
# Records are cut into blocks of about this many bytes before compression, so that a reader can work block by block.
BLOCK_BYTES = 64 * 1024
DEFAULT_CODEC = "deflate"
# A file may hold so many bytes a record, and be so many times its size then: the entries of tables with thousands of
# columns, which are much alike, shrink to a few hundredths. The number of records is told by another file.
_BYTES_OF_RECORD = 64 * 1024
_MOST_RATIO_OF_RECORDS = 512

_CODEC_NAMES = {
    "deflate": "deflate",
    "gzip": "deflate",
    "null": "null",
    "none": "null",
    "uncompressed": "null",
    "snappy": "snappy",
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "bzip2": "bzip2",
}


@dataclass(frozen=True, slots=True)
class AvroContainer:
    """The parts of a container file that was read: its metadata, and where its blocks are in ``data``."""

    data: bytes
    metadata: Mapping[str, bytes]
    sync: bytes
    body_offset: int

    @property
    def schema_json(self) -> bytes:
        return self.metadata["avro.schema"]

    @property
    def codec(self) -> str:
        return self.metadata.get("avro.codec", b"null").decode("ascii", "replace") or "null"

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return None if value is None else value.decode("utf-8")

    def body(self) -> bytes:
        return self.data[self.body_offset :]


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """One block of a container: how many records, and its compressed bytes at ``data[start:end]``. ``[first, last)`` is
    the block with its two counts and its sync marker, as it lies in the file."""

    records: int
    start: int
    end: int
    first: int
    last: int


def codec_name(name: str, what: str = "") -> str:
    """Avro's name of a codec, from Iceberg's or Avro's (`gzip` is Avro's `deflate`)."""
    found = _CODEC_NAMES.get(name.strip().lower())
    if found is None:
        doing = f"read {what}: it has" if what else "use"
        raise UnsupportedError(
            f"Cannot {doing} Avro compression codec {name!r}: expected one of {', '.join(sorted(_CODEC_NAMES))}"
        )
    return found


def write_header(schema_json: bytes, codec: str, metadata: Mapping[str, str], sync: bytes) -> bytes:
    pairs = [("avro.schema", schema_json), ("avro.codec", codec.encode("ascii"))]
    pairs.extend((key, value.encode("utf-8")) for key, value in metadata.items())
    out = bytearray(MAGIC)
    out += encode_long(len(pairs))
    for key, value in pairs:
        name = key.encode("utf-8")
        out += encode_long(len(name))
        out += name
        out += encode_long(len(value))
        out += value
    out += b"\x00"
    out += sync
    return bytes(out)


def write_container(
    schema: Any, schema_json: bytes, records: Iterable[Mapping[str, Any]], codec: str, metadata: Mapping[str, str]
) -> bytes:
    """A whole container file in memory; records have fastavro's form, and `schema` comes from `parsed_schema`."""
    avro_codec = codec_name(codec)
    sync = os.urandom(SYNC_SIZE)
    out = io.BytesIO()
    out.write(write_header(schema_json, avro_codec, metadata, sync))
    block = io.BytesIO()
    count = 0
    for record in records:
        fastavro.schemaless_writer(block, schema, record)
        count += 1
        if block.tell() >= BLOCK_BYTES:
            _write_block(out, block, count, avro_codec, sync)
            block, count = io.BytesIO(), 0
    if count:
        _write_block(out, block, count, avro_codec, sync)
    return out.getvalue()


def pack_blocks(blocks: Iterable[tuple[int, bytes]], codec: str) -> list[tuple[int, bytes]]:
    """Blocks compressed in threads, each with its number of records."""
    raw, avro_codec = list(blocks), codec_name(codec)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        packed = pool.map(lambda block: compress(block[1], avro_codec, quickly=True), raw)
        return [(count, data) for (count, _), data in zip(raw, packed, strict=True)]


def join_blocks(
    blocks: Iterable[tuple[int, bytes]], schema_json: bytes, codec: str, metadata: Mapping[str, str]
) -> bytes:
    """A container file of blocks that `pack_blocks` made with the same codec."""
    avro_codec, sync = codec_name(codec), os.urandom(SYNC_SIZE)
    pieces = [write_header(schema_json, avro_codec, metadata, sync)]
    for count, packed in blocks:
        pieces += (encode_long(count), encode_long(len(packed)), packed, sync)
    return b"".join(pieces)


def read_container(data: bytes, what: str) -> AvroContainer:
    """Reads the header of a container file; CorruptFileError names `what`."""
    if data[:4] != MAGIC:
        raise CorruptFileError(
            f"Cannot read {what}: it is not an Avro file (it starts with {data[:4]!r}, expected {MAGIC!r})"
        )
    try:
        metadata: dict[str, bytes] = {}
        count, position = decode_long(data, 4)
        while count:
            if count < 0:
                count = -count
                _, position = decode_long(data, position)
            for _ in range(count):
                key, position = _decode_bytes(data, position)
                value, position = _decode_bytes(data, position)
                metadata[key.decode("utf-8")] = value
            count, position = decode_long(data, position)
    except (IndexError, ValueError) as error:
        raise CorruptFileError(f"Cannot read {what}: its Avro header is cut off or damaged ({error})") from error
    sync = data[position : position + SYNC_SIZE]
    if len(sync) < SYNC_SIZE or "avro.schema" not in metadata:
        raise CorruptFileError(f"Cannot read {what}: its Avro header is cut off or has no schema")
    return AvroContainer(data, metadata, sync, position + SYNC_SIZE)


def read_blocks(container: AvroContainer, what: str) -> Iterator[AvroBlock]:
    """Finds the blocks of a container without decompressing them."""
    data, position, end_of_file = container.data, container.body_offset, len(container.data)
    while position < end_of_file:
        first = position
        try:
            records, position = decode_long(data, position)
            size, position = decode_long(data, position)
        except IndexError as error:
            raise CorruptFileError(f"Cannot read {what}: it is cut off in the head of an Avro block") from error
        end = position + size
        if size < 0 or records < 0 or data[end : end + SYNC_SIZE] != container.sync:
            raise CorruptFileError(
                f"Cannot read {what}: the Avro block at byte {first} is cut off or damaged (its sync marker is missing)"
            )
        yield AvroBlock(records, position, end, first, end + SYNC_SIZE)
        position = end + SYNC_SIZE


def read_contents(
    container: AvroContainer, what: str, expected: int | None = None, limit: ReadLimit = DEFAULT_LIMIT
) -> Iterator[tuple[AvroBlock, bytes]]:
    """The blocks of a container, decompressed; memory is bounded by the file's size and its number of records."""
    size = len(container.data)
    by_count = min(_BYTES_OF_RECORD * (expected or 0), _MOST_RATIO_OF_RECORDS * size)
    left = min(max(most_bytes(size), by_count), limit.most // 2)
    for block in read_blocks(container, what):
        raw = decompress(container.data[block.start : block.end], container.codec, what, left)
        if block.records > len(raw):
            raise CorruptFileError(
                f"Cannot read {what}: the Avro block at byte {block.first} is said to hold {block.records:,} records "
                f"in {len(raw):,} bytes"
            )
        left -= len(raw)
        yield block, raw


_UNDECODABLE = (EOFError, IndexError, ValueError, UnicodeDecodeError, OverflowError, TypeError)


def read_records(
    container: AvroContainer, schema: Any, what: str, expected: int | None = None
) -> Iterator[dict[str, Any]]:
    """Records decoded with `schema`, of the same binary layout as the writer's (logical types may differ)."""
    for block, raw in read_contents(container, what, expected):
        stream = io.BytesIO(raw)
        try:
            for _ in range(block.records):
                yield fastavro.schemaless_reader(stream, schema, None)  # type: ignore[misc]
        except _UNDECODABLE as error:
            raise CorruptFileError(
                f"Cannot read {what}: a record of the Avro block at byte {block.first} is damaged ({error})"
            ) from error
        if stream.tell() != len(raw):
            raise CorruptFileError(
                f"Cannot read {what}: the Avro block at byte {block.first} holds {len(raw) - stream.tell()} bytes "
                f"more than its {block.records} records"
            )


@lru_cache(maxsize=512)
def parsed_schema(schema_json: bytes) -> Any:
    """A schema parsed for fastavro, once per distinct text."""
    try:
        return fastavro.parse_schema(json.loads(schema_json), named_schemas={}, _force=True)
    except (ValueError, KeyError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise CorruptFileError(f"Cannot parse an Avro schema ({error}): {schema_json[:200]!r}") from error


def compress(raw: bytes, codec: str, *, quickly: bool = False) -> bytes:
    """Compresses one block; deflate `quickly` takes a twelfth of the time, and makes the block up to 7% larger."""
    if codec == "deflate":
        deflater = isal_zlib.compressobj(2, wbits=-15) if quickly else zlib.compressobj(wbits=-15)
        return deflater.compress(raw) + deflater.flush()
    if codec == "null":
        return raw
    if codec == "bzip2":
        return bz2.compress(raw)
    if codec == "snappy":
        return bytes(_cramjam(codec).snappy.compress_raw(raw)) + zlib.crc32(raw).to_bytes(4, "big")
    return bytes(_cramjam(codec).zstd.compress(raw))


def decompress(compressed: bytes, codec: str, what: str, most: int) -> bytes:
    """Decompresses one block; CorruptFileError if it is damaged or becomes more than `most` bytes."""
    avro_codec = codec_name(codec, what)
    try:
        if avro_codec == "null":
            return compressed
        if avro_codec == "deflate":
            return _whole(isal_zlib.decompressobj(-15), compressed, most)  # in two thirds of zlib's time
        if avro_codec == "bzip2":
            return _whole(bz2.BZ2Decompressor(), compressed, most)
        return _decompress_by_cramjam(compressed, avro_codec, most)
    except (_DEFLATE_ERROR, OSError, EOFError, ValueError) as error:
        raise CorruptFileError(f"Cannot read {what}: a block cannot be decompressed ({codec}: {error})") from error


def _whole(decompressor: Any, compressed: bytes, most: int) -> bytes:
    raw: bytes = decompressor.decompress(compressed, most + 1)
    if len(raw) > most:
        raise ValueError(f"it holds more than {most:,} bytes; see the catalog's property {READ_LIMIT}")
    if not decompressor.eof:
        raise ValueError("it is cut off")
    return raw


def _decompress_by_cramjam(compressed: bytes, codec: str, most: int) -> bytes:
    cramjam = _cramjam(codec)
    try:
        if codec == "snappy":
            size = cramjam.snappy.decompress_raw_len(compressed[:-4])
            if size > most:
                raise ValueError(f"it holds {size:,} bytes, more than {most:,}")
            return bytes(cramjam.snappy.decompress_raw(compressed[:-4]))
        return whole_frame(cramjam.zstd, compressed, most)
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error


def encode_long(value: int) -> bytes:
    """An Avro int or long: zigzag, seven bits a byte."""
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def decode_long(data: bytes, position: int) -> tuple[int, int]:
    """An Avro int or long at `position`, and the position after it; IndexError past the end."""
    shift = zigzag = 0
    while True:
        byte = data[position]
        position += 1
        zigzag |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _decode_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = decode_long(data, position)
    end = position + size
    if size < 0 or end > len(data):
        raise ValueError(f"a value of {size} bytes at byte {position}")
    return data[position:end], end


def _write_block(out: io.BytesIO, block: io.BytesIO, count: int, codec: str, sync: bytes) -> None:
    packed = compress(block.getvalue(), codec, quickly=True)
    out.write(encode_long(count))
    out.write(encode_long(len(packed)))
    out.write(packed)
    out.write(sync)


def _cramjam(codec: str) -> Any:
    try:
        return importlib.import_module("cramjam")
    except ImportError as error:
        raise UnsupportedError(
            f"Avro compression codec {codec!r} needs the package cramjam: install it, or use deflate (gzip)"
        ) from error
