"""Deleting, overwriting and updating rows by a filter, as parts of a transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hms_iceberg.arrow.writing.write import ArrowInput
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, BooleanExpression
from hms_iceberg.spec.table_properties import MANIFEST_MERGE_ON_APPEND
from hms_iceberg.table.changes.change_options import ChangeOptions
from hms_iceberg.table.changes.writes import write_rows
from hms_iceberg.table.rows.assignments import Assignments
from hms_iceberg.table.rows.row_change import RowChange, as_expression, rows_in
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.delete import DeleteFiles
from hms_iceberg.updates.rows.merge_append import MergeAppend
from hms_iceberg.updates.rows.overwrite import Overwrite
from hms_iceberg.updates.rows.replace_partitions import ReplacePartitions

logger = logging.getLogger(__name__)

# Merging on append is asked for by the property, as in PyIceberg; other changes merge unless it is switched off.


@dataclass(frozen=True)
class UpdateResult:
    """The result of an update.

    Args:
        rows_updated: how many rows matched its filter.
    """

    rows_updated: int = 0


def append_rows(transaction: Transaction, rows: ArrowInput, options: ChangeOptions) -> None:
    """Appends rows; see `Table.append`."""
    files = write_rows(transaction, rows)
    kind = MergeAppend if MANIFEST_MERGE_ON_APPEND.of(transaction.metadata.properties) else FastAppend
    transaction.add(kind(files, **options.update_fields()), preview=False)


def delete_rows(transaction: Transaction, row_filter: str | BooleanExpression, options: ChangeOptions) -> None:
    """Deletes the rows that match a filter; see `Table.delete`."""
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
    """Adds an update of whole files by their filter, which replays on whatever is there; False if the update cannot
    tell by itself that all files are whole."""
    try:
        transaction.add(update)
    except InvalidInputError as error:
        logger.debug("Files are removed by name instead: %s", error)
        return False
    return True


def overwrite_rows(
    transaction: Transaction, rows: ArrowInput, row_filter: str | BooleanExpression, options: ChangeOptions
) -> None:
    """Replaces the rows that match a filter by others; see `Table.overwrite`."""
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


def update_rows(
    transaction: Transaction,
    assignments: Mapping[str, Any],
    row_filter: str | BooleanExpression,
    options: ChangeOptions,
) -> UpdateResult:
    """Gives columns of the rows that match a filter new values; see `Table.update`."""
    change = RowChange(transaction, "update", options)
    expression = as_expression(row_filter)
    values = Assignments(change.metadata.schema(), assignments, change.table, options.case_sensitive)
    if isinstance(expression, AlwaysFalse):
        return UpdateResult()
    affected = change.rewriter.matching(list(change.plan(expression).tasks()))
    if affected:
        change.commit(affected, expression, replacement=values.replacement)
    else:
        change.commit_nothing(expression)
    return UpdateResult(rows_in(affected))


def replace_partitions(transaction: Transaction, rows: ArrowInput, options: ChangeOptions) -> None:
    """Replaces the partitions that rows fall into; see `Table.dynamic_partition_overwrite`."""
    if transaction.metadata.spec().is_unpartitioned():
        raise InvalidInputError(
            f"Cannot replace partitions of table {'.'.join(transaction.identifier)}: it is not partitioned. Use "
            "overwrite."
        )
    added = write_rows(transaction, rows)
    if added:
        transaction.add(ReplacePartitions(files=added, **options.update_fields()))
