"""Statistics files and encryption keys that table metadata registers.

Source: Iceberg specification, "Table Statistics", "Partition Statistics", "Encryption Keys".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hms_iceberg.spec.json_model import JsonModel


@dataclass(frozen=True)
class BlobMetadata:
    """One blob of a statistics file: what was computed, from which snapshot, over which fields."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...] = ()
    properties: dict[str, str] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))


@dataclass(frozen=True)
class StatisticsFile(JsonModel):
    """A Puffin file with statistics of a snapshot; sizes in bytes."""

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "blob_metadata", tuple(self.blob_metadata))


@dataclass(frozen=True)
class PartitionStatisticsFile(JsonModel):
    """A file with one row of statistics per partition of a snapshot; size in bytes."""

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


@dataclass(frozen=True)
class EncryptionKey:
    """A key for the encryption of tables, itself encrypted (v3)."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = field(default=None, hash=False)
