"""From the table's key to that of a manifest list: both keys between them are in the table's metadata, encrypted.

The table's key is in a key service and encrypts a key of the table's metadata, which is used for two years; that one
encrypts the keys of manifest lists, and when it was made is part of the proof that they are unchanged.

Source: Apache Iceberg, `StandardEncryptionManager`.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import replace

from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.encryption.gcm_stream import Cipher
from hms_iceberg.encryption.key_services import KeyService
from hms_iceberg.errors import TamperedFileError
from hms_iceberg.spec.snapshots_and_refs import EncryptionKey, Snapshot

KEY_TIMESTAMP = "KEY_TIMESTAMP"
LIFESPAN_MS = 730 * 24 * 3600 * 1000
"""For how long a key encrypts new keys; it decrypts older ones for ever (NIST SP 800-57, part 1, 5.3.6)."""


def manifest_list_key(snapshot: Snapshot, service: KeyService) -> FileKey:
    """The key of a snapshot's manifest list, decrypted by the keys that its table's metadata has for it."""
    what = f"the key of manifest list {snapshot.manifest_list}"
    keys = {key.key_id: key for key in snapshot.keys}
    own = keys.get(snapshot.key_id or "")
    above = None if own is None else keys.get(own.encrypted_by_id or "")
    if own is None or above is None or above.encrypted_by_id is None:
        raise TamperedFileError(
            f"Cannot decrypt {what}: the table's metadata lacks key {snapshot.key_id!r}, or the one that encrypts it."
        )
    key = service.unwrap_key(_bytes(above), above.encrypted_by_id)
    return FileKey.decode(Cipher(key).decrypt(_bytes(own), what, _made_at(above).encode()), what)


def new_key_above(table_key_id: str, key_bytes: int, service: KeyService, now_ms: int) -> EncryptionKey:
    """A new key, encrypted by the table's, that encrypts those of manifest lists."""
    wrapped = service.wrap_key(os.urandom(key_bytes), table_key_id)
    return EncryptionKey(_new_id(), _text(wrapped), table_key_id, {KEY_TIMESTAMP: str(now_ms)})


def key_above(keys: tuple[EncryptionKey, ...], table_key_id: str, now_ms: int) -> EncryptionKey | None:
    """The key of a table's metadata that encrypts new keys; None if there is none yet, or all are too old."""
    mine = (key for key in keys if key.encrypted_by_id == table_key_id)
    return next((key for key in mine if now_ms - int(_made_at(key)) < LIFESPAN_MS), None)


def encrypted_list_key(key: FileKey, above: EncryptionKey, service: KeyService) -> EncryptionKey:
    """The key of a new manifest list, encrypted by the key `above`, for the table's metadata."""
    assert above.encrypted_by_id is not None
    cipher = Cipher(service.unwrap_key(_bytes(above), above.encrypted_by_id))
    encrypted = cipher.encrypt(key.encode(), _made_at(above).encode())
    return EncryptionKey(_new_id(), _text(encrypted), above.key_id)


def with_new_key_above(
    keys: tuple[EncryptionKey, ...], table_key_id: str, key_bytes: int, service: KeyService, now_ms: int
) -> tuple[EncryptionKey, ...]:
    """Keys of a table's metadata with those of manifest lists encrypted by a new key, in the place of all before."""
    above = new_key_above(table_key_id, key_bytes, service, now_ms)
    old = {key.key_id: key for key in keys if key.encrypted_by_id == table_key_id}
    ciphers = {key_id: Cipher(service.unwrap_key(_bytes(key), table_key_id)) for key_id, key in old.items()}
    new = Cipher(service.unwrap_key(_bytes(above), table_key_id))
    made = [above]
    for key in keys:
        if key.encrypted_by_id in old:
            what = f"key {key.key_id!r} of the table's metadata"
            plain = ciphers[key.encrypted_by_id].decrypt(_bytes(key), what, _made_at(old[key.encrypted_by_id]).encode())
            text = _text(new.encrypt(plain, _made_at(above).encode()))
            made.append(replace(key, encrypted_key_metadata=text, encrypted_by_id=above.key_id))
        elif key.key_id not in old:
            made.append(key)
    return tuple(made)


def _made_at(key: EncryptionKey) -> str:
    text = (key.properties or {}).get(KEY_TIMESTAMP, "")
    if not text.lstrip("-").isdigit():
        raise TamperedFileError(
            f"Cannot use key {key.key_id!r} of the table's metadata: it does not say when it was made ({text!r})."
        )
    return text


def _bytes(key: EncryptionKey) -> bytes:
    try:
        return base64.b64decode(key.encrypted_key_metadata, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TamperedFileError(
            f"Cannot use key {key.key_id!r} of the table's metadata: it is not base64 ({error})."
        ) from error


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _new_id() -> str:
    return _text(os.urandom(16))
