"""One change of rows on behalf of a transaction: the files that it touches, the files that it writes, and its commit.

Source: Iceberg documentation, "Configuration": `write.<operation>.mode` and `write.<operation>.isolation-level`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.nested import conform
from hms_iceberg.arrow.deletes.delete_writer import DeletedPositions, write_row_deletes
from hms_iceberg.arrow.reading.row_rewrites import AffectedRows, Replacement, RowRewriter, earlier_positions
from hms_iceberg.arrow.writing.given_rows import ArrowInput
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.errors import InvalidInputError, TypeMismatchError, UnsupportedError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysFalse, BooleanExpression
from hms_iceberg.scan.planner import ALL_MATCH, plan_scan
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan, ScanRequest, content_files
from hms_iceberg.spec.json_model import text_properties
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.table_properties import (
    COPY_ON_WRITE,
    DELETE_GRANULARITY,
    MANIFEST_MERGE_ON_APPEND,
    MERGE_ON_READ,
    WAP_ENABLED,
    WRITE_MODES,
)
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.conditional_changes import RequireUnchanged
from hms_iceberg.updates.machinery.content import Isolation, isolation_of
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite, ReplacePartitions
from hms_iceberg.updates.rows.row_delta import RowDelta

WAP_ID, WAP_BRANCH = "wap.id", "wap.branch"


@dataclass(frozen=True)
class ChangeOptions:
    """Options of a change: branch (or the base of a staged snapshot), summary properties, case of names, staging."""

    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    case_sensitive: bool = True
    branch: str = MAIN_BRANCH
    stage_only: bool = False

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        snapshot_properties: Mapping[str, str] | None,
        branch: str | None,
        case_sensitive: bool = True,
    ) -> ChangeOptions:
        """The options of a call: `branch=None` stages, as does `wap.id` in a table of `write.wap.enabled`, where
        `wap.branch` goes to that branch."""
        properties = text_properties(snapshot_properties or {}, "snapshot_properties")
        if branch is not None and not isinstance(branch, str):
            raise InvalidInputError(f"Branch of a change: expected its name, got {branch!r}.")
        wap_id, wap_branch = properties.get(WAP_ID), properties.pop(WAP_BRANCH, None)
        if wap_id is None and wap_branch is None:
            return cls(properties, case_sensitive, branch or MAIN_BRANCH, stage_only=branch is None)
        given = WAP_ID if wap_branch is None else WAP_BRANCH
        if not WAP_ENABLED.of(metadata.properties):
            raise _refused(
                metadata, given, f"its property {WAP_ENABLED.name} is not true. Set it, or leave {given} out"
            )
        if wap_id is not None and wap_branch is not None:
            raise _refused(metadata, WAP_ID, f"{WAP_BRANCH} is given too ({wap_branch!r}). Choose one")
        if branch != MAIN_BRANCH:
            raise _refused(metadata, given, f"the branch {branch!r} is given too. Choose one")
        return cls(properties, case_sensitive, wap_branch or MAIN_BRANCH, stage_only=wap_id is not None)

    def update_fields(self) -> dict[str, Any]:
        """The options as fields of an update."""
        properties = dict(self.snapshot_properties)
        return {"branch": self.branch, "properties": properties, "stage_only": self.stage_only}


def _refused(metadata: TableMetadata, given: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"Cannot write to the table at {metadata.location} by {given}: {why}.")


def write_rows(transaction: Transaction, rows: ArrowInput, schema: Schema | None = None) -> tuple[DataFile, ...]:
    """Writes rows as data files of the transaction's table; a certain failure of the transaction deletes them. The
    files are in the order in which they were begun; `schema` is by default the table's current one."""
    return tuple(
        write_data_files(
            transaction.metadata,
            transaction.workspace.storage,
            rows,
            table=".".join(transaction.identifier),
            schema=schema,
            on_create=transaction.track,
        )
    )


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FilteredFiles:
    """The live data files that may hold rows of a filter; `whole` are those of which certainly every row matches, by
    location."""

    plan: ScanPlan
    whole: dict[str, DataFile]

    def __bool__(self) -> bool:
        return len(self.plan) > 0

    @property
    def is_whole(self) -> bool:
        """Whether all rows of every file match, so that no file has to be read."""
        return len(self.whole) == len(self.plan)

    def partial(self) -> list[FileScanTask]:
        """Files of which only some rows match: they have to be read."""
        return [] if self.is_whole else list(self.plan.subset(~self.plan.files[ALL_MATCH]).tasks())


BY_COST = "auto"
"""A mode: each file is copied or not by how many of its rows change."""
_COPIED_FRACTION = 0.5

_ACTIONS = {"delete": "delete from", "update": "update rows of", "merge": "upsert into"}


def row_deletes_refusal(metadata: TableMetadata, operation: str, change: str) -> str | None:
    """Why rows of a table cannot be changed by merge-on-read (an error's message), or None. `change` completes the
    message, such as "delete from table db.t"."""
    if metadata.format_version >= 2:
        return None
    return (
        f"Cannot {change} by {MERGE_ON_READ}: format version 1 has no row deletes. Nothing was changed. Upgrade the "
        f"table (format-version 2), or set {WRITE_MODES[operation].name} to {COPY_ON_WRITE}."
    )


class RowChange:
    """Reads a table as a transaction sees it, and adds a change of its rows by the mode and isolation level of
    `delete`, `update` or `merge`, or another `mode`; `action` completes 'cannot … the table', `wrap` gives the update a
    condition."""

    def __init__(
        self,
        transaction: Transaction,
        operation: str,
        options: ChangeOptions,
        action: str | None = None,
        *,
        mode: str | None = None,
        wrap: Callable[[Update], Update] | None = None,
    ) -> None:
        self.transaction = transaction
        self.options = options
        self.metadata = transaction.metadata
        self.table = ".".join(transaction.identifier)
        self.storage = transaction.workspace.storage
        self.action = action or _ACTIONS[operation]
        self.isolation = isolation_of(self.metadata.properties, operation)
        self.operation = operation
        self.mode = mode or WRITE_MODES[operation].of(self.metadata.properties)
        self.wrap = wrap
        if self.mode != COPY_ON_WRITE:
            DELETE_GRANULARITY.of(self.metadata.properties)  # a wrong value is told before files are written
        self.rewriter = RowRewriter(self.metadata, self.storage)
        self.snapshot = parent_on(self.metadata, options.branch)

    # --------------------------------------------------------------------------------------------- reading

    def files(self, row_filter: BooleanExpression) -> FilteredFiles:
        """The files that may hold rows of a filter, and those with no others, from partitions and metrics alone."""
        plan = self.plan(row_filter, decide=True)
        if not len(plan):
            return FilteredFiles(plan, {})
        frame = plan.files.filter(plan.files[ALL_MATCH])
        whole = {file.file_path: file for file in content_files(frame, plan.partitions)}
        return FilteredFiles(plan, whole)

    def plan(self, row_filter: BooleanExpression, decide: bool = False) -> ScanPlan:
        """The files to read for a filter, with their deletes; with `decide` also those of which every row matches."""
        request = ScanRequest(
            metadata=self.metadata,
            snapshot_id=self.snapshot.snapshot_id if self.snapshot else None,
            row_filter=row_filter,
            case_sensitive=self.options.case_sensitive,
            schema=self.metadata.schema(),
            decide=decide,
            table_name=self.table,
            all_deletes=True,
        )
        return plan_scan(request, self.storage)

    # ------------------------------------------------------------------------------------------ committing

    def commit_nothing(self, row_filter: BooleanExpression) -> None:
        """Notes that no row had to be changed, which must still hold when the rest of the transaction is committed."""
        if self.isolation is Isolation.SERIALIZABLE:
            self.transaction.add(RequireUnchanged(row_filter, self.options.branch, self.options.case_sensitive))

    def add(self, update: Update) -> None:
        self.transaction.add(update if self.wrap is None else self.wrap(update))

    def _is_copied(self, each: AffectedRows) -> bool:
        if self.mode == BY_COST:
            return len(each.positions) >= each.file.record_count * _COPIED_FRACTION
        return self.mode == COPY_ON_WRITE

    def commit(
        self,
        affected: Sequence[AffectedRows],
        conflict_filter: BooleanExpression,
        *,
        replacement: Replacement | None = None,
        whole: Sequence[DataFile] = (),
        added: Sequence[DataFile] = (),
        inserted: pa.Table | None = None,
    ) -> None:
        """Writes new files and adds the update: affected rows go, or get a `replacement`, files of `whole` go with all
        rows, `added` are written already; `conflict_filter` is that of the rows which were read."""
        copied = [each for each in affected if self._is_copied(each)]
        marked = [each for each in affected if not self._is_copied(each)]
        refusal = row_deletes_refusal(self.metadata, self.operation, f"{self.action} table {self.table}")
        if marked and refusal is not None:
            raise UnsupportedError(refusal)
        readers = []
        if copied:
            readers.append(self.rewriter.rewritten(copied, replacement))
        if marked and replacement is not None:
            readers.append(self.rewriter.replaced(marked, replacement))
        deletes, obsolete = self._row_deletes(marked)
        removed = [*whole, *(each.file for each in copied), *obsolete]
        data = [*added, *self._write(readers, inserted)]
        options = self.options.update_fields()
        options |= {"case_sensitive": self.options.case_sensitive, "conflict_filter": conflict_filter}
        options["action"] = self.action
        if not marked:
            self.add(Overwrite(added=tuple(data), removed=tuple(removed), isolation=self.isolation, **options))
        else:
            referenced = frozenset(each.file.file_path for each in marked) - {file.file_path for file in removed}
            self.add(
                RowDelta(
                    added=(*data, *deletes),
                    removed=tuple(removed),
                    referenced=referenced,
                    isolation=self.isolation,
                    **options,
                )
            )

    def _write(self, readers: Sequence[pa.RecordBatchReader], inserted: pa.Table | None) -> tuple[DataFile, ...]:
        """New data files of rewritten rows and, in the same files, of inserted ones, whose row ids may follow their
        columns."""
        if inserted is not None and not inserted.num_rows:
            inserted = None
        is_plain = inserted is not None and inserted.num_columns == len(self.metadata.schema().fields)
        if not readers and (inserted is None or is_plain):
            return () if inserted is None else write_rows(self.transaction, inserted)
        batches = chain(*readers, () if inserted is None else self._as_rewritten(inserted))
        reader = pa.RecordBatchReader.from_batches(to_arrow(self.rewriter.schema), batches)
        return write_rows(self.transaction, reader, self.rewriter.schema)

    def _as_rewritten(self, inserted: pa.Table) -> Iterator[pa.RecordBatch]:
        """Inserted rows with the columns of rewritten ones; lineage that they lack begins with this commit."""
        schema = to_arrow(self.rewriter.schema)
        for batch in inserted.to_batches(max_chunksize=131_072):
            lineage = [pa.nulls(batch.num_rows, pa.int64())] * (len(schema) - batch.num_columns)
            columns = [
                conform(column, wanted.type) for column, wanted in zip([*batch.columns, *lineage], schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _row_deletes(self, affected: Sequence[AffectedRows]) -> tuple[list[DataFile], list[DataFile]]:
        """New delete files; and the files that go: delete files which the new ones repeat, data files without rows."""
        deleted, removed = [], []
        for each in affected:
            earlier, obsolete = earlier_positions(self.storage, each.task, self.metadata.format_version)
            rows = DeletedPositions(each.file, each.positions, earlier)
            if len(rows.merged()) == each.file.record_count:
                removed.append(each.file)
                continue
            deleted.append(rows)
            removed += obsolete
        written = write_row_deletes(self.metadata, self.storage, deleted, self.transaction.track)
        return written, removed


def as_expression(row_filter: str | BooleanExpression) -> BooleanExpression:
    if isinstance(row_filter, str):
        return parse(row_filter)
    if isinstance(row_filter, BooleanExpression):
        return row_filter
    raise TypeMismatchError(
        f'Cannot use {row_filter!r} as a filter: expected a text such as "id > 5" or an expression such as '
        f"GreaterThan('id', 5), got {type(row_filter).__name__}."
    )


def rows_in(affected: Sequence[AffectedRows]) -> int:
    return int(sum(len(each.positions) for each in affected))


def append_rows(transaction: Transaction, rows: ArrowInput, options: ChangeOptions) -> None:
    files = write_rows(transaction, rows)
    # Merging on append is asked for by the property, as in PyIceberg; other changes merge unless it is switched off.
    kind = MergeAppend if MANIFEST_MERGE_ON_APPEND.of(transaction.metadata.properties) else FastAppend
    transaction.add(kind(files, **options.update_fields()), preview=False)


def delete_rows(transaction: Transaction, row_filter: str | BooleanExpression, options: ChangeOptions) -> None:
    change = RowChange(transaction, "delete", options)
    expression = as_expression(row_filter)
    files = change.files(expression)
    if isinstance(expression, AlwaysFalse):
        return
    if not files:
        logger.info("Delete from %s: no row matches %s", change.table, expression)
        change.commit_nothing(expression)
    elif not (files.is_whole and _add(transaction, _delete_by_filter(expression, options))):
        affected = change.rewriter.matching(files.partial())
        if affected or files.whole:
            change.commit(affected, expression, whole=list(files.whole.values()))
        else:
            change.commit_nothing(expression)


def _delete_by_filter(row_filter: BooleanExpression, options: ChangeOptions) -> DeleteFiles:
    return DeleteFiles(row_filter=row_filter, case_sensitive=options.case_sensitive, **options.update_fields())


def _add(transaction: Transaction, update: Update) -> bool:
    """Adds an update that removes whole files by a filter; False if the metadata alone does not show that all rows
    of these files match."""
    try:
        transaction.add(update)
    except InvalidInputError as error:
        logger.debug("Files are removed by name instead: %s", error)
        return False
    return True


def overwrite_rows(
    transaction: Transaction, rows: ArrowInput, row_filter: str | BooleanExpression, options: ChangeOptions
) -> None:
    change = RowChange(transaction, "delete", options, action="overwrite")
    expression = as_expression(row_filter)
    files = change.files(expression)
    added = write_rows(transaction, rows)
    update = Overwrite(
        added=added, row_filter=expression, case_sensitive=options.case_sensitive, **options.update_fields()
    )
    if not (files.is_whole and _add(transaction, update)):
        affected = change.rewriter.matching(files.partial())
        change.commit(affected, expression, whole=list(files.whole.values()), added=added)


def replace_partitions(transaction: Transaction, rows: ArrowInput, options: ChangeOptions) -> None:
    if transaction.metadata.spec().is_unpartitioned():
        raise InvalidInputError(
            f"Cannot replace partitions of table {'.'.join(transaction.identifier)}: it is not partitioned. Use "
            "overwrite."
        )
    added = write_rows(transaction, rows)
    if added:
        transaction.add(ReplacePartitions(files=added, **options.update_fields()))
