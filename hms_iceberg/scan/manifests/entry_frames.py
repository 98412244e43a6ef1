"""Entries of manifests read to columns, as they are in the files.

polars reads Avro without making Python objects and without holding the interpreter's lock. For that a manifest's header
is replaced: a record inside a record has no bytes of its own in Avro, so that the entry, its data file and its
partition can be read as one flat record, and polars then passes over the columns that nobody asked for. The metrics are
most of a manifest; they are only decoded when they are looked at. What polars refuses is read by fastavro.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.metric_columns import Metric, map_values, metric_dtype, metric_name
from hms_iceberg.spec.manifests.avro_container import (
    SYNC_SIZE,
    AvroContainer,
    encode_long,
    read_contents,
    read_records,
    write_header,
)
from hms_iceberg.spec.manifests.manifest_layout import EntryLayout, entry_layout
from hms_iceberg.spec.manifests.manifest_values import ManifestFile

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
# What data files have nothing in.
DELETE_ONLY = ("content", "equality_ids", "referenced_data_file", "content_offset", "content_size_in_bytes")
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
METRIC_COLUMNS = MAPS[1:]  # without `column_sizes`
# What the processor's cache holds, so that memory of the last portion is used again.
_BYTES_AT_ONCE = 5_000_000

# Fields of data files that the specification knows and that nobody needs, by their ids.
UNUSED = {105: "block_size_in_bytes", 106: "file_ordinal", 107: "sort_columns", 111: "distinct_counts"}


def file_dtypes() -> dict[str, Any]:
    """The polars type of each of ``FILE_COLUMNS``."""
    special = {
        "content": pl.Int32,
        "spec_id": pl.Int32,
        "sort_order_id": pl.Int32,
        "file_path": pl.String,
        "file_format": pl.String,
        "referenced_data_file": pl.String,
        "key_metadata": pl.Binary,
        "split_offsets": pl.List(pl.Int64),
        "equality_ids": pl.List(pl.Int32),
    }
    return {name: special.get(name, pl.Int64) for name in FILE_COLUMNS}


def metric_dtypes() -> dict[str, Any]:
    """The polars type of each of ``METRIC_COLUMNS`` and of ``column_sizes``."""
    return {name: metric_dtype((name, None)) for name in ("column_sizes", *METRIC_COLUMNS)}


def manifest_name(manifest: ManifestFile) -> str:
    """The name that errors give a manifest."""
    return f"manifest {manifest.manifest_path}"


@dataclass(frozen=True, slots=True)
class FlatSchema:
    """A writer's schema without records in records, under the names that the columns are to have."""

    text: bytes  # the Avro schema for polars
    columns: frozenset[str]  # names of the known ones
    layout: EntryLayout  # how fastavro's records are taken apart
    partition: tuple[str, ...]  # names of the partition columns


@lru_cache(maxsize=512)
def flat_schema(schema_json: bytes, partition: tuple[str, ...]) -> FlatSchema:
    layout = entry_layout(schema_json)
    names = {key: name for name, key in layout.data_file.items()}
    fields: list[dict[str, Any]] = []

    def add(name: str | None, avro_type: Any) -> None:
        # A field of type null takes no bytes, and polars has no such type.
        if avro_type not in ("null", ["null"]):
            fields.append({"name": name or f"unknown{len(fields)}", "type": _for_polars(avro_type)})

    partition_of = dict(zip((field.name for field in layout.partition), partition, strict=True))
    for field in json.loads(schema_json)["fields"]:
        if field["name"] != layout.entry["data_file"]:
            add({key: name for name, key in layout.entry.items()}.get(field["name"]), field["type"])
            continue
        for inner in field["type"]["fields"]:
            if inner["name"] != layout.data_file["partition"]:
                add(names.get(inner["name"]) or UNUSED.get(inner.get("field-id")), inner["type"])
                continue
            for value in inner["type"]["fields"]:
                add(partition_of[value["name"]], value["type"])
    text = json.dumps({"type": "record", "name": "manifest_entry", "fields": fields}).encode("utf-8")
    return FlatSchema(text, frozenset(field["name"] for field in fields), layout, partition)


def _for_polars(avro_type: Any) -> Any:
    """A type without names, ids and logical types other than decimal: dates and times come out as integers."""
    if isinstance(avro_type, list):
        return [_for_polars(branch) for branch in avro_type]
    if not isinstance(avro_type, dict):
        return avro_type
    if avro_type.get("type") == "record":
        fields = [{"name": field["name"], "type": _for_polars(field["type"])} for field in avro_type["fields"]]
        return {"type": "record", "name": avro_type["name"], "fields": fields}
    kept: tuple[str, ...] = ("type", "name", "size", "items")
    if avro_type.get("logicalType") == "decimal":
        kept = (*kept, "logicalType", "precision", "scale")
    return {key: _for_polars(value) if key == "items" else value for key, value in avro_type.items() if key in kept}


def decode(
    containers: Sequence[AvroContainer],
    manifests: Sequence[ManifestFile],
    flat: FlatSchema,
    columns: list[str],
    metrics: Sequence[Metric] = (),
) -> tuple[list[int], pl.DataFrame]:
    """The number of entries of each manifest, and some of their columns and metrics below one another."""
    counts = [0] * len(manifests)
    inflated = portions(containers, manifests, counts)
    return counts, decode_portions(inflated, containers, manifests, flat, columns, metrics)


def decode_portions(
    inflated: Iterable[Sequence[tuple[int, bytes]]],
    containers: Sequence[AvroContainer],
    manifests: Sequence[ManifestFile],
    flat: FlatSchema,
    columns: list[str],
    metrics: Sequence[Metric] = (),
) -> pl.DataFrame:
    """Some columns and metrics of what `portions` gives."""
    present = [metric for metric in metrics if metric[0] in flat.columns]
    frames: list[pl.DataFrame] | None = []
    try:
        for blocks in inflated:
            part = None if frames is None else _decode_portion(blocks, flat, columns, present)
            frames = None if frames is None or part is None else [*frames, part]
        if frames is None:
            slowly = _decode_slowly(containers, manifests, flat, _with_maps(columns, present))
            frames = [_of_maps(slowly, columns, present)]
    except CorruptManifestError:
        raise
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error
    frame = pl.concat(frames)
    missing = {metric_name(each): pl.lit(None, metric_dtype(each)) for each in metrics if each not in present}
    return frame.with_columns(**missing) if missing else frame


def _decode_portion(
    blocks: Sequence[tuple[int, bytes]],
    flat: FlatSchema,
    columns: list[str],
    metrics: Sequence[Metric],
) -> pl.DataFrame | None:
    """Some columns and metrics of decompressed blocks, each with its number of entries; None if polars refuses them."""
    rows, contents = sum(count for count, _ in blocks), [raw for _, raw in blocks]
    frame = _read_avro(contents, rows, flat.text, _with_maps(columns, metrics))
    return None if frame is None else _of_maps(frame, columns, metrics)


def _with_maps(columns: list[str], metrics: Sequence[Metric]) -> list[str]:
    """Columns, and the maps that metrics are in."""
    return list(dict.fromkeys((*columns, *(name for name, _ in metrics))))


def _of_maps(frame: pl.DataFrame, columns: list[str], metrics: Sequence[Metric]) -> pl.DataFrame:
    """Columns of a frame, and metrics that are taken out of its maps."""
    found = {metric_name(metric): values for metric, values in taken_out(frame, metrics).items()}
    return frame.select(name for name in columns if name in frame.columns).with_columns(**found)


def taken_out(frame: pl.DataFrame, metrics: Sequence[Metric]) -> dict[Metric, pl.Series]:
    """Metrics of the maps that a frame has."""
    found: dict[Metric, pl.Series] = {(name, None): frame[name] for name, field_id in metrics if field_id is None}
    for name in dict.fromkeys(name for name, field_id in metrics if field_id is not None):
        keys = [field_id for each, field_id in metrics if each == name and field_id is not None]
        found |= zip(((name, key) for key in keys), map_values(frame[name], keys), strict=True)
    return found


def _read_avro(blocks: Sequence[bytes], rows: int, schema: bytes, columns: list[str]) -> pl.DataFrame | None:
    """Some columns of decompressed blocks, put together as one; None if polars refuses them. ISA-L inflates faster than
    polars, which would also believe a block whatever it says of its size."""
    sync = bytes(SYNC_SIZE)
    head = [write_header(schema, "null", {}, sync), encode_long(rows), encode_long(sum(map(len, blocks)))]
    avro = io.BytesIO(b"".join([*head, *blocks, sync]))
    try:
        frame = pl.read_avro(avro, columns=columns)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return None
    return frame if frame.height == rows else None


def _decode_slowly(
    containers: Sequence[AvroContainer], manifests: Sequence[ManifestFile], flat: FlatSchema, columns: list[str]
) -> pl.DataFrame:
    """Decodes manifests with fastavro: slower than polars, but it reads more files and its errors say what is wrong."""
    records = [
        _flat_record(record, flat)
        for container, manifest in zip(containers, manifests, strict=True)
        for record in read_records(container, flat.layout.parsed, manifest_name(manifest), manifest.entries_count)
    ]
    dtypes = {**file_dtypes(), **metric_dtypes(), **_partition_types(flat), "status": pl.Int32}
    try:
        return pl.DataFrame(records, schema={name: dtypes[name] for name in columns if name in dtypes}, strict=False)
    except (pl.exceptions.PolarsError, RuntimeError) as error:  # such as decimals of 39 digits
        what = ", ".join(map(manifest_name, manifests))
        raise CorruptManifestError(f"Cannot read {what}: it holds a value that its type cannot: {error}") from error


def portions(
    containers: Sequence[AvroContainer], manifests: Sequence[ManifestFile], counts: list[int]
) -> Iterator[list[tuple[int, bytes]]]:
    """Decompressed blocks, each with its number of entries: at a time as many as fit into the processor's cache.
    `counts` gets the number of entries of each manifest."""
    blocks: list[tuple[int, bytes]] = []
    size = 0
    for number, (container, manifest) in enumerate(zip(containers, manifests, strict=True)):
        for block, raw in read_contents(container, manifest_name(manifest), manifest.entries_count):
            if not block.records:
                continue
            counts[number] += block.records
            blocks.append((block.records, raw))
            size += len(raw)
            if size >= _BYTES_AT_ONCE:
                yield blocks
                blocks, size = [], 0
    if blocks or not any(counts):
        yield blocks


def _flat_record(record: dict[str, Any], flat: FlatSchema) -> dict[str, Any]:
    layout = flat.layout
    values = [value.bytes if isinstance(value, uuid.UUID) else value for value in layout.partition_values(record)]
    partition = dict(zip(flat.partition, values, strict=True))
    return {**layout.entry_values(record), **layout.data_file_values(record), **partition}


def _partition_types(flat: FlatSchema) -> dict[str, Any]:
    primitives = {
        "boolean": pl.Boolean,
        "int": pl.Int32,
        "long": pl.Int64,
        "float": pl.Float32,
        "double": pl.Float64,
        "string": pl.String,
    }
    types: dict[str, Any] = {}
    for name, field in zip(flat.partition, flat.layout.partition, strict=True):
        described = field.avro_type if isinstance(field.avro_type, dict) else {"type": field.avro_type}
        if described.get("logicalType") == "decimal":
            types[name] = pl.Decimal(38, int(described.get("scale", 0)))
        elif described.get("logicalType") == "uuid":
            types[name] = pl.Binary
        else:
            types[name] = primitives.get(described["type"], pl.Binary)
    return types
