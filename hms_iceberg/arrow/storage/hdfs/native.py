"""pyarrow's view of HDFS by hdfs-native, which needs neither Java nor a Hadoop installation.

Its files are as Python has them, from which Arrow reads and to which it writes.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import fs

from hms_iceberg.arrow.storage.hdfs.cluster_address import ClusterAddress
from hms_iceberg.arrow.storage.hdfs.login import Login, protection_advice
from hms_iceberg.arrow.storage.hdfs.native_failures import errors_of_data, errors_of_hdfs
from hms_iceberg.errors import ConfigurationError

Errors: TypeAlias = Callable[[], AbstractContextManager[None]]

# How much of a write is copied at once.
_PIECE_BYTES = 8 * 1024 * 1024

# Files that somebody still holds.
_HELD: weakref.WeakSet[HdfsInput] = weakref.WeakSet()
_LAST_MOMENT_SECONDS = 0.25


@atexit.register
def _wait_for_threads() -> None:
    """Arrow's threads let go of a file a moment after its last byte was read. For that they need the interpreter: one
    that asks while it ends takes the whole process down (SIGABRT)."""
    end = time.monotonic() + _LAST_MOMENT_SECONDS
    while _HELD and time.monotonic() < end:
        time.sleep(0.005)


class _Connections:
    """hdfs-native's connections to DataNodes, kept three seconds after a read. A forked child must not share them with
    its parent: its first read waits until it has forgotten them."""

    _KEPT_SECONDS = 3.1

    def __init__(self) -> None:
        self._were_made = False
        self._forgotten = 0.0
        os.register_at_fork(after_in_child=self._inherit)

    def _inherit(self) -> None:
        if self._were_made:
            self._forgotten = time.monotonic() + self._KEPT_SECONDS

    def use(self) -> None:
        """Must be called before a read."""
        self._were_made = True
        while (left := self._forgotten - time.monotonic()) > 0:
            time.sleep(left)


_CONNECTIONS = _Connections()


class HdfsInput(io.RawIOBase):
    """A file to read, which `opened` opens again in a child of this process, where no connection works on."""

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
        length = self._length(size)
        if length == 0:
            return b""
        with self._errors():
            data: bytes = self._current().read_range(self._position, length)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def read_buffer(self, size: int | None = -1) -> pa.Buffer:
        """Bytes from the position on, which Arrow takes without a copy: packets go where they belong, into memory of
        the system, cheaper than `read` and than Arrow's pool of huge pages."""
        buffer = pa.allocate_buffer(self._length(size), memory_pool=pa.system_memory_pool())
        return buffer.slice(0, self.readinto(buffer))

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = self._length(len(view))
        at = 0
        if length:
            with self._errors():
                for packet in self._current().read_range_stream(self._position, length):
                    view[at : at + len(packet)] = packet
                    at += len(packet)
        self._position += at
        return at

    def _length(self, size: int | None) -> int:
        """The number of bytes that `read(size)` gives at the position."""
        left = max(self._size - self._position, 0)
        return left if size is None or size < 0 else min(size, left)

    def _current(self) -> Any:
        """The file as this process has it, to read from."""
        _CONNECTIONS.use()
        if self._process != os.getpid():
            self._file, self._process = self._opened(), os.getpid()
        return self._file

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Goes to a position, which may be beyond the end."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"negative seek position {start + offset}")
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class HdfsOutput(io.RawIOBase):
    """A file that is written with hdfs-native; others see its name from the start."""

    def __init__(self, file: Any, errors: Errors) -> None:
        super().__init__()
        self._file = file
        self._errors = errors
        self._position = 0
        self._failed = False

    def write(self, data: Any) -> int:
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
        return self._position

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Ends the file; raises if not all of it is kept."""
        if not self.closed:
            super().close()
            if self._failed:  # the NameNode would be asked for 15 seconds whether it has all blocks
                raise OSError(errno.EIO, "the file is not whole: a write failed before")
            with self._errors():
                self._file.close()


# The client's own are 181 seconds without a NameNode; with these it is about seven, of ten that are promised.
_FAILOVER_TIMEOUTS = {
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.base.millis": "500",
    "dfs.client.failover.sleep.max.millis": "1000",
}
_UMASK, _USUAL_UMASK = "fs.permissions.umask-mode", "022"
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


class NativeHdfs(fs.FileSystemHandler):
    """Implements pyarrow's file system; a move never replaces what is there."""

    def __init__(self, address: ClusterAddress, login: Login) -> None:
        self._address = address
        self._login = login
        self._lock = threading.Lock()
        # Those of a parent process stay: they neither work nor end in a child.
        self._clients: dict[int, Any] = {}
        settings = address.settings
        umask = _number({_UMASK: _USUAL_UMASK, **settings}, _UMASK, _umask) or 0
        self._folder_mode = 0o777 & ~umask
        self._written: dict[str, Any] = {
            "permission": 0o666 & ~umask,
            "replication": _number(settings, "dfs.replication", int),
            "block_size": _number(settings, "dfs.blocksize", _size),
        }
        self._client()

    def _client(self) -> Any:
        from hdfs_native import Client

        process = os.getpid()
        with self._lock:
            if process not in self._clients:
                settings = {**_FAILOVER_TIMEOUTS, **self._address.settings}
                try:
                    # The folder was read already.
                    client = Client(self._address.url, settings, os.devnull, **self._login.arguments)
                except (RuntimeError, ValueError, OSError) as error:
                    raise ConfigurationError(f"Cannot connect to {self._address.url}: {error}") from error
                self._clients[process] = client
            return self._clients[process]

    def _errors(self) -> AbstractContextManager[None]:
        return errors_of_hdfs(self._login)

    def _data_errors(self) -> AbstractContextManager[None]:
        return errors_of_data(self._login, protection_advice(self._address.settings))

    def _checked(self, path: str, changes: bool = False) -> str:
        """A path as the client wants it."""
        path = "/" + path.strip("/")
        mounts = self._address.mounts
        if mounts is not None and not any(path == mount or path.startswith(f"{mount}/") for mount in mounts):
            said = f"{path} is outside of the mounts of {self._address.url}, which are {', '.join(mounts)}"
            raise OSError(errno.EACCES if changes else errno.ENOENT, said)
        return path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NativeHdfs) and self._address == other._address and self._login == other._login

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "hdfs-native"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Iterable[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        try:
            with self._errors():
                return _info(self._client().get_file_info(self._checked(path)), path)
        except (FileNotFoundError, NotADirectoryError):
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        try:
            return list(self._listed(selector))
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise

    def _listed(self, selector: fs.FileSelector) -> Iterator[fs.FileInfo]:
        base = self._checked(selector.base_dir)
        given = selector.base_dir.rstrip("/")
        folders = [base]
        while folders:
            folder = folders.pop()
            try:
                with self._errors():
                    found = list(self._client().list_status(folder))
            except FileNotFoundError:
                if folder == base:
                    raise
                continue  # removed while we looked, as temporary folders of a job are
            for status in found:
                if status.path == base:
                    raise NotADirectoryError(errno.ENOTDIR, f"{base} is a file, not a folder")
                if status.isdir and selector.recursive:
                    folders.append(status.path)
                yield _info(status, given + status.path[len(base.rstrip("/")) :])

    def create_dir(self, path: str, recursive: bool) -> None:
        """Makes a folder; one that is there is no error."""
        with self._errors():
            self._client().mkdirs(self._checked(path, changes=True), self._folder_mode, recursive)

    def delete_dir(self, path: str) -> None:
        self._delete(path, recursive=True)

    def delete_empty_dir(self, path: str) -> None:
        """Deletes a folder; the NameNode refuses if there is anything in it."""
        if self._info(path).type != fs.FileType.Directory:
            raise NotADirectoryError(errno.ENOTDIR, f"{path} is no folder")
        self._delete(path, recursive=False)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        selector = fs.FileSelector(path, allow_not_found=missing_dir_ok)
        for info in self.get_file_info_selector(selector):
            self._delete(info.path, recursive=True)

    def delete_root_dir_contents(self) -> None:
        """Refused: it is the whole cluster."""
        raise NotImplementedError("the root of HDFS is not emptied")

    def delete_file(self, path: str) -> None:
        if self._info(path).type == fs.FileType.Directory:
            raise IsADirectoryError(errno.EISDIR, f"{path} is a folder, not a file")
        self._delete(path, recursive=False)

    def _delete(self, path: str, recursive: bool) -> None:
        with self._errors():
            if not self._client().delete(self._checked(path), recursive):
                raise FileNotFoundError(errno.ENOENT, path)

    def move(self, src: str, dest: str) -> None:
        """Gives a file another name, at once; FileExistsError if there is one of that name."""
        with self._errors():
            self._client().rename(self._checked(src), self._checked(dest, changes=True), False)

    def copy_file(self, src: str, dest: str) -> None:
        """Copies a file; one that is there is not replaced."""
        source = self.open_input_file(src)
        with source, self.open_output_stream(dest, None) as target:
            while part := source.read(8 * 2**20):
                target.write(part)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(HdfsInput(self._opener(self._checked(path)), self._data_errors), mode="r")

    def _opener(self, path: str) -> Callable[[], Any]:
        def opened() -> Any:
            try:
                with self._errors():
                    return self._client().read(path)
            except FileNotFoundError as error:
                if "Path is not a file" in str(error):
                    raise IsADirectoryError(errno.EISDIR, f"{path} is a folder, not a file") from error
                raise

        return opened

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        """A new file to write, and the folders that it is in; FileExistsError if there is one."""
        from hdfs_native import WriteOptions

        with self._errors():
            file = self._client().create(self._checked(path, changes=True), WriteOptions(**self._written))
        return pa.PythonFile(HdfsOutput(file, self._data_errors), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        """Refused: files of tables never change."""
        raise NotImplementedError("files of HDFS are not appended to")


def _info(status: Any, path: str) -> fs.FileInfo:
    if status.isdir:
        return fs.FileInfo(path, fs.FileType.Directory, mtime_ns=status.modification_time * 1_000_000)
    return fs.FileInfo(path, fs.FileType.File, size=status.length, mtime_ns=status.modification_time * 1_000_000)


def _number(settings: Mapping[str, str], name: str, read: Callable[[str], int]) -> int | None:
    if name not in settings:
        return None
    try:
        return read(settings[name])
    except (ValueError, KeyError) as error:
        raise ConfigurationError(f"Hadoop's setting {name} must be a number, but is {settings[name]!r}.") from error


def _umask(text: str) -> int:
    """A umask given as an octal number or as the rights that it leaves: `u=rwx,g=rx,o=`."""
    if "=" not in text:
        return int(text, 8)
    left = 0
    for clause in text.replace("a", "ugo").split(","):
        who, _, rights = clause.partition("=")
        bits = sum({"r": 4, "w": 2, "x": 1}[right] for right in rights)
        left |= sum(bits << {"u": 6, "g": 3, "o": 0}[each] for each in who)
    return 0o777 & ~left


def _size(text: str) -> int:
    number = text.rstrip("kmgtKMGT")
    return int(number) * _SIZES[text[len(number) :].lower()]
