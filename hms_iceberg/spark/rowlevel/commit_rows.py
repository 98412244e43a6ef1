"""Committing a DELETE, UPDATE or MERGE with the Python API's updates, and deletes of whole files by metadata."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from hms_iceberg.arrow.deletes.delete_writer import write_row_deletes
from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.reading.conditions import row_filter
from hms_iceberg.spark.rowlevel.begin_rows import change_of
from hms_iceberg.spark.rowlevel.deleted_rows import bitmaps, merged_deletes
from hms_iceberg.spark.writing.commit_write import data_files
from hms_iceberg.spark.writing.write_questions import CommitWrite, DeleteWhere
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.table.changes.row_change import RowChange
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite
from hms_iceberg.updates.rows.row_delta import RowDelta


def can_delete(asked: DeleteWhere, target: TableTransaction) -> dict[str, Any]:
    """Whether it is `possible` to delete by metadata alone: each file holds only rows that match a filter, or none."""
    change = change_of(asked, target, "delete")
    wanted, exact = row_filter(asked.filter, change.metadata.schema())
    if not exact:
        return {"possible": False}
    try:
        files = change.files(wanted)
    except InvalidInputError as error:
        logger.debug("The filter %s is left to Spark: %s", wanted, error)
        return {"possible": False}
    return {"possible": not files or files.is_whole}


def delete_where(asked: DeleteWhere, target: TableTransaction) -> None:
    """Removes the files whose rows match a filter, of which `can_delete` said that there are no others."""
    change = change_of(asked, target, "delete")
    wanted, _ = row_filter(asked.filter, change.metadata.schema())
    if not isinstance(wanted, AlwaysFalse):
        _remove(change, wanted)


def _remove(change: RowChange, wanted: BooleanExpression) -> None:
    """Removes whole files by the filter, so that a replay applies it again; by name if only the plan shows that all
    rows match."""
    options = change.options.update_fields()
    try:
        change.transaction.add(DeleteFiles(row_filter=wanted, **options))
    except InvalidInputError as error:
        files = change.files(wanted)
        if not files.is_whole:
            raise
        logger.debug("Files are removed by name: %s", error)
        change.transaction.add(DeleteFiles(files=tuple(files.whole.values()), **options))


logger = logging.getLogger(__name__)


class CommitRows(CommitWrite, frozen=True, kw_only=True):
    command: str  # `delete`, `update` or `merge`
    counts: dict[str, int]  # of a MERGE, what became of the table's rows, if Spark has counted them
    replaced: tuple[str, ...] = ()  # of a copy-on-write operation, the files that the new ones take the place of
    # of a merge-on-read operation, the deleted rows as `deleted_rows.bitmaps` takes them
    deleted: tuple[dict[str, str], ...] = ()


def commit_rows(asked: CommitRows, target: TableTransaction) -> None:
    """Makes what a DELETE, UPDATE or MERGE wrote part of a transaction, which then owns its files. Its filter is that
    of the rows which were read, or by which copy-on-write chose files."""
    counts = {f"spark.merge-into.{name}": str(count) for name, count in asked.counts.items()}
    change = change_of(asked, target, asked.command, counts)
    transaction = change.transaction
    for file in asked.files:
        transaction.track(file.path)
    added = data_files(
        asked.files,
        change.metadata,
        asked.decided.properties,
        change.storage,
        sort_order_id=asked.decided.sort_order_id,
    )
    made = _replacement if asked.kind == "replace-rows" else _delta
    update = made(change, added, asked)
    if update is None and change.wrap is not None:
        update = FastAppend((), **change.options.update_fields())  # no row changed, and offsets move
    if update is not None:
        transaction.add(update if change.wrap is None else change.wrap(update), preview=False)


def _replacement(change: RowChange, added: tuple[DataFile, ...], asked: CommitRows) -> Update | None:
    """New files in the place of old ones; None if nothing changed."""
    removed = [task.file for task in _planned(change, asked.replaced).tasks()]
    if not (added or removed):
        return None
    return Overwrite(
        added=added,
        removed=tuple(removed),
        conflict_filter=_read_rows(asked, change.metadata),
        isolation=change.isolation,
        **change.options.update_fields(),
    )


def _delta(change: RowChange, added: tuple[DataFile, ...], asked: CommitRows) -> Update | None:
    """New files, and deletes of rows in old ones; None if nothing changed."""
    deleted = bitmaps(asked.deleted)
    tasks = list(_planned(change, deleted).tasks())
    rows, obsolete = merged_deletes(change.storage, tasks, deleted, change.metadata.format_version)
    deletes = write_row_deletes(change.metadata, change.storage, rows, change.transaction.track)
    if not (added or deletes):
        return None
    return RowDelta(
        added=(*added, *deletes),
        removed=tuple(obsolete),
        referenced=frozenset(deleted),
        conflict_filter=_read_rows(asked, change.metadata),
        isolation=change.isolation,
        **change.options.update_fields(),
    )


def _planned(change: RowChange, paths: Iterable[str]) -> ScanPlan:
    """The plan of some data files, with all deletes of their rows: a filter would leave out deletes of other rows."""
    wanted = set(paths)
    if not wanted:
        return change.plan(AlwaysFalse())
    plan = change.plan(AlwaysTrue())
    found = plan.of_paths(wanted)
    if found.files.height != len(wanted):
        missing = min(wanted - set(found.files["file_path"]))
        raise CommitConflictError(
            f"Cannot change rows of the table {change.table}: {missing} is not a data file of the version that was "
            "read. Repeat the statement."
        )
    return found


def _read_rows(asked: CommitRows, metadata: TableMetadata) -> BooleanExpression:
    """Which rows were read; if this can say less than Spark's condition, it stands for more rows."""
    wanted, _ = row_filter(asked.filter, metadata.schema())
    try:
        bind(metadata.schema(), wanted)
    except InvalidInputError as error:
        logger.debug("Conflicts are looked for in all rows: %s", error)
        return AlwaysTrue()
    return wanted
