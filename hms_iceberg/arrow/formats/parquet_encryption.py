"""Encryption of Parquet files by one key, footer included, as Apache Iceberg has it.

Source: Apache Parquet, "Parquet Modular Encryption"; Apache Iceberg, `Parquet.WriteBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.errors import CorruptDataFileError, TamperedFileError, UnsupportedError


def encryption(key: FileKey) -> Any:
    """pyarrow's settings to encrypt a file; UnsupportedError if the installed one cannot."""
    # The prefix is kept by the manifest, so that a file cannot be put in another one's place.
    return _properties("create_encryption_properties")(key.key, aad_prefix=key.prefix, store_aad_prefix=False)


def decryption(key: FileKey) -> Any:
    """pyarrow's settings to decrypt a file; a file that is not encrypted is refused."""
    return _properties("create_decryption_properties")(key.key, aad_prefix=key.prefix or None)


def _properties(name: str) -> Any:
    try:
        import pyarrow.parquet.encryption as module

        return getattr(module, name)
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            f"pyarrow {pa.__version__} cannot encrypt Parquet files by given keys: pip install 'pyarrow>=26'."
        ) from error


@contextmanager
def decrypting(location: str) -> Iterator[None]:
    """Turns errors of reading an encrypted file within a block into typed ones, as `decoding` does."""
    try:
        with decoding(location, "Parquet"):
            yield
    except CorruptDataFileError as error:
        if isinstance(error, TamperedFileError):
            raise
        raise TamperedFileError(
            f"Cannot decrypt {location}: it was changed after it was written, another file was put in its place, or it "
            f"was encrypted by another key ({error.__cause__ or error}). Restore it from a copy that you trust."
        ) from error
