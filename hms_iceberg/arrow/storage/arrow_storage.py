"""The storage port over pyarrow.fs and, for local files, the operating system.

Exclusive creation: on the local file system a file is written under a hidden name beside its target and linked to
it, which is atomic and fails if the target exists; on object stores pyarrow offers no conditional put, so the
object is looked for first (names that carry a UUID, as all data and metadata files do, cannot collide anyway).
HDFS: a file is written under a hidden name too, and renamed, which with hdfs-native is atomic and fails if the target
exists; libhdfs cannot promise the latter.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from hms_iceberg.arrow.storage.filesystems import (
    GCS_SCHEMES,
    ParsedLocation,
    already_exists,
    create_filesystem,
    parse_location,
    translated_errors,
)
from hms_iceberg.arrow.storage.hdfs.hadoop_settings import hadoop_settings
from hms_iceberg.arrow.storage.hdfs.opening import HDFS_SCHEMES, default_cluster, moves_exclusively
from hms_iceberg.arrow.storage.known_places import is_link, known_place, leads_up
from hms_iceberg.arrow.storage.local_version import LocalVersion
from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.encryption.key_services import KeyService, key_service
from hms_iceberg.errors import StorageError
from hms_iceberg.lazy import fs, pa
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.read_limit import ReadLimit
from hms_iceberg.storage import CACHE_BYTES, PREVIEWED_MANIFEST, FileInfo, Storage

if TYPE_CHECKING:
    from hms_iceberg.scan.manifests.cache import ManifestCache

_MOST_BYTES = 2**31 - 1  # Java holds a file of metadata in one array
_PART_BYTES = 1024 * 1024
# Of files of twelve columns, the footers of some thousands.
_COLUMNS_BYTES = 64 * 1024 * 1024
PREVIEW_PROPERTY = "preview.format-v4"


class ArrowStorage:
    """Files of any store that pyarrow has a file system for, by catalog properties (see `filesystems`)."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties: dict[str, str] = dict(properties or {})
        self.read_limit = ReadLimit.of(self._properties)
        self._default = default_cluster(self._properties)
        self._filesystems: dict[tuple[str, str], fs.FileSystem] = {}
        self._lock = threading.Lock()
        self._previewed: str | None = None
        self._cache_bytes = CACHE_BYTES.of(self._properties)

    def __repr__(self) -> str:
        return f"ArrowStorage(schemes={sorted({scheme for scheme, _ in self._filesystems})})"

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": self.file_properties, "previewed": self._previewed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["properties"])  # type: ignore[misc]
        self._previewed = state["previewed"]

    @property
    def file_properties(self) -> dict[str, str]:
        """The properties that lead to files, secrets among them. Keys of files travel with what names the files; the
        way to the keys of tables stays in this process."""
        return {key: value for key, value in self._properties.items() if not key.startswith(("kms.", "encryption."))}

    @property
    def is_previewing(self) -> bool:
        """Whether the property `preview.format-v4` asks for tables of format version 4."""
        return self._properties.get(PREVIEW_PROPERTY, "").strip().lower() == "true"

    def of_table(self, location: str) -> ArrowStorage:
        """A storage for a table, where `read` shows manifests of version 4 in the form of version 3."""
        shown = object.__new__(type(self))
        caches = {"manifest_cache": self.manifest_cache, "parquet_columns": self.parquet_columns}
        shown.__dict__.update(self.__dict__, _previewed=location, **caches)
        return shown

    def filesystem(self, location: str) -> tuple[fs.FileSystem, str]:
        """The pyarrow file system of a location and the path in it, for readers that want pyarrow's own I/O."""
        parsed = self._parsed(location)
        return self._filesystem(parsed), parsed.path

    def read(self, location: str) -> bytes:
        data = self._read(location)
        return data if self._previewed is None else PREVIEWED_MANIFEST(data, location, self._previewed)

    def _read(self, location: str) -> bytes:
        parsed = self._parsed(location)
        with translated_errors("read", location):
            if parsed.is_local:
                _check_regular(parsed.path)
                with open(parsed.path, "rb") as file:
                    _check_size(location, os.fstat(file.fileno()).st_size)
                    return file.read()
            if parsed.scheme in GCS_SCHEMES:
                return self._streamed(location, parsed)
            with self._opened_remote(parsed) as stream:
                _check_size(location, stream.size())
                return cast(bytes, stream.readall())

    def _streamed(self, location: str, parsed: ParsedLocation) -> bytes:
        """A whole object by one request; to ask for its size would be another one, for which all of Python waits."""
        parts, size = [], 0
        with self._filesystem(parsed).open_input_stream(parsed.path) as stream:
            while part := stream.read(_PART_BYTES):
                parts.append(part)
                size += len(part)
                _check_size(location, size)
        return b"".join(parts)

    def open_input(self, location: str) -> BinaryIO:
        """A seekable ``pyarrow.NativeFile``, which Arrow's readers use without going through Python."""
        parsed = self._parsed(location)
        with translated_errors("open", location):
            if parsed.is_local:
                _check_regular(parsed.path)
                return cast(BinaryIO, pa.OSFile(parsed.path, "rb"))
            return cast(BinaryIO, self._opened_remote(parsed))

    def _opened_remote(self, parsed: ParsedLocation) -> pa.NativeFile:
        filesystem = self._filesystem(parsed)
        is_libhdfs = parsed.scheme in HDFS_SCHEMES and not moves_exclusively(filesystem)
        # It writes eighty lines of Java to the error output if it opens a file that is absent.
        if is_libhdfs and filesystem.get_file_info(parsed.path).type == fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, parsed.path)
        return filesystem.open_input_file(parsed.path)

    def create(self, location: str, data: bytes) -> None:
        """Writes a new object, whole or not at all; one that is there already is not touched."""
        with self.open_output(location) as output:
            output.write(data)

    def open_output(self, location: str) -> BinaryIO:
        """A new file; visible once closed, gone when the ``with`` block fails."""
        parsed = self._parsed(location)
        with translated_errors("create", location):
            if parsed.is_local:
                return cast(BinaryIO, LocalOutput(location, parsed.path))
            filesystem = self._filesystem(parsed)
            if filesystem.get_file_info(parsed.path).type != fs.FileType.NotFound:
                raise already_exists(location)
            output = RenamedOutput if parsed.scheme in HDFS_SCHEMES else RemoteOutput
            return cast(BinaryIO, output(location, filesystem, parsed.path))

    def creates_exclusively(self, location: str) -> bool:
        """Whether exactly one of several writers of a name wins there."""
        parsed = self._parsed(location)
        if parsed.is_local:
            return True
        return parsed.scheme in HDFS_SCHEMES and moves_exclusively(self._filesystem(parsed))

    def exists(self, location: str) -> bool:
        parsed = self._parsed(location)
        with translated_errors("look for", location):
            if parsed.is_local:
                return os.path.isfile(parsed.path)
            return bool(self._filesystem(parsed).get_file_info(parsed.path).type == fs.FileType.File)

    def length(self, location: str) -> int:
        parsed = self._parsed(location)
        with translated_errors("get the length of", location):
            if parsed.is_local:
                return os.stat(parsed.path).st_size
            info = self._filesystem(parsed).get_file_info(parsed.path)
            if info.type != fs.FileType.File:
                raise FileNotFoundError(parsed.path)
            return int(info.size)

    def delete(self, location: str) -> None:
        parsed = self._parsed(location)
        with translated_errors("delete", location), suppress(FileNotFoundError):
            if parsed.is_local:
                os.unlink(parsed.path)
                return
            filesystem = self._filesystem(parsed)
            try:
                filesystem.delete_file(parsed.path)
            except OSError:  # libhdfs says of an absent file only that it failed
                if filesystem.get_file_info(parsed.path).type != fs.FileType.NotFound:
                    raise

    def delete_empty_folder(self, location: str) -> bool:
        """Deletes a folder if nothing is in it, in one step; on stores without folders, and where no step does that,
        nothing is done. Returns whether it is gone."""
        parsed = self._parsed(location)
        if parsed.is_local:
            with suppress(OSError):
                os.rmdir(parsed.path)
            return not os.path.isdir(parsed.path)
        if parsed.scheme not in HDFS_SCHEMES:
            return True
        filesystem = self._filesystem(parsed)
        if moves_exclusively(filesystem):
            with suppress(OSError):
                filesystem.handler.delete_empty_dir(parsed.path)
        return bool(filesystem.get_file_info(parsed.path).type == fs.FileType.NotFound)

    def check_right_to_delete(self, location: str) -> None:
        """Raises ``StorageDeniedError`` if HDFS would not let this user delete a file; others are not asked."""
        parsed = self._parsed(location)
        if parsed.scheme in HDFS_SCHEMES and moves_exclusively(filesystem := self._filesystem(parsed)):
            # The NameNode looks at the rights, sticky bits and ACLs included, before it sees that nothing would change.
            with translated_errors("delete", location), suppress(FileExistsError, FileNotFoundError):
                filesystem.move(parsed.path, parsed.path)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        parsed = self._parsed(prefix)
        root = parsed.path.rstrip("/")
        given = prefix.rstrip("/")
        with translated_errors("list", prefix):
            if parsed.is_local:
                yield from _list_local(given, root or "/")
                return
            selector = fs.FileSelector(root, recursive=True, allow_not_found=True)
            for info in self._filesystem(parsed).get_file_info(selector):
                if info.type == fs.FileType.File:
                    modified_ms = info.mtime_ns // 1_000_000 if info.mtime_ns else 0
                    yield FileInfo(given + "/" + info.path[len(root) :].lstrip("/"), int(info.size), modified_ms)

    def place_of(self, location: str) -> Place:
        """The place of a file or folder, which need not be there; local links are followed."""
        if self._default is not None and location.startswith("/"):
            location = self._default + location
        return known_place(location, self._properties, lambda: self._hadoop)

    def leads_elsewhere(self, location: str, place: Place) -> bool:
        """Whether a location's last segment is a local link, or a mount of `viewfs`."""
        return is_link(place) or (location[:7].lower() == "viewfs:" and self.place_of(location) != place)

    @cached_property
    def manifest_cache(self) -> ManifestCache:
        """The cache of the manifests of the catalog's tables."""
        from hms_iceberg.scan.manifests.cache import cache_of_bound

        return cache_of_bound(self._cache_bytes)

    @cached_property
    def parquet_columns(self) -> BoundedCache[Any]:
        """The columns and footers of local Parquet files that were read, by `local_version` and name mapping."""
        return BoundedCache(_COLUMNS_BYTES, lambda columns: columns.nbytes)

    def is_local(self, location: str) -> bool:
        """Whether a file is one of this machine's file system."""
        return self._parsed(location).is_local

    def local_version(self, location: str) -> LocalVersion | None:
        """What tells a local file from any other that stands in its place before or after; None for what is elsewhere,
        and for what is no file."""
        parsed = self._parsed(location)
        return LocalVersion.of(parsed.path) if parsed.is_local else None

    @cached_property
    def key_service(self) -> KeyService | None:
        """The service that keeps the keys of encrypted tables; None if the properties name none."""
        return key_service(self._properties)

    @cached_property
    def _hadoop(self) -> Mapping[str, str]:
        return hadoop_settings(self._properties)

    def _parsed(self, location: str) -> ParsedLocation:
        """A location taken apart; a path without a scheme is on the cluster that the properties make the default."""
        if self._default is None or not location.startswith("/"):
            return parse_location(location)
        return parse_location(self._default + location)

    def _filesystem(self, parsed: ParsedLocation) -> fs.FileSystem:
        key = (parsed.scheme, parsed.authority)
        with self._lock:
            if key not in self._filesystems:
                self._filesystems[key] = create_filesystem(parsed, self._properties)
            return self._filesystems[key]


def open_for_arrow(storage: Storage, location: str, key_metadata: bytes | None = None) -> pa.NativeFile:
    """Opens a file of any storage as Arrow's readers want it, decrypted if it is encrypted as a whole."""
    from hms_iceberg.encryption.encrypted_tables import open_decrypted

    opened = open_decrypted(storage.open_input(location), key_metadata, location)
    return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, mode="r")


def _check_regular(path: str) -> None:
    """Refuses devices and pipes: a read of them may never end."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is a {'folder' if stat.S_ISDIR(mode) else 'device or pipe'}, not a file")


def _check_size(location: str, size: int) -> None:
    if size > _MOST_BYTES:
        raise StorageError(
            f"Cannot read {location}: it has {size:,} bytes, and files of metadata have at most {_MOST_BYTES:,}. "
            f"Check what the metadata that names it says."
        )


def _list_local(given: str, root: str) -> Iterator[FileInfo]:
    folders = [(given, root, False)]
    while folders:
        prefix, folder, linked = folders.pop()
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                location = f"{prefix}/{entry.name}"
                try:
                    is_linked = linked or entry.is_symlink()
                    if not entry.is_dir():
                        status = entry.stat()
                        yield FileInfo(location, status.st_size, status.st_mtime_ns // 1_000_000, is_linked)
                    elif not (entry.is_symlink() and leads_up(entry.path)):
                        folders.append((location, entry.path, is_linked))
                except FileNotFoundError:
                    continue  # deleted while we looked


# ---------------------------------------------------------------------------------- files that are being written

# Others see them when they are whole, and nothing is left of one that fails.

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")


def is_unfinished(name: str) -> bool:
    """Whether a file has a temporary name of this package: it is still being written, or its writer was killed."""
    return _UNFINISHED.fullmatch(name) is not None


def _hidden_beside(path: str) -> str:
    """The name under which a file is written before it is there; see `is_unfinished`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:100]}.{uuid.uuid4().hex[:12]}.tmp")


class Output:
    """A file that appears when it is closed, and is abandoned when the `with` block fails."""

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
        size = memoryview(data).nbytes
        with translated_errors("write", self.location):
            self._write(data)
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Does nothing: the file becomes visible when it is closed."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Makes the file visible; FileAlreadyExistsError if somebody was first."""
        if not self.closed:
            self.closed = True
            with translated_errors("create", self.location):
                self._publish()

    def abandon(self) -> None:
        if not self.closed:
            self.closed = True
            self._abandon()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
    """A file on HDFS, which others see when it is whole."""

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
