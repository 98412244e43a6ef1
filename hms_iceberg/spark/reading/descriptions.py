"""Descriptions of tables and views for Spark."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from hms_iceberg import __version__
from hms_iceberg.errors import ConfigurationError, UnsupportedError
from hms_iceberg.spark.nanoseconds import chosen, shown
from hms_iceberg.spark.read_options import START, TRAVELS, Selection, select
from hms_iceberg.spark.read_questions import LoadTable, LoadView
from hms_iceberg.spark.reading.identity_columns import Identities
from hms_iceberg.spark.schemas import is_read_by_spark, metadata_schema, spark_schema
from hms_iceberg.spark.shown_properties import shown_properties
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import SQLViewRepresentation, ViewMetadata, ViewVersion
from hms_iceberg.spec.metadata_columns import FILE, LINEAGE, PARTITION_NAME, POSITION, SPEC_ID
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot, SnapshotRefType
from hms_iceberg.spec.table_properties import WAP_ENABLED, WRITE_MODES
from hms_iceberg.storage import Storage
from hms_iceberg.table.changes.row_change import row_deletes_refusal
from hms_iceberg.view.commit import read_view

_TRANSFORM = re.compile(r"(\w+)(?:\[(\d+)\])?")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
UNKNOWN_SIZE = 2**40  # unknown is large: nothing is broadcast on a guess


def release() -> dict[str, Any]:
    """The answer of the function `system.iceberg_version()`."""
    return {"version": f"hms_iceberg {__version__}"}


def describe(metadata: TableMetadata, storage: Storage, asked: LoadTable) -> dict[str, Any]:
    """Describes the version of a table that a read asks for, as `described` tells it. If nothing says which, the
    session's `wap_branch` is read of a table that allows that, once it is there, as in Apache Iceberg."""
    read = selected(metadata, storage, asked, asked.options)
    snapshot, schema = read.scan.snapshot(), read.scan.table_schema
    return described(metadata, schema, snapshot, asked.name, read.start_snapshot_id, asked.lacking_types)


def selected(metadata: TableMetadata, storage: Storage, asked: LoadTable, options: Mapping[str, str]) -> Selection:
    """The version of a table that is read, as :func:`describe` has it."""
    if asked.wap_branch is not None and _is_current(asked) and _reads_wap_branch(metadata, asked.wap_branch):
        options = {**options, "branch": asked.wap_branch}
    return select(metadata, storage, asked.name, asked.version, asked.as_of_micros, options)


def _is_current(asked: LoadTable) -> bool:
    travels = asked.version is not None or asked.as_of_micros is not None
    return not travels and not any(name in asked.options for name in (*TRAVELS, START))


def _reads_wap_branch(metadata: TableMetadata, branch: str) -> bool:
    ref = metadata.refs.get(branch)
    is_branch = ref is not None and ref.snapshot_ref_type is SnapshotRefType.BRANCH
    return is_branch and WAP_ENABLED.of(metadata.properties)


def described(
    metadata: TableMetadata,
    schema: Schema,
    snapshot: Snapshot | None,
    name: str,
    start_snapshot_id: int | None = None,
    lacking_types: Collection[str] = (),
) -> dict[str, Any]:
    """Describes one schema and snapshot, perhaps of a table not committed yet, for the bridge's class IcebergTable,
    with types in Spark's JSON; `start_snapshot_id` is that after which changes are read."""
    return {
        "uuid": str(metadata.table_uuid),
        "snapshot_id": snapshot.snapshot_id if snapshot else None,
        "start_snapshot_id": start_snapshot_id,
        "schema_id": schema.schema_id,
        "schema": spark_schema(shown(schema, chosen(lacking_types), name), name),
        "metadata_schema": metadata_schema(metadata, schema),
        "partitioning": _partitioning(metadata.spec(), schema),
        "properties": shown_properties(metadata, schema, snapshot),
        "row_changes": {operation: _row_change(metadata, schema, operation, name) for operation in WRITE_MODES},
        "identity_columns": _identity_columns(metadata, schema),
        "read_by_spark": is_read_by_spark(metadata, lacking_types),
        **_statistics(snapshot, start_snapshot_id),
    }


def _identity_columns(metadata: TableMetadata, schema: Schema) -> list[str]:
    """The names of the columns by whose own values every file is partitioned, whatever its spec."""
    spec_ids = [spec.spec_id for spec in metadata.partition_specs]
    return [field.name for field in Identities(metadata, schema).shared(spec_ids)]


def _row_change(metadata: TableMetadata, schema: Schema, operation: str, name: str) -> dict[str, Any]:
    """How rows of the table change by DELETE, UPDATE or MERGE, for the bridge's class RowOperation."""
    used = {FILE.name, POSITION.name, SPEC_ID.name, PARTITION_NAME}
    if metadata.format_version >= 3:
        used.update(field.name for field in LINEAGE.values())
    taken = next((field.name for field in schema.fields if field.name.lower() in used), None)
    if taken is not None:  # as in Apache Iceberg
        message = (
            f"Cannot {operation} rows of the table {name}: they are found by metadata columns, and its column {taken} "
            f"has the name of one. Rename it (ALTER TABLE {name} RENAME COLUMN {taken} TO another_name)."
        )
        return {"error": f"{UnsupportedError.__name__}: {message}"}
    try:
        mode = WRITE_MODES[operation].of(metadata.properties)
    except ConfigurationError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    refusal = row_deletes_refusal(metadata, operation, f"change rows of the table {name}")
    return {"mode": mode, "refusal": None if refusal is None else f"{UnsupportedError.__name__}: {refusal}"}


def _partitioning(spec: PartitionSpec, schema: Schema) -> list[dict[str, Any]]:
    fields = []
    for field in spec.fields:
        column = schema.find_column_name(field.source_id)
        match = _TRANSFORM.fullmatch(str(field.transform))
        if column is None or match is None or field.transform.is_void:
            continue
        argument = match[2]
        quoted = _quoted(schema, field.source_id)
        entry: dict[str, Any] = {"transform": field.transform.sql_name, "column": quoted}
        if argument is not None:
            entry["argument"] = int(argument)
        fields.append(entry)
    return fields


def _quoted(schema: Schema, field_id: int) -> str:
    """A column's name for Spark's parser."""
    path = (field_id, *schema.ancestor_ids(field_id))[::-1]
    names = (schema.index_by_id[each].name for each in path)
    return ".".join(name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in names)


def _statistics(snapshot: Snapshot | None, start_snapshot_id: int | None) -> dict[str, Any]:
    if snapshot is None:
        return {"size_in_bytes": 0, "row_count": 0}
    summary = snapshot.summary
    deletes = _number(summary, "total-position-deletes") or _number(summary, "total-equality-deletes")
    size = _number(summary, "total-files-size")
    rows = _number(summary, "total-records")
    return {
        "size_in_bytes": UNKNOWN_SIZE if size is None else size,
        "row_count": None if deletes or start_snapshot_id is not None else rows,
    }


def _number(summary: Mapping[str, str], key: str) -> int | None:
    try:
        return int(summary.get(key, ""))
    except ValueError:
        return None


QUERY_COLUMN_NAMES = "spark.query-column-names"
RESERVED = ("provider", "location", "format-version", QUERY_COLUMN_NAMES)
"""What statements may neither set nor unset."""


def describe_view(asked: LoadView, storage: Storage) -> dict[str, Any]:
    """The current version of a view: `sql`, the `catalog` (null for its own) and `namespace` of its names, `schema`,
    `properties`, those shown (`shown_properties`), and its query's columns (`query_columns`, if any engine left
    them)."""
    metadata = read_view(asked.metadata_location, storage).metadata
    version = metadata.current_version()
    return {
        "sql": _query(version, asked.name),
        "catalog": version.default_catalog,
        "namespace": list(version.default_namespace),
        "schema": spark_schema(metadata.schema(), asked.name),
        "properties": dict(metadata.properties),
        "shown_properties": _shown(metadata),
        "query_columns": list(filter(None, metadata.properties.get(QUERY_COLUMN_NAMES, "").split(","))),
    }


def _shown(metadata: ViewMetadata) -> dict[str, str]:
    own = {key: value for key, value in metadata.properties.items() if key not in RESERVED}
    return {
        "provider": "iceberg",
        "location": metadata.location,
        "format-version": str(metadata.format_version),
        **own,
    }


def _query(version: ViewVersion, name: str) -> str:
    """The view's query for Spark, or its first query if there is none, as Iceberg's Java does."""
    queries = [each for each in version.representations if isinstance(each, SQLViewRepresentation)]
    found = version.sql_for("spark") or next(iter(queries), None)
    if found is None:
        raise UnsupportedError(f"Cannot query the view {name}: none of its representations is SQL. Replace the view.")
    return found.sql
