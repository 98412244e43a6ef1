"""Deletes that remove whole files, which partitions and metrics alone tell."""

from __future__ import annotations

import logging
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, BooleanExpression
from hms_iceberg.spark.reading.conditions import row_filter
from hms_iceberg.spark.rowlevel.begin_rows import change_of
from hms_iceberg.spark.writing.write_questions import DeleteWhere
from hms_iceberg.table import Table
from hms_iceberg.table.changes.row_change import RowChange
from hms_iceberg.updates.rows.overwrite import DeleteFiles

logger = logging.getLogger(__name__)


def can_delete(asked: DeleteWhere, table: Table) -> dict[str, Any]:
    """Whether every file of a table holds only rows that match a filter, or none.

    Args:
        asked: which version, as of `pinned.change_of`, and the filter.
        table: the table.

    Returns:
        whether it is `possible` to delete the rows by metadata alone.
    """
    change = change_of(asked, table, "delete")
    wanted, exact = row_filter(asked.filter, change.metadata.schema())
    if not exact:
        return {"possible": False}
    try:
        files = change.files(wanted)
    except InvalidInputError as error:
        logger.debug("The filter %s is left to Spark: %s", wanted, error)
        return {"possible": False}
    return {"possible": not files or files.is_whole}


def delete_where(asked: DeleteWhere, table: Table) -> dict[str, Any]:
    """Removes the files whose rows match a filter, of which `can_delete` said that there are no others.

    Args:
        asked: as of `can_delete`.
        table: the table.

    Raises:
        InvalidInputError: some, but not all, rows of a file match.
        CommitConflictError, CommitFailedError, CommitStateUnknownError: see `Transaction.commit`.
    """
    change = change_of(asked, table, "delete")
    wanted, _ = row_filter(asked.filter, change.metadata.schema())
    if not isinstance(wanted, AlwaysFalse):
        _remove(change, wanted)
        change.transaction.commit()
    return {}


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
