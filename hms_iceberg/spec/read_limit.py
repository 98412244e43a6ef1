"""A limit of the memory that one file's content may take: malicious files are small and hold very much.

The same bound holds for whatever is inflated or repeated: gzip of metadata, blocks of Avro, blobs of Puffin, and values
of JSON. It is checked before they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import ConfigurationError, CorruptFileError

READ_LIMIT = "io.read-limit-bytes"
"""The property of a catalog."""
GIBIBYTE = 1 << 30
# So many bytes any file may become, and so many times its size: JSON and manifests shrink to a few hundredths at most.
_PLAIN_BYTES = 64 << 20
_MOST_RATIO = 64
_USUAL_BYTES = 64 << 10
# What a value of JSON takes as an object of Python, at least; a text is there as bytes and as text.
_BYTES_OF_VALUE = 64
_COPIES_OF_TEXT = 2


@dataclass(frozen=True)
class ReadLimit:
    """A limit of the memory that the content of one file may take, as a whole.

    Metadata of 70,000 snapshots take about 300 MB.

    Attributes:
        most: how many bytes.
    """

    most: int = 4 * GIBIBYTE

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ReadLimit:
        """The limit that properties of a catalog set.

        Args:
            properties: the properties.

        Raises:
            ConfigurationError: it is no number of bytes.
        """
        text = properties.get(READ_LIMIT)
        if text is None:
            return cls()
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ConfigurationError(f"Property {READ_LIMIT!r}: expected a number of bytes, got {text[:50]!r}.")
        return cls(int(text))

    def inflated(self, stored: int) -> int:
        """The limit of what compressed data may become.

        Args:
            stored: their size in the file.
        """
        return min(most_bytes(stored), self.most // _COPIES_OF_TEXT)

    def refused(self, what: str) -> CorruptFileError:
        """The error that says that a file's content would take too much memory.

        Args:
            what: what it is.
        """
        return CorruptFileError(
            f"{what} would take more than {self.most:,} bytes of memory. If the file is what it should be, set the "
            f"catalog's property {READ_LIMIT}."
        )

    def check_json(self, text: bytes, what: str) -> None:
        """Refuses JSON whose values would take too much memory.

        Args:
            text: the JSON.
            what: what it is, for the message.

        Raises:
            CorruptFileError: it would.
        """
        if len(text) * (_BYTES_OF_VALUE + _COPIES_OF_TEXT) <= self.most:
            return
        values = sum(map(text.count, (b",", b"[", b"{")))  # those in texts count too
        if _COPIES_OF_TEXT * len(text) + _BYTES_OF_VALUE * values > self.most:
            raise self.refused(what)


DEFAULT_LIMIT = ReadLimit()


def most_bytes(size: int) -> int:
    """The size that compressed data may reach in any case."""
    return _PLAIN_BYTES + _MOST_RATIO * size


def whole_frame(codec: Any, compressed: bytes, most: int) -> bytes:
    """A frame of zstd or LZ4, decompressed with cramjam; a usual size is tried first: frames need not tell theirs."""
    import cramjam

    likely = min(_USUAL_BYTES + 16 * len(compressed), most)
    for size in (likely, most):
        out = bytearray(size)
        try:
            return bytes(memoryview(out)[: codec.decompress_into(compressed, out)])
        except cramjam.DecompressionError:
            if size == most:
                raise
    raise AssertionError("the last size returns or raises")
