"""Encrypted tables: their files, read and made, and the rules that hold of such a table as a whole.

Who has a table's metadata needs no more than these functions; they leave the files of a plain table as they are.

Source: Apache Iceberg, `EncryptionUtil.checkCompatibility`, `HiveTableOperations`, `HMSTablePropertyHelper`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
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
from hms_iceberg.errors import InvalidInputError, TamperedFileError, UnsupportedError
from hms_iceberg.spec.data_types import DoubleType
from hms_iceberg.spec.manifests.manifest_values import MANIFEST_BYTES, FileSource, ManifestFile
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json, uncompressed
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import EncryptionKey, Snapshot
from hms_iceberg.spec.table_properties import DATA_KEY_LENGTH, DELETE_FILE_FORMAT, ENCRYPTION_KEY_ID, FILE_FORMAT
from hms_iceberg.spec.values.single_values import human_string

_MAGIC = b"AGS1"


# ------------------------------------------------------------------------------------------------- reading


def list_bytes(snapshot: Snapshot, reader: FileSource) -> bytes:
    """The content of a snapshot's manifest list, decrypted if it is encrypted."""
    location = str(snapshot.manifest_list)
    return decrypted_list(snapshot, reader.read(location), reader)


def decrypted_list(snapshot: Snapshot, data: bytes, reader: object) -> bytes:
    """The content of a snapshot's manifest list whose bytes were read, decrypted if it is encrypted."""
    location = str(snapshot.manifest_list)
    if snapshot.key_id is None:
        return _plain(data, location)
    return decrypt_stream(data, manifest_list_key(snapshot, key_service_of(reader, location)), location)


def manifest_bytes(manifest: ManifestFile, reader: FileSource) -> bytes:
    return decrypted(reader.read(manifest.manifest_path), manifest.key_metadata, manifest.manifest_path)


def decrypted(data: bytes, key_metadata: bytes | None, location: str) -> bytes:
    """The content of a file, decrypted by `key_metadata` if there is one; TamperedFileError if it was changed."""
    if key_metadata is None:
        return _plain(data, location)
    return decrypt_stream(data, FileKey.decode(key_metadata, location), location)


def open_decrypted(file: BinaryIO, key_metadata: bytes | None, location: str) -> BinaryIO:
    """A file that is an encrypted stream as a whole (Avro, Puffin), open for reading at any place."""
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
    return bool(ENCRYPTION_KEY_ID.of(properties))


def new_file_key(properties: Mapping[str, str]) -> FileKey | None:
    """A random key for a new file of a table; None if the table is not encrypted."""
    return FileKey.new(int(DATA_KEY_LENGTH.of(properties))) if is_encrypted(properties) else None


def encrypted(data: bytes, properties: Mapping[str, str]) -> tuple[bytes, bytes | None]:
    """A new file of a table as it is written, and its `key_metadata`, None if the table is not encrypted."""
    key = new_file_key(properties)
    if key is None:
        return data, None
    stored = encrypt_stream(data, key)
    return stored, key.of_length(len(stored)).encode()


def encrypted_list(
    data: bytes, known: tuple[EncryptionKey, ...], properties: Mapping[str, str], reader: object, now_ms: int
) -> tuple[bytes, tuple[EncryptionKey, ...]]:
    """A new manifest list as it is written, and the keys that the table's metadata then needs. The list's key comes
    first, then the one that encrypts it; there are none if the table is not encrypted."""
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
    """The keys of an encrypted table's metadata, with a new one in the place of all that the table's key encrypts."""
    table_key_id = ENCRYPTION_KEY_ID.of(properties)
    service = key_service_of(reader, f"a table by its key {table_key_id!r}")
    return with_new_key_above(known, table_key_id, int(DATA_KEY_LENGTH.of(properties)), service, now_ms)


def refuse_encrypted(properties: Mapping[str, str], table: str, what: str, remedy: str) -> None:
    """Refuses to leave plain files in an encrypted table, or to read its files; `what` begins with "Cannot"."""
    if is_encrypted(properties):
        raise UnsupportedError(f"{what} {table}: the table is encrypted ({ENCRYPTION_KEY_ID.name}). {remedy}")


# ------------------------------------------------------------------------------------------------- rules of a table


METADATA_HASH = "metadata_hash"
"""The parameter of a table's row in the metastore that says what its metadata file holds."""

_OF_ENCRYPTION = (ENCRYPTION_KEY_ID.name, DATA_KEY_LENGTH.name)
_FIRST_VERSION = 3


def check_encryption(base: TableMetadata | None, new: TableMetadata) -> None:
    """Refuses a version of a table whose encryption could not work, or differs from that of the version before."""
    if base is not None:
        _check_unchanged(base, new)
    key_id = ENCRYPTION_KEY_ID.of(new.properties)
    if not key_id and ENCRYPTION_KEY_ID.name in new.properties:
        raise InvalidInputError(
            f"Cannot write the table at {new.location}: {ENCRYPTION_KEY_ID.name} is empty. Name a key, or leave it out."
        )
    if not key_id and not (base is None and DATA_KEY_LENGTH.name in new.properties):
        return
    if new.format_version < _FIRST_VERSION:
        named = ", ".join(name for name in _OF_ENCRYPTION if name in new.properties)
        raise InvalidInputError(
            f"Cannot encrypt the table at {new.location}: it has format version {new.format_version}, and {named} "
            f"needs format-version 3."
        )
    DATA_KEY_LENGTH.of(new.properties)
    for each in (FILE_FORMAT, DELETE_FILE_FORMAT):
        if key_id and each.name in new.properties and each.of(new.properties) == "orc":
            raise UnsupportedError(
                f"Cannot encrypt the table at {new.location}: ORC files cannot be encrypted. Set {each.name} to "
                f"parquet."
            )


def _check_unchanged(base: TableMetadata, new: TableMetadata) -> None:
    for name in _OF_ENCRYPTION:
        before, after = base.properties.get(name), new.properties.get(name)
        # The length may be set as long as there is nothing that it could contradict.
        if before != after and (name == ENCRYPTION_KEY_ID.name or ENCRYPTION_KEY_ID.of(base.properties)):
            raise InvalidInputError(
                f"Cannot change {name} of the table at {base.location} from {before!r} to {after!r}: a table is "
                f"encrypted by one key from its creation on. Create another table, and copy the rows."
            )


def metadata_hash(metadata: TableMetadata) -> str:
    """SHA-256 in base64 of the metadata's JSON as Apache Iceberg writes it: the value of `METADATA_HASH`."""
    return _hash(_as_java(metadata_to_json(metadata)))


def check_integrity(row: Mapping[str, str], data: bytes, metadata: TableMetadata, location: str) -> None:
    """Refuses metadata of an encrypted table that do not agree with the metastore's row: storage is not trusted, or
    whoever can change the file could have rows written without encryption."""
    if not row.get(ENCRYPTION_KEY_ID.name):
        return
    check_same_key(row, metadata, location)
    expected = row.get(METADATA_HASH)
    if expected:
        # The file itself if it is Java's or ours; another writer's file has its hash by what it means.
        found = (_hash(uncompressed(data)), lambda: metadata_hash(metadata))
        if hmac.compare_digest(found[0], expected) or hmac.compare_digest(found[1](), expected):
            return
        raise TamperedFileError(
            f"The metadata file {location} is not the one that was committed: its hash is not the one in the metastore "
            f"({METADATA_HASH}). Somebody changed or exchanged it, or the row; restore the file from a copy that you "
            f"trust."
        )


def check_same_key(row: Mapping[str, str], metadata: TableMetadata, location: str) -> None:
    """Refuses metadata that name another key than the table's row in the metastore."""
    for name in _OF_ENCRYPTION if row.get(ENCRYPTION_KEY_ID.name) else ():
        if row.get(name) != metadata.properties.get(name):
            raise TamperedFileError(
                f"The metadata file {location} is not the one that was committed: its {name} is "
                f"{metadata.properties.get(name)!r}, in the metastore it is {row.get(name)!r}. Restore the file from a "
                f"copy that you trust."
            )


def _hash(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


_MAY_BE_FRACTION = re.compile(rb"[\[:,]-?\d+[.e]")
_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?')
_CONTROL = re.compile(r"(\\\\)|\\u([0-9a-f]{4})")


def _as_java(data: bytes) -> bytes:
    """JSON whose fractions and escapes are as Java writes them: `1.0E10`, and digits of escapes in upper case."""
    if b"\\u" not in data and not _MAY_BE_FRACTION.search(data):
        return data
    return _STRING_OR_NUMBER.sub(_token_as_java, data.decode()).encode()


def _token_as_java(found: re.Match[str]) -> str:
    token = found[0]
    if token[0] == '"':
        if "\\u" not in token:
            return token
        return _CONTROL.sub(lambda escape: escape[1] or "\\u" + escape[2].upper(), token)
    return human_string(DoubleType(), float(token)) if "." in token or "e" in token else token


MANIFEST_BYTES.set(manifest_bytes)
