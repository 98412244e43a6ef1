"""Tables that need nothing but the table metadata: snapshots, history, refs, metadata_log_entries."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, MetadataTable
from hms_iceberg.spec.data_types import (
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestamptzType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import OPERATION

_MICROS = 1000

SNAPSHOTS = Schema(
    NestedField(1, "committed_at", TimestamptzType(), True),
    NestedField(2, "snapshot_id", LongType(), True),
    NestedField(3, "parent_id", LongType()),
    NestedField(4, "operation", StringType()),
    NestedField(5, "manifest_list", StringType()),
    NestedField(6, "summary", MapType(7, StringType(), 8, StringType(), True)),
)
HISTORY = Schema(
    NestedField(1, "made_current_at", TimestamptzType(), True),
    NestedField(2, "snapshot_id", LongType(), True),
    NestedField(3, "parent_id", LongType()),
    NestedField(4, "is_current_ancestor", BooleanType(), True),
)
REFS = Schema(
    NestedField(1, "name", StringType(), True),
    NestedField(2, "type", StringType(), True),
    NestedField(3, "snapshot_id", LongType(), True),
    NestedField(4, "max_reference_age_in_ms", LongType()),
    NestedField(5, "min_snapshots_to_keep", IntegerType()),
    NestedField(6, "max_snapshot_age_in_ms", LongType()),
)
METADATA_LOG_ENTRIES = Schema(
    NestedField(1, "timestamp", TimestamptzType(), True),
    NestedField(2, "file", StringType(), True),
    NestedField(3, "latest_snapshot_id", LongType()),
    NestedField(4, "latest_schema_id", IntegerType()),
    NestedField(5, "latest_sequence_number", LongType()),
)


def snapshots(request: MetadataRequest) -> MetadataTable:
    """One row for each snapshot that has not expired."""
    rows = []
    for each in request.metadata.snapshots:
        summary = [{"key": key, "value": value} for key, value in (each.summary or {}).items() if key != OPERATION]
        committed_at = each.timestamp_ms * _MICROS
        rows.append(
            (committed_at, each.snapshot_id, each.parent_snapshot_id, each.operation, each.manifest_list, summary)
        )
    pairs = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    return MetadataTable(SNAPSHOTS, _frame(SNAPSHOTS, rows, summary=pairs))


def history(request: MetadataRequest) -> MetadataTable:
    """One row for each time that a snapshot became the current one."""
    metadata = request.metadata
    ancestors = {each.snapshot_id for each in metadata.ancestors_of(metadata.current_snapshot_id)}
    rows = []
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        parent = None if snapshot is None else snapshot.parent_snapshot_id
        rows.append((entry.timestamp_ms * _MICROS, entry.snapshot_id, parent, entry.snapshot_id in ancestors))
    return MetadataTable(HISTORY, _frame(HISTORY, rows))


def refs(request: MetadataRequest) -> MetadataTable:
    rows = [
        (
            name,
            str(ref.snapshot_ref_type).upper(),
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.min_snapshots_to_keep,
            ref.max_snapshot_age_ms,
        )
        for name, ref in request.metadata.refs.items()
    ]
    return MetadataTable(REFS, _frame(REFS, rows))


def metadata_log_entries(request: MetadataRequest) -> MetadataTable:
    """One row for each metadata file, the current one last, with the snapshot that was current then."""
    metadata = request.metadata
    files = [(each.timestamp_ms, each.metadata_file) for each in metadata.metadata_log]
    if request.metadata_location is not None:
        files.append((metadata.last_updated_ms, request.metadata_location))
    log = metadata.snapshot_log
    # Clocks differ: the last entry of the log that is not later counts.
    earliest_from = list(accumulate((each.timestamp_ms for each in reversed(log)), min))[::-1]
    rows = []
    for timestamp_ms, file in files:
        count = bisect_right(earliest_from, timestamp_ms)
        snapshot_id = log[count - 1].snapshot_id if count else None
        snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
        schema_id = None if snapshot is None else snapshot.schema_id
        sequence_number = None if snapshot is None else snapshot.sequence_number
        rows.append((timestamp_ms * _MICROS, file, snapshot_id, schema_id, sequence_number))
    return MetadataTable(METADATA_LOG_ENTRIES, _frame(METADATA_LOG_ENTRIES, rows))


def _frame(schema: Schema, rows: Iterable[tuple[Any, ...]], **special: Any) -> pl.DataFrame:
    from hms_iceberg.scan.partition_columns import polars_dtype

    dtypes = {each.name: special.get(each.name) or polars_dtype(each.field_type) for each in schema.fields}
    return pl.DataFrame(list(rows), schema=dtypes, orient="row")
