"""A new content file as the writers of all formats use it."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from hms_iceberg.storage import Storage

_PIECE_BYTES = 256 * 1024
# Memory of an open output, and of what encodes into it.
HELD_BYTES = _PIECE_BYTES + 64 * 1024


class ContentOutput:
    """A file that is written in large pieces, and appears when it is closed.

    Args:
        storage: where the file goes.
        location: the new file.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._output = storage.open_output(location)
        self.stream = pa.BufferedOutputStream(pa.PythonFile(self._output, mode="w"), _PIECE_BYTES)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return int(self.stream.tell())

    def close(self) -> int:
        """Makes the file visible; returns its size in bytes."""
        self.stream.flush()
        size = self._output.tell()
        self._output.close()
        return size

    def abandon(self) -> None:
        """Gives the file up; nothing of it stays."""
        with suppress(Exception):  # otherwise the stream would write on when it is collected
            self.stream.flush()
        abandon = getattr(self._output, "abandon", None)
        if abandon is not None:
            abandon()
        else:
            self._output.__exit__(RuntimeError, RuntimeError("abandoned"), None)
