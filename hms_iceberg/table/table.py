"""A table of a catalog: reading, writing, and changing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hms_iceberg.hooks import Hook
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore
from hms_iceberg.storage import Storage
from hms_iceberg.table.changes.change_methods import ChangeMethods
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.write_methods import RowWriteMethods
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.table.table_transaction import TableTransaction
from hms_iceberg.transaction.retry import Freshness
from hms_iceberg.transaction.transaction import Existing, Transaction
from hms_iceberg.transaction.workspace import read_version

if TYPE_CHECKING:
    from hms_iceberg.catalog.catalog import Catalog
    from hms_iceberg.maintenance.table_maintenance import TableMaintenance

MAINTENANCE: Hook[[Table], TableMaintenance] = Hook("hms_iceberg.maintenance.table_maintenance")


class Table(ReadableTable, RowWriteMethods, ChangeMethods):
    """An Iceberg table of a catalog, at the version that was loaded; commits move it to the version they made."""

    def __init__(
        self,
        identifier: Identifier,
        version: MetadataVersion,
        metastore: Metastore,
        storage: Storage,
        catalog_name: str = "",
        catalog: Catalog | None = None,
        freshness: Freshness | None = None,
    ) -> None:
        super().__init__(identifier, version, storage)
        self.metastore = metastore
        self.catalog_name = catalog_name
        self.catalog = catalog
        self._freshness = freshness or Freshness()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, a table is its catalog, its name and its version; unpickled, it connects anew and is that version.

        Raises:
            TypeError: it is of no catalog, so that nothing says how to connect.
        """
        if self.catalog is None:
            raise TypeError(f"Cannot pickle table {'.'.join(self._identifier)}: it was not loaded from a catalog.")
        return _at_version, (self.catalog, self._identifier, self.metadata_location)

    @property
    def config(self) -> dict[str, str]:
        """The properties of the catalog that the table was loaded from."""
        return {} if self.catalog is None else dict(self.catalog.properties)

    @property
    def maintenance(self) -> TableMaintenance:
        """Care of the table: `table.maintenance.expire_snapshots()`."""
        return MAINTENANCE(self)

    def refresh(self) -> Table:
        """Moves this object to the table's newest version, and returns it.

        Raises:
            NoSuchTableError: the table was dropped.
        """
        pointer = self.metastore.load(self._identifier)
        if pointer.metadata_location != self._version.location:
            self._version = read_version(pointer.metadata_location, self.storage)
        self._freshness = self._freshness.renewed()
        return self

    def transaction(self) -> TableTransaction:
        """A transaction on this version of the table."""
        return self._transaction()

    def _writing(self) -> TableTransaction:
        return self.transaction()

    def _begin(self) -> StartedChange:
        return self._transaction(autocommit=True)._begin()

    def _transaction(self, autocommit: bool = False) -> TableTransaction:
        transaction = Transaction(
            self._identifier,
            Existing(self._version),
            self.metastore,
            self.storage,
            first=self._freshness.first_approach(),
        )
        return TableTransaction(transaction, self._moved, autocommit)

    def _moved(self, version: MetadataVersion) -> Table:
        """Follows a commit, and notes whether somebody else committed in between."""
        log = version.metadata.metadata_log
        before = self._version.location
        is_next = version.location == before or bool(log and log[-1].metadata_file == before)
        self._freshness = Freshness(is_contended=not is_next)
        self._version = version
        return self


def _at_version(catalog: Catalog, identifier: Identifier, location: str) -> Table:
    """A table of a catalog, at the version that a metadata file holds."""
    table = catalog.load_table(identifier)
    if table.metadata_location != location:
        table._version = read_version(location, table.storage)
    return table
