"""Metadata tables for Spark: ``select * from db.t.files``.

The rows cross as Arrow, in a file that only this user can read, and only the columns that the query uses: there may be
more of them than memory holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.arrow.columns.frames import frame_to_arrow
from hms_iceberg.arrow.deletes.position_delete_table import position_deletes, position_deletes_schema
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_tables import (
    METADATA_TABLES,
    MetadataRequest,
    metadata_table,
    metadata_table_parts,
    metadata_table_start,
)
from hms_iceberg.spark.read_options import select
from hms_iceberg.spark.read_questions import Aggregate, DescribeMetadataTable, InspectRows, SortKey
from hms_iceberg.spark.reading.arrow_parts import encoded_part, encoded_parts, written
from hms_iceberg.spark.reading.worker_files import for_spark
from hms_iceberg.spark.schemas import spark_schema, spark_type
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_POSITION_DELETES = "position_deletes"  # made by reading delete files, unlike the others
_KINDS = frozenset({*METADATA_TABLES, _POSITION_DELETES})
_OF_ONE_SNAPSHOT = frozenset(
    {"files", "data_files", "delete_files", "entries", "manifests", "partitions", _POSITION_DELETES}
)
_MOST = 2**63 - 1
_COMBINED: Mapping[str, Callable[[Sequence[Any]], Any]] = {"count": sum, "sum": sum, "min": min, "max": max}


def describe_inspection(metadata: TableMetadata, storage: Storage, asked: DescribeMetadataTable) -> dict[str, Any]:
    """Describes a metadata table for Spark's analyzer: the `schema` in Spark's JSON, and the `snapshot_id` read."""
    kind, name = asked.kind.lower(), asked.name
    if kind not in _KINDS:
        raise InvalidInputError(
            f"The Iceberg table {name} has no metadata table {kind!r}: expected one of {', '.join(sorted(_KINDS))}."
        )
    version, as_of_micros, options = asked.version, asked.as_of_micros, asked.options
    travels = {key: value for key, value in options.items() if key != "path"}
    if kind not in _OF_ONE_SNAPSHOT and (version is not None or as_of_micros is not None or travels):
        raise UnsupportedError(
            f"Cannot read {name}.{kind} as of a version: it is about all snapshots of the table. Leave the version "
            f"out; those about one snapshot are {', '.join(sorted(_OF_ONE_SNAPSHOT))}."
        )
    selected = select(metadata, storage, name, version, as_of_micros, options)
    if selected.start_snapshot_id is not None:
        raise UnsupportedError(f"Cannot read {name}.{kind} between two snapshots: choose one with snapshot-id.")
    return {
        "schema": spark_schema(_schema(metadata, storage, kind, name), f"{name}.{kind}"),
        "snapshot_id": selected.scan.snapshot_id,
    }


def inspection_rows(metadata: TableMetadata, storage: Storage, asked: InspectRows) -> dict[str, Any]:
    """The rows of some columns of a metadata table, in a file that the caller deletes. The answer has its path and its
    parts: how many bytes and how many rows each has, each an Arrow stream in Zstandard."""
    kind = asked.kind.lower()
    held = _schema(metadata, storage, kind, asked.name, asked.metrics)
    wanted = Schema(*(held.find_field(name) for name in asked.columns))
    names = [field.name for field in wanted.fields]
    used = {each.column for each in asked.aggregates if each.column is not None}
    columns = names or [field.name for field in held.fields if field.name in used] or [held.fields[0].name]
    request = MetadataRequest(
        metadata, storage, asked.snapshot_id, asked.metadata_location, columns=columns, metrics=asked.metrics
    )
    if asked.aggregates:
        return written([encoded_part(_aggregates(kind, request, asked.aggregates, held))])
    if not names:
        rows = sum(batch.num_rows for batch in _batches(kind, request, (), asked.limit))
        return {"path": None, "parts": [[0, rows]] if rows else []}

    def encoded(part: MetadataRequest) -> Iterator[tuple[pa.Buffer, int]]:
        for batch in _batches(kind, part, asked.order, asked.limit):
            yield from encoded_parts(for_spark(_of_held(batch.select(names), wanted), wanted))

    if asked.limit is not None and not asked.order:
        request = metadata_table_start(kind, request, asked.limit)
    parts = _parts(kind, request)
    if len(parts) == 1:
        return written(map(encoded, parts))
    with ThreadPoolExecutor(len(parts), thread_name_prefix="iceberg-inspect") as pool:
        return written(pool.map(lambda part: list(encoded(part)), parts))


def _parts(kind: str, request: MetadataRequest) -> Sequence[MetadataRequest]:
    """The request in parts that may be answered at once."""
    return [request] if kind == _POSITION_DELETES else metadata_table_parts(kind, request, os.cpu_count() or 1)


def _aggregates(kind: str, request: MetadataRequest, asked: Sequence[Aggregate], schema: Schema) -> pa.RecordBatch:
    """The aggregates of all rows; of what they come to, Spark makes the aggregates once more."""

    def of_part(part: MetadataRequest) -> list[Any]:
        return _aggregated([_of_batch(batch, asked) for batch in _batches(kind, part, (), None)], asked)

    parts = _parts(kind, request)
    with ThreadPoolExecutor(max(len(parts), 1), thread_name_prefix="iceberg-inspect") as pool:
        found = _aggregated(list(pool.map(of_part, parts)), asked)
    types = [
        to_arrow_type(schema.find_field(each.column).field_type)
        if each.op in ("min", "max") and each.column is not None
        else pa.int64()
        for each in asked
    ]
    columns = [_in_rows(each, value) for each, value in zip(asked, found, strict=True)]
    rows = max(map(len, columns))
    padded = [
        pa.array([*column, *[0 if each.op == "count" else None] * (rows - len(column))], kind)
        for each, column, kind in zip(asked, columns, types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(padded, [f"{each.op}_{place}" for place, each in enumerate(asked)])


def _in_rows(asked: Aggregate, value: Any) -> list[Any]:
    """One value, or for a sum that no long holds several ones, so that Spark tells of it or not, as it is set."""
    if asked.op != "sum" or value is None or abs(value) <= _MOST:
        return [value]
    times, rest = divmod(abs(value), _MOST)
    sign = 1 if value > 0 else -1
    return [*[sign * _MOST] * times, sign * rest]


def _aggregated(rows: Sequence[Sequence[Any]], asked: Sequence[Aggregate]) -> list[Any]:
    """The aggregates of all rows from those of some."""
    found = []
    for place, each in enumerate(asked):
        known = [row[place] for row in rows if row[place] is not None]
        of_none = 0 if each.op == "count" else None
        found.append(_COMBINED[each.op](known) if known else of_none)
    return found


def _of_batch(batch: pa.RecordBatch, asked: Sequence[Aggregate]) -> list[Any]:
    return [batch.num_rows if each.column is None else _aggregate(each.op, batch.column(each.column)) for each in asked]


def _aggregate(op: str, values: pa.Array) -> Any:
    """An aggregate of some rows; None if there is no value in them, unless it counts."""
    if op == "count":
        return len(values) - values.null_count
    if op == "sum":
        exact = pc.sum(values.cast(pa.decimal128(19))).as_py()  # a sum of longs would begin anew past the largest one
        return None if exact is None else int(exact)
    return pc.min_max(values)[op].as_py()


def _batches(
    kind: str, request: MetadataRequest, order: Sequence[SortKey], limit: int | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a metadata table, or at least the first ones in an order."""
    if kind == _POSITION_DELETES:
        left = limit
        for batch in position_deletes(request):
            yield batch if left is None or order else batch.slice(0, left)
            left = None if left is None else left - batch.num_rows
            if left is not None and left <= 0 and not order:
                return
        return
    found = metadata_table(kind, request)
    frame = found.frame if limit is None else _first(found.frame, order, limit)
    if frame.height:
        yield from frame_to_arrow(frame, found.schema).combine_chunks().to_batches()


def _first(frame: pl.DataFrame, order: Sequence[SortKey], limit: int) -> pl.DataFrame:
    """The first rows of a frame when it is sorted; any if there is no order. Spark sorts them once more."""
    if not order or frame.height <= limit:
        return frame.head(limit)
    places = pl.arg_sort_by(
        [each.column for each in order],
        descending=[each.descending for each in order],
        nulls_last=[each.nulls_last for each in order],
    )
    return frame[frame.select(places.head(limit)).to_series()]


def _schema(
    metadata: TableMetadata, storage: Storage, kind: str, table: str, metrics: dict[str, list[str]] | None = None
) -> Schema:
    """The columns of a metadata table, read from metadata without snapshots, so that no file is opened for them."""
    empty = replace(metadata, current_snapshot_id=None, snapshots=(), snapshot_log=(), refs={})
    request = MetadataRequest(empty, storage, metrics=metrics)
    schema = position_deletes_schema(request) if kind == _POSITION_DELETES else metadata_table(kind, request).schema
    return _held(schema, table)


def _held(schema: Schema, table: str) -> Schema:
    """Without the metrics of columns that Spark cannot hold."""
    return Schema(
        *(_without_unheld(each, table) if each.name == "readable_metrics" else each for each in schema.fields)
    )


def _without_unheld(metrics: NestedField, table: str) -> NestedField:
    assert isinstance(metrics.field_type, StructType)
    kept = []
    for field in metrics.field_type.fields:
        try:
            spark_type(field.field_type, table, field.name)
        except UnsupportedError:
            continue
        kept.append(field)
    return replace(metrics, field_type=StructType(*kept))


def _of_held(batch: pa.RecordBatch, wanted: Schema) -> pa.RecordBatch:
    """A batch without the metrics of columns that Spark cannot hold."""
    if "readable_metrics" not in batch.schema.names:
        return batch
    index = batch.schema.get_field_index("readable_metrics")
    held = wanted.fields[index].field_type
    assert isinstance(held, StructType)
    metrics = batch.column(index)
    names = [field.name for field in held.fields]
    children = dict(zip((field.name for field in metrics.type), metrics.flatten(), strict=True))
    if not names:
        kept = pa.array([None if null else {} for null in metrics.is_null().to_pylist()], pa.struct([]))
    else:
        kept = pa.StructArray.from_arrays([children[name] for name in names], names, mask=metrics.is_null())
    return batch.set_column(index, "readable_metrics", kept)
