"""A storage in memory that counts what is done, and fails where it is told to."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

from hms_iceberg.errors import FileAlreadyExistsError, MissingFileError
from hms_iceberg.scan.manifests.cache import ManifestCache
from hms_iceberg.storage import FileInfo


class InMemoryStorage:
    """Implements `Storage`. `before_create` may raise to make a write fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.created: list[str] = []
        self.deleted: list[str] = []
        self.reads: list[str] = []
        self.before_create: Callable[[str], None] | None = None
        self.manifest_cache: ManifestCache | None = None  # the one that scans of all storages share, if None

    def read(self, location: str) -> bytes:
        """The whole object."""
        self.reads.append(location)
        if location not in self.files:
            raise MissingFileError(f"There is no file {location}.")
        return self.files[location]

    def open_input(self, location: str) -> BinaryIO:
        """A seekable binary file."""
        return io.BytesIO(self.read(location))

    def create(self, location: str, data: bytes) -> None:
        """Writes a new object."""
        if self.before_create is not None:
            self.before_create(location)
        if location in self.files:
            raise FileAlreadyExistsError(f"There is a file {location} already.")
        self.files[location] = bytes(data)
        self.created.append(location)

    def open_output(self, location: str) -> BinaryIO:
        """A new file open for writing."""
        storage = self

        class Output(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    storage.create(location, self.getvalue())
                super().close()

        return Output()

    def creates_exclusively(self, location: str) -> bool:
        """Always."""
        return True

    def exists(self, location: str) -> bool:
        """Whether an object is at the location."""
        return location in self.files

    def length(self, location: str) -> int:
        """The object's size in bytes."""
        return len(self.read(location))

    def delete(self, location: str) -> None:
        """Removes the object."""
        self.files.pop(location, None)
        self.deleted.append(location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every object below the folder."""
        folder = prefix.rstrip("/") + "/"
        for location, data in self.files.items():
            if location.startswith(folder):
                yield FileInfo(location, len(data))
