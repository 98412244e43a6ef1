"""The storage port: what the package asks of a file system or object store.

A location is the text that table metadata holds (``s3://bucket/key``, ``file:/x``, ``file:///x`` or a plain path).
Implementations hand locations back in the form they were given. Whether two are one file, `Places` tells.

The port's promises:

- ``create`` and ``open_output`` are exclusive as far as the store allows: an existing object is never replaced;
- a file that ``open_output`` writes appears, whole, when it is closed, or is removed when its writer fails;
- ``delete`` of an absent file is not an error, so that a clean-up may run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol, runtime_checkable

from hms_iceberg.encryption.key_services import KeyService
from hms_iceberg.errors import MissingFileError
from hms_iceberg.hooks import Hook
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.property_kinds import IntProperty
from hms_iceberg.spec.read_limit import DEFAULT_LIMIT, ReadLimit

PREVIEWED_MANIFEST: Hook[[bytes, str, str], bytes] = Hook("hms_iceberg.arrow.formats.manifests_v4")

DEFAULT_CACHE_BYTES = 512 * 1024 * 1024
# The name is Apache Iceberg's. Decoded manifests take about three times the bytes of their files.
CACHE_BYTES = IntProperty(
    "io.manifest.cache.max-total-bytes", "Memory for decoded manifests, in bytes.", "scans", DEFAULT_CACHE_BYTES
)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An object in a listing.

    Args:
        location: the location, in the form of the prefix that was listed.
        size: length in bytes.
        modified_ms: time of the last change in milliseconds since the epoch, 0 if the store does not say.
        is_linked: whether it is a symbolic link, or was reached through one: then it may belong to anybody.
    """

    location: str
    size: int
    modified_ms: int = 0
    is_linked: bool = False


@runtime_checkable
class Storage(Protocol):
    """Reads, creates, lists and deletes whole objects by location."""

    def read(self, location: str) -> bytes:
        """The whole object; raises ``MissingFileError`` naming a location that holds nothing.

        It is for metadata: what is no file (a device), or larger than metadata can be, is refused unread.
        """
        ...

    def open_input(self, location: str) -> BinaryIO:
        """A seekable binary file; raises ``MissingFileError``."""
        ...

    def create(self, location: str, data: bytes) -> None:
        """Writes a new object; raises ``FileAlreadyExistsError`` if one is there already.

        Args:
            location: where it is to be.
            data: all of its bytes.
        """
        ...

    def open_output(self, location: str) -> BinaryIO:
        """A new file open for writing; raises ``FileAlreadyExistsError``. Closing it makes it visible."""
        ...

    def creates_exclusively(self, location: str) -> bool:
        """Whether of several writers that create the object at once exactly one succeeds."""
        ...

    def exists(self, location: str) -> bool:
        """Whether an object (not a folder) is at the location."""
        ...

    def length(self, location: str) -> int:
        """The object's size in bytes; raises ``MissingFileError``."""
        ...

    def delete(self, location: str) -> None:
        """Removes the object; an absent one is not an error."""
        ...

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every object below the folder ``prefix``, recursively; none if the folder is absent."""
        ...


@runtime_checkable
class TellsRights(Protocol):
    """A storage that can tell, before anything is changed, whether an object could be deleted."""

    def check_right_to_delete(self, location: str) -> None:
        """Raises ``StorageDeniedError`` if this user certainly may not delete the object."""
        ...


@runtime_checkable
class HasFolders(Protocol):
    """A storage in which folders stay when their last file goes."""

    def delete_empty_folder(self, location: str) -> bool:
        """Deletes a folder if nothing is in it; returns whether it is gone, and never deletes what comes meanwhile."""
        ...


class Places:
    """The places of locations in a storage: locations are compared by these and by nothing else.

    Its lifetime is to be that of one operation. A folder is looked at once in it, and only that folder, not those that
    it is in. A storage that knows of links, nameservices or mounts has `place_of(location)`, and
    `leads_elsewhere(location, place)`: whether the last segment changes the place, its folder's with that segment.

    Args:
        storage: where they are; None if text has to do.
        respelled: changes a location first, for users who say which names are one.
    """

    def __init__(self, storage: Storage | None, respelled: Callable[[str], str] = str) -> None:
        place_of: Callable[[str], Place] = getattr(storage, "place_of", Place.of)
        self._leads_elsewhere: Callable[[str, Place], bool] | None = getattr(storage, "leads_elsewhere", None)
        self._place_of = place_of if respelled is str else lambda location: place_of(respelled(location))
        self._folders: dict[str, Place] = {}

    def of(self, location: str) -> Place:
        """The place of a file or folder, which need not be there.

        Args:
            location: in any spelling.
        """
        known, name = self._folder_of(location)
        if known is None:
            return self._place_of(location)
        place = known.child(name)
        if self._leads_elsewhere is not None and self._leads_elsewhere(location, place):
            return self._place_of(location)
        return place

    def folder_and_name(self, location: str) -> tuple[Place, str]:
        """The place of the folder that a file is in, and the file's name there; no name if it is a root.

        Args:
            location: in any spelling.
        """
        known, name = self._folder_of(location)
        if known is None or (self._leads_elsewhere is not None and self._leads_elsewhere(location, known.child(name))):
            place = self._place_of(location)
            return (place.parent, place.name) if place.path else (place, "")
        return known, name

    def _folder_of(self, location: str) -> tuple[Place | None, str]:
        """The folder before a location's last segment, and that segment; None if that is none by itself."""
        folder, _, name = location.rpartition("/")
        known = self._folders.get(folder)
        if known is None:
            if not folder or folder.endswith((":", ":/")):
                return None, name
            known = self._folders[folder] = self.of(folder)
        return (None if name in _NO_NAMES else known), name

    def anywhere(self, location: str) -> Place:
        """The place on whatever server it is: equal for any two locations that may be one. See `Place.anywhere`.

        Args:
            location: in any spelling.
        """
        return self.of(location).anywhere()


def same_place(one: str, other: str, storage: Storage) -> bool:
    """Whether two locations may be one file or folder; see `Place.anywhere`.

    Args:
        one, other: in any spelling.
        storage: where they are.
    """
    places = Places(storage)
    return places.anywhere(one) == places.anywhere(other)


_NO_NAMES = ("", ".", "..")


def read_limit_of(storage: Storage) -> ReadLimit:
    """The limit of the memory that the content of one file of a storage may take.

    Args:
        storage: where the file is.
    """
    limit: ReadLimit = getattr(storage, "read_limit", DEFAULT_LIMIT)
    return limit


@runtime_checkable
class PreviewsVersions(Protocol):
    """A storage that can show metadata of a format version that is still a draft in the form of the last one."""

    @property
    def is_previewing(self) -> bool:
        """Whether the storage's user asked for previews."""
        ...

    def of_table(self, location: str) -> Storage:
        """A view of the storage in which `read` gives the manifests and manifest lists of one table in that form.

        Args:
            location: of the table, to which paths in its metadata may be relative.
        """
        ...


def is_previewing(storage: Storage) -> bool:
    """Whether tables of a format version that is still a draft may be read from a storage.

    Args:
        storage: the storage.
    """
    return isinstance(storage, PreviewsVersions) and storage.is_previewing


@dataclass(frozen=True)
class _NamedFile:
    storage: Storage
    location: str

    def __len__(self) -> int:
        return self.storage.length(self.location)

    def __bool__(self) -> bool:
        return True

    def exists(self) -> bool:
        return self.storage.exists(self.location)


@dataclass(frozen=True)
class InputFile(_NamedFile):
    """A file to read, with PyIceberg's names."""

    def open(self, seekable: bool = True) -> BinaryIO:
        """The file open for reading; raises ``MissingFileError``. It is seekable in any case."""
        return self.storage.open_input(self.location)


@dataclass(frozen=True)
class OutputFile(_NamedFile):
    """A file to write, with PyIceberg's names."""

    def create(self, overwrite: bool = False) -> BinaryIO:
        """The file open for writing; it appears when it is closed.

        Args:
            overwrite: delete what is there first.

        Raises:
            FileAlreadyExistsError: it is there already.
        """
        if overwrite:
            self.storage.delete(self.location)
        return self.storage.open_output(self.location)

    def to_input_file(self) -> InputFile:
        """The file, opened for reading.

        Raises:
            MissingFileError: it was not written yet.
        """
        if not self.exists():
            raise MissingFileError(f"There is no file at {self.location}: it was not written yet")
        return InputFile(self.storage, self.location)


@dataclass(frozen=True)
class FileIO:
    """PyIceberg's `table.io`: a storage with PyIceberg's names; everything else is passed on to the storage."""

    storage: Storage

    @property
    def key_service(self) -> KeyService | None:
        """The key service of the storage's catalog; None if it has none."""
        return getattr(self.storage, "key_service", None)

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return InputFile(self.storage, location)

    def new_output(self, location: str) -> OutputFile:
        """A file to write."""
        return OutputFile(self.storage, location)

    def read(self, location: str) -> bytes:
        """The whole file; raises ``MissingFileError``."""
        return self.storage.read(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Removes a file; an absent one is not an error."""
        self.storage.delete(location if isinstance(location, str) else location.location)
