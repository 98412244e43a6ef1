"""The keys of encrypted tables as table metadata holds them.

Source: Iceberg specification, "Encryption Keys".
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.spec.json_model import JsonObject
from hms_iceberg.spec.snapshots_and_refs import EncryptionKey


def encryption_key_to_json(key: EncryptionKey) -> dict[str, Any]:
    """An encryption key as JSON-ready Python; properties are left out if there are none, as Java leaves them out."""
    members = {
        "key-id": key.key_id,
        "encrypted-key-metadata": key.encrypted_key_metadata,
        "encrypted-by-id": key.encrypted_by_id,
        "properties": key.properties or None,
    }
    return {name: value for name, value in members.items() if value is not None}


def encryption_key_from_json(data: Any) -> EncryptionKey:
    """The encryption key that parsed JSON stands for; raises CorruptMetadataError."""
    read = JsonObject(data, "an encryption key")
    return EncryptionKey(
        read.text("key-id"),
        read.text("encrypted-key-metadata"),
        read.text_or_none("encrypted-by-id"),
        read.text_map_or_none("properties"),
    )
