"""The files of an encrypted table, read and made: who has a table's metadata needs no more than these functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO, cast

from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.encryption.gcm_stream import DecryptedFile, decrypt_stream, encrypt_stream
from hms_iceberg.encryption.key_chain import (
    encrypted_list_key,
    key_above,
    manifest_list_key,
    new_key_above,
    with_new_key_above,
)
from hms_iceberg.encryption.key_services import key_service_of
from hms_iceberg.errors import TamperedFileError, UnsupportedError
from hms_iceberg.spec.manifests.manifest_values import MANIFEST_BYTES, FileSource, ManifestFile
from hms_iceberg.spec.snapshots_and_refs import EncryptionKey, Snapshot
from hms_iceberg.spec.table_properties import DATA_KEY_LENGTH, ENCRYPTION_KEY_ID

_MAGIC = b"AGS1"


# ------------------------------------------------------------------------------------------------- reading


def list_bytes(snapshot: Snapshot, reader: FileSource) -> bytes:
    """The content of a snapshot's manifest list, decrypted if it is encrypted.

    Args:
        snapshot: a snapshot with a manifest list.
        reader: reads files; for an encrypted table it knows the catalog's key service.

    Raises:
        MissingFileError: it is gone.
        KeyUnavailableError: the table's key cannot be used.
        TamperedFileError: it, or a key, was changed or exchanged.
    """
    location = str(snapshot.manifest_list)
    return decrypted_list(snapshot, reader.read(location), reader)


def decrypted_list(snapshot: Snapshot, data: bytes, reader: object) -> bytes:
    """The content of a snapshot's manifest list whose bytes were read.

    Args:
        snapshot: the snapshot.
        data: the bytes of the file.
        reader: for an encrypted table, it knows the catalog's key service.

    Raises:
        KeyUnavailableError: the table's key cannot be used.
        TamperedFileError: it, or a key, was changed or exchanged.
    """
    location = str(snapshot.manifest_list)
    if snapshot.key_id is None:
        return _plain(data, location)
    return decrypt_stream(data, manifest_list_key(snapshot, key_service_of(reader, location)), location)


def manifest_bytes(manifest: ManifestFile, reader: FileSource) -> bytes:
    """The content of a manifest, decrypted if it is encrypted.

    Args:
        manifest: the manifest, as its manifest list describes it.
        reader: reads files.

    Raises:
        MissingFileError: it is gone.
        TamperedFileError: it was changed or exchanged.
    """
    return decrypted(reader.read(manifest.manifest_path), manifest.key_metadata, manifest.manifest_path)


def decrypted(data: bytes, key_metadata: bytes | None, location: str) -> bytes:
    """The content of a file, decrypted if it is encrypted.

    Args:
        data: the bytes of the file.
        key_metadata: what its parent says of its key; None if it is not encrypted.
        location: the file.

    Raises:
        TamperedFileError: it was changed or exchanged.
    """
    if key_metadata is None:
        return _plain(data, location)
    return decrypt_stream(data, FileKey.decode(key_metadata, location), location)


def open_decrypted(file: BinaryIO, key_metadata: bytes | None, location: str) -> BinaryIO:
    """A file that is an encrypted stream as a whole (Avro, Puffin), open for reading at any place.

    Args:
        file: the open file.
        key_metadata: what its parent says of its key; None if it is not encrypted.
        location: the file.

    Raises:
        TamperedFileError: it was changed or exchanged.
    """
    if key_metadata is None:
        return file
    try:
        return cast(BinaryIO, DecryptedFile(file, FileKey.decode(key_metadata, location), location))
    except BaseException:
        file.close()
        raise


def _plain(data: bytes, location: str) -> bytes:
    if data[: len(_MAGIC)] == _MAGIC:
        raise TamperedFileError(
            f"Cannot read {location}: it is encrypted, and what names it has no key for it. The table's metadata was "
            f"changed, or it is the file of another table."
        )
    return data


# ------------------------------------------------------------------------------------------------- writing


def is_encrypted(properties: Mapping[str, str]) -> bool:
    """Whether the files of a table of these properties are encrypted."""
    return bool(ENCRYPTION_KEY_ID.of(properties))


def new_file_key(properties: Mapping[str, str]) -> FileKey | None:
    """A random key for a new file of a table; None if the table is not encrypted.

    Args:
        properties: the table's properties.
    """
    return FileKey.new(int(DATA_KEY_LENGTH.of(properties))) if is_encrypted(properties) else None


def encrypted(data: bytes, properties: Mapping[str, str]) -> tuple[bytes, bytes | None]:
    """A new file of a table as it is written, and what its parent keeps of its key.

    Args:
        data: its content.
        properties: the table's properties; those of a table that is not encrypted leave the content as it is.

    Returns:
        the bytes, and `key_metadata`; None if the table is not encrypted.
    """
    key = new_file_key(properties)
    if key is None:
        return data, None
    stored = encrypt_stream(data, key)
    return stored, key.of_length(len(stored)).encode()


def encrypted_list(
    data: bytes, known: tuple[EncryptionKey, ...], properties: Mapping[str, str], reader: object, now_ms: int
) -> tuple[bytes, tuple[EncryptionKey, ...]]:
    """A new manifest list of an encrypted table as it is written, and the keys that the table's metadata then needs.

    Args:
        data: its content.
        known: the keys of the table's metadata.
        properties: the table's properties.
        reader: knows the catalog's key service.
        now_ms: the time in milliseconds since 1970.

    Returns:
        the bytes, and the key of the list with the one that encrypts it, in this order; none if the table is not
        encrypted.

    Raises:
        KeyUnavailableError: the table's key cannot be used.
    """
    table_key_id = ENCRYPTION_KEY_ID.of(properties)
    key = new_file_key(properties)
    if key is None:
        return data, ()
    service = key_service_of(reader, f"a table by its key {table_key_id!r}")
    above = key_above(known, table_key_id, now_ms)
    if above is None:
        above = new_key_above(table_key_id, int(DATA_KEY_LENGTH.of(properties)), service, now_ms)
    stored = encrypt_stream(data, key)
    return stored, (encrypted_list_key(key.of_length(len(stored)), above, service), above)


def rotated_keys(
    known: tuple[EncryptionKey, ...], properties: Mapping[str, str], reader: object, now_ms: int
) -> tuple[EncryptionKey, ...]:
    """The keys of an encrypted table's metadata, with a new one in the place of all that the table's key encrypts.

    Args:
        known: the keys of the table's metadata.
        properties: the table's properties.
        reader: knows the catalog's key service.
        now_ms: the time in milliseconds since 1970.

    Raises:
        TamperedFileError: a key was changed or exchanged.
        KeyUnavailableError: the table's key cannot be used.
    """
    table_key_id = ENCRYPTION_KEY_ID.of(properties)
    service = key_service_of(reader, f"a table by its key {table_key_id!r}")
    return with_new_key_above(known, table_key_id, int(DATA_KEY_LENGTH.of(properties)), service, now_ms)


def refuse_encrypted(properties: Mapping[str, str], table: str, what: str, remedy: str) -> None:
    """Refuses something that would leave plain files in an encrypted table, or cannot read its files.

    Args:
        properties: the table's properties.
        table: its name or location.
        what: what is refused: "Cannot …".
        remedy: what works instead.

    Raises:
        UnsupportedError: the table is encrypted.
    """
    if is_encrypted(properties):
        raise UnsupportedError(f"{what} {table}: the table is encrypted ({ENCRYPTION_KEY_ID.name}). {remedy}")


MANIFEST_BYTES.set(manifest_bytes)
