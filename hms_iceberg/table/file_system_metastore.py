"""The metastore of tables that are folders: `v<V>.metadata.json` and `version-hint.text` in the metadata folder.

Committing version V+1 is creating its file, which only one writer can do. Source: Iceberg specification, "File System
Tables" (deprecated there, as it is not safe on object stores); file names as Iceberg Java's HadoopTables uses them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TypeVar

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    CorruptMetadataError,
    MissingFileError,
    NoSuchTableError,
    StaleBaseError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer
from hms_iceberg.spec.metadata.metadata_json import compress, uncompressed
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.table_properties import METADATA_COMPRESSION, METADATA_PATH
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.version_files import HINT, VersionDamage, VersionFile, VersionFiles, version_number
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)
_COMPRESSED = ".gz.metadata.json"
Self = TypeVar("Self", bound="FileSystemMetastore")


class FileSystemMetastore:
    """Implements `Metastore` over version files; a table's identifier is `(location,)`. Iceberg Java renames where this
    creates a file, which is not exclusive on a local disk: both should not commit to one table at a time."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._mutex = threading.Lock()
        self._queues: dict[Place, threading.Lock] = {}
        self._is_repairing = False

    def load(self, identifier: Identifier) -> TablePointer:
        """The newest version: that of the hint, or a later one that exists."""
        folder = self.location_of(identifier)
        return TablePointer(identifier, self._current(identifier).location, location=folder, is_folder=True)

    def location_of(self, identifier: Identifier) -> str:
        """The table's folder."""
        return identifier[0].rstrip("/")

    def _folder(self, identifier: Identifier) -> str:
        return f"{self.location_of(identifier)}/metadata"

    def _files(self, identifier: Identifier) -> VersionFiles:
        return VersionFiles(self._storage, self._folder(identifier))

    def for_repair(self: Self) -> Self:
        """The tables, each at the newest version that is there, whatever its hint says and its file holds."""
        other = copy(self)
        other._is_repairing = True
        return other

    def damage(self, identifier: Identifier) -> VersionDamage | None:
        """The damage that keeps readers of a table from its newest version; None for none."""
        return self._files(identifier).damage()

    def _current(self, identifier: Identifier) -> VersionFile:
        files = self._files(identifier)
        found = files.newest() if self._is_repairing else files.current()
        if found is None:
            raise NoSuchTableError(
                f"There is no table at {self.location_of(identifier)}: the folder {self._folder(identifier)} has no "
                "v<number>.metadata.json. Check the path, or create the table."
            )
        return found

    def swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        """Creates the file of the next version, and returns it under its final name. After a StaleBaseError or
        CommitFailedError another version is current, or the next one was created meanwhile."""
        table = self.location_of(identifier)
        self._refuse_unsafe(table)
        _refuse_elsewhere(table, new.metadata, Places(self._storage))
        folder = self._folder(identifier)
        version = self._next_version(identifier, base)
        files = self._files(identifier)
        later = files.existing(version + 1)
        existing = files.existing(version)
        if later is not None and existing is None:
            raise CorruptMetadataError(
                f"Cannot commit to the table at {table}: version {version} is missing before {later}, which would hide "
                "the commit. See what `hms-iceberg repair` would do."
            )
        if existing is not None:
            raise CommitFailedError(f"Cannot commit to the table at {table}: {existing} exists already.")
        location = f"{folder}/v{version}{_suffix(base)}"
        self._create(table, location, self._content(new, location))
        self._write_hint(folder, version)
        return MetadataVersion(location, new.metadata)

    def _refuse_unsafe(self, table: str) -> None:
        if not self._storage.creates_exclusively(table):
            scheme = parse_location(table).scheme
            remedy = " or leave the property hdfs.client out" if scheme in ("hdfs", "viewfs") else ""
            raise UnsupportedError(
                f"Cannot write the file system table at {table}: creating a file is not exclusive on {scheme}, so "
                f"that a concurrent commit could be lost. Register the table in a catalog, and write it there{remedy}."
            )

    def _next_version(self, identifier: Identifier, base: MetadataVersion | None) -> int:
        """The version after `base`, which must be the current one: later ones may be deleted and their names free."""
        table = self.location_of(identifier)
        try:
            number, location = self._current(identifier)
        except NoSuchTableError:
            if base is not None:
                raise
            return 1
        if base is None:
            raise TableAlreadyExistsError(f"Cannot create a table at {table}: there is one ({location}).")
        if number != _version_of(table, base.location):
            raise StaleBaseError(
                f"Cannot commit to the table at {table}: its current version is {location}, not {base.location}."
            )
        # Whoever repairs the table gives what its file should hold.
        if not self._is_repairing and read_version(location, self._storage).identity[1:] != base.identity[1:]:
            raise StaleBaseError(
                f"Cannot commit to the table at {table}: it was dropped, and another one was created in its place."
            )
        return number + 1

    def _content(self, new: MetadataVersion, location: str) -> bytes:
        """The content of `new` for a file of that name, compressed as the name says."""
        written = self._storage.read(new.location)
        if new.location.endswith(_COMPRESSED) == location.endswith(_COMPRESSED):
            return written
        return compress(written) if location.endswith(_COMPRESSED) else uncompressed(written)

    def _create(self, table: str, location: str, content: bytes) -> None:
        try:
            self._storage.create(location, content)
        except Exception as error:
            # Whose file is there is told by its content: a file server may carry out a request, lose the answer, and
            # report the repeated request as a conflict with our own file.
            try:
                there = self._storage.read(location)
            except MissingFileError:
                raise error from None
            except Exception as failed:
                raise CommitStateUnknownError(
                    f"Cannot tell whether {location} was created: {error} If it is there, the commit was made."
                ) from failed
            if there != content:
                raise CommitFailedError(f"Cannot commit to the table at {table}: {error}") from error

    def _write_hint(self, folder: str, version: int) -> None:
        """Writes the version hint, where readers look first; a missing or old hint only costs them time."""
        try:
            # Hadoop's checksum of the hint that it wrote would make it refuse ours.
            self._storage.delete(f"{folder}/.{HINT}.crc")
            self._storage.delete(f"{folder}/{HINT}")
            self._storage.create(f"{folder}/{HINT}", str(version).encode("ascii"))
        except Exception as error:  # the commit is made
            logger.info("Could not write %s/%s: %s", folder, HINT, error)

    def shows(self, location: str, new: MetadataVersion) -> bool:
        """Whether the version file at `location` has the content of `new` as it was written before its commit."""
        try:
            return location == new.location or self._storage.read(location) == self._content(new, location)
        except MissingFileError:
            return False

    @contextmanager
    def lease(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[FileSystemLease]:
        """Opens a lease for one commit; there are no locks between processes."""
        place = Places(self._storage).of(self.location_of(identifier))
        with self._mutex:
            queue = self._queues.setdefault(place, threading.Lock())
        lease = FileSystemLease(self, identifier, queue)
        try:
            yield lease
        finally:
            lease.release()


class FileSystemLease:
    """Implements `Lease` over version files: the writers of this process come one after the other."""

    blocks_others = False
    refuses_late = True  # the file of the next version is there then

    def __init__(self, metastore: FileSystemMetastore, identifier: Identifier, queue: threading.Lock) -> None:
        self._metastore = metastore
        self._identifier = identifier
        self._queue = queue
        self._is_held = False

    def load(self) -> TablePointer:
        return self._metastore.load(self._identifier)

    def acquire(self) -> None:
        """Waits for the other writers of this process."""
        if not self._is_held:
            self._is_held = self._queue.acquire()

    def swap(self, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        """Creates the file of the next version; a lost commit leaves the queue of this process."""
        try:
            return self._metastore.swap(self._identifier, base, new)
        except CommitFailedError:
            self.release()
            raise

    def release(self) -> None:
        """Lets the next writer of this process in."""
        if self._is_held:
            self._is_held = False
            self._queue.release()


def _suffix(base: MetadataVersion | None) -> str:
    """The end of the name of the version after `base`, which all who commit to `base` have to agree on, or both would
    succeed. So a new compression codec counts from the second version on that has it."""
    is_compressed = base is not None and METADATA_COMPRESSION.of(base.metadata.properties) == "gzip"
    return _COMPRESSED if is_compressed else ".metadata.json"


def _version_of(table: str, location: str) -> int:
    number = version_number(location)
    if number is None:
        raise UnsupportedError(
            f"Cannot commit to the table at {table}: its metadata file {location} has no version in its name. Expected "
            "v<number>.metadata.json; write the table through the catalog that it belongs to."
        )
    return number


def _refuse_elsewhere(table: str, metadata: TableMetadata, places: Places) -> None:
    """Refuses metadata of another location than the folder: readers of the folder would not find files there."""
    if places.of(table) != places.of(metadata.location):
        raise UnsupportedError(
            f"Cannot give the table at {table} the location {metadata.location}: a file system table is its folder, "
            "and cannot be elsewhere. Leave the location out, or use another catalog."
        )
    if METADATA_PATH.name in metadata.properties:
        raise UnsupportedError(
            f"Cannot set {METADATA_PATH.name} on the table at {table}: readers of a file system table look for its "
            "metadata in its own folder. Remove the property."
        )
