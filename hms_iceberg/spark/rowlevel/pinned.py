"""A change of rows of the version of a table that a query of Spark has read."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.spark.writing.write_questions import CommitWrite, DeleteWhere
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.table import Table
from hms_iceberg.table.changes.change_options import ChangeOptions
from hms_iceberg.table.rows.row_change import RowChange


def change_of(
    asked: CommitWrite | DeleteWhere, table: Table, command: str, counts: Mapping[str, str] | None = None
) -> RowChange:
    """A change on the version that was read, so that what others committed since is checked for conflicts.

    Args:
        asked: what `WriteSettings` looks up.
        table: the table, at the version that was read.
        command: `delete`, `update` or `merge`.
        counts: numbers of rows that the snapshot's summary is to tell.

    Raises:
        ConfigurationError, UnsupportedError: see `RowChange`.
    """
    settings = WriteSettings(asked.name, asked.options, asked.session, table.properties)
    properties = {**asked.engine, **settings.snapshot_properties()}
    properties |= counts or {}
    wap_id = settings.wap_id()
    if wap_id is not None:
        properties["wap.id"] = wap_id
    if isinstance(asked, CommitWrite):
        branch = asked.decided.branch
    else:
        branch = settings.target_branch(asked.branch)
    options = ChangeOptions(properties, branch=branch or MAIN_BRANCH, stage_only=wap_id is not None)
    return RowChange(table.transaction()._transaction, command, options)
