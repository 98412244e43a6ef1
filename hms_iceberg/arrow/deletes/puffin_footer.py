"""The footer of a Puffin file, and the blobs that it describes.

Source: Puffin specification, "File structure", "Footer payload", "Compression codecs".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import cramjam

from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.errors import CorruptDataFileError

MAGIC = b"PFA1"
TAIL = struct.Struct("<iI4s")
"""What is behind the footer's payload: its size, flags and magic bytes."""

_COMPRESSED = 1


def parse_footer(data: bytes, location: str) -> tuple[int, Any]:
    """Where the footer of a Puffin file starts, and its payload.

    Args:
        data: the file.
        location: where it is, for messages.

    Raises:
        CorruptDataFileError: it does not end with a footer.
    """
    with decoding(location, "Puffin", "its footer"):
        size, flags, magic = TAIL.unpack_from(data, len(data) - TAIL.size)
        start = len(data) - TAIL.size - size - len(MAGIC)
        marks = (data[: len(MAGIC)], data[start : start + len(MAGIC)], magic)
        if size < 0 or start < len(MAGIC) or any(mark != MAGIC for mark in marks):
            raise CorruptDataFileError(f"Cannot read {location}: it does not end with the footer of a Puffin file.")
        payload = data[start + len(MAGIC) : len(data) - TAIL.size]
        if flags & _COMPRESSED:
            payload = bytes(cramjam.lz4.decompress(payload))
        return start, json.loads(payload)


def blob_bytes(data: bytes, blob: Mapping[str, Any], location: str) -> bytes:
    """The bytes of a blob, as they were before they were compressed.

    Args:
        data: the file.
        blob: what its footer says of the blob.
        location: where the file is, for messages.

    Raises:
        CorruptDataFileError: the blob is not within the file, or cannot be decompressed.
    """
    with decoding(location, "Puffin", f"its blob of type {blob.get('type')}"):
        start, length, codec = blob["offset"], blob["length"], blob.get("compression-codec")
        if not len(MAGIC) <= start <= start + length <= len(data):
            raise CorruptDataFileError(f"Cannot read {location}: a blob is said to be at byte {start}, outside of it.")
        stored = data[start : start + length]
        if codec is None:
            return stored
        if codec not in ("lz4", "zstd"):
            raise CorruptDataFileError(f"Cannot read {location}: the compression {codec!r} is none of Puffin's.")
        return bytes((cramjam.lz4 if codec == "lz4" else cramjam.zstd).decompress(stored))
