"""Files that are being written: others see them when they are whole, and nothing is left of one that fails."""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from types import TracebackType
from typing import Any

from pyarrow import fs

from hms_iceberg.arrow.storage.filesystems import already_exists, translated_errors

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")


def is_unfinished(name: str) -> bool:
    """Whether a file has a temporary name of this package: it is still being written, or its writer was killed."""
    return _UNFINISHED.fullmatch(name) is not None


def _hidden_beside(path: str) -> str:
    """The name under which a file is written before it is there; see `is_unfinished`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:100]}.{uuid.uuid4().hex[:12]}.tmp")


class Output:
    """What local and remote outputs share: publish on close, abandon when the ``with`` block fails."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.closed = False
        self._position = 0

    def _write(self, data: Any) -> None:
        raise AssertionError("overridden")

    def _publish(self) -> None:
        raise AssertionError("overridden")

    def _abandon(self) -> None:
        raise AssertionError("overridden")

    def write(self, data: Any) -> int:
        """Appends bytes (or any buffer) and returns how many."""
        size = memoryview(data).nbytes
        with translated_errors("write", self.location):
            self._write(data)
        self._position += size
        return size

    def tell(self) -> int:
        """Bytes written so far."""
        return self._position

    def flush(self) -> None:
        """Nothing to do: the file becomes visible when it is closed."""

    def writable(self) -> bool:
        """Always true."""
        return True

    def readable(self) -> bool:
        """Always false."""
        return False

    def seekable(self) -> bool:
        """Always false."""
        return False

    def close(self) -> None:
        """Makes the file visible; raises ``FileAlreadyExistsError`` if somebody was first."""
        if not self.closed:
            self.closed = True
            with translated_errors("create", self.location):
                self._publish()

    def abandon(self) -> None:
        """Gives the file up: nothing of it stays."""
        if not self.closed:
            self.closed = True
            self._abandon()

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class LocalOutput(Output):
    def __init__(self, location: str, path: str) -> None:
        super().__init__(location)
        self._path = path
        folder = os.path.dirname(path)
        if os.path.lexists(path):
            raise already_exists(location)
        self._hidden = _hidden_beside(path)
        try:
            self._file = open(self._hidden, "xb", buffering=0)  # noqa: SIM115 - closed by close() or abandon()
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            self._file = open(self._hidden, "xb", buffering=0)  # noqa: SIM115

    def _write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        while view:
            written = self._file.write(view)
            view = view[written:]

    def _publish(self) -> None:
        self._file.close()
        try:
            try:
                os.link(self._hidden, self._path)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links: claim the name, then replace the empty claim
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                os.replace(self._hidden, self._path)
        except FileExistsError:
            raise already_exists(self.location) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._hidden)

    def _abandon(self) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._hidden)


class RemoteOutput(Output):
    def __init__(self, location: str, filesystem: fs.FileSystem, path: str) -> None:
        super().__init__(location)
        self._filesystem = filesystem
        self._path = path
        try:
            self._stream = filesystem.open_output_stream(path)
        except FileNotFoundError:  # a store with real folders
            filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            self._stream = filesystem.open_output_stream(path)

    def _write(self, data: Any) -> None:
        self._stream.write(data)

    def _publish(self) -> None:
        self._stream.close()

    def _abandon(self) -> None:
        # A stream of pyarrow cannot be aborted from Python: finish it, then take the part-written object away.
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._filesystem.delete_file(self._path)


class RenamedOutput(RemoteOutput):
    """On HDFS: others see the file when it is whole."""

    def __init__(self, location: str, filesystem: fs.FileSystem, path: str) -> None:
        super().__init__(location, filesystem, _hidden_beside(path))
        self._target = path

    def _publish(self) -> None:
        try:
            super()._publish()
            self._filesystem.move(self._path, self._target)
        except OSError as error:
            if self._is_published():
                return
            with suppress(OSError):
                self._filesystem.delete_file(self._path)
            if isinstance(error, FileExistsError):
                raise already_exists(self.location) from None
            raise

    def _is_published(self) -> bool:
        """Whether the renaming was done though its answer was lost: then nothing has the hidden name any more."""
        hidden, target = self._filesystem.get_file_info([self._path, self._target])
        return hidden.type == fs.FileType.NotFound and (target.type, target.size) == (fs.FileType.File, self._position)
