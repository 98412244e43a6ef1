"""Scans of the changes between two snapshots: rows that were appended, and rows that changed in any way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.reading.changelog_rows import ChangelogOptions, changelog_batches, changelog_schema
from hms_iceberg.arrow.reading.read import scan_to_batches
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.scan.appends import AppendRequest, plan_appends
from hms_iceberg.scan.changelog import ChangelogRequest, ChangelogScanTask, SnapshotChanges, plan_changelog
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan
from hms_iceberg.spec.data_types import NestedField, PrimitiveType, StructType
from hms_iceberg.spec.metadata_columns import CHANGELOG_COLUMNS, metadata_column
from hms_iceberg.table.reading.scan import RowSource, limited

if TYPE_CHECKING:
    import pyarrow as pa

I = TypeVar("I", bound="_IncrementalScan")  # noqa: E741


@dataclass(frozen=True, repr=False)
class _IncrementalScan(RowSource):
    """A read of the snapshots after one, up to another."""

    # the snapshot before the first; None begins with the oldest ancestor of the last
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None  # the last snapshot; None takes the current one

    def from_snapshot_id_exclusive(self: I, from_snapshot_id: int) -> I:
        return replace(self, from_snapshot_id=from_snapshot_id)

    def to_snapshot_id_inclusive(self: I, to_snapshot_id: int) -> I:
        return replace(self, to_snapshot_id=to_snapshot_id)


@dataclass(frozen=True, repr=False)
class IncrementalAppendScan(_IncrementalScan):
    """The rows that snapshots with operation `append` added, whether or not they were deleted since.

    Attributes:
        from_snapshot_inclusive: whether the rows that `from_snapshot_id` itself appended are read too.
    """

    from_snapshot_inclusive: bool = False

    def from_snapshot_id_inclusive(self, from_snapshot_id: int) -> IncrementalAppendScan:
        """Begins with this snapshot."""
        return replace(self, from_snapshot_id=from_snapshot_id, from_snapshot_inclusive=True)

    def from_snapshot_id_exclusive(self, from_snapshot_id: int) -> IncrementalAppendScan:
        """Begins after this snapshot."""
        return replace(self, from_snapshot_id=from_snapshot_id, from_snapshot_inclusive=False)

    def plan(self) -> ScanPlan:
        """The files that are read, as columns."""
        request = AppendRequest(
            metadata=self.metadata,
            from_snapshot_id=self.from_snapshot_id,
            to_snapshot_id=self.to_snapshot_id,
            from_inclusive=self.from_snapshot_inclusive,
            row_filter=self._filter,
            case_sensitive=self.case_sensitive,
            schema=self.filter_schema,
            table_name=self.table_name,
        )
        return plan_appends(request, self.storage)

    def plan_files(self) -> Iterator[FileScanTask]:
        """The files that are read, one task each."""
        return self.plan().tasks()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as record batches, read as they are asked for."""
        import pyarrow as pa

        projection = self.projection()
        batches = scan_to_batches(self.plan(), projection, self.metadata, self.storage)
        return pa.RecordBatchReader.from_batches(to_arrow(projection), limited(batches, self.limit))


@dataclass(frozen=True, repr=False)
class ChangelogScan(_IncrementalScan):
    """The rows that snapshots inserted, deleted and updated, oldest snapshot first.

    The result has, after the selected columns, `_change_type` (INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER),
    `_change_ordinal` (the number of the snapshot among those that changed rows, from 0) and `_commit_snapshot_id`. Rows
    are those of the table's current schema. Position deletes, equality deletes and deletion vectors are understood;
    compactions and other snapshots with operation `replace` change nothing. A snapshot that both inserts and deletes
    (or, with `net_changes`, all that is read) is held in memory.

    Attributes:
        identifier_columns: columns that identify a row for update pairs; None takes the table's identifier fields.
            `_row_id` is possible from format version 3 on.
        compute_updates: whether a deleted and an inserted row of one snapshot with the same identifier become
            UPDATE_BEFORE and UPDATE_AFTER, one after the other. None: if identifier columns are given. An identifier
            that a snapshot inserts or deletes more than once is left as it is.
        net_changes: leave out rows that were inserted and deleted again, over all snapshots.
        carryovers: also show rows that were rewritten to other files without a change.
    """

    identifier_columns: tuple[str, ...] | None = None
    compute_updates: bool | None = None
    net_changes: bool = False
    carryovers: bool = False

    def plan_files(self) -> Iterator[ChangelogScanTask]:
        """The files that hold changed rows, snapshot by snapshot; planned as they are asked for."""
        for changes in self.plan():
            yield from changes.tasks()

    def plan(self) -> Iterator[SnapshotChanges]:
        """The changes of each snapshot as files, oldest snapshot first; planned as they are asked for.

        Raises:
            NoSuchSnapshotError: a snapshot that is needed never was, or has expired.
            InvalidInputError: the first snapshot is no ancestor of the last; the identifier does not fit the table.
        """
        self._check_columns()
        self.key()
        return plan_changelog(self._request(), self.storage)

    def combines(self, changes: SnapshotChanges) -> bool:
        """Whether rows of a snapshot are compared with others before it is known what changed.

        Args:
            changes: what the snapshot did, of `plan`.
        """
        if self.net_changes:
            return True
        is_either = next(changes.deletes(), None) is None or next(changes.inserts(), None) is None
        return not self.carryovers and not is_either

    def rows_of(self, changes: Iterable[SnapshotChanges]) -> Iterator[pa.RecordBatch]:
        """The changed rows of some of the snapshots, or of some of their files.

        Args:
            changes: what the snapshots did, of `plan`.

        Returns:
            batches as `to_arrow_batch_reader` has them, without its limit.
        """
        options = ChangelogOptions(self.table_schema, self.key(), self.net_changes, self.carryovers)
        projection = self.projection()
        return changelog_batches(changes, self.filter_schema, projection, self.metadata, self.storage, options)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The changed rows as record batches, read as they are asked for.

        Raises:
            NoSuchSnapshotError: a snapshot that is needed never was, or has expired.
            InvalidInputError: the first snapshot is no ancestor of the last; the identifier does not fit the table.
        """
        import pyarrow as pa

        batches = self.rows_of(self.plan())
        arrow_schema = to_arrow(changelog_schema(self.projection()))
        return pa.RecordBatchReader.from_batches(arrow_schema, limited(batches, self.limit))

    def _check_columns(self) -> None:
        taken = [field.name for field in CHANGELOG_COLUMNS if field.name in self.table_schema.index_by_name]
        if taken:
            raise InvalidInputError(
                f"Cannot read changes of the table at {self.metadata.location}: it has a column {taken[0]!r}, which is "
                "the name of a column of every changelog. Rename the table's column"
            )

    def _request(self) -> ChangelogRequest:
        return ChangelogRequest(
            metadata=self.metadata,
            from_snapshot_id=self.from_snapshot_id,
            to_snapshot_id=self.to_snapshot_id,
            row_filter=self._filter,
            case_sensitive=self.case_sensitive,
            schema=self.filter_schema,
            table_name=self.table_name,
        )

    def key(self) -> tuple[NestedField, ...]:
        """The columns that identify a row, where updates are told.

        Raises:
            InvalidInputError: nothing identifies a row, or the columns cannot.
        """
        given = self.identifier_columns
        wanted = given is not None if self.compute_updates is None else self.compute_updates
        if not wanted:
            return ()
        schema = self.table_schema
        names = sorted(schema.identifier_field_names()) if given is None else given
        where = f"Cannot compute updates of the table at {self.metadata.location}: "
        if not names:
            raise InvalidInputError(
                f"{where}nothing identifies a row. Pass identifier_columns, or set the table's identifier fields"
            )
        fields = []
        for name in names:
            column = None
            if name not in schema.index_by_name:
                column = metadata_column(name, self.metadata.partition_specs, schema)
            field = column or schema.find_field(name, self.case_sensitive)
            parents = [schema.find_type(each) for each in schema.ancestor_ids(field.field_id)] if column is None else []
            if not isinstance(field.field_type, PrimitiveType) or any(
                not isinstance(each, StructType) for each in parents
            ):
                raise InvalidInputError(
                    f"{where}column {name!r} is a {field.field_type} that cannot identify a row; expected a column, or "
                    "a field of a struct, with one plain value"
                )
            fields.append(field)
        return tuple(fields)
