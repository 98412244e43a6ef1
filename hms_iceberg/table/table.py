"""A table of a catalog: reading, writing and changing it, also by a transaction of several changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hms_iceberg.hooks import Hook
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage
from hms_iceberg.table.changes.change_methods import ChangeMethods
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.row_change import ChangeOptions
from hms_iceberg.table.changes.update_snapshot import UpdateSnapshot
from hms_iceberg.table.changes.write_methods import RowWriteMethods
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.transaction.outcome import Freshness
from hms_iceberg.transaction.transaction import Existing, Transaction
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.rows.append import FastAppend

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


class TableTransaction(RowWriteMethods, ChangeMethods):
    """Collects changes of one table. As a context manager it commits at the end, and on an error gives up.

    >>> with table.transaction() as transaction:
    ...     transaction.append(rows)
    ...     transaction.set_properties({"owner": "billing"})
    """

    def __init__(
        self, transaction: Transaction, on_commit: Callable[[MetadataVersion], Table], autocommit: bool = False
    ) -> None:
        self._transaction = transaction
        self._on_commit = on_commit
        self._autocommit = autocommit

    def _writing(self) -> AbstractContextManager[TableTransaction]:
        return nullcontext(self)

    def _begin(self) -> StartedChange:
        return StartedChange(self._transaction, self.commit_transaction if self._autocommit else None)

    def __enter__(self) -> TableTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit_transaction()
        else:
            self.abandon()

    @property
    def metadata(self) -> TableMetadata:
        """The table as the changes so far would leave it."""
        return self._transaction.metadata

    @property
    def table_metadata(self) -> TableMetadata:
        """PyIceberg's name of `metadata`."""
        return self.metadata

    def commit_transaction(self) -> Table:
        """Commits all changes as one new version of the table, and returns the table at that version.

        Raises:
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `Transaction.commit`.
        """
        return self._on_commit(self._transaction.commit())

    def name_files_after(self, commit_id: str) -> None:
        """Has manifests and manifest lists carry this id in their names, so that they can be told after a crash.

        Args:
            commit_id: an id that no other commit has.
        """
        self._transaction.workspace.commit_id = commit_id

    def abandon(self) -> None:
        """Gives the changes up and deletes the files written for them."""
        self._transaction.abandon()

    def add_data_files(
        self,
        files: Sequence[DataFile],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = MAIN_BRANCH,
    ) -> TableTransaction:
        """Appends data files that exist already, described as manifests do; giving up leaves them where they are.

        Args:
            files: the files, with their metrics and partitions.
            snapshot_properties: entries for the snapshot's summary.
            branch: the branch; None stages the snapshot.
        """
        options = ChangeOptions.of(self._transaction.metadata, snapshot_properties, branch)
        self._transaction.add(FastAppend(tuple(files), **options.update_fields()), preview=False)
        return self

    def update_snapshot(
        self, snapshot_properties: Mapping[str, str] | None = None, branch: str | None = MAIN_BRANCH
    ) -> UpdateSnapshot:
        """Begins a change of whole files: `update_snapshot().fast_append()` and others.

        Args:
            snapshot_properties: keys for the snapshot's summary.
            branch: the branch to change; None stages the snapshot.
        """
        options = ChangeOptions.of(self._transaction.metadata, snapshot_properties, branch)
        return UpdateSnapshot(self._begin(), options)
