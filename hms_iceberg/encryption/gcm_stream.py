"""Files as streams of encrypted blocks: manifest lists, manifests, Avro and Puffin files.

Source: "AES GCM Stream file format extension" of the Iceberg specification.
"""

from __future__ import annotations

import io
import os
import struct
from contextlib import suppress
from typing import Any, BinaryIO

from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.errors import MissingDependencyError, TamperedFileError

NONCE_BYTES, TAG_BYTES = 12, 16
KEY_BYTES = (16, 24, 32)


class Cipher:
    """Encrypts and decrypts by one key of 16, 24 or 32 bytes. Safe for several threads."""

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
        """Nonce, encrypted bytes and tag; they cannot be decrypted without the bytes that they are `bound_to`."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, plain, bound_to)

    def decrypt(self, encrypted: Any, what: str, bound_to: bytes | None = None) -> bytes:
        """The plain bytes; TamperedFileError if they were changed, or encrypted by another key, or bound to something
        else."""
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


_BLOCK_BYTES = 1024 * 1024  # as Apache Iceberg, which reads no others
_HEADER = struct.pack("<4sI", b"AGS1", _BLOCK_BYTES)
_ADDED = NONCE_BYTES + TAG_BYTES
_STEP = _BLOCK_BYTES + _ADDED


def encrypt_stream(data: bytes, key: FileKey) -> bytes:
    cipher, view = Cipher(key.key), memoryview(data)
    parts = [_HEADER]
    for index, start in enumerate(range(0, max(len(view), 1), _BLOCK_BYTES)):
        parts.append(cipher.encrypt(view[start : start + _BLOCK_BYTES], _bound_to(key, index)))
    return b"".join(parts)


def decrypt_stream(data: bytes, key: FileKey, location: str) -> bytes:
    """The content of a whole encrypted file; the key must have its length."""
    if len(data) != key.length:
        raise TamperedFileError(
            f"Cannot decrypt {location}: it has {len(data):,} bytes, {_said(key)}. It was changed or cut off."
        )
    _check_header(data[: len(_HEADER)], location)
    cipher, view = Cipher(key.key), memoryview(data)
    starts = range(len(_HEADER), max(len(data), len(_HEADER) + 1), _STEP)
    return b"".join(
        cipher.decrypt(view[start : start + _STEP], location, _bound_to(key, index))
        for index, start in enumerate(starts)
    )


class DecryptedFile(io.RawIOBase):
    """An encrypted file open for reading at any place; one block of it is in memory. It closes `file` with it."""

    def __init__(self, file: BinaryIO, key: FileKey, location: str) -> None:
        super().__init__()
        self._file = file
        self._key = key
        self._location = location
        self._cipher = Cipher(key.key)
        self._position = 0
        self._index, self._block = -1, b""
        found = file.seek(0, io.SEEK_END)
        if found != key.length or found < len(_HEADER) + _ADDED:
            raise TamperedFileError(
                f"Cannot decrypt {location}: it has {found:,} bytes, {_said(key)}. It was changed or cut off."
            )
        file.seek(0)
        _check_header(file.read(len(_HEADER)), location)
        full, rest = divmod(found - len(_HEADER), _STEP)
        self._size = full * _BLOCK_BYTES + max(rest - _ADDED, 0)
        if not self._size:
            self._decrypted(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves the position in the content."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer, with fewer bytes only at the end; returns how many."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and self._position < self._size:
            index, offset = divmod(self._position, _BLOCK_BYTES)
            part = memoryview(self._decrypted(index))[offset : offset + len(view) - done]
            if not part:
                break
            view[done : done + len(part)] = part
            done += len(part)
            self._position += len(part)
        return done

    def close(self) -> None:
        if not self.closed:
            self._block = b""
            self._file.close()
        super().close()

    def _decrypted(self, index: int) -> bytes:
        if index != self._index:
            self._file.seek(len(_HEADER) + index * _STEP)
            data = self._file.read(_STEP)
            self._block = self._cipher.decrypt(data, self._location, _bound_to(self._key, index))
            self._index = index
        return self._block


class EncryptedOutput:
    """A file open for writing whose blocks are encrypted before they go to storage; it closes `output` too."""

    def __init__(self, output: Any, key: FileKey) -> None:
        self._output = output
        self._key = key
        self._cipher = Cipher(key.key)
        self._held = bytearray()
        self._blocks = 0
        self._is_finished = False
        self.closed = False
        output.write(_HEADER)

    def write(self, data: Any) -> int:
        self._held += data
        while len(self._held) >= _BLOCK_BYTES:
            self._write_block(_BLOCK_BYTES)
        return len(data)

    def flush(self) -> None:
        """Does nothing: what is held is less than a block."""

    def finish(self) -> int:
        """Writes the last block; returns the length of the encrypted file in bytes."""
        if not self._is_finished:
            if self._held or not self._blocks:
                self._write_block(len(self._held))
            self._is_finished = True
        return int(self._output.tell())

    def tell(self) -> int:
        """Bytes of content that were taken."""
        return self._blocks * _BLOCK_BYTES + len(self._held)

    def close(self) -> None:
        if not self.closed:
            self.finish()
            self._output.close()
            self.closed = True

    def abandon(self) -> None:
        self.closed = True
        abandon = getattr(self._output, "abandon", None)
        if abandon is not None:
            abandon()
        else:
            with suppress(RuntimeError):
                self._output.__exit__(RuntimeError, RuntimeError("abandoned"), None)

    def _write_block(self, size: int) -> None:
        self._output.write(self._cipher.encrypt(bytes(self._held[:size]), _bound_to(self._key, self._blocks)))
        del self._held[:size]
        self._blocks += 1


def _bound_to(key: FileKey, index: int) -> bytes:
    return key.prefix + struct.pack("<i", index)


def _said(key: FileKey) -> str:
    return "and its key does not say how many" if key.length is None else f"and had {key.length:,}"


def _check_header(header: bytes, location: str) -> None:
    if bytes(header) != _HEADER:
        raise TamperedFileError(
            f"Cannot decrypt {location}: it begins with {bytes(header).hex()}, expected {_HEADER.hex()} (AGS1, and "
            f"blocks of 1 MiB). It was changed, or a file that is not encrypted was put in its place."
        )
