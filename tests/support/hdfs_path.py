"""Paths of the HDFS that the run's warehouse is on, for tests that look at files: with hdfs-native alone, not with our
storage."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest


@dataclass(frozen=True)
class Status:
    """What `os.stat_result` tells, as far as HDFS knows it."""

    st_size: int
    st_mtime_ns: int
    st_ino: int = 0


@dataclass(frozen=True, order=True)
class HdfsPath:
    """What tests use of `pathlib.Path`; what wants a file of the operating system skips the test.

    Attributes:
        root: scheme and nameservice.
        path: of the file or folder.
    """

    root: str
    path: PurePosixPath

    @staticmethod
    def of(location: str) -> HdfsPath:
        """The path of a location."""
        scheme, _, rest = location.partition("://")
        authority, _, path = rest.partition("/")
        return HdfsPath(f"{scheme}://{authority}", PurePosixPath("/") / path.rstrip("/"))

    def __truediv__(self, name: str | PurePosixPath) -> HdfsPath:
        return HdfsPath(self.root, self.path / name)

    def __str__(self) -> str:
        return f"{self.root}{self.path}"

    def __fspath__(self) -> str:
        # Whoever asks for it opens the file by the operating system, which does not know HDFS.
        pytest.skip("looks at local files")

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def parent(self) -> HdfsPath:
        return HdfsPath(self.root, self.path.parent)

    def with_name(self, name: str) -> HdfsPath:
        return self.parent / name

    def relative_to(self, other: HdfsPath) -> PurePosixPath:
        return self.path.relative_to(other.path)

    def is_relative_to(self, other: HdfsPath) -> bool:
        return self.path.is_relative_to(other.path)

    def glob(self, pattern: str) -> Iterator[HdfsPath]:
        """Files and folders below this one; in the pattern, `*` stands for any part of a name, `**` for folders."""
        parts = (re.escape(part).replace(r"\*", "[^/]*") + "/" for part in pattern.split("/"))
        wanted = re.compile("".join("(?:[^/]+/)*" if part == "[^/]*[^/]*/" else part for part in parts))
        try:
            found = list(self._client.list_status(str(self.path), True))
        except FileNotFoundError:
            return
        for status in found:
            below = HdfsPath(self.root, PurePosixPath(status.path))
            if wanted.fullmatch(f"{below.relative_to(self)}/"):
                yield below

    def rglob(self, pattern: str) -> Iterator[HdfsPath]:
        return self.glob(f"**/{pattern}")

    def iterdir(self) -> Iterator[HdfsPath]:
        return self.glob("*")

    def exists(self) -> bool:
        return self._status is not None

    def is_file(self) -> bool:
        return self._status is not None and not self._status.isdir

    def is_dir(self) -> bool:
        return self._status is not None and self._status.isdir

    def is_symlink(self) -> bool:
        return False

    def symlink_to(self, target: HdfsPath) -> None:
        pytest.skip("HDFS has no links")

    def stat(self) -> Status:
        found = self._client.get_file_info(str(self.path))
        return Status(found.length, found.modification_time * 1_000_000)

    def read_bytes(self) -> bytes:
        return bytes(self._client.read(str(self.path)).read())

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> None:
        from hdfs_native import WriteOptions

        with self._client.create(str(self.path), WriteOptions(overwrite=True)) as file:
            if data:
                file.write(data)

    def write_text(self, text: str) -> None:
        self.write_bytes(text.encode())

    def touch(self) -> None:
        self.write_bytes(b"")

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        assert exist_ok or not self.exists()
        self._client.mkdirs(str(self.path), create_parent=parents)

    def unlink(self) -> None:
        assert self.is_file()
        self._client.delete(str(self.path), False)

    def rename(self, target: HdfsPath) -> HdfsPath:
        self._client.rename(str(self.path), str(target.path), False)
        return target

    @property
    def _client(self) -> Any:
        return _client(self.root)

    @property
    def _status(self) -> Any:
        try:
            return self._client.get_file_info(str(self.path))
        except FileNotFoundError:
            return None


def local_path(location: str) -> Path:
    """The path of a local location, or what takes its place on the HDFS of the run's warehouse."""
    if location.startswith("hdfs://"):
        return cast(Path, HdfsPath.of(location))
    return Path(location.removeprefix("file:"))


def other_spelling(location: str) -> str:
    """Another location of the same file."""
    return location.replace("://ns1/", "://ns1:8020/") if location.startswith("hdfs://") else f"file://{location}"


def pyiceberg_files(location: str) -> dict[str, str]:
    """What PyIceberg is told so that it finds a location; its own way to HDFS needs a Hadoop installation."""
    return {"py-io-impl": "tests.support.pyiceberg_hdfs.HdfsIO"} if location.startswith("hdfs:") else {}


def copy_file(source: Path, target: Path) -> None:
    """Copies a file, wherever it is, and makes the folders that it goes into."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


def copy_files(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Copies files, many at once: to close a small one takes up to half a second on HDFS."""
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda pair: copy_file(*pair), pairs))


def remove_folder(path: Path | HdfsPath) -> None:
    """Removes a folder, wherever it is, with all that is in it; one that is absent is no error."""
    if isinstance(path, HdfsPath):
        path._client.delete(str(path.path), True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def copy_folder(source: Path | HdfsPath, target: Path | HdfsPath) -> None:
    """Copies a folder, wherever it is, with all that is in it."""
    if isinstance(source, HdfsPath) and isinstance(target, HdfsPath):
        files = [path for path in source.rglob("*") if path.is_file()]
        copies = {path: target / path.relative_to(source) for path in files}
        copy_files((cast(Path, path), cast(Path, copy)) for path, copy in copies.items())
        for path, copy in copies.items():
            set_changed(copy, path.stat().st_mtime_ns)
    else:
        shutil.copytree(cast(Path, source), cast(Path, target), symlinks=True)


def set_changed(path: Path | HdfsPath, nanoseconds: int) -> None:
    """Makes a file, wherever it is, one that was last changed at a time."""
    if isinstance(path, HdfsPath):
        path._client.set_times(str(path.path), nanoseconds // 1_000_000, nanoseconds // 1_000_000)
    else:
        os.utime(path, ns=(nanoseconds, nanoseconds))


@cache
def _client(root: str) -> Any:
    from hdfs_native import Client

    return Client(root)  # HADOOP_CONF_DIR tells it the rest
