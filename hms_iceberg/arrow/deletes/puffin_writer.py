"""Writing Puffin files, and the deletion vectors in them.

Source: Puffin specification, "File structure" and blob type ``deletion-vector-v1``; Iceberg specification, "Deletion
Vectors".
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyroaring

from hms_iceberg.arrow.deletes.puffin import encode_deletion_vector
from hms_iceberg.encryption.encrypted_tables import encrypted
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import POSITION
from hms_iceberg.storage import Storage

_MAGIC = b"PFA1"
_CREATED_BY = "hms_iceberg"


@dataclass(frozen=True)
class PuffinBlob:
    """One blob to write.

    Args:
        type: the blob type's name.
        fields: ids of the fields that the blob is about.
        data: the blob's bytes, compressed if `compression` says so.
        properties: of the blob.
        snapshot_id: of the snapshot that it was computed from; -1 if it is inherited.
        sequence_number: of that snapshot; -1 if it is inherited.
        compression: `lz4` or `zstd`; None if the blob is not compressed.
    """

    type: str
    fields: Sequence[int]
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int = -1
    sequence_number: int = -1
    compression: str | None = None


@dataclass(frozen=True)
class PuffinFile:
    """A Puffin file that was written; all in bytes.

    Attributes:
        offsets: of each blob.
        size: of the file.
        footer_size: of its footer, magic bytes included.
        key_metadata: its key, for its manifest entries; None if it is not encrypted.
    """

    offsets: tuple[int, ...]
    size: int
    footer_size: int
    key_metadata: bytes | None = field(default=None, repr=False)


def write_puffin(
    storage: Storage, location: str, blobs: Sequence[PuffinBlob], properties: Mapping[str, str] | None = None
) -> PuffinFile:
    """Writes a Puffin file.

    Args:
        storage: where it goes.
        location: the new file.
        blobs: what it holds, in order.
        properties: the table's properties, which say whether the file is encrypted; None if it is not.

    Returns:
        where each blob starts, the sizes of file and footer, all in bytes, and the key of the file.

    Raises:
        FileAlreadyExistsError, StorageError: the file is there already, or cannot be written.
    """
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
    """Writes the deletion vectors of some data files to one Puffin file.

    Args:
        storage: where it goes.
        location: the new file.
        positions: data files, each once, with all their deleted positions, old ones included, ascending; taken one by
            one, so that only their compressed form is in memory together.
        properties: the table's properties, which say whether the file is encrypted; None if it is not.

    Returns:
        One deletion vector for each data file, in order.
    """
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
