"""AES GCM as every part of a table uses it: a nonce, the encrypted bytes, and a tag that proves both."""

from __future__ import annotations

import os
from typing import Any

from hms_iceberg.errors import MissingDependencyError, TamperedFileError

NONCE_BYTES, TAG_BYTES = 12, 16
KEY_BYTES = (16, 24, 32)


class Cipher:
    """Encrypts and decrypts by one key. Safe for several threads.

    Args:
        key: 16, 24 or 32 bytes.

    Raises:
        MissingDependencyError: `cryptography` is not installed.
        TamperedFileError: it has another number of bytes.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) not in KEY_BYTES:
            raise TamperedFileError(f"A key has {len(key)} bytes, expected 16, 24 or 32: it was changed or damaged.")
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise MissingDependencyError(
                "Encrypted tables need cryptography: pip install 'hms_iceberg[encryption]'"
            ) from error
        self._aead = AESGCM(key)

    def encrypt(self, plain: Any, bound_to: bytes | None = None) -> bytes:
        """Nonce, encrypted bytes and tag.

        Args:
            plain: bytes, or what has a buffer of bytes.
            bound_to: other bytes without which they cannot be decrypted.
        """
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, plain, bound_to)

    def decrypt(self, encrypted: Any, what: str, bound_to: bytes | None = None) -> bytes:
        """The bytes that were encrypted.

        Args:
            encrypted: what `encrypt` gave.
            what: what they are, for messages.
            bound_to: as it was encrypted.

        Raises:
            TamperedFileError: they were changed, or encrypted by another key, or bound to something else.
        """
        from cryptography.exceptions import InvalidTag

        view = memoryview(encrypted)
        if len(view) < NONCE_BYTES + TAG_BYTES:
            raise TamperedFileError(f"Cannot decrypt {what}: {len(view)} bytes are too few. It was changed or cut off.")
        try:
            return self._aead.decrypt(bytes(view[:NONCE_BYTES]), view[NONCE_BYTES:], bound_to)
        except InvalidTag:
            raise TamperedFileError(
                f"Cannot decrypt {what}: it was changed after it was written, another one was put in its place, or it "
                f"was encrypted by another key. Do not use it; restore it from a copy that you trust."
            ) from None
