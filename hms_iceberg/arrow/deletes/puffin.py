"""Deletion vectors in Puffin files.

Source: Puffin specification, blob type ``deletion-vector-v1``; Iceberg specification, "Deletion Vectors".
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any

import numpy as np
import pyroaring

from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.storage import Storage

_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"


def read_deletion_vector(storage: Storage, file: DataFile) -> Any:
    """The deleted positions of a deletion vector.

    Args:
        storage: where the Puffin file is.
        file: the delete file; its offset and size say where the blob is.

    Returns:
        Positions as an ascending numpy array of int64.

    Raises:
        MissingFileError: there is no such file.
        CorruptDataFileError: the blob is cut off or damaged, or its number of positions is not the recorded one.
    """
    what = f"the deletion vector at byte {file.content_offset} of {file.file_path}"
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise CorruptDataFileError(f"Cannot read a deletion vector of {file.file_path}: the manifest lacks its offset.")
    with storage.open_input(file.file_path) as opened, decoding(file.file_path, "Puffin"):
        end, size = file.content_offset + file.content_size_in_bytes, opened.seek(0, os.SEEK_END)
        if not 0 <= file.content_offset <= end <= size:
            raise CorruptDataFileError(f"Cannot read {what}: it ends at byte {end:,}, the file has {size:,} bytes.")
        opened.seek(file.content_offset)
        blob = bytes(opened.read(file.content_size_in_bytes))
    return decode_deletion_vector(blob, what, file.record_count)


def decode_deletion_vector(blob: bytes, what: str, expected: int | None = None) -> Any:
    """The positions in the bytes of a ``deletion-vector-v1`` blob, ascending.

    Args:
        blob: length, magic, vector and checksum.
        what: what the blob is, for messages.
        expected: how many positions the manifest says it has.

    Raises:
        CorruptDataFileError: the bytes are no such blob, or hold another number of positions.
    """
    if len(blob) < 12:
        raise CorruptDataFileError(f"Cannot read {what}: it is cut off after {len(blob)} bytes.")
    (length,) = struct.unpack_from(">I", blob)
    if length != len(blob) - 8 or blob[4:8] != _VECTOR_MAGIC:
        raise CorruptDataFileError(
            f"Cannot read {what}: expected a vector of {len(blob) - 8} bytes after {_VECTOR_MAGIC.hex()}, found length "
            f"{length} and {blob[4:8].hex()}."
        )
    (checksum,) = struct.unpack_from(">I", blob, len(blob) - 4)
    if zlib.crc32(blob[4:-4]) != checksum:
        raise CorruptDataFileError(f"Cannot read {what}: its checksum does not match, the bytes were changed.")
    with decoding(what, "Puffin", "its bitmap"):
        bitmap = pyroaring.BitMap64.deserialize(blob[8:-4])
        # Counted before they are unpacked: a small bitmap may hold more positions than fit into memory.
        if expected is not None and len(bitmap) != expected:
            raise CorruptDataFileError(
                f"Cannot read {what}: it holds {len(bitmap):,} positions, the manifest says {expected:,}."
            )
        return np.frombuffer(bitmap.to_array(), np.uint64).astype(np.int64)


def encode_deletion_vector(positions: Any) -> bytes:
    """The bytes of a ``deletion-vector-v1`` blob.

    Args:
        positions: a ``pyroaring.BitMap64``.

    Returns:
        Length, magic, vector and checksum.
    """
    vector = _VECTOR_MAGIC + positions.serialize()
    return struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
