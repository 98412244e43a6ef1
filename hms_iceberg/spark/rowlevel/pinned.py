"""A change of rows of the version of a table that a query of Spark has read."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.spark.writing.write_questions import CommitWrite, DeleteWhere
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.snapshots import MAIN_BRANCH
from hms_iceberg.table import Table
from hms_iceberg.table.changes.change_options import ChangeOptions
from hms_iceberg.table.rows.row_change import RowChange
from hms_iceberg.transaction.metadata_files import read_version
from hms_iceberg.transaction.origin import Existing
from hms_iceberg.transaction.transaction import Transaction


def change_of(
    asked: CommitWrite | DeleteWhere, table: Table, command: str, counts: Mapping[str, str] | None = None
) -> RowChange:
    """A change on the version that was read, so that what others committed since is checked for conflicts.

    Args:
        asked: the version that was read, and what `WriteSettings` looks up.
        table: the table, at any version.
        command: `delete`, `update` or `merge`.
        counts: numbers of rows that the snapshot's summary is to tell.

    Raises:
        ConfigurationError, UnsupportedError: see `RowChange`.
    """
    version = read_version(asked.metadata_location, table.storage)
    settings = WriteSettings(asked.name, asked.options, asked.session, version.metadata.properties)
    transaction = Transaction(table.name(), Existing(version), table.metastore, table.storage)
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
    return RowChange(transaction, command, options)
