"""A metadata file of a table or view as bytes: JSON, compressed or not.

Source: Iceberg specification, "Table Metadata"; `write.metadata.compression-codec`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from hms_iceberg.errors import CorruptMetadataError, IcebergError, UnsupportedError

T = TypeVar("T")

_GZIP_MAGIC = b"\x1f\x8b"
MAX_METADATA_BYTES = 2**31 - 1
"""More than that in a compressed file is taken for an attempt to exhaust the memory."""


def compress(data: bytes) -> bytes:
    """The content of a gzip-compressed metadata file (`write.metadata.compression-codec` = gzip)."""
    return gzip.compress(data, mtime=0)


def read_metadata_file(data: bytes, what: str, location: str | None, parse: Callable[[Any], T]) -> T:
    """Applies a function to the JSON of a metadata file; errors name the file.

    Args:
        data: the content of the file, gzip-compressed or not.
        what: the kind of metadata, for messages.
        location: where it was read, for messages.
        parse: makes the metadata of the parsed JSON.

    Raises:
        UnsupportedError: `parse` does not know the format version.
        CorruptMetadataError: it is no JSON, or `parse` refuses it.
    """
    name = f"{what} {location}" if location else what
    try:
        return parse(json.loads(uncompressed(bytes(data)).decode("utf-8")))
    except UnsupportedError as error:
        raise UnsupportedError(f"Cannot read {name}: {error}") from error
    except IcebergError as error:
        raise CorruptMetadataError(f"Cannot read {name}: {error}") from error
    except (ValueError, zlib.error, RecursionError) as error:
        raise CorruptMetadataError(
            f"Cannot read {name}: it is not a JSON file as Iceberg writes it ({type(error).__name__}: {error})"
        ) from error


def uncompressed(data: bytes) -> bytes:
    """The content of a metadata file, which may be gzip-compressed.

    Raises:
        CorruptMetadataError: it is cut off, or too large.
        zlib.error: it is damaged.
    """
    if not data.startswith(_GZIP_MAGIC):
        return data
    parts: list[bytes] = []
    left = MAX_METADATA_BYTES
    while data:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        parts.append(member.decompress(data, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise CorruptMetadataError(f"its content is larger than {MAX_METADATA_BYTES} bytes")
        if not member.eof:
            raise CorruptMetadataError("its gzip content is cut off")
        data = member.unused_data
    return b"".join(parts)
