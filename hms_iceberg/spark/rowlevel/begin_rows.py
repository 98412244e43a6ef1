"""Beginning a DELETE, UPDATE or MERGE: how its rows become files, and how Spark distributes them.

Source: Iceberg documentation, "Spark Writes", "Writing Distribution Modes"; defaults as in Apache Iceberg 1.12. Two
shuffles of Apache Iceberg's are left out, because what they are for holds without them: a copy-on-write scan gives all
rows of a file to one task, so that rows need not be brought together by file; and positions of deleted rows are put
together when they are committed, in whatever tasks they were found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.writing.begin_write import begun, decided, has_functions
from hms_iceberg.spark.writing.distribution import (
    MODES,
    Distribution,
    advisory_size,
    clustered_order,
    clustering,
    sort_key,
    write_mode,
)
from hms_iceberg.spark.writing.write_questions import BeginWrite, CommitWrite, DeleteWhere
from hms_iceberg.spark.writing.write_settings import WriteSettings, output_spec_id
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import FILE, LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import FANOUT_ENABLED, ROW_DISTRIBUTION_MODES
from hms_iceberg.storage import Storage
from hms_iceberg.table.changes.row_change import ChangeOptions, RowChange
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.updates.applied_offsets import moved_by

_FILE_TERM = {"transform": "identity", "width": None, "column": f"`{FILE.name}`"}
_FILE_ORDER = {**_FILE_TERM, "descending": False, "nulls_first": True}


def row_distribution(
    settings: WriteSettings,
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    has_functions: bool,
    command: str,
    copies: bool,
) -> Distribution:
    """The distribution of the new rows of a `delete`, `update` or `merge`; empty if they come as they are. `copies`
    writes whole files anew (copy-on-write); `has_functions` is as of `write_distribution`."""
    if command == "delete" and not copies:
        return Distribution()
    if not settings.switch("use-table-distribution-and-ordering", True):
        return Distribution(fanout=settings.switch("fanout-enabled", True, FANOUT_ENABLED))
    fanout = settings.switch("fanout-enabled", False, FANOUT_ENABLED)
    terms = tuple(clustering(spec, schema))
    keys = tuple(sort_key(each, schema) for each in clustered_order(spec, order))
    if not has_functions and any(each["transform"] != "identity" for each in (*terms, *keys)):
        return Distribution(advisory_size=advisory_size(settings))
    mode = _mode(settings, spec, order, command, copies)
    ordering = () if fanout and order.is_unsorted else keys
    together, sorted_by = _without_partitions(copies)
    return Distribution(
        clustering=(terms or together) if mode == "hash" else (),
        ranges=(keys or sorted_by) if mode == "range" else (),
        ordering=ordering,
        fanout=settings.switch("fanout-enabled", not ordering, FANOUT_ENABLED),
        advisory_size=advisory_size(settings),
    )


def _without_partitions(copies: bool) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """The terms that bring the rows of one file together if the table has no partitions and no order."""
    return ((), ()) if copies else ((_FILE_TERM,), (_FILE_ORDER,))


def _mode(settings: WriteSettings, spec: PartitionSpec, order: SortOrder, command: str, copies: bool) -> str:
    mode = settings.choice("distribution-mode", MODES, ROW_DISTRIBUTION_MODES[command])
    if copies and command == "merge":
        if mode is None:
            return write_mode(settings, spec, order) if spec.is_unpartitioned() else "hash"
        return "none" if spec.is_unpartitioned() and (mode == "hash" or order.is_unsorted) else mode
    return mode or "hash"


def change_of(
    asked: CommitWrite | DeleteWhere,
    target: TableTransaction,
    command: str,
    counts: Mapping[str, str] | None = None,
) -> RowChange:
    """A change of rows as a part of a transaction; `counts` of rows are for the snapshot's summary."""
    settings = WriteSettings(asked.name, asked.options, asked.session, target.metadata.properties)
    properties = {**asked.engine, **settings.snapshot_properties()}
    properties |= counts or {}
    wap_id = settings.wap_id()
    if wap_id is not None:
        properties["wap.id"] = wap_id
    if isinstance(asked, CommitWrite):
        branch = asked.decided.branch
    else:
        branch = settings.target_branch(asked.branch)
    properties, wrap = moved_by(properties, target.metadata, branch or MAIN_BRANCH)
    options = ChangeOptions(properties, branch=branch or MAIN_BRANCH, stage_only=wap_id is not None)
    return RowChange(target._transaction, command, options, wrap=wrap)


_LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)


class BeginRows(BeginWrite, frozen=True, kw_only=True):
    """Rows are to be changed; its kind is `replace-rows` (copy-on-write) or `change-rows` (merge-on-read)."""

    command: str  # `delete`, `update` or `merge`
    lineage: bool = False  # whether rows come with their lineage, after their columns


def begin_rows(metadata: TableMetadata, storage: Storage, asked: BeginRows) -> dict[str, Any]:
    """Begins an operation on rows as `begin_write` does a write; without `rules` if no rows are written."""
    settings = WriteSettings(asked.name, asked.options, asked.session, metadata.properties)
    schema, spec = metadata.schema(), metadata.spec_by_id(output_spec_id(settings, metadata))
    copies = asked.kind == "replace-rows"
    distribution = row_distribution(
        settings, schema, spec, metadata.sort_order(), has_functions(asked, schema), asked.command, copies
    )
    if asked.command == "delete" and not copies:
        chosen = decided(asked, settings, metadata, distribution)
        return {"rules": None, "distribution": distribution.for_spark(), "decided": chosen}
    written = with_lineage(schema, asked.lineage)
    return begun(_rows_with_lineage(asked), settings, metadata, distribution, written, storage)


def with_lineage(schema: Schema, lineage: bool) -> Schema:
    """The columns of rows, with row id and sequence number if they come with their lineage."""
    return Schema(*schema.fields, *_LINEAGE, schema_id=schema.schema_id) if lineage else schema


def _rows_with_lineage(asked: BeginRows) -> BeginRows:
    if not asked.lineage:
        return asked
    fields = [{"name": each.name, "type": "long", "nullable": True, "metadata": {}} for each in _LINEAGE]
    return msgspec.structs.replace(asked, schema={**asked.schema, "fields": [*asked.schema["fields"], *fields]})
