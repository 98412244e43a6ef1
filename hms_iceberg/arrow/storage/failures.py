"""A file that is damaged, told from one that could not be read: the first is to be replaced, the second read again.

Decoders raise one kind of error for both. A failure of the storage has an error number or a type of its own; if a
decoder made text of it, or the store's client knows no numbers, Arrow's words tell.
"""

from __future__ import annotations

import errno
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import cramjam
import pyarrow as pa

from hms_iceberg.errors import CorruptDataFileError, CorruptFileError, IcebergError, MissingFileError, StorageError

_DECODING_ERRORS = (
    CorruptFileError,
    pa.ArrowException,
    OSError,
    EOFError,
    LookupError,
    ValueError,
    OverflowError,
    TypeError,
    RecursionError,
    MemoryError,
    struct.error,
    zlib.error,
    cramjam.DecompressionError,
)
# How Arrow's ORC reader, and its clients of S3, Google, Azure and HDFS, begin to say that a read failed.
_FAILED_READ = re.compile(r"Arrow error: IOError|AWS Error |google::cloud::Status|Azure Error: |HDFS .*failed")
_NUMBER = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)
_GONE = re.compile(r"RESOURCE_NOT_FOUND|NO_SUCH_KEY|kNotFound|NOT_FOUND|BlobNotFound")


@contextmanager
def decoding(location: str, form: str, where: str = "") -> Iterator[None]:
    """Errors of what is done inside name the file, and say whether it is damaged or could not be read.

    Args:
        location: the file that is decoded.
        form: its format, such as ``Parquet``.
        where: the part of the file, if it has a name.

    Raises:
        CorruptDataFileError: the file does not hold what its format says.
        MissingFileError: it disappeared.
        StorageError: its storage failed, or memory ran out.
    """
    try:
        yield
    except _DECODING_ERRORS as error:
        if _is_told_already(error):
            raise
        raise _read_error(error, location) or _damage(error, location, form, where) from error


def _is_told_already(error: BaseException) -> bool:
    """Whether the error says what it is: one of ours, or a limit of Arrow's arrays."""
    if isinstance(error, CorruptFileError):
        return isinstance(error, CorruptDataFileError)
    return isinstance(error, (IcebergError, pa.ArrowCapacityError))


def _read_error(error: BaseException, location: str) -> StorageError | None:
    """The error of the storage behind a decoder's error; None if there is none."""
    if isinstance(error, MemoryError):
        return StorageError(
            f"Cannot read {location}: memory ran out ({error}). Read fewer columns or smaller batches, or give the "
            f"process more memory; if it has enough, the sizes in the file are damaged."
        )
    if not isinstance(error, OSError):
        return None
    text = str(error).partition(" Detail: Python exception")[0]
    if type(error) is OSError and error.errno is None and not _FAILED_READ.search(text):
        return None
    found = _NUMBER.search(text)
    number = error.errno or (int(found[1]) if found else None)
    if isinstance(error, FileNotFoundError) or number == errno.ENOENT or _GONE.search(text):
        return MissingFileError(f"Cannot read {location}: the file disappeared while it was read ({text}).")
    return StorageError(
        f"Cannot read {location}: its storage failed ({text or type(error).__name__}). The file itself may be whole; "
        f"check that the storage can be reached and that it lets you in, and read again."
    )


def _damage(error: BaseException, location: str, form: str, where: str) -> CorruptDataFileError:
    part = f"{where}: " if where else ""
    return CorruptDataFileError(
        f"Cannot read {location}: {part}{error}. The file is damaged or is no {form} file; restore it, or remove it "
        f"from the table."
    )
