"""Keys in a file, for tests and small sites."""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from collections.abc import Mapping

from hms_iceberg.encryption.gcm_stream import KEY_BYTES, Cipher
from hms_iceberg.errors import ConfigurationError, KeyUnavailableError

KEYSTORE_PATH = "kms.keystore.path"


class KeystoreFile:
    """Keys of tables in the JSON file `kms.keystore.path`: names, and 16, 24 or 32 bytes in base64. Only its owner may
    read it."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        path = properties.get(KEYSTORE_PATH)
        if not path:
            raise ConfigurationError(f"The catalog's property {KEYSTORE_PATH} is not set: it names the file of keys.")
        self._path = os.path.expanduser(path.removeprefix("file://"))
        self._keys = self._read()

    def _read(self) -> dict[str, bytes]:
        try:
            with open(self._path, encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = json.load(file)
            keys = {name: base64.b64decode(text, validate=True) for name, text in content.items()}
        except (OSError, ValueError, AttributeError, TypeError, binascii.Error) as error:
            # The error is not told in full where it may quote the file.
            why = error.strerror if isinstance(error, OSError) else "it is not JSON of names and keys in base64"
            raise ConfigurationError(f"Cannot read the keys in {self._path} ({KEYSTORE_PATH}): {why}.") from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigurationError(f"Others may read the keys in {self._path}. Let only its owner: chmod 600.")
        wrong = [name for name, key in keys.items() if len(key) not in KEY_BYTES]
        if wrong:
            raise ConfigurationError(f"Key {wrong[0]!r} in {self._path} has not 16, 24 or 32 bytes.")
        return keys

    def wrap_key(self, key: bytes, table_key_id: str) -> bytes:
        return self._cipher(table_key_id).encrypt(key)

    def unwrap_key(self, wrapped: bytes, table_key_id: str) -> bytes:
        return self._cipher(table_key_id).decrypt(wrapped, f"a key that table key {table_key_id!r} encrypts")

    def _cipher(self, table_key_id: str) -> Cipher:
        if table_key_id not in self._keys:
            raise KeyUnavailableError(f"There is no key {table_key_id!r} in {self._path}. Add it, or use another file.")
        return Cipher(self._keys[table_key_id])
