"""Tables by path, without a metastore: `v<V>.metadata.json` and `version-hint.text` in the metadata folder.

Committing version V+1 is creating its file, which only one writer can do. Source: Iceberg specification, "File System
Tables" (deprecated there, as it is not safe on object stores); file names as Iceberg Java's HadoopTables uses them.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.schema import from_arrow
from hms_iceberg.arrow.storage import ArrowStorage
from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    FileAlreadyExistsError,
    IcebergError,
    MissingFileError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer
from hms_iceberg.spec.metadata import DEFAULT_FORMAT_VERSION
from hms_iceberg.spec.metadata_changes import new_table_metadata, split_properties
from hms_iceberg.spec.partitioning import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sorting import UNSORTED, SortOrder
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.table.transaction import TableTransaction
from hms_iceberg.transaction.metadata_files import read_version
from hms_iceberg.transaction.origin import Created
from hms_iceberg.transaction.transaction import Transaction

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

HINT = "version-hint.text"
_VERSION_FILE = re.compile(r"(?:^|/)v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?$")
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
# Stores on which creating a file is not exclusive, so that two writers could both believe they committed.
_UNSAFE = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "hdfs", "viewfs"})


class FileSystemMetastore:
    """Implements `Metastore` over version files; a table's identifier is `(location,)`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._mutex = threading.Lock()
        self._queues: dict[str, threading.RLock] = {}

    def load(self, identifier: Identifier) -> TablePointer:
        """The newest version: that of the hint, or a later one that exists.

        Raises:
            NoSuchTableError: there is no version file.
        """
        folder = _metadata_folder(identifier)
        found = self._find(folder, self._start(folder))
        if found is None:
            raise NoSuchTableError(
                f"There is no table at {identifier[0]}: the folder {folder} has no v<number>.metadata.json. Check the "
                "path, or create the table."
            )
        return TablePointer(identifier, found[1])

    def _start(self, folder: str) -> int:
        """The version to look from: the hint's, or the highest in the folder where there is no usable hint."""
        with suppress(MissingFileError, ValueError):
            hinted = int(self._storage.read(f"{folder}/{HINT}").decode("ascii", "replace").strip())
            if self._existing(folder, hinted) is not None:
                return hinted
        numbers = (_VERSION_FILE.search(file.location) for file in self._storage.list(folder))
        return max((int(match.group(1)) for match in numbers if match), default=0)

    def _find(self, folder: str, version: int) -> tuple[int, str] | None:
        """The last version from `version` on without a gap, with its location."""
        found = None
        while (location := self._existing(folder, version)) is not None:
            found = (version, location)
            version += 1
        return found

    def _existing(self, folder: str, version: int) -> str | None:
        candidates = (f"{folder}/v{version}{suffix}" for suffix in _SUFFIXES)
        return next((location for location in candidates if self._storage.exists(location)), None)

    def swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        """Creates the file of the next version with the content of `new`; returns the version under its final name."""
        self._refuse_unsafe(identifier[0])
        folder = _metadata_folder(identifier)
        version = 1
        if base is not None:
            match = _VERSION_FILE.search(base.location)
            if match is None:
                raise UnsupportedError(
                    f"Cannot commit to the table at {identifier[0]}: {base.location} has no version."
                )
            version = int(match.group(1)) + 1
        elif (there := self._find(folder, self._start(folder))) is not None:
            raise TableAlreadyExistsError(f"Cannot create a table at {identifier[0]}: there is one ({there[1]}).")
        existing = self._existing(folder, version)
        if existing is not None:
            raise CommitFailedError(f"Cannot commit to the table at {identifier[0]}: {existing} exists already.")
        suffix = ".gz.metadata.json" if new.location.endswith(".gz.metadata.json") else ".metadata.json"
        location = f"{folder}/v{version}{suffix}"
        self._create(identifier, location, self._storage.read(new.location))
        self._write_hint(folder, version)
        return MetadataVersion(location, new.metadata)

    def _create(self, identifier: Identifier, location: str, content: bytes) -> None:
        try:
            self._storage.create(location, content)
        except FileAlreadyExistsError as error:
            raise CommitFailedError(f"Cannot commit to the table at {identifier[0]}: {error}") from error
        except StorageError as error:
            # Whether the file came to be is told by its content: it holds ids that were drawn for this commit.
            with contextlib.suppress(IcebergError):
                if self._storage.read(location) == content:
                    return
                raise CommitFailedError(f"Cannot commit to the table at {identifier[0]}: {error}") from error
            raise CommitStateUnknownError(
                f"Cannot tell whether {location} was created: {error} If it is there, the commit was made."
            ) from error

    def _write_hint(self, folder: str, version: int) -> None:
        """Says where to look first; a hint that is missing or old costs time and nothing else."""
        try:
            self._storage.delete(f"{folder}/{HINT}")
            self._storage.create(f"{folder}/{HINT}", str(version).encode("ascii"))
        except IcebergError as error:
            logger.info("Could not write %s/%s: %s", folder, HINT, error)

    def _refuse_unsafe(self, location: str) -> None:
        scheme = location.split("://", 1)[0].lower() if "://" in location else "file"
        if scheme in _UNSAFE:
            raise UnsupportedError(
                f"Cannot write the file system table at {location}: creating a file is not exclusive on {scheme}, so "
                "that a concurrent commit could be lost. Register the table in a catalog, and write it there."
            )

    @contextmanager
    def exclusive(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[None]:
        """Queues the writers of this process; there are no locks between processes."""
        with self._mutex:
            queue = self._queues.setdefault(identifier[0], threading.RLock())
        with queue:
            yield


def _metadata_folder(identifier: Identifier) -> str:
    return f"{identifier[0].rstrip('/')}/metadata"


class FileSystemTables:
    """Creates, loads and drops tables by their path; Iceberg Java calls them HadoopTables.

    >>> tables = FileSystemTables()
    >>> table = tables.create(schema, "/data/events")
    >>> table = tables.load("/data/events")
    """

    def __init__(self, properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> None:
        self.storage = storage or ArrowStorage(dict(properties or {}))
        self._metastore = FileSystemMetastore(self.storage)

    def exists(self, location: str) -> bool:
        """Whether there is a table at a path."""
        try:
            self._metastore.load(_identifier(location))
        except NoSuchTableError:
            return False
        return True

    def load(self, location: str) -> Table:
        """The table at a path.

        Raises:
            NoSuchTableError: there is none.
            CorruptMetadataError: its newest metadata file cannot be read.
        """
        identifier = _identifier(location)
        pointer = self._metastore.load(identifier)
        return self._table(identifier, read_version(pointer.metadata_location, self.storage))

    def create(
        self,
        schema: Schema | pa.Schema,
        location: str,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, Any] | None = None,
    ) -> Table:
        """Creates an empty table at a path; arguments as of `Catalog.create_table`.

        Raises:
            TableAlreadyExistsError: there is one.
        """
        identifier = _identifier(location)
        version = split_properties(properties or {})[1] or DEFAULT_FORMAT_VERSION
        metadata = new_table_metadata(
            schema=schema if isinstance(schema, Schema) else from_arrow(schema, format_version=version),
            spec=partition_spec,
            sort_order=sort_order,
            location=identifier[0],
            properties=properties,
        )
        if self.exists(location):
            raise TableAlreadyExistsError(f"Cannot create a table at {location}: there is one. Load it.")
        transaction = Transaction(identifier, Created(metadata), self._metastore, self.storage)
        return TableTransaction(transaction, lambda made: self._table(identifier, made)).commit_transaction()

    def drop(self, location: str) -> None:
        """Deletes a table with every file below its path.

        Raises:
            NoSuchTableError: there is none.
        """
        identifier = _identifier(location)
        self._metastore.load(identifier)
        for file in list(self.storage.list(identifier[0])):
            self.storage.delete(file.location)

    def _table(self, identifier: Identifier, version: MetadataVersion) -> Table:
        return Table(identifier, version, self._metastore, self.storage)


def _identifier(location: str) -> Identifier:
    return (location.rstrip("/"),)
