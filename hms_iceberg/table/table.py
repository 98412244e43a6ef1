"""A table of a catalog, and the methods that write its rows; transactions have these methods too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from hms_iceberg.arrow.writing.given_rows import ArrowInput
from hms_iceberg.errors import CommitConflictError, NoSuchTableError, UnsupportedError
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.hooks import Hook
from hms_iceberg.metastore import Identifier, MetadataVersion, Metastore
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_json import is_never_reused
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage
from hms_iceberg.table.change_events.apply_changes import AppliedChanges, ApplyOptions, apply_events, source_reader
from hms_iceberg.table.change_events.events import ChangeEvents, EventColumns, is_of_spark
from hms_iceberg.table.changes.assignments import UpdateResult, update_rows
from hms_iceberg.table.changes.change_methods import ChangeMethods
from hms_iceberg.table.changes.file_changes import UpdateSnapshot, add_files
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.row_change import (
    BY_COST,
    ChangeOptions,
    append_rows,
    delete_rows,
    overwrite_rows,
    replace_partitions,
)
from hms_iceberg.table.changes.upsert import UpsertResult, upsert_rows
from hms_iceberg.table.readable import ReadableTable
from hms_iceberg.transaction.retry import Freshness, commit_policy
from hms_iceberg.transaction.transaction import Existing, Transaction
from hms_iceberg.transaction.workspace import read_current, read_version
from hms_iceberg.updates.applied_offsets import applied_offsets
from hms_iceberg.updates.rows.append import FastAppend

if TYPE_CHECKING:
    from hms_iceberg.catalog.catalog import Catalog
    from hms_iceberg.maintenance.erasure.erasure_plan import ErasureResult
    from hms_iceberg.maintenance.table_maintenance import TableMaintenance


ALWAYS_TRUE = AlwaysTrue()
Self = TypeVar("Self", bound="RowWriteMethods")
T = TypeVar("T")


class RowWriteMethods(ABC):
    """Methods that write rows; each makes one snapshot, of the transaction, or of the table, which is committed at
    once.

    `branch=None` stages the snapshot: it becomes part of the table and of no branch, until
    `manage_snapshots().cherrypick(…)` publishes it.

    In a table of property `write.wap.enabled`, `snapshot_properties={"wap.id": "…"}` stages the snapshot, to be looked
    at and published with `manage_snapshots().cherrypick(…)`; `{"wap.branch": "…"}` writes to that branch instead.
    """

    @abstractmethod
    def _writing(self) -> AbstractContextManager[TableTransaction]: ...

    def append(
        self: Self,
        df: ArrowInput,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = MAIN_BRANCH,
    ) -> Self:
        """Appends rows to the table.

        Columns are matched by name; missing optional ones are filled with their default or null. The rows are written
        as data files in the table's default spec and order, and committed as one snapshot.

        Args:
            df: an Arrow table, record batch or reader of batches (which need not fit into memory), or anything that
                hands out an Arrow stream (polars, DuckDB, pandas).
            snapshot_properties: keys for the snapshot's summary.
            branch: the branch to append to; None stages the snapshot.

        Returns:
            This object.

        Raises:
            SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit; nothing was written.
            CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            append_rows(_inner(transaction), df, _options(transaction, snapshot_properties, True, branch))
        return self

    def delete(
        self,
        delete_filter: str | BooleanExpression = ALWAYS_TRUE,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Deletes the rows that match a filter.

        Files of which partition or metrics prove that every row matches are removed without being read. Of the others,
        `write.delete.mode` says how rows go: `copy-on-write` (the default) rewrites the files, `merge-on-read` writes
        position deletes (format version 2) or deletion vectors (3). A delete of whole files replays on whatever a
        concurrent commit left; otherwise `write.delete.isolation-level` says which concurrent commits are refused.

        Args:
            delete_filter: which rows, all unless given.
            snapshot_properties: keys for the snapshot's summary.
            case_sensitive: whether the filter names columns in their case.
            branch: the branch to change; None stages the snapshot.

        Raises:
            ExpressionParseError, UnknownColumnError, TypeMismatchError: the filter cannot be read, or does not fit the
                table.
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            delete_rows(
                _inner(transaction), delete_filter, _options(transaction, snapshot_properties, case_sensitive, branch)
            )

    def overwrite(
        self,
        df: ArrowInput,
        overwrite_filter: str | BooleanExpression = ALWAYS_TRUE,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Replaces the rows that match a filter, all unless it is given, by other rows, in one snapshot.

        Old rows go as `delete` removes them, and so does what a concurrent commit added if whole files go; the new
        ones need not match the filter.

        Args:
            df: the new rows, as of `append`.
            overwrite_filter: which rows they replace.
            snapshot_properties: keys for the snapshot's summary.
            case_sensitive: whether the filter names columns in their case.
            branch: the branch to change; None stages the snapshot.

        Raises:
            SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit; nothing was written.
            ExpressionParseError, UnknownColumnError: the filter cannot be read, or does not fit the table.
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            options = _options(transaction, snapshot_properties, case_sensitive, branch)
            overwrite_rows(_inner(transaction), df, overwrite_filter, options)

    def update(
        self,
        assignments: Mapping[str, Any],
        update_filter: str | BooleanExpression = ALWAYS_TRUE,
        snapshot_properties: Mapping[str, str] | None = None,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> UpdateResult:
        """Gives columns of the rows that match a filter new values, by `write.update.mode`; see `delete`.

        >>> table.update({"status": "closed", "total": pc.field("net") * 1.2}, "id in (1, 2)")

        Args:
            assignments: top-level column to value: a constant, a `pyarrow.compute.Expression` or polars expression over
                the table's columns, or a function from a `pyarrow.RecordBatch` to an array. Expressions see the rows
                as they were.
            update_filter: which rows, all unless given.
            snapshot_properties: keys for the snapshot's summary.
            case_sensitive: whether columns are named in their case.
            branch: the branch to change; None stages the snapshot.

        Returns:
            How many rows were updated.

        Raises:
            UnknownColumnError, TypeMismatchError, NullValueError, InvalidInputError: an assignment or the filter does
                not fit the table.
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            options = _options(transaction, snapshot_properties, case_sensitive, branch)
            return update_rows(_inner(transaction), assignments, update_filter, options)

    def upsert(
        self,
        df: ArrowInput,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> UpsertResult:
        """Updates the rows that have the same key as a given row, and inserts the given rows without such a match.

        Only rows that really change are written, by `write.merge.mode`; see `delete`. Keys are compared with null
        equal to null. Columns that `df` lacks keep their values in updated rows and get their default in inserted
        ones. `df` is held in memory; the table is read and written batch by batch.

        Args:
            df: the rows, as of `append`; no two with the same key.
            join_cols: the key's columns; by default the table's identifier fields. Dotted names reach into structs.
            when_matched_update_all: whether rows with the same key are updated.
            when_not_matched_insert_all: whether rows without a match are inserted.
            case_sensitive: whether `join_cols` names columns in their case.
            branch: the branch to change; None stages the snapshot.
            snapshot_properties: keys for the snapshot's summary.

        Returns:
            How many rows were updated, and how many inserted.

        Raises:
            InvalidInputError: no key is given, rows share one, or rows of the table that are updated do.
            UnknownColumnError, SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit the table.
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            return upsert_rows(
                _inner(transaction),
                df,
                join_cols,
                when_matched_update_all,
                when_not_matched_insert_all,
                _options(transaction, snapshot_properties, case_sensitive, branch),
            )

    def apply_changes(
        self,
        source: ArrowInput,
        *,
        keys: Sequence[str],
        operation: str | None = None,
        order: str | Sequence[str] | None = None,
        offsets: Mapping[str, int] | None = None,
        name: str | None = None,
        mode: str = BY_COST,
        evolve: bool = False,
        branch: str = MAIN_BRANCH,
        since: Mapping[str, int] | None = None,
    ) -> AppliedChanges:
        """Applies the events of a change stream: of each key the newest event becomes its row, or deletes it.

        >>> table.apply_changes(events, keys=["id"], operation="op", order="lsn", name="cdc", offsets={"topic-0": 42})

        An insert of a key that is there and an update of one that is not do the same: the row is as the event says
        afterwards. Deletes of unknown keys do nothing. If several rows of the table have the key, all are replaced by
        one. Columns that the source lacks keep their values. All is one snapshot. A table repeats the change if another
        writer commits to the same rows meanwhile; a transaction raises the conflict.

        Args:
            source: the events, as the rows of `append`, with their own columns; they are held in memory. A DataFrame of
                Spark is not: Spark applies it by a MERGE.
            keys: the columns that identify a row; never null.
            operation: the column that says what an event does, in any case: insert, update, upsert or delete; c, r, u,
                i or d; and the change types of changelogs. Without it every event is an upsert.
            order: the columns by which an event is newer than another of its key; among equals, and without it, the
                later one of the source is. If the table has all of them, older events leave a row that is newer as it
                is; a deleted row leaves nothing to compare with.
            offsets: where to read on after these events, by part of the source (`{"orders-0": 42}`); they are kept in
                the snapshot. A call whose offsets are all applied already does nothing.
            name: the reader's name, by which `applied_offsets` finds the offsets.
            mode: `merge-on-read` deletes rows by position, `copy-on-write` copies their files; `auto` does as
                `write.merge.mode` says, and if that is not set copies files of which at least half of the rows change.
            evolve: whether columns that the table lacks are added, and its types promoted where the events need it.
            branch: the branch to change.
            since: where these events begin, by part, if the source can tell. What is applied must end there (a part of
                which nothing is applied may begin anywhere), so that after a rollback by others no event is missing.

        Returns:
            what became of the events.

        Raises:
            ChangeEventError: an event has no key, no order, an unknown operation, or values that do not fit; its place
                is told, and nothing was written.
            SchemaMismatchError, TypeMismatchError, UnknownColumnError, InvalidSchemaChangeError: columns do not fit.
            InvalidInputError: an argument is wrong; or some of the events are applied already, or some before them are
                not, as the offsets tell.
            UnsupportedError: `merge-on-read` in a table of format version 1.
            CommitConflictError, CommitFailedError, CommitStateUnknownError: see `commit_transaction`. After the last,
                repeat the call: what was applied is not applied again.
        """
        label = self._label
        columns = EventColumns.of(keys, operation, order, label)
        reader = source_reader(label, name, offsets, since, lambda known: applied_offsets(self.metadata, known, branch))
        options = ApplyOptions(reader, mode, evolve, branch)
        if is_of_spark(source):
            return self._apply_by_spark(source, columns, options)
        events = ChangeEvents(source, columns, label)
        return self._repeated(lambda transaction: apply_events(_inner(transaction), events, options))

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The table, with the changes so far."""

    @property
    @abstractmethod
    def _label(self) -> str:
        """The table's name, for messages."""

    @abstractmethod
    def _apply_by_spark(self, source: Any, columns: EventColumns, options: ApplyOptions) -> AppliedChanges:
        """Has Spark apply the events of its DataFrame."""

    def _repeated(self, change: Callable[[TableTransaction], T]) -> T:
        """Makes a change, which may be made anew after a conflict."""
        with self._writing() as transaction:
            return change(transaction)

    def dynamic_partition_overwrite(
        self, df: ArrowInput, snapshot_properties: Mapping[str, str] | None = None, branch: str | None = MAIN_BRANCH
    ) -> None:
        """Replaces every partition that one of the rows falls into; other partitions stay.

        Args:
            df: the new rows, as of `append`.
            snapshot_properties: keys for the snapshot's summary.
            branch: the branch to change; None stages the snapshot.

        Raises:
            InvalidInputError: the table is not partitioned.
            SchemaMismatchError, TypeMismatchError, NullValueError: the rows do not fit; nothing was written.
            CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            replace_partitions(_inner(transaction), df, _options(transaction, snapshot_properties, True, branch))

    def add_files(
        self,
        file_paths: Sequence[str],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Takes data files that exist already into the table, where they are; they belong to it from then on.

        Columns are matched by the field ids of a file, or by name: a table without a name mapping gets one. In a
        partitioned table every file must lie in one partition, told by its folders (`city=Oslo/…`, for identity
        partitions) or, of a Parquet file, by the bounds of its columns; what cannot be told is refused.

        Args:
            file_paths: locations of Parquet, ORC or Avro files.
            snapshot_properties: keys for the snapshot's summary.
            check_duplicate_files: refuse files that the table has already, for which its manifests are read.
            branch: the branch to change; None stages the snapshot.

        Raises:
            InvalidInputError: a file is in the table already, or in no single partition.
            SchemaMismatchError, TypeMismatchError: a file's columns are not the table's, or it has one that the table
                never had.
            MissingFileError, CorruptDataFileError: a file cannot be read.
            CommitFailedError, CommitStateUnknownError: see `commit_transaction`.
        """
        with self._writing() as transaction:
            options = _options(transaction, snapshot_properties, True, branch)
            add_files(_inner(transaction), file_paths, check_duplicate_files, options)


def _inner(transaction: TableTransaction) -> Transaction:
    return transaction._transaction


def _options(
    transaction: TableTransaction, properties: Mapping[str, str] | None, case_sensitive: bool, branch: str | None
) -> ChangeOptions:
    return ChangeOptions.of(_inner(transaction).metadata, properties, branch, case_sensitive)


MAINTENANCE: Hook[[Table], TableMaintenance] = Hook("hms_iceberg.maintenance.table_maintenance")
APPLY_BY_SPARK: Hook[[Any, Table, EventColumns, ApplyOptions], AppliedChanges] = Hook(
    "hms_iceberg.spark.rowlevel.apply_changes"
)


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
        """Pickles a table as its catalog, its name and its version; unpickled, it connects anew and is that version."""
        if self.catalog is None:
            raise TypeError(f"Cannot pickle table {'.'.join(self._identifier)}: it was not loaded from a catalog.")
        return _at_version, (self.catalog, self._identifier, self.metadata_location)

    @property
    def config(self) -> dict[str, str]:
        """The properties of the catalog that the table was loaded from."""
        return {} if self.catalog is None else dict(self.catalog.properties)

    @property
    def maintenance(self) -> TableMaintenance:
        """Maintenance of the table: `table.maintenance.expire_snapshots()`."""
        return MAINTENANCE(self)

    def forget(self, where: str, **options: Any) -> ErasureResult:
        """Forgets rows in every snapshot, branch and tag, or, unless `dry_run=False`, only plans to.

        Args:
            where: which rows, such as "user_id = 7".
            options: further arguments of `hms_iceberg.maintenance.forget`, which says what is done and what it raises.

        Returns:
            the plan, and how far it was carried out.
        """
        return self.maintenance.forget(where, **options)

    def refresh(self) -> Table:
        """Moves this object to the table's newest version, and returns it.

        Raises:
            NoSuchTableError: the table was dropped, or renamed, whether another one has its name now or not.
        """
        pointer = self.metastore.load(self._identifier)
        location = pointer.metadata_location
        if location != self._version.location or not is_never_reused(location):
            newest = read_current(pointer, self.storage)
            if self.metadata.table_uuid not in (None, newest.metadata.table_uuid):
                raise NoSuchTableError(
                    f"Table {self._label} was dropped or renamed: its name belongs to the table at "
                    f"{newest.metadata.location} by now, which has another UUID. Load that from the catalog."
                )
            self._version = newest
        self._freshness = self._freshness.renewed()
        return self

    def transaction(self) -> TableTransaction:
        """A transaction on this version of the table."""
        return self._transaction()

    def _writing(self) -> TableTransaction:
        return self.transaction()

    @property
    def _label(self) -> str:
        return ".".join(self._identifier)

    def _apply_by_spark(self, source: Any, columns: EventColumns, options: ApplyOptions) -> AppliedChanges:
        return APPLY_BY_SPARK(source, self, columns, options)

    def _repeated(self, change: Callable[[TableTransaction], T]) -> T:
        for attempt in commit_policy(self.properties, retried=CommitConflictError):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    self.refresh()
                return super()._repeated(change)
        raise AssertionError("a policy that raises gives no end")

    def _begin(self) -> StartedChange:
        return self._transaction(autocommit=True)._begin()

    def begin_transaction(self) -> Transaction:
        """The pending updates of a transaction on this version, to be committed with those of other tables."""
        return Transaction(
            self._identifier,
            Existing(self._version),
            self.metastore,
            self.storage,
            first=self._freshness.first_approach(),
        )

    def _transaction(self, autocommit: bool = False) -> TableTransaction:
        return TableTransaction(self.begin_transaction(), self.moved, autocommit)

    def moved(self, version: MetadataVersion) -> Table:
        """Follows a commit, and notes whether another writer committed in between.

        Args:
            version: the version that the commit made.
        """
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

    @property
    def _label(self) -> str:
        return ".".join(self._transaction.identifier)

    def _apply_by_spark(self, source: Any, columns: EventColumns, options: ApplyOptions) -> AppliedChanges:
        raise UnsupportedError(
            f"Cannot apply changes of a Spark DataFrame in a transaction on table {self._label}: Spark commits its "
            "statements itself. Call apply_changes of the table, or give an Arrow table."
        )

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
        """Puts an id into the names of manifests and manifest lists, so that they are recognised after a crash.

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

        Returns:
            this transaction, so that calls can be chained.

        Raises:
            InvalidInputError: the branch is no name, or a property for staging does not fit the table.
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

        Returns:
            the kinds of change; each is a builder, added to the transaction when its `with` block ends, or by `commit`.

        Raises:
            InvalidInputError: the branch is no name, or a property for staging does not fit the table.
        """
        options = ChangeOptions.of(self._transaction.metadata, snapshot_properties, branch)
        return UpdateSnapshot(self._begin(), options)
