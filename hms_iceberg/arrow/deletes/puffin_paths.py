"""Deletion vectors of data files that get other paths.

Source: Puffin specification, "File structure" and blob type ``deletion-vector-v1``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import cramjam

from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.storage import Storage

_MAGIC = b"PFA1"
_REFERENCED = "referenced-data-file"
# Behind the footer's payload: its size, flags and magic bytes.
_TAIL = struct.Struct("<iI4s")
_COMPRESSED = 1


def copy_puffin(storage: Storage, source: str, target: str, rename: Callable[[str], str]) -> int:
    """Copies a Puffin file, with other paths of the data files that its vectors are about.

    Blobs stay where they are in the file, so that their offsets in manifests hold.

    Args:
        storage: where both files are.
        source: the file.
        target: the new file.
        rename: from the path of a data file to its new one.

    Returns:
        The size of the new file in bytes.

    Raises:
        MissingFileError: there is no such file.
        CorruptDataFileError: it is no Puffin file, or its footer is damaged.
    """
    data = storage.read(source)
    with decoding(source, "Puffin"):
        start, footer = _footer(data, source)
        for blob in footer["blobs"]:
            properties = blob.get("properties") or {}
            if _REFERENCED in properties:
                properties[_REFERENCED] = rename(properties[_REFERENCED])
    payload = json.dumps(footer, ensure_ascii=False).encode("utf-8")
    copied = data[:start] + _MAGIC + payload + _TAIL.pack(len(payload), 0, _MAGIC)
    storage.create(target, copied)
    return len(copied)


def _footer(data: bytes, location: str) -> tuple[int, Any]:
    """Where the footer starts, and its payload."""
    size, flags, magic = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    start = len(data) - _TAIL.size - size - len(_MAGIC)
    if magic != _MAGIC or size < 0 or start < len(_MAGIC) or data[start : start + len(_MAGIC)] != _MAGIC:
        raise CorruptDataFileError(f"Cannot read {location}: it does not end with the footer of a Puffin file.")
    payload = data[start + len(_MAGIC) : len(data) - _TAIL.size]
    if flags & _COMPRESSED:
        payload = bytes(cramjam.lz4.decompress(payload))
    return start, json.loads(payload)
