"""Manifests decoded to columns: a polars frame with one row per live file.

A manifest is decoded by polars, which reads Avro without making Python objects and without holding the interpreter's
lock. For that its header is replaced: a record inside a record has no bytes of its own in Avro, so that the entry, its
data file and its partition can be read as one flat record, and polars then skips the columns that nobody asked for.
The metrics are most of a manifest; they are only decoded when they are looked at. What polars refuses is read by
fastavro.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.avro_container import (
    AvroContainer,
    decompress,
    encode_long,
    read_blocks,
    read_container,
    read_records,
    write_header,
)
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

_DELETED = int(ManifestEntryStatus.DELETED)
_ADDED = int(ManifestEntryStatus.ADDED)


class ManifestDecoder:
    """One manifest's bytes, and the columns that can be made of them.

    Args:
        data: the Avro file.
        manifest: the manifest's row in the manifest list: what entries inherit from.
        partitions: names and types of the partition columns.

    Raises:
        CorruptManifestError: the file cannot be read as a manifest.
    """

    def __init__(self, data: bytes, manifest: ManifestFile, partitions: PartitionColumns) -> None:
        self._manifest = manifest
        self._partitions = partitions
        self._what = f"manifest {manifest.manifest_path}"
        try:
            self._container = read_container(data, self._what)
        except CorruptFileError as error:
            raise CorruptManifestError(str(error)) from error
        layout = entry_layout(self._container.schema_json, self._what)
        names = partitions.columns(manifest.partition_spec_id)
        if len(names) != len(layout.partition):
            raise CorruptManifestError(
                f"Cannot read {self._what}: its partitions have {len(layout.partition)} values, partition spec "
                f"{manifest.partition_spec_id} has {len(names)} fields"
            )
        self._flat = _flat_schema(self._container.schema_json, names)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._container.data)

    def files(self, metrics: Sequence[str] = ()) -> pl.DataFrame:
        """One row for each live file, inherited values filled in.

        Args:
            metrics: which of ``METRIC_COLUMNS`` to decode in the same pass.

        Returns:
            A frame of ``FILE_COLUMNS``, the partition columns of the manifest's spec, and ``metrics``.

        Raises:
            CorruptManifestError: an entry is damaged.
        """
        names = self._partitions.columns(self._manifest.partition_spec_id)
        wanted = ["status", *FILE_COLUMNS, *names, *metrics]
        live = self._live([name for name in wanted if name in self._flat.columns])
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in names}}
        dtypes |= {name: metric_dtypes()[name] for name in metrics}
        frame = live.select(**_columns(live, dtypes, self._manifest))
        _check_sequence_numbers(frame, self._manifest)
        return frame

    def metrics(self, names: Sequence[str]) -> pl.DataFrame:
        """Some of ``METRIC_COLUMNS``, in the rows of :meth:`files`."""
        present = [name for name in names if name in self._flat.columns]
        live = self._live(["status", *present])
        return live.select(**{name: _column(live, name, metric_dtypes()[name]) for name in names})

    def _live(self, columns: list[str]) -> pl.DataFrame:
        try:
            frame = _decode(self._container, self._flat, columns, self._what)
        except CorruptManifestError:
            raise
        except CorruptFileError as error:
            raise CorruptManifestError(str(error)) from error
        if self._manifest.has_deleted_files:
            return frame.filter(frame["status"] != _DELETED)
        return frame


@lru_cache(maxsize=1)
def file_dtypes() -> dict[str, Any]:
    """The polars type of each of ``FILE_COLUMNS``."""
    import polars as pl

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


@lru_cache(maxsize=1)
def metric_dtypes() -> dict[str, Any]:
    """The polars type of each of ``METRIC_COLUMNS``."""
    import polars as pl

    def pairs(value: Any) -> Any:
        return pl.List(pl.Struct({"key": pl.Int32, "value": value}))

    return {name: pairs(pl.Binary if name.endswith("bounds") else pl.Int64) for name in METRIC_COLUMNS}


# ------------------------------------------------------------------------------------------- inheritance


def _columns(live: pl.DataFrame, dtypes: dict[str, Any], manifest: ManifestFile) -> dict[str, pl.Expr]:
    import polars as pl

    columns = {name: _column(live, name, dtype) for name, dtype in dtypes.items()}
    inherited = pl.lit(manifest.sequence_number, pl.Int64)
    if manifest.sequence_number != 0:
        # Files carried over keep the number they were added with, and must say so themselves.
        inherited = pl.when(pl.col("status") == _ADDED).then(inherited)
    columns["content"] = columns["content"].fill_null(0)
    columns["file_format"] = columns["file_format"].str.to_uppercase()
    columns["spec_id"] = pl.lit(manifest.partition_spec_id, pl.Int32)
    columns["snapshot_id"] = columns["snapshot_id"].fill_null(manifest.added_snapshot_id)
    columns["sequence_number"] = pl.coalesce(columns["sequence_number"], inherited)
    columns["file_sequence_number"] = pl.coalesce(columns["file_sequence_number"], inherited)
    columns["first_row_id"] = _row_ids(columns["first_row_id"], manifest)
    return columns


def _column(live: pl.DataFrame, name: str, dtype: Any) -> pl.Expr:
    """A column of the file with the type it is to have; null where the file lacks it."""
    import polars as pl

    found = live.schema.get(name)
    if found is None:
        return pl.lit(None, dtype)
    # Values of a column that no schema knows any more keep the type they have in the file.
    return pl.col(name) if found == dtype or dtype == pl.Null else pl.col(name).cast(dtype)


def _row_ids(own: pl.Expr, manifest: ManifestFile) -> pl.Expr:
    import polars as pl

    if manifest.first_row_id is None:
        # Before the first snapshot of format v3 no file has row ids, whatever it says itself.
        return pl.lit(None, pl.Int64)
    inheriting = pl.when(own.is_null()).then(pl.col("record_count")).otherwise(0)
    return pl.coalesce(own, inheriting.cum_sum() - inheriting + manifest.first_row_id)


def _check_sequence_numbers(frame: pl.DataFrame, manifest: ManifestFile) -> None:
    missing = frame["sequence_number"].null_count()
    if missing:
        path = frame.filter(frame["sequence_number"].is_null())["file_path"][0]
        raise CorruptManifestError(
            f"Cannot read manifest {manifest.manifest_path}: {missing} files carried over from another manifest have "
            f"no sequence number, the first is {path}; only added files inherit one"
        )


# --------------------------------------------------------------------------------------------- decoding


@dataclass(frozen=True, slots=True)
class _FlatSchema:
    """A writer's schema without records in records, under the names that the columns are to have.

    Args:
        text: the Avro schema for polars.
        columns: names of the known columns.
        layout: how fastavro's records are taken apart.
        partition: names of the partition columns.
    """

    text: bytes
    columns: frozenset[str]
    layout: EntryLayout
    partition: tuple[str, ...]


@lru_cache(maxsize=512)
def _flat_schema(schema_json: bytes, partition: tuple[str, ...]) -> _FlatSchema:
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
                add(names.get(inner["name"]), inner["type"])
                continue
            for value in inner["type"]["fields"]:
                add(partition_of[value["name"]], value["type"])
    text = json.dumps({"type": "record", "name": "manifest_entry", "fields": fields}).encode("utf-8")
    return _FlatSchema(text, frozenset(field["name"] for field in fields), layout, partition)


def _for_polars(avro_type: Any) -> Any:
    """A type without names, ids and logical types other than decimal: dates and times come out as integers."""
    if isinstance(avro_type, list):
        return [_for_polars(branch) for branch in avro_type]
    if not isinstance(avro_type, dict):
        return avro_type
    if avro_type.get("type") == "record":
        fields = [{"name": field["name"], "type": _for_polars(field["type"])} for field in avro_type["fields"]]
        return {"type": "record", "name": avro_type["name"], "fields": fields}
    kept = ("type", "name", "size", "items")
    if avro_type.get("logicalType") == "decimal":
        kept = (*kept, "logicalType", "precision", "scale")
    return {key: _for_polars(value) if key == "items" else value for key, value in avro_type.items() if key in kept}


def _decode(container: AvroContainer, flat: _FlatSchema, columns: list[str], what: str) -> pl.DataFrame:
    import polars as pl

    rows, plain = _decompressed(container, flat, what)
    try:
        frame = pl.read_avro(plain, columns=columns)
        if frame.height == rows:
            return frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        pass
    # Slower, but it reads more and says what is wrong.
    records = [_flat_record(each, flat) for each in read_records(container, flat.layout.parsed, what)]
    dtypes = {**file_dtypes(), **metric_dtypes(), **_partition_types(flat), "status": pl.Int32}
    return pl.DataFrame(records, schema={name: dtypes[name] for name in columns}, strict=False)


def _decompressed(container: AvroContainer, flat: _FlatSchema, what: str) -> tuple[int, io.BytesIO]:
    """The number of records, and the file with its new header and without compression (zlib is faster than polars)."""
    sync = container.sync
    pieces = [write_header(flat.text, "null", {}, sync)]
    rows = 0
    for block in read_blocks(container, what):
        raw = decompress(container.data[block.start : block.end], container.codec, what)
        pieces += (encode_long(block.records), encode_long(len(raw)), raw, sync)
        rows += block.records
    return rows, io.BytesIO(b"".join(pieces))


def _flat_record(record: dict[str, Any], flat: _FlatSchema) -> dict[str, Any]:
    layout = flat.layout
    values = [value.bytes if isinstance(value, uuid.UUID) else value for value in layout.partition_values(record)]
    partition = dict(zip(flat.partition, values, strict=True))
    return {**layout.entry_values(record), **layout.data_file_values(record), **partition}


def _partition_types(flat: _FlatSchema) -> dict[str, Any]:
    import polars as pl

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
