"""Streams, keys of files and the chain of keys, each changed in every way that its format allows."""

from __future__ import annotations

import io
import os
import random
import struct

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hms_iceberg.encryption.encrypted_tables import decrypted, encrypted, encrypted_list, open_decrypted
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.encryption.gcm_stream import DecryptedFile, EncryptedOutput, decrypt_stream, encrypt_stream
from hms_iceberg.encryption.key_chain import KEY_TIMESTAMP, LIFESPAN_MS, manifest_list_key
from hms_iceberg.encryption.key_services import KeptKeys
from hms_iceberg.encryption.services.keystore import KeystoreFile
from hms_iceberg.errors import TamperedFileError, UnsupportedError
from hms_iceberg.spec.snapshots_and_refs import EncryptionKey, Snapshot

MIB = 1024 * 1024
SIZES = (0, 1, 1000, MIB - 1, MIB, MIB + 1, 2 * MIB, 2 * MIB + 77)


def made(size: int, key_bytes: int = 16) -> tuple[bytes, bytes, FileKey]:
    content = random.Random(size).randbytes(size)
    key = FileKey.new(key_bytes)
    stored = encrypt_stream(content, key)
    return content, stored, key.of_length(len(stored))


def by_specification(stored: bytes, key: FileKey) -> bytes:
    """The content of a stream, read word for word as the specification has it."""
    assert stored[:4] == b"AGS1"
    (block,) = struct.unpack("<i", stored[4:8])
    plain, at, number = b"", 8, 0
    while at < len(stored):
        part = stored[at : at + block + 28]
        plain += AESGCM(key.key).decrypt(part[:12], part[12:], key.prefix + struct.pack("<i", number))
        at, number = at + len(part), number + 1
    return plain


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("key_bytes", [16, 24, 32])
def test_a_stream_is_what_the_specification_says(size: int, key_bytes: int) -> None:
    content, stored, key = made(size, key_bytes)
    assert by_specification(stored, key) == content == decrypt_stream(stored, key, "f")
    assert len(stored) == 8 + size + 28 * max(1, -(-size // MIB))


@pytest.mark.parametrize("size", SIZES)
def test_a_stream_is_read_from_any_place(size: int) -> None:
    content, stored, key = made(size)
    with DecryptedFile(io.BytesIO(stored), key, "f") as file:
        assert file.seek(0, io.SEEK_END) == size
        for _ in range(20):
            start, length = random.randint(0, size + 5), random.randint(0, 2 * MIB)
            assert file.seek(start) == start
            assert file.read(length) == content[start : start + length]
    with pa.PythonFile(open_decrypted(io.BytesIO(stored), key.encode(), "f"), mode="r") as file:
        assert file.size() == size
        assert file.read() == content


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [1000, MIB, 3 * MIB])
def test_a_stream_is_written_in_pieces_of_any_size(size: int, piece: int) -> None:
    content, _, key = made(size)
    target = io.BytesIO()
    output = EncryptedOutput(target, key)
    for start in range(0, size, piece):
        output.write(content[start : start + piece])
    assert output.tell() == size
    length = output.finish()
    stored = target.getvalue()
    assert length == len(stored)
    assert decrypt_stream(stored, key.of_length(length), "f") == content


def read_as_file(stored: bytes, key: FileKey) -> bytes:
    with DecryptedFile(io.BytesIO(stored), key, "f") as file:
        return file.read()


@pytest.mark.parametrize("size", [0, 5, MIB + 5])
def test_every_change_of_a_stream_is_told(size: int) -> None:
    content, stored, key = made(size)
    places = range(len(stored)) if size < 10 else [0, 5, 7, 8, 30, MIB, MIB + 8 + 27, MIB + 8 + 28, len(stored) - 1]
    changes = [stored[:at] + bytes([stored[at] ^ 1 << at % 8]) + stored[at + 1 :] for at in places]
    changes += [stored[:-1], stored[:8], b"", stored + b"\0", stored * 2, content]
    if size > MIB:
        step = MIB + 28
        changes += [stored[: 8 + step], stored[:8] + stored[8 + step :] + stored[8 : 8 + step]]
    changes.append(encrypt_stream(content, FileKey.new(16)))  # of another file
    for changed in changes:
        if changed == stored:
            continue
        with pytest.raises(TamperedFileError, match="Cannot decrypt f"):
            decrypt_stream(changed, key, "f")
        with pytest.raises(TamperedFileError, match="Cannot decrypt f"):
            read_as_file(changed, key)
    for wrong in (FileKey(key.key, b"x" * 16, key.length), FileKey(os.urandom(16), key.prefix, key.length)):
        with pytest.raises(TamperedFileError):
            decrypt_stream(stored, wrong, "f")


def test_a_key_is_encoded_as_java_encodes_it() -> None:
    key = FileKey(bytes(range(16)), bytes(range(100, 116)), 1234)
    # The version, then Avro: length and bytes; the number of the union's branch, length and bytes; branch and long.
    expected = b"\x01" + b"\x20" + key.key + b"\x02\x20" + key.prefix + b"\x02\xa4\x13"
    assert key.encode() == expected
    assert FileKey.decode(expected, "f") == key
    assert FileKey.decode(b"\x01\x20" + key.key + b"\0\0", "f") == FileKey(key.key)
    assert key.key.hex() not in repr(key)
    assert "range" not in repr(key) and repr(key) == "FileKey(length=1234)"


@pytest.mark.parametrize("data", [b"", b"\x02" + bytes(40), b"{}"])
def test_a_key_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedError, match="key metadata"):
        FileKey.decode(data, "f")


@pytest.mark.parametrize("cut", range(1, 37))
def test_a_key_that_is_cut_off_is_told(cut: int) -> None:
    whole = FileKey(bytes(16), bytes(16), 1234).encode()
    with pytest.raises(TamperedFileError):
        FileKey.decode(whole[:cut], "f")


class Reader:
    def __init__(self, service: object) -> None:
        self.key_service = service


@pytest.fixture
def service(keystore: str) -> KeptKeys:
    return KeptKeys(KeystoreFile({"kms.keystore.path": keystore}))


PROPERTIES = {"encryption.key-id": "one", "encryption.data-key-length": "24"}


def test_the_key_of_a_manifest_list_is_found_by_two_others(service: KeptKeys) -> None:
    content = b"list" * 1000
    stored, keys = encrypted_list(content, (), PROPERTIES, Reader(service), 1_000)
    own, above = keys
    assert above.encrypted_by_id == "one" and above.properties == {KEY_TIMESTAMP: "1000"}
    assert own.encrypted_by_id == above.key_id and own.properties is None
    snapshot = Snapshot(1, manifest_list="l", key_id=own.key_id, keys=keys)
    key = manifest_list_key(snapshot, service)
    assert (len(key.key), key.length) == (24, len(stored))
    assert decrypt_stream(stored, key, "l") == content


def test_the_upper_key_is_used_for_two_years(service: KeptKeys) -> None:
    _, (_, above) = encrypted_list(b"", (), PROPERTIES, Reader(service), 0)
    _, (own, again) = encrypted_list(b"", (above,), PROPERTIES, Reader(service), LIFESPAN_MS - 1)
    assert again is above
    _, (_, rotated) = encrypted_list(b"", (above, own), PROPERTIES, Reader(service), LIFESPAN_MS)
    assert rotated.key_id != above.key_id
    _, (_, other) = encrypted_list(b"", (above,), {**PROPERTIES, "encryption.key-id": "two"}, Reader(service), 1)
    assert other.encrypted_by_id == "two"


def test_changed_keys_of_metadata_are_told(service: KeptKeys) -> None:
    _, keys = encrypted_list(b"x", (), PROPERTIES, Reader(service), 5)
    _, others = encrypted_list(b"x", (), PROPERTIES, Reader(service), 5)
    own, above = keys
    for changed in [
        (),
        (own,),
        (above,),
        (own, EncryptionKey(above.key_id, above.encrypted_key_metadata, "one", {KEY_TIMESTAMP: "6"})),
        (own, EncryptionKey(above.key_id, above.encrypted_key_metadata, "one", {})),
        (own, EncryptionKey(above.key_id, above.encrypted_key_metadata, "two", above.properties)),
        (own, EncryptionKey(above.key_id, others[1].encrypted_key_metadata, "one", above.properties)),
        (EncryptionKey(own.key_id, others[0].encrypted_key_metadata, above.key_id), above),
        (EncryptionKey(own.key_id, "no base64", above.key_id), above),
        (EncryptionKey(own.key_id, "AAAA", above.key_id), above),
    ]:
        with pytest.raises(TamperedFileError):
            manifest_list_key(Snapshot(1, manifest_list="l", key_id=own.key_id, keys=changed), service)


def test_files_of_tables_without_a_key_stay_as_they_are() -> None:
    assert encrypted(b"x", {}) == (b"x", None)
    assert encrypted_list(b"x", (), {}, object(), 0) == (b"x", ())
    assert decrypted(b"x", None, "f") == b"x"
    with pytest.raises(TamperedFileError, match="has no key for it"):
        decrypted(b"AGS1...", None, "f")
