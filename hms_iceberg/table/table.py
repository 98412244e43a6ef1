"""A table of a catalog: reading, writing, and changing it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.writing.write import ArrowInput
from hms_iceberg.doors import door
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore
from hms_iceberg.spec.snapshots import MAIN_BRANCH
from hms_iceberg.storage import Storage
from hms_iceberg.table.file_changes import (
    AppendFiles,
    DeleteDataFiles,
    OverwriteFiles,
    RewriteDataFiles,
    RewriteManifestFiles,
)
from hms_iceberg.table.manage_snapshots import ExpireSnapshotsBuilder, ManageSnapshots, UpdateStatistics
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.table.row_delta_builder import NewRowDelta
from hms_iceberg.table.transaction import TableTransaction
from hms_iceberg.table.update_schema import UpdateSchema
from hms_iceberg.table.update_spec import UpdateSortOrder, UpdateSpec
from hms_iceberg.table.write_methods import RowWriteMethods
from hms_iceberg.transaction.metadata_files import read_version
from hms_iceberg.transaction.origin import Existing
from hms_iceberg.transaction.transaction import Transaction

if TYPE_CHECKING:
    from hms_iceberg.catalog.catalog import Catalog
    from hms_iceberg.maintenance.table_maintenance import TableMaintenance

# How long a version counts as the current one, for a first attempt to commit that does not look for a newer one.
_VERIFIED_SECONDS = 1.0


class Table(ReadableTable, RowWriteMethods):
    """An Iceberg table of a catalog, at the version that was loaded; commits move it to the version they made."""

    def __init__(
        self,
        identifier: Identifier,
        version: MetadataVersion,
        metastore: Metastore,
        storage: Storage,
        catalog_name: str = "",
        catalog: Catalog | None = None,
    ) -> None:
        super().__init__(identifier, version, storage)
        self.metastore = metastore
        self.catalog_name = catalog_name
        self.catalog = catalog
        self._verified_at = time.monotonic()
        self._alone = True

    @property
    def config(self) -> dict[str, str]:
        """The properties of the catalog that the table was loaded from."""
        return {} if self.catalog is None else dict(self.catalog.properties)

    @property
    def maintenance(self) -> TableMaintenance:
        """Care of the table: `table.maintenance.expire_snapshots()`."""
        maintenance: TableMaintenance = door("table.maintenance")(self)
        return maintenance

    def refresh(self) -> Table:
        """Moves this object to the table's newest version, and returns it.

        Raises:
            NoSuchTableError: the table was dropped.
        """
        pointer = self.metastore.load(self._identifier)
        if pointer.metadata_location != self._version.location:
            self._version = read_version(pointer.metadata_location, self.storage)
        self._verified_at = time.monotonic()
        return self

    def transaction(self) -> TableTransaction:
        """A transaction on this version of the table."""
        return self._transaction()

    def _writing(self) -> TableTransaction:
        return self.transaction()

    def _transaction(self, autocommit: bool = False) -> TableTransaction:
        verified = self._alone and time.monotonic() - self._verified_at < _VERIFIED_SECONDS
        origin = Existing(self._version)
        transaction = Transaction(
            self._identifier, origin, self.metastore, self.storage, verified=verified, contended=not self._alone
        )
        return TableTransaction(transaction, self._moved, autocommit)

    def _moved(self, version: MetadataVersion) -> Table:
        """Follows a commit, and notes whether somebody else committed in between."""
        log = version.metadata.metadata_log
        before = self._version.location
        self._alone = version.location == before or bool(log and log[-1].metadata_file == before)
        self._version = version
        self._verified_at = time.monotonic()
        return self

    def append(
        self,
        df: ArrowInput,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Appends rows to the table.

        Columns are matched by name; missing optional ones are filled with their default or null. The rows are written
        as data files in the table's default spec and order, and committed as one snapshot.

        Args:
            df: an Arrow table, record batch or reader of batches (which need not fit into memory), or anything that
                hands out an Arrow stream (polars, DuckDB, pandas).
            snapshot_properties: keys for the snapshot's summary; `wap.id` and `wap.branch` as in `RowWriteMethods`.
            branch: the branch to append to; None stages the snapshot.

        Raises:
            SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit; nothing was written.
            CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
        """
        with self.transaction() as transaction:
            transaction.append(df, snapshot_properties, branch)

    # ---------------------------------------------------------------------------------------- definition

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Begins a change of the schema, which `commit()` or the end of a `with` block commits."""
        return self._transaction(autocommit=True).update_schema(allow_incompatible_changes, case_sensitive)

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Begins a change of the partition spec; see `update_schema`."""
        return self._transaction(autocommit=True).update_spec(case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:
        """Begins a new sort order; see `update_schema`."""
        return self._transaction(autocommit=True).update_sort_order(case_sensitive)

    def new_row_delta(self) -> NewRowDelta:
        """Begins a change that adds and deletes rows in one snapshot, by position or by key; see `update_schema`."""
        return self._transaction(autocommit=True).new_row_delta()

    def manage_snapshots(self) -> ManageSnapshots:
        """Begins changes of branches, tags and the current snapshot; see `update_schema`."""
        return self._transaction(autocommit=True).manage_snapshots()

    def expire_snapshots(self) -> ExpireSnapshotsBuilder:
        """Begins an expiry of snapshots; see `update_schema`. Files stay.

        `hms_iceberg.maintenance.expire_snapshots` deletes those that no snapshot needs any more.
        """
        return self._transaction(autocommit=True).expire_snapshots()

    # -------------------------------------------------------------------------------------------- files

    def new_append(self) -> AppendFiles:
        """Begins an append of data files, by which small manifests are merged; see `update_schema`."""
        return self._transaction(autocommit=True).new_append()

    def new_fast_append(self) -> AppendFiles:
        """Begins an append of data files that rewrites no manifest; see `update_schema`."""
        return self._transaction(autocommit=True).new_fast_append()

    def new_delete(self) -> DeleteDataFiles:
        """Begins a removal of whole data files; see `update_schema`."""
        return self._transaction(autocommit=True).new_delete()

    def new_overwrite(self) -> OverwriteFiles:
        """Begins a replacement of data files; see `update_schema`."""
        return self._transaction(autocommit=True).new_overwrite()

    def rewrite_files(self) -> RewriteDataFiles:
        """Begins a replacement of files by others with the same rows; see `update_schema`."""
        return self._transaction(autocommit=True).rewrite_files()

    def rewrite_manifests(self) -> RewriteManifestFiles:
        """Begins a rewriting of manifests; see `update_schema`."""
        return self._transaction(autocommit=True).rewrite_manifests()

    # --------------------------------------------------------------------------------------- properties

    def set_properties(self, properties: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Sets table properties; `format-version` upgrades the table's format."""
        with self.transaction() as transaction:
            transaction.set_properties(properties, **more)

    def remove_properties(self, *names: str) -> None:
        """Removes table properties; absent ones are ignored."""
        with self.transaction() as transaction:
            transaction.remove_properties(*names)

    def update_statistics(self) -> UpdateStatistics:
        """Begins changes of which statistics files belong to which snapshots; see `update_schema`."""
        return self._transaction(autocommit=True).update_statistics()

    def upgrade_table_version(self, format_version: int) -> None:
        """Upgrades the table's format; files and snapshots stay as they are. There is no way back."""
        with self.transaction() as transaction:
            transaction.upgrade_table_version(format_version)

    def update_location(self, location: str) -> None:
        """Makes new files go to another base location; files that exist stay where they are."""
        with self.transaction() as transaction:
            transaction.update_location(location)
