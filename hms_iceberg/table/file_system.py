"""Tables by their path, without a metastore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import NoSuchTableError, TableAlreadyExistsError
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.scan.manifests.cache import planning_ready
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.changes.table_definition import TableDefinition
from hms_iceberg.table.file_system_metastore import FileSystemMetastore
from hms_iceberg.table.needed_files.named_files import delete_files
from hms_iceberg.table.needed_files.nearby_tables import Search
from hms_iceberg.table.table import Table, TableTransaction
from hms_iceberg.transaction.retry import Freshness
from hms_iceberg.transaction.transaction import Created, Transaction
from hms_iceberg.transaction.workspace import read_current, read_version

if TYPE_CHECKING:
    import pyarrow as pa


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
        with planning_ready():
            pointer = self._metastore.load(identifier)
            return self._table(identifier, read_current(pointer, self.storage))

    def table_at(self, location: str, version: MetadataVersion, seen_at: float | None = None) -> Table:
        """The table at a path, at a version that was read before; see `Catalog.table_at`.

        Args:
            location: the table's folder.
            version: the version of the table.
            seen_at: when the version was the newest one (`time.monotonic`), if that is known.

        Returns:
            a table that looks at `version` until it is refreshed or changed.
        """
        return self._table(_identifier(location), version, Freshness.of(seen_at))

    def create(
        self,
        schema: Schema | pa.Schema,
        location: str,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, Any] | None = None,
    ) -> Table:
        """Creates an empty table at a path; arguments as of `Catalog.create_table`.

        Args:
            schema, location, partition_spec, sort_order, properties: as `Catalog.create_table` takes
                them.

        Returns:
            the table in its first version, without a snapshot.

        Raises:
            TableAlreadyExistsError: there is one.
            InvalidInputError: schema, spec and order do not fit each other.
        """
        identifier = _identifier(location)
        definition = TableDefinition(schema, identifier[0], partition_spec, sort_order, properties).resolved({})
        metadata = definition.new_metadata()
        if self.exists(location):
            raise TableAlreadyExistsError(f"Cannot create a table at {location}: there is one. Load it.")
        transaction = Transaction(identifier, Created(metadata), self._metastore, self.storage)
        return TableTransaction(transaction, lambda made: self._table(identifier, made)).commit_transaction()

    def drop(self, location: str) -> None:
        """Deletes a table with every file below its path.

        Raises:
            NoSuchTableError: there is none.
            UnsupportedError: files of other tables are below it.
        """
        identifier = _identifier(location)
        version = read_version(self._metastore.load(identifier).metadata_location, self.storage)
        listed = list(self.storage.list(identifier[0]))
        search = Search(identifier, version.metadata, version.location, identifier[0], Places(self.storage))
        search.in_listing(listed, self.storage)
        search.found().refuse(f"drop the table at {location}")
        delete_files(self.storage, (file.location for file in listed if not file.is_linked), location)

    def _table(self, identifier: Identifier, version: MetadataVersion, freshness: Freshness | None = None) -> Table:
        return Table(identifier, version, self._metastore, self.storage, freshness=freshness)


def _identifier(location: str) -> Identifier:
    return (location.rstrip("/"),)
