"""A DELETE, UPDATE or MERGE begins: how its rows become files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.rowlevel.row_distribution import row_distribution
from hms_iceberg.spark.writing.begin_write import begun, decided
from hms_iceberg.spark.writing.write_questions import BeginWrite, CommitWrite, DeleteWhere
from hms_iceberg.spark.writing.write_settings import WriteSettings, output_spec_id
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.table.changes.row_change import ChangeOptions, RowChange


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


_LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)


class BeginRows(BeginWrite, frozen=True, kw_only=True):
    """Rows are to be changed; its kind is `replace-rows` (copy-on-write) or `change-rows` (merge-on-read).

    Args:
        command: `delete`, `update` or `merge`.
        lineage: whether rows come with their lineage, after their columns.
    """

    command: str
    lineage: bool = False


def begin_rows(metadata: TableMetadata, storage: Storage, asked: BeginRows) -> dict[str, Any]:
    """What the bridge's class TableWrite is told when an operation begins.

    Args:
        metadata: the table, at the version that the query was resolved on.
        storage: where its files are.
        asked: the operation.

    Returns:
        as `begin_write`; without `rules` if no rows are written.

    Raises:
        SchemaMismatchError, ConfigurationError, InvalidInputError, UnsupportedError: see `begin_write`.
    """
    settings = WriteSettings(asked.name, asked.options, asked.session, metadata.properties)
    schema, spec = metadata.schema(), metadata.spec_by_id(output_spec_id(settings, metadata))
    copies = asked.kind == "replace-rows"
    distribution = row_distribution(
        settings, schema, spec, metadata.sort_order(), asked.has_functions, asked.command, copies
    )
    if asked.command == "delete" and not copies:
        chosen = decided(asked, settings, metadata, distribution)
        return {"rules": None, "distribution": distribution.for_spark(), "decided": chosen}
    written = with_lineage(schema, asked.lineage)
    return begun(_rows_with_lineage(asked), settings, metadata, distribution, written, storage)


def with_lineage(schema: Schema, lineage: bool) -> Schema:
    """The columns of rows that come with their lineage, if they do."""
    return Schema(*schema.fields, *_LINEAGE, schema_id=schema.schema_id) if lineage else schema


def _rows_with_lineage(asked: BeginRows) -> BeginRows:
    if not asked.lineage:
        return asked
    fields = [{"name": each.name, "type": "long", "nullable": True, "metadata": {}} for each in _LINEAGE]
    return msgspec.structs.replace(asked, schema={**asked.schema, "fields": [*asked.schema["fields"], *fields]})
