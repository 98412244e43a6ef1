"""The key of one file as its parent keeps it: what manifests call `key_metadata`.

Source: Apache Iceberg, `StandardKeyMetadata`: a version byte and an Avro record.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from hms_iceberg.errors import IcebergError, TamperedFileError, UnsupportedError

_VERSION = 1
_PREFIX_BYTES = 16
_SCHEMA = b"""{"type": "record", "name": "key_metadata", "fields": [
        {"name": "encryption_key", "type": "bytes"},
        {"name": "aad_prefix", "type": ["null", "bytes"], "default": null},
        {"name": "file_length", "type": ["null", "long"], "default": null}
    ]}"""


@dataclass(frozen=True)
class FileKey:
    """The key of a file, of 16, 24 or 32 bytes, never printed. `prefix` binds the file's blocks together; `length` is
    the encrypted file's in bytes, so that its end cannot be cut off (None if its format knows)."""

    key: bytes = field(repr=False)
    prefix: bytes = field(default=b"", repr=False)
    length: int | None = None

    @classmethod
    def new(cls, key_bytes: int) -> FileKey:
        return cls(os.urandom(key_bytes), os.urandom(_PREFIX_BYTES))

    @classmethod
    def decode(cls, data: bytes, location: str) -> FileKey:
        """The key in `key_metadata`; other versions and other encryptions than Apache Iceberg's are refused."""
        if data[:1] != bytes([_VERSION]):
            raise UnsupportedError(
                f"Cannot read {location}: its key metadata is of version {data[:1].hex() or 'none'}, known is 01. It "
                f"was encrypted in another way than Apache Iceberg's standard encryption."
            )
        import fastavro

        try:
            record: Any = fastavro.schemaless_reader(io.BytesIO(data[1:]), _schema(), None)
        except (EOFError, ValueError, IndexError, OverflowError, IcebergError) as error:
            raise TamperedFileError(f"Cannot read {location}: its key metadata is damaged ({error}).") from error
        return cls(record["encryption_key"], record["aad_prefix"] or b"", record["file_length"])

    def encode(self) -> bytes:
        import fastavro

        out = io.BytesIO()
        record = {"encryption_key": self.key, "aad_prefix": self.prefix, "file_length": self.length}
        fastavro.schemaless_writer(out, _schema(), record)
        return bytes([_VERSION]) + out.getvalue()

    def of_length(self, length: int) -> FileKey:
        """The key with the length of the encrypted file, in bytes."""
        return replace(self, length=length)


@lru_cache(maxsize=1)
def _schema() -> Any:
    """The record's schema; most tables are not encrypted, and need no library of Avro before they are scanned."""
    from hms_iceberg.spec.manifests.avro_container import parsed_schema

    return parsed_schema(_SCHEMA)
