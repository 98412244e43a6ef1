"""Metadata tables for Spark: ``select * from db.t.files``.

The rows cross as Arrow, in a file, only the columns that the query uses: Py4J would carry them as text.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.frames import frame_to_arrow
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.scan.metadata_tables import METADATA_TABLES, MetadataRequest, metadata_table
from hms_iceberg.spark.read_options import select
from hms_iceberg.spark.schemas import spark_schema, spark_type
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.types import (
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimeType,
    UUIDType,
)
from hms_iceberg.storage import Storage

_OF_ONE_SNAPSHOT = frozenset({"files", "data_files", "delete_files", "entries", "manifests", "partitions"})
_PART_BYTES = 800_000  # Spark warns of tasks that are larger than a megabyte


def describe_inspection(metadata: TableMetadata, storage: Storage, question: Mapping[str, Any]) -> dict[str, Any]:
    """What Spark's analyzer is told of a metadata table.

    Args:
        metadata: the table.
        storage: where its files are.
        question: its name, the metadata table's (`kind`), and which version is read, as `read_options.select` has it.

    Raises:
        InvalidInputError: there is no such metadata table.
        UnsupportedError: it has no versions, and one was asked for.
        NoSuchSnapshotError, NoSuchRefError: there is no such version.
    """
    kind, name = question["kind"].lower(), question["name"]
    if kind not in METADATA_TABLES:
        raise InvalidInputError(
            f"The Iceberg table {name} has no metadata table {kind!r}: expected one of "
            f"{', '.join(sorted(METADATA_TABLES))}."
        )
    version, as_of_micros, options = question["version"], question["as_of_micros"], question.get("options") or {}
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


def inspection_rows(metadata: TableMetadata, storage: Storage, question: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of some columns of a metadata table, in a file that the caller deletes.

    Args:
        metadata: the table.
        storage: where its files are.
        question: the metadata table's name (`kind`), `snapshot_id` as it was described, and `columns`.

    Returns:
        the file's path and its parts: how many bytes and how many rows each has, each an Arrow stream.
    """
    kind = question["kind"].lower()
    request = MetadataRequest(metadata, storage, question["snapshot_id"], question["metadata_location"])
    found = metadata_table(kind, request)
    fields = _held(found.schema, question["name"]).fields
    wanted = [next(field for field in fields if field.name == name) for name in question["columns"]]
    rows = found.frame.height
    if not wanted or not rows:
        return {"path": None, "parts": [[0, rows]] if rows else []}
    table = frame_to_arrow(found.frame, found.schema).select([field.name for field in wanted])
    return _written(_for_spark(table.combine_chunks(), wanted))


def _schema(metadata: TableMetadata, storage: Storage, kind: str, table: str) -> Schema:
    """The columns do not depend on snapshots, and without any there are no files to read."""
    empty = replace(metadata, current_snapshot_id=None, snapshots=(), snapshot_log=(), refs={})
    return _held(metadata_table(kind, MetadataRequest(empty, storage)).schema, table)


def _held(schema: Schema, table: str) -> Schema:
    """Without the metrics of columns that Spark cannot hold."""
    return Schema(
        *(_without_foreign(each, table) if each.name == "readable_metrics" else each for each in schema.fields)
    )


def _without_foreign(metrics: NestedField, table: str) -> NestedField:
    assert isinstance(metrics.field_type, StructType)
    kept = []
    for field in metrics.field_type.fields:
        try:
            spark_type(field.field_type, table, field.name)
        except UnsupportedError:
            continue
        kept.append(field)
    return replace(metrics, field_type=StructType(*kept))


def _written(table: pa.Table) -> dict[str, Any]:
    part_rows = max(1, table.num_rows * _PART_BYTES // max(table.nbytes, 1))
    handle, path = tempfile.mkstemp(prefix="hms-iceberg-", suffix=".arrows")
    parts = []
    with os.fdopen(handle, "wb") as file:
        for start in range(0, table.num_rows, part_rows):
            part = table.slice(start, part_rows)
            begin = file.tell()
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(part)
            parts.append([file.tell() - begin, part.num_rows])
    return {"path": path, "parts": parts}


def _for_spark(table: pa.Table, fields: Sequence[NestedField]) -> pa.Table:
    """In the Arrow types that Spark reads."""
    columns = [
        _converted(column.combine_chunks(), each.field_type) for column, each in zip(table.columns, fields, strict=True)
    ]
    return pa.table(columns, names=[each.name for each in fields])


def _converted(array: pa.Array, kind: IcebergType) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(kind, StructType):
        children = [_converted(array.field(each.name), each.field_type) for each in kind.fields]
        if not children:
            return pa.array([None if null else {} for null in array.is_null().to_pylist()], pa.struct([]))
        return pa.StructArray.from_arrays(children, [each.name for each in kind.fields], mask=array.is_null())
    if isinstance(kind, (ListType, MapType)):
        return array
    if isinstance(kind, UUIDType):
        return pa.array([None if value is None else _uuid_text(value) for value in array.to_pylist()], pa.string())
    if isinstance(kind, FixedType):
        return array.cast(pa.binary())
    if isinstance(kind, TimeType):
        return array.cast(pa.time64("ns"))
    return array


def _uuid_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))
