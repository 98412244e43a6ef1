"""Files of HDFS as Python has files: what Arrow reads from and writes to."""

from __future__ import annotations

import atexit
import errno
import io
import os
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Errors: TypeAlias = Callable[[], AbstractContextManager[None]]

# How much of a write is copied at once.
_PIECE_BYTES = 8 * 1024 * 1024

# Files that somebody still holds.
_HELD: weakref.WeakSet[HdfsInput] = weakref.WeakSet()
_LAST_MOMENT_SECONDS = 0.25


@atexit.register
def _wait_for_threads() -> None:
    """Arrow's threads let go of a file a moment after its last byte was read.

    For that they need the interpreter: one that asks while it ends takes the whole process down (SIGABRT).
    """
    end = time.monotonic() + _LAST_MOMENT_SECONDS
    while _HELD and time.monotonic() < end:
        time.sleep(0.005)


class HdfsInput(io.RawIOBase):
    """A file to read, from its start.

    Args:
        opened: opens it with hdfs-native; called again in a child of this process, where no connection works on.
        errors: turns hdfs-native's errors into the operating system's.
    """

    def __init__(self, opened: Callable[[], Any], errors: Errors) -> None:
        super().__init__()
        self._opened = opened
        self._errors = errors
        self._process = os.getpid()
        self._file = opened()
        self._size = len(self._file)
        self._position = 0
        _HELD.add(self)

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from the position on, as many as there are."""
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if length == 0:
            return b""
        if self._process != os.getpid():
            self._file, self._process = self._opened(), os.getpid()
        with self._errors():
            data: bytes = self._file.read_range(self._position, length)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """The rest of the file."""
        return self.read()

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer as far as there are bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Goes to a position, which may be beyond the end.

        Args:
            offset: number of bytes.
            whence: what they are counted from, as in `io`.
        """
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"negative seek position {start + offset}")
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def size(self) -> int:
        """The length in bytes."""
        return self._size

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True


class HdfsOutput(io.RawIOBase):
    """A file that is written with hdfs-native; others see its name from the start.

    Args:
        file: of hdfs-native.
        errors: turns hdfs-native's errors into the operating system's.
    """

    def __init__(self, file: Any, errors: Errors) -> None:
        super().__init__()
        self._file = file
        self._errors = errors
        self._position = 0
        self._failed = False

    def write(self, data: Any) -> int:
        """Appends all bytes of a buffer."""
        view = memoryview(data).cast("B")
        try:
            with self._errors():
                for start in range(0, len(view), _PIECE_BYTES):
                    # All but `bytes` is taken number by number, which takes seven times as long.
                    self._file.write(bytes(view[start : start + _PIECE_BYTES]))
        except OSError:
            self._failed = True
            raise
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._position

    def writable(self) -> bool:
        """Always true."""
        return True

    def close(self) -> None:
        """Ends the file; raises if not all of it is kept."""
        if not self.closed:
            super().close()
            if self._failed:  # the NameNode would be asked for 15 seconds whether it has all blocks
                raise OSError(errno.EIO, "the file is not whole: a write failed before")
            with self._errors():
                self._file.close()
