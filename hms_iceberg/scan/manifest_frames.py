"""Manifests decoded to columns: a polars frame with one row per live file.

A manifest is decoded by polars, which reads Avro without making Python objects and without holding the interpreter's
lock. The file's header is replaced by one whose schema has no logical types but decimals (dates and timestamps come
out as the integers they are stored as) and no fields of type null (they take no bytes, and polars has no such type).
What polars refuses is read by fastavro.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.avro_container import AvroContainer, read_blocks, read_container, read_records, write_header
from hms_iceberg.spec.manifest_layout import EntryLayout, entry_layout
from hms_iceberg.spec.manifests import ManifestEntryStatus, ManifestFile

if TYPE_CHECKING:
    import polars as pl

# Columns of a frame, apart from one per partition field.
FILE_COLUMNS = (
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "record_count",
    "file_size_in_bytes",
    "snapshot_id",
    "sequence_number",
    "file_sequence_number",
    "first_row_id",
    "sort_order_id",
    "split_offsets",
    "key_metadata",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
METRIC_COLUMNS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True)
class _ColumnarSchema:
    """A writer's schema as polars is to see it."""

    text: bytes
    layout: EntryLayout


def read_manifest_frame(data: bytes, manifest: ManifestFile, partitions: PartitionColumns) -> pl.DataFrame:
    """Decode a manifest to one row per live file.

    Args:
        data: the Avro file.
        manifest: the manifest's row in the manifest list: what entries inherit from.
        partitions: names and types of the partition columns.

    Returns:
        A frame of ``FILE_COLUMNS``, ``METRIC_COLUMNS`` and the partition columns of the manifest's spec; inherited
        values are filled in.

    Raises:
        CorruptManifestError: the file cannot be read as a manifest.
    """
    what = f"manifest {manifest.manifest_path}"
    try:
        container = read_container(data, what)
        columnar = _columnar_schema(container.schema_json, what)
        frame = _decode(container, columnar, what)
    except CorruptManifestError:
        raise
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error
    return _live_files(frame, columnar.layout, manifest, partitions)


@lru_cache(maxsize=1)
def file_dtypes() -> dict[str, Any]:
    """The polars type of each of ``FILE_COLUMNS``."""
    import polars as pl

    integers = ("content", "spec_id", "sort_order_id")
    lists = {"split_offsets": pl.List(pl.Int64), "equality_ids": pl.List(pl.Int32)}
    strings = ("file_path", "file_format", "referenced_data_file")
    dtypes: dict[str, Any] = {}
    for name in FILE_COLUMNS:
        if name in integers:
            dtypes[name] = pl.Int32
        elif name in strings:
            dtypes[name] = pl.String
        elif name == "key_metadata":
            dtypes[name] = pl.Binary
        else:
            dtypes[name] = lists.get(name, pl.Int64)
    return dtypes


@lru_cache(maxsize=1)
def _metric_dtypes() -> dict[str, Any]:
    import polars as pl

    def pairs(value: Any) -> Any:
        return pl.List(pl.Struct({"key": pl.Int32, "value": value}))

    return {name: pairs(pl.Binary if name.endswith("bounds") else pl.Int64) for name in METRIC_COLUMNS}


def _decode(container: AvroContainer, columnar: _ColumnarSchema, what: str) -> pl.DataFrame:
    import polars as pl

    rows = sum(block.records for block in read_blocks(container, what))
    header = write_header(columnar.text, container.codec, {}, container.sync)
    try:
        frame = pl.read_avro(io.BytesIO(header + container.body()))
        if frame.height == rows:
            return frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        pass
    # Slower, but it reads more and says what is wrong.
    layout = columnar.layout
    records = [_with_stored_partition(record, layout) for record in read_records(container, layout.parsed, what)]
    return pl.DataFrame(records, schema=_polars_schema(layout), strict=False)


def _with_stored_partition(record: dict[str, Any], layout: EntryLayout) -> dict[str, Any]:
    """The record with decimals and UUIDs of its partition as polars takes them."""
    partition = record[layout.entry["data_file"]][layout.data_file["partition"]]
    for field in layout.partition:
        value = partition[field.name]
        if value is not None and field.convert is not None:
            value = field.convert(value)
            partition[field.name] = value.bytes if isinstance(value, uuid.UUID) else value
    return record


def _live_files(
    frame: pl.DataFrame, layout: EntryLayout, manifest: ManifestFile, partitions: PartitionColumns
) -> pl.DataFrame:
    import polars as pl

    if frame.height == 0:
        names = partitions.columns(manifest.partition_spec_id)
        return pl.DataFrame(schema={**file_dtypes(), **_metric_dtypes(), **{n: partitions.dtypes[n] for n in names}})
    entry, data_file = layout.entry, layout.data_file
    nested = pl.col(entry["data_file"]).struct
    status = pl.col(entry["status"])
    live = frame.filter(status != int(ManifestEntryStatus.DELETED)) if manifest.has_deleted_files else frame

    def own(name: str, dtype: Any) -> pl.Expr:
        """A field of the data file as a column, null where the file does not have it."""
        key = data_file.get(name)
        return (pl.lit(None) if key is None else nested.field(key)).cast(dtype).alias(name)

    dtypes = file_dtypes()
    columns = {name: own(name, dtypes[name]) for name in FILE_COLUMNS}
    columns["content"] = columns["content"].fill_null(0)
    columns["file_format"] = columns["file_format"].str.to_uppercase()
    columns["spec_id"] = pl.lit(manifest.partition_spec_id, pl.Int32).alias("spec_id")
    columns |= _inherited(layout, manifest)
    columns["first_row_id"] = _row_ids(columns["first_row_id"], columns["record_count"], manifest)
    for name, dtype in _metric_dtypes().items():
        columns[name] = own(name, dtype)
    columns |= _partition_values(layout, manifest, partitions)
    selected = live.select(**columns)
    _check_sequence_numbers(selected, manifest)
    return selected


def _inherited(layout: EntryLayout, manifest: ManifestFile) -> dict[str, pl.Expr]:
    import polars as pl

    def own(name: str) -> pl.Expr:
        key = layout.entry.get(name)
        return (pl.lit(None) if key is None else pl.col(key)).cast(pl.Int64)

    inherited = pl.lit(manifest.sequence_number, pl.Int64)
    if manifest.sequence_number != 0:
        # Files carried over keep the number they were added with, and must say so themselves.
        added = pl.col(layout.entry["status"]) == int(ManifestEntryStatus.ADDED)
        inherited = pl.when(added).then(inherited)
    return {
        "snapshot_id": own("snapshot_id").fill_null(manifest.added_snapshot_id),
        "sequence_number": pl.coalesce(own("sequence_number"), inherited),
        "file_sequence_number": pl.coalesce(own("file_sequence_number"), inherited),
    }


def _row_ids(own: pl.Expr, record_count: pl.Expr, manifest: ManifestFile) -> pl.Expr:
    import polars as pl

    if manifest.first_row_id is None:
        return pl.lit(None, pl.Int64)
    inheriting = pl.when(own.is_null()).then(record_count).otherwise(0)
    return pl.coalesce(own, inheriting.cum_sum() - inheriting + manifest.first_row_id)


def _partition_values(layout: EntryLayout, manifest: ManifestFile, partitions: PartitionColumns) -> dict[str, pl.Expr]:
    import polars as pl

    names = partitions.columns(manifest.partition_spec_id)
    if len(names) != len(layout.partition):
        raise CorruptManifestError(
            f"Cannot read manifest {manifest.manifest_path}: its partitions have {len(layout.partition)} values, "
            f"partition spec {manifest.partition_spec_id} has {len(names)} fields"
        )
    partition = pl.col(layout.entry["data_file"]).struct.field(layout.data_file["partition"]).struct
    values: dict[str, pl.Expr] = {}
    for name, field in zip(names, layout.partition, strict=True):
        dtype = partitions.dtypes[name]
        if field.avro_type == "null":
            values[name] = pl.lit(None, dtype)
        elif dtype == pl.Null:
            values[name] = partition.field(field.name)
        else:
            values[name] = partition.field(field.name).cast(dtype)
    return values


def _check_sequence_numbers(frame: pl.DataFrame, manifest: ManifestFile) -> None:
    missing = frame["sequence_number"].null_count()
    if missing:
        path = frame.filter(frame["sequence_number"].is_null())["file_path"][0]
        raise CorruptManifestError(
            f"Cannot read manifest {manifest.manifest_path}: {missing} files carried over from another manifest have "
            f"no sequence number, the first is {path}; only added files inherit one"
        )


# -------------------------------------------------------------------------------------------- schemas


def _columnar_schema(schema_json: bytes, what: str) -> _ColumnarSchema:
    return _ColumnarSchema(_schema_for_polars(schema_json), entry_layout(schema_json, what))


@lru_cache(maxsize=512)
def _schema_for_polars(schema_json: bytes) -> bytes:
    return json.dumps(_for_polars(json.loads(schema_json))).encode("utf-8")


def _for_polars(avro_type: Any) -> Any:
    if isinstance(avro_type, list):
        return [_for_polars(branch) for branch in avro_type]
    if not isinstance(avro_type, dict):
        return avro_type
    if avro_type.get("type") == "record":
        fields = [
            {"name": field["name"], "type": _for_polars(field["type"])}
            for field in avro_type["fields"]
            if field["type"] not in ("null", ["null"])
        ]
        return {"type": "record", "name": avro_type["name"], "fields": fields}
    kept = ("type", "name", "size", "items")
    if avro_type.get("logicalType") == "decimal":
        kept = (*kept, "logicalType", "precision", "scale")
    return {key: _for_polars(value) if key == "items" else value for key, value in avro_type.items() if key in kept}


def _polars_schema(layout: EntryLayout) -> dict[str, Any]:
    import polars as pl

    schema = _struct_fields(layout.bare)
    data_file = dict(schema[layout.entry["data_file"]].to_schema())
    data_file[layout.data_file["partition"]] = pl.Struct(
        {field.name: _partition_type(field.avro_type) for field in layout.partition}
    )
    schema[layout.entry["data_file"]] = pl.Struct(data_file)
    return schema


def _partition_type(avro_type: Any) -> Any:
    import polars as pl

    logical = avro_type.get("logicalType") if isinstance(avro_type, dict) else None
    if logical == "decimal":
        return pl.Decimal(38, int(avro_type.get("scale", 0)))
    return pl.Binary if logical == "uuid" else _polars_type(avro_type)


def _struct_fields(avro_record: Mapping[str, Any]) -> dict[str, Any]:
    return {field["name"]: _polars_type(field["type"]) for field in avro_record["fields"]}


def _polars_type(avro_type: Any) -> Any:
    import polars as pl

    if isinstance(avro_type, list):
        return _polars_type(next((branch for branch in avro_type if branch != "null"), "null"))
    if isinstance(avro_type, dict):
        if avro_type["type"] == "record":
            return pl.Struct(_struct_fields(avro_type))
        if avro_type["type"] == "array":
            return pl.List(_polars_type(avro_type["items"]))
        return _polars_type(avro_type["type"])
    return {
        "null": pl.Null,
        "boolean": pl.Boolean,
        "int": pl.Int32,
        "long": pl.Int64,
        "float": pl.Float32,
        "double": pl.Float64,
        "string": pl.String,
    }.get(avro_type, pl.Binary)
