"""Puffin files: footers, paths in them, and deletion vectors.

Source: Puffin specification, blob type ``deletion-vector-v1``; Iceberg specification, "Deletion Vectors".
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cramjam
import numpy as np
import pyroaring

from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.encryption.encrypted_tables import encrypted, open_decrypted
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import POSITION
from hms_iceberg.spec.read_limit import DEFAULT_LIMIT, ReadLimit, most_bytes, whole_frame
from hms_iceberg.storage import Storage, read_limit_of

MAGIC = b"PFA1"
TAIL = struct.Struct("<iI4s")
"""The bytes behind the footer's payload: its size, flags and magic bytes."""

_COMPRESSED = 1


def parse_footer(data: bytes, location: str) -> tuple[int, Any]:
    """The offset of the footer of a Puffin file, and its payload as parsed JSON."""
    with decoding(location, "Puffin", "its footer"):
        size, flags, magic = TAIL.unpack_from(data, len(data) - TAIL.size)
        start = len(data) - TAIL.size - size - len(MAGIC)
        marks = (data[: len(MAGIC)], data[start : start + len(MAGIC)], magic)
        if size < 0 or start < len(MAGIC) or any(mark != MAGIC for mark in marks):
            raise CorruptDataFileError(f"Cannot read {location}: it does not end with the footer of a Puffin file.")
        payload = data[start + len(MAGIC) : len(data) - TAIL.size]
        if flags & _COMPRESSED:
            payload = whole_frame(cramjam.lz4, payload, most_bytes(len(payload)))
        return start, json.loads(payload)


def blob_bytes(data: bytes, blob: Mapping[str, Any], location: str) -> bytes:
    """Cuts a blob out of a Puffin file, and decompresses it."""
    with decoding(location, "Puffin", f"its blob of type {blob.get('type')}"):
        start, length, codec = blob["offset"], blob["length"], blob.get("compression-codec")
        if not len(MAGIC) <= start <= start + length <= len(data):
            raise CorruptDataFileError(f"Cannot read {location}: a blob is said to be at byte {start}, outside of it.")
        stored = data[start : start + length]
        if codec is None:
            return stored
        if codec not in ("lz4", "zstd"):
            raise CorruptDataFileError(f"Cannot read {location}: the compression {codec!r} is not one of Puffin's.")
        return whole_frame(cramjam.lz4 if codec == "lz4" else cramjam.zstd, stored, most_bytes(len(stored)))


_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
_BYTES_OF_POSITION = 24  # as number of 64 bits, with sign and without


def read_deletion_vector(storage: Storage, file: DataFile) -> Any:
    """The deleted positions of a deletion vector, ascending int64; their number must be the recorded one."""
    what = f"the deletion vector at byte {file.content_offset} of {file.file_path}"
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise CorruptDataFileError(f"Cannot read a deletion vector of {file.file_path}: the manifest lacks its offset.")
    plain = storage.open_input(file.file_path)
    with open_decrypted(plain, file.key_metadata, file.file_path) as opened, decoding(file.file_path, "Puffin"):
        end, size = file.content_offset + file.content_size_in_bytes, opened.seek(0, os.SEEK_END)
        if not 0 <= file.content_offset <= end <= size:
            raise CorruptDataFileError(f"Cannot read {what}: it ends at byte {end:,}, the file has {size:,} bytes.")
        opened.seek(file.content_offset)
        blob = bytes(opened.read(file.content_size_in_bytes))
    return decode_deletion_vector(blob, what, file.record_count, read_limit_of(storage))


def decode_deletion_vector(
    blob: bytes, what: str, expected: int | None = None, limit: ReadLimit = DEFAULT_LIMIT
) -> Any:
    """The positions of a `deletion-vector-v1` blob (length, magic, vector, checksum), ascending int64."""
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
        if len(bitmap) * _BYTES_OF_POSITION > limit.most:
            raise CorruptDataFileError(f"Cannot read {what}: {limit.refused('what it holds')}")
        return np.frombuffer(bitmap.to_array(), np.uint64).astype(np.int64)


def encode_deletion_vector(positions: Any) -> bytes:
    """The bytes of a `deletion-vector-v1` blob (length, magic, vector, checksum) of a `pyroaring.BitMap64`."""
    vector = _VECTOR_MAGIC + positions.serialize()
    return struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


_REFERENCED = "referenced-data-file"


def copy_puffin(storage: Storage, source: str, target: str, rename: Callable[[str], str]) -> int:
    """Copies a Puffin file with other paths of data files; blobs stay where they are, so that their offsets in
    manifests hold."""
    data = storage.read(source)
    with decoding(source, "Puffin"):
        start, footer = parse_footer(data, source)
        for blob in footer["blobs"]:
            properties = blob.get("properties") or {}
            if _REFERENCED in properties:
                properties[_REFERENCED] = rename(properties[_REFERENCED])
    payload = json.dumps(footer, ensure_ascii=False).encode("utf-8")
    copied = data[:start] + MAGIC + payload + TAIL.pack(len(payload), 0, MAGIC)
    storage.create(target, copied)
    return len(copied)


# ------------------------------------------------------------------------------------------------------- writing


_MAGIC = b"PFA1"
_CREATED_BY = "hms_iceberg"


@dataclass(frozen=True)
class PuffinBlob:
    """One blob to write, compressed as `compression` says (`lz4`, `zstd`, None); -1 stands for inherited ids and
    numbers."""

    type: str
    fields: Sequence[int]
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int = -1
    sequence_number: int = -1
    compression: str | None = None


@dataclass(frozen=True)
class PuffinFile:
    """A Puffin file that was written; offsets and sizes in bytes, that of the footer with its magic bytes."""

    offsets: tuple[int, ...]
    size: int
    footer_size: int
    key_metadata: bytes | None = field(default=None, repr=False)


def write_puffin(
    storage: Storage, location: str, blobs: Sequence[PuffinBlob], properties: Mapping[str, str] | None = None
) -> PuffinFile:
    """Writes a Puffin file; the table's properties say whether it is encrypted."""
    body = bytearray(_MAGIC)
    offsets, described = [], []
    for blob in blobs:
        offsets.append(len(body))
        described.append(
            {
                "type": blob.type,
                "fields": list(blob.fields),
                "snapshot-id": blob.snapshot_id,
                "sequence-number": blob.sequence_number,
                "offset": len(body),
                "length": len(blob.data),
                "properties": dict(blob.properties),
                **({} if blob.compression is None else {"compression-codec": blob.compression}),
            }
        )
        body += blob.data
    footer = {"blobs": described, "properties": {"created-by": _CREATED_BY}}
    payload = json.dumps(footer, ensure_ascii=False).encode("utf-8")
    blobs_end = len(body)
    body += _MAGIC + payload + struct.pack("<i", len(payload)) + bytes(4) + _MAGIC
    stored, key = encrypted(bytes(body), properties or {})
    storage.create(location, stored)
    return PuffinFile(tuple(offsets), len(stored), len(body) - blobs_end, key)


def write_deletion_vectors(
    storage: Storage,
    location: str,
    positions: Iterable[tuple[DataFile, Any]],
    properties: Mapping[str, str] | None = None,
) -> list[DataFile]:
    """Writes the deletion vectors of some data files to one Puffin file. Positions are all that are deleted, old ones
    included, ascending; they are taken one by one, so that only their compressed form is in memory together."""
    blobs, owners = [], []
    for file, deleted in positions:
        bitmap = pyroaring.BitMap64(array("Q", np.asarray(deleted, np.uint64).tobytes()))
        bitmap.run_optimize()
        described = {"referenced-data-file": file.file_path, "cardinality": str(len(bitmap))}
        owners.append((file, len(bitmap)))
        data = encode_deletion_vector(bitmap)
        blobs.append(PuffinBlob("deletion-vector-v1", (POSITION.field_id,), data, described))
    written = write_puffin(storage, location, blobs, properties)
    return [
        DataFile(
            content=DataFileContent.POSITION_DELETES,
            file_path=location,
            file_format="PUFFIN",
            spec_id=file.spec_id,
            partition=file.partition,
            record_count=count,
            file_size_in_bytes=written.size,
            referenced_data_file=file.file_path,
            content_offset=offset,
            content_size_in_bytes=len(blob.data),
            key_metadata=written.key_metadata,
        )
        for (file, count), blob, offset in zip(owners, blobs, written.offsets, strict=True)
    ]
