"""A transaction as its user holds it: several changes that become part of a table together, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING

from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.table.changes.change_methods import ChangeMethods
from hms_iceberg.table.changes.change_options import ChangeOptions
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.update_snapshot import UpdateSnapshot
from hms_iceberg.table.changes.write_methods import RowWriteMethods
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.rows.append import FastAppend

if TYPE_CHECKING:
    from hms_iceberg.table.table import Table


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
        """Appends data files that exist already, described as manifests do; giving up leaves them where they are."""
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
