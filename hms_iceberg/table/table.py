"""A table of a catalog: reading, writing, and changing it."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.write import ArrowInput
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore
from hms_iceberg.storage import Storage
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.table.transaction import TableTransaction
from hms_iceberg.transaction.metadata_files import read_version
from hms_iceberg.transaction.origin import Existing
from hms_iceberg.transaction.transaction import Transaction


class Table(ReadableTable):
    """An Iceberg table of a catalog, at the version that was loaded; commits move it to the version they made."""

    def __init__(
        self,
        identifier: Identifier,
        version: MetadataVersion,
        metastore: Metastore,
        storage: Storage,
        catalog_name: str = "",
    ) -> None:
        super().__init__(identifier, version, storage)
        self.metastore = metastore
        self.catalog_name = catalog_name

    def refresh(self) -> Table:
        """Moves this object to the table's newest version, and returns it.

        Raises:
            NoSuchTableError: the table was dropped.
        """
        pointer = self.metastore.load(self._identifier)
        if pointer.metadata_location != self._version.location:
            self._version = read_version(pointer.metadata_location, self.storage)
        return self

    def transaction(self) -> TableTransaction:
        """A transaction on this version of the table."""
        transaction = Transaction(self._identifier, Existing(self._version), self.metastore, self.storage)
        return TableTransaction(transaction, self._moved)

    def _moved(self, version: MetadataVersion) -> Table:
        self._version = version
        return self

    def append(
        self,
        rows: ArrowInput,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> None:
        """Appends rows to the table.

        Columns are matched by name; missing optional ones are filled with their default or null. The rows are written
        as data files in the table's default spec and order, and committed as one snapshot.

        Args:
            rows: an Arrow table, record batch or reader of batches (which need not fit into memory), or anything that
                hands out an Arrow stream (polars, DuckDB, pandas).
            snapshot_properties: keys for the snapshot's summary.
            branch: the branch to append to; by default main.

        Raises:
            SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit; nothing was written.
            CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
        """
        with self.transaction() as transaction:
            transaction.append(rows, snapshot_properties, branch)
