"""What holds of encrypted tables as a whole: their definition, what may not change, and that metadata is unchanged.

Source: Apache Iceberg, `EncryptionUtil.checkCompatibility`, `HiveTableOperations`, `HMSTablePropertyHelper`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping

from hms_iceberg.errors import InvalidInputError, TamperedFileError, UnsupportedError
from hms_iceberg.spec.data_types import DoubleType
from hms_iceberg.spec.metadata.metadata_file import uncompressed
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import DATA_KEY_LENGTH, DELETE_FILE_FORMAT, ENCRYPTION_KEY_ID, FILE_FORMAT
from hms_iceberg.spec.values.single_values import human_string

METADATA_HASH = "metadata_hash"
"""The parameter of a table's row in the metastore that says what its metadata file holds."""

_OF_ENCRYPTION = (ENCRYPTION_KEY_ID.name, DATA_KEY_LENGTH.name)
_FIRST_VERSION = 3


def check_encryption(base: TableMetadata | None, new: TableMetadata) -> None:
    """Refuses a version of a table whose encryption could not work, or differs from that of the version before.

    Args:
        base: the version before; None for a new table.
        new: the version that is to be written.

    Raises:
        InvalidInputError: the format version is below 3, or the table's key would be set, changed or removed.
        UnsupportedError: files of the format cannot be encrypted.
        ConfigurationError: keys of files cannot be so long.
    """
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
    """What `METADATA_HASH` says of metadata: SHA-256 of its JSON as Apache Iceberg writes it, in base64."""
    return _hash(_as_java(metadata_to_json(metadata)))


def check_integrity(row: Mapping[str, str], data: bytes, metadata: TableMetadata, location: str) -> None:
    """Refuses the metadata of an encrypted table that is not what the metastore says.

    The metastore is trusted, storage is not: who can change the metadata file could otherwise have the next rows
    written without encryption.

    Args:
        row: the parameters of the table's row.
        data: the metadata file.
        metadata: what it holds.
        location: where it is.

    Raises:
        TamperedFileError: it was changed or exchanged after it was committed.
    """
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
    """Refuses metadata that names another key than the table's row in the metastore.

    Args:
        row: the parameters of the table's row.
        metadata: the table's metadata.
        location: where it is.

    Raises:
        TamperedFileError: the keys, or their lengths, differ.
    """
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
