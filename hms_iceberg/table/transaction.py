"""A transaction as its user holds it: several changes that become part of a table together, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.writing.write import ArrowInput
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.spec.metadata.metadata_changes import FORMAT_VERSION_PROPERTY
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots import MAIN_BRANCH
from hms_iceberg.spec.table_properties import bool_property
from hms_iceberg.table.change_options import ChangeOptions
from hms_iceberg.table.file_changes import (
    AppendFiles,
    DeleteDataFiles,
    OverwriteFiles,
    RewriteDataFiles,
    RewriteManifestFiles,
)
from hms_iceberg.table.manage_snapshots import ExpireSnapshotsBuilder, ManageSnapshots, UpdateStatistics
from hms_iceberg.table.row_delta_builder import NewRowDelta
from hms_iceberg.table.update_schema import UpdateSchema
from hms_iceberg.table.update_snapshot import UpdateSnapshot
from hms_iceberg.table.update_spec import UpdateSortOrder, UpdateSpec
from hms_iceberg.table.write_methods import RowWriteMethods
from hms_iceberg.table.writes import write_rows
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.append import FastAppend
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.merge_append import MergeAppend
from hms_iceberg.updates.properties import SetProperties
from hms_iceberg.updates.table_settings import SetLocation

if TYPE_CHECKING:
    from hms_iceberg.table.table import Table


# Merging on append is asked for by the property, as in PyIceberg; other changes merge unless it is switched off.
MERGE_ON_APPEND = ("commit.manifest-merge.enabled", False)


class TableTransaction(RowWriteMethods):
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

    def _finish(self) -> None:
        if self._autocommit:
            self.commit_transaction()

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

    def abandon(self) -> None:
        """Gives the changes up and deletes the files written for them."""
        self._transaction.abandon()

    def append(
        self,
        df: ArrowInput,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = MAIN_BRANCH,
    ) -> TableTransaction:
        """Appends rows; see `Table.append`."""
        options = ChangeOptions.of(self._transaction.metadata, snapshot_properties, branch)
        files = write_rows(self._transaction, df)
        merging = bool_property(self._transaction.metadata.properties, MERGE_ON_APPEND)
        kind = MergeAppend if merging else FastAppend
        self._transaction.add(kind(files, **options.update_fields()), preview=False)
        return self

    def add_data_files(
        self,
        files: Sequence[DataFile],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = MAIN_BRANCH,
    ) -> TableTransaction:
        """Appends data files that exist already, described as manifests do; giving up leaves them where they are."""
        options = ChangeOptions.of(self._transaction.metadata, snapshot_properties, branch)
        self._transaction.add(FastAppend(tuple(files), **options.update_fields()), preview=False)
        return self

    def add(self, update: Update) -> TableTransaction:
        """Adds any pending update, such as those of `hms_iceberg.updates`."""
        self._transaction.add(update)
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
        return UpdateSnapshot(self._transaction, self._finish, options)

    def new_append(self) -> AppendFiles:
        """Begins an append of data files, by which small manifests are merged."""
        return AppendFiles(self._transaction, self._finish, merging=True)

    def new_fast_append(self) -> AppendFiles:
        """Begins an append of data files that rewrites no manifest."""
        return AppendFiles(self._transaction, self._finish, merging=False)

    def new_delete(self) -> DeleteDataFiles:
        """Begins a removal of whole data files."""
        return DeleteDataFiles(self._transaction, self._finish)

    def new_overwrite(self) -> OverwriteFiles:
        """Begins a replacement of data files."""
        return OverwriteFiles(self._transaction, self._finish)

    def rewrite_files(self) -> RewriteDataFiles:
        """Begins a replacement of files by others with the same rows."""
        return RewriteDataFiles(self._transaction, self._finish)

    def rewrite_manifests(self) -> RewriteManifestFiles:
        """Begins a rewriting of manifests."""
        return RewriteManifestFiles(self._transaction, self._finish)

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Begins a change of the schema; it is part of the transaction when it is committed."""
        return UpdateSchema(self._transaction, self._finish, allow_incompatible_changes, case_sensitive)

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Begins a change of the partition spec."""
        return UpdateSpec(self._transaction, self._finish, case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:
        """Begins a new sort order."""
        return UpdateSortOrder(self._transaction, self._finish, case_sensitive)

    def new_row_delta(self) -> NewRowDelta:
        """Begins a change that adds rows, position deletes and equality deletes in one snapshot."""
        return NewRowDelta(self._transaction, self._finish, self._autocommit)

    def manage_snapshots(self) -> ManageSnapshots:
        """Begins changes of branches, tags and the current snapshot."""
        return ManageSnapshots(self._transaction, self._finish)

    def expire_snapshots(self) -> ExpireSnapshotsBuilder:
        """Begins an expiry of snapshots."""
        return ExpireSnapshotsBuilder(self._transaction, self._finish)

    def update_statistics(self) -> UpdateStatistics:
        """Begins changes of which statistics files belong to which snapshots."""
        return UpdateStatistics(self._transaction, self._finish)

    def upgrade_table_version(self, format_version: int) -> TableTransaction:
        """Upgrades the table's format; files and snapshots stay as they are. There is no way back.

        Raises:
            InvalidInputError: the version is below the table's.
        """
        return self.set_properties({FORMAT_VERSION_PROPERTY: format_version})

    def update_location(self, location: str) -> TableTransaction:
        """Makes new files go to another base location; files that exist stay where they are."""
        self._transaction.add(SetLocation(location))
        return self

    def set_properties(self, properties: Mapping[str, Any] | None = None, **more: Any) -> TableTransaction:
        """Sets table properties; `format-version` upgrades the table's format."""
        updates = {key: _text(value) for key, value in {**(properties or {}), **more}.items()}
        self._transaction.add(SetProperties(updates=updates))
        return self

    def remove_properties(self, *names: str) -> TableTransaction:
        """Removes table properties; absent ones are ignored."""
        self._transaction.add(SetProperties(removals=frozenset(names)))
        return self


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value
