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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.entry_columns import MAPS, entries_at_once
from hms_iceberg.scan.manifests.frame_checks import MANIFEST, check_frame
from hms_iceberg.scan.manifests.metric_columns import Metric, map_values, metric_dtype, metric_name
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.manifests.avro_container import (
    SYNC_SIZE,
    AvroContainer,
    encode_long,
    read_container,
    read_contents,
    read_records,
    write_header,
)
from hms_iceberg.spec.manifests.manifest_layout import MALFORMED, EntryLayout, entry_layout
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestEntryStatus, ManifestFile

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
METRIC_COLUMNS = MAPS[1:]  # without `column_sizes`
# For fewer entries, polars is done sooner.
_FEWEST_AT_ONCE = 600

# Fields of data files that the specification knows and that nobody needs, by their ids.
_UNUSED = {105: "block_size_in_bytes", 106: "file_ordinal", 107: "sort_columns", 111: "distinct_counts"}
_DELETED = int(ManifestEntryStatus.DELETED)
_ADDED = int(ManifestEntryStatus.ADDED)


class ManifestDecoder:
    """The bytes of one manifest, or of several of one spec and schema, and the columns that can be made of them.

    Several small manifests are decoded as one, because most of the cost of a small one is the call.

    Args:
        files: each manifest's bytes with its row in the manifest list, which entries inherit from. All are of one
            partition spec, and :func:`columnar_schema` is the same for all.
        partitions: names and types of the partition columns.

    Raises:
        CorruptManifestError: a file cannot be read as a manifest.
    """

    def __init__(self, files: Sequence[tuple[bytes, ManifestFile]], partitions: PartitionColumns) -> None:
        self.manifests = [manifest for _, manifest in files]
        self._partitions = partitions
        self._containers = [_container(data, manifest) for data, manifest in files]
        self._names = partitions.columns(self.manifests[0].partition_spec_id)
        self._flat = _flat_schema_of(self._containers[0], self.manifests[0], self._names)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(len(each.data) for each in self._containers)

    def files(self, metrics: Sequence[Metric] = ()) -> pl.DataFrame:
        """One row for each live file, inherited values filled in.

        Args:
            metrics: metrics to decode in the same pass, to columns of their :func:`metric_name`.

        Returns:
            A frame of ``FILE_COLUMNS`` (of data manifests without ``DELETE_ONLY``), the partition columns of the
            manifests' spec, ``metrics``, and ``MANIFEST``: the number of the manifest among those of the decoder.

        Raises:
            CorruptManifestError: an entry is damaged, or a manifest is not what its manifest list says.
        """
        rows = self._checked((), metrics)
        live = self._without_removed(rows)
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in self._names}}
        if all(each.content is ManifestContent.DATA for each in self.manifests):
            dtypes = {name: dtype for name, dtype in dtypes.items() if name not in DELETE_ONLY}
        dtypes |= {metric_name(each): metric_dtype(each) for each in metrics}
        frame = live.select(MANIFEST, **_columns(live, dtypes, self.manifests))
        _check_sequence_numbers(frame, self.manifests)
        return frame

    def entries(self, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """One row for each entry, removed files included.

        Args:
            metrics: which maps of metrics to decode; None takes ``METRIC_COLUMNS`` and ``column_sizes``.

        Returns:
            A frame of ``status``, ``FILE_COLUMNS``, the partition columns of the manifests' spec, ``MANIFEST`` and the
            metrics.
        """
        metrics = ("column_sizes", *METRIC_COLUMNS) if metrics is None else metrics
        rows = self._checked(metrics)
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in self._names}}
        dtypes |= {name: metric_dtypes()[name] for name in metrics}
        return rows.select(MANIFEST, "status", **_columns(rows, dtypes, self.manifests))

    @property
    def has_other_fields(self) -> bool:
        """Whether entries have fields that the specification does not know."""
        return bool(self._flat.columns - {"status", *FILE_COLUMNS, *metric_dtypes(), *_UNUSED.values(), *self._names})

    @property
    def flat_schema(self) -> bytes:
        """The Avro schema of an entry without records in records, whose bytes are the same."""
        return self._flat.text

    def body(self) -> bytes:
        """The bytes of all entries, inflated.

        Raises:
            CorruptManifestError: a block is damaged.
        """
        try:
            return b"".join(raw for _, raw in _inflated(self._containers, self.manifests)[1])
        except CorruptFileError as error:
            raise CorruptManifestError(str(error)) from error

    def every_column(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """All entries as they are in the file, and as `entries` has them, without metrics.

        Fields that the specification does not know are left out where polars cannot read the file.
        """
        names = [field["name"] for field in json.loads(self._flat.text)["fields"]]
        rows = self._all(names)
        check_frame(rows, self.manifests, self._partitions)
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in self._names}}
        return rows, rows.select("status", **_columns(rows, dtypes, self.manifests))

    def metrics(self, metrics: Sequence[Metric]) -> dict[Metric, pl.Series]:
        """Some metrics, in the rows of :meth:`files`."""
        live = self._without_removed(self._all(["status"], metrics))
        return {metric: live[metric_name(metric)] for metric in metrics}

    def _all(self, columns: list[str], metrics: Sequence[Metric] = ()) -> pl.DataFrame:
        rows, frame = _decode(self._containers, self.manifests, self._flat, columns, metrics)
        return frame.insert_column(frame.width, _repeat(range(len(rows)), rows).alias(MANIFEST))

    def _checked(self, maps: Sequence[str], metrics: Sequence[Metric] = ()) -> pl.DataFrame:
        """All columns but metrics nobody asked for, of entries that are what the manifest lists say."""
        wanted = ["status", *FILE_COLUMNS, *self._names, *maps]
        frame = self._all([name for name in wanted if name in self._flat.columns], metrics)
        check_frame(frame, self.manifests, self._partitions)
        return frame

    def _without_removed(self, frame: pl.DataFrame) -> pl.DataFrame:
        if any(each.has_deleted_files() for each in self.manifests):
            return frame.filter(frame["status"] != _DELETED)
        return frame


def columnar_schema(data: bytes, manifest: ManifestFile, partitions: PartitionColumns) -> bytes:
    """A key that is equal for manifests that can be decoded as one.

    Args:
        data: the manifest's bytes.
        manifest: its row in the manifest list.
        partitions: names and types of the partition columns.

    Raises:
        CorruptManifestError: the file cannot be read as a manifest.
    """
    names = partitions.columns(manifest.partition_spec_id)
    container = _container(data, manifest)
    return container.codec.encode() + _flat_schema_of(container, manifest, names).text


def _container(data: bytes, manifest: ManifestFile) -> AvroContainer:
    try:
        return read_container(data, _what(manifest))
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error


def _flat_schema_of(container: AvroContainer, manifest: ManifestFile, names: tuple[str, ...]) -> _FlatSchema:
    layout = entry_layout(container.schema_json, _what(manifest))
    if len(names) != len(layout.partition):
        raise CorruptManifestError(
            f"Cannot read {_what(manifest)}: its partitions have {len(layout.partition)} values, partition spec "
            f"{manifest.partition_spec_id} has {len(names)} fields"
        )
    try:
        return _flat_schema(container.schema_json, names)
    except MALFORMED as error:
        raise CorruptManifestError(f"Cannot read {_what(manifest)}: its Avro schema is damaged ({error!r})") from error


def _what(manifest: ManifestFile) -> str:
    return f"manifest {manifest.manifest_path}"


def _repeat(values: Iterable[int | None], counts: Sequence[int]) -> pl.Series:
    """Each value as often as its count says."""
    repeated = pl.Series(list(values), dtype=pl.Int64)
    if len(counts) == 1:
        return repeated.new_from_index(0, counts[0])
    numbers = [number for number, count in enumerate(counts) for _ in range(count)]
    return repeated.gather(pl.Series(numbers, dtype=pl.UInt32))


@lru_cache(maxsize=1)
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


@lru_cache(maxsize=1)
def metric_dtypes() -> dict[str, Any]:
    """The polars type of each of ``METRIC_COLUMNS`` and of ``column_sizes``."""
    return {name: metric_dtype((name, None)) for name in ("column_sizes", *METRIC_COLUMNS)}


# ------------------------------------------------------------------------------------------- inheritance


def _columns(live: pl.DataFrame, dtypes: dict[str, Any], manifests: Sequence[ManifestFile]) -> dict[str, pl.Expr]:
    schema = live.schema
    columns = {name: _column(schema, name, dtype) for name, dtype in dtypes.items()}
    inherited = _of_manifest([each.sequence_number for each in manifests])
    if any(each.sequence_number for each in manifests):
        # Files carried over keep the number they were added with, and must say so themselves (but for v1).
        inherited = pl.when((pl.col("status") == _ADDED) | (inherited == 0)).then(inherited)
    snapshot_id = _of_manifest([each.added_snapshot_id for each in manifests])
    if "content" in columns:
        columns["content"] = columns["content"].fill_null(0)
    columns["file_format"] = columns["file_format"].str.to_uppercase()
    columns["spec_id"] = pl.lit(manifests[0].partition_spec_id, pl.Int32)
    columns["snapshot_id"] = pl.coalesce(columns["snapshot_id"], snapshot_id)
    columns["sequence_number"] = pl.coalesce(columns["sequence_number"], inherited)
    columns["file_sequence_number"] = pl.coalesce(columns["file_sequence_number"], inherited)
    columns["first_row_id"] = _row_ids(columns["first_row_id"], [each.first_row_id for each in manifests])
    return columns


def _of_manifest(values: Sequence[int | None]) -> pl.Expr:
    """A value of each row's manifest."""
    if all(value == values[0] for value in values):
        return pl.lit(values[0], pl.Int64)
    return pl.lit(pl.Series(values, dtype=pl.Int64)).gather(pl.col(MANIFEST))


def _column(schema: Mapping[str, Any], name: str, dtype: Any) -> pl.Expr:
    """A column of the file with the type it is to have; null if the file lacks it."""
    found = schema.get(name)
    if found is None:
        return pl.lit(None, dtype)
    # Values of a column that no schema knows any more keep the type they have in the file.
    return pl.col(name) if found == dtype or dtype == pl.Null else pl.col(name).cast(dtype)


def _row_ids(own: pl.Expr, first_row_ids: Sequence[int | None]) -> pl.Expr:
    if all(each is None for each in first_row_ids):
        # Before the first snapshot of format v3 no file has row ids, whatever it says itself.
        return pl.lit(None, pl.Int64)
    first = _of_manifest(first_row_ids)
    is_new = own.is_null() & (pl.col("status") != _DELETED)
    inheriting = pl.when(is_new).then(pl.col("record_count")).otherwise(0)
    before = inheriting.cum_sum() - inheriting
    if len(first_row_ids) > 1:
        before = before.over(MANIFEST)
    return pl.when(first.is_not_null()).then(pl.coalesce(own, pl.when(is_new).then(before + first)))


def _check_sequence_numbers(frame: pl.DataFrame, manifests: Sequence[ManifestFile]) -> None:
    missing = frame["sequence_number"].null_count()
    if missing:
        row = frame.filter(frame["sequence_number"].is_null()).row(0, named=True)
        raise CorruptManifestError(
            f"Cannot read {_what(manifests[row[MANIFEST]])}: {row['file_path']} was carried over from another manifest "
            "and has no sequence number; only added files inherit one"
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
                add(names.get(inner["name"]) or _UNUSED.get(inner.get("field-id")), inner["type"])
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
    kept: tuple[str, ...] = ("type", "name", "size", "items")
    if avro_type.get("logicalType") == "decimal":
        kept = (*kept, "logicalType", "precision", "scale")
    return {key: _for_polars(value) if key == "items" else value for key, value in avro_type.items() if key in kept}


def _decode(
    containers: Sequence[AvroContainer],
    manifests: Sequence[ManifestFile],
    flat: _FlatSchema,
    columns: list[str],
    metrics: Sequence[Metric] = (),
) -> tuple[list[int], pl.DataFrame]:
    """The number of entries of each manifest, and some of their columns and metrics below one another."""
    try:
        rows, blocks = _inflated(containers, manifests)
        present = [metric for metric in metrics if metric[0] in flat.columns]
        whole = [name for name, field_id in present if field_id is None]
        frame = None
        if present and sum(rows) >= _FEWEST_AT_ONCE and set(MAPS).isdisjoint((*columns, *whole)):
            frame = entries_at_once(blocks, flat.text, columns, present)
        if frame is None:
            maps = [name for name in dict.fromkeys(name for name, _ in present) if name not in columns]
            frame = _read_avro([raw for _, raw in blocks], sum(rows), flat.text, [*columns, *maps])
            if frame is None:
                frame = _decode_slowly(containers, manifests, flat, [*columns, *maps])
            found = [
                map_values(frame[name], [field_id])[0].alias(metric_name((name, field_id)))
                for name, field_id in present
                if field_id is not None
            ]
            frame = frame.drop(set(maps) - set(whole)).hstack(found)
    except CorruptManifestError:
        raise
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error
    missing = {metric_name(each): pl.lit(None, metric_dtype(each)) for each in metrics if each not in present}
    return rows, frame.with_columns(**missing) if missing else frame


def _read_avro(blocks: Sequence[bytes], rows: int, schema: bytes, columns: list[str]) -> pl.DataFrame | None:
    """Some columns of decompressed blocks, which are put together as one; None if polars refuses them.

    Blocks are decompressed before because ISA-L is faster at it than polars, because polars need not put one block
    together from parts, and because it believes a block whatever it says of its size.
    """
    sync = bytes(SYNC_SIZE)
    head = [write_header(schema, "null", {}, sync), encode_long(rows), encode_long(sum(map(len, blocks)))]
    avro = io.BytesIO(b"".join([*head, *blocks, sync]))
    try:
        frame = pl.read_avro(avro, columns=columns)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return None
    return frame if frame.height == rows else None


def _decode_slowly(
    containers: Sequence[AvroContainer], manifests: Sequence[ManifestFile], flat: _FlatSchema, columns: list[str]
) -> pl.DataFrame:
    """Decodes manifests with fastavro: slower than polars, but it reads more files and its errors say what is wrong."""
    records = [
        _flat_record(record, flat)
        for container, manifest in zip(containers, manifests, strict=True)
        for record in read_records(container, flat.layout.parsed, _what(manifest), manifest.entries_count)
    ]
    dtypes = {**file_dtypes(), **metric_dtypes(), **_partition_types(flat), "status": pl.Int32}
    try:
        return pl.DataFrame(records, schema={name: dtypes[name] for name in columns if name in dtypes}, strict=False)
    except (pl.exceptions.PolarsError, RuntimeError) as error:  # such as decimals of 39 digits
        what = ", ".join(map(_what, manifests))
        raise CorruptManifestError(f"Cannot read {what}: it holds a value that its type cannot: {error}") from error


def _inflated(
    containers: Sequence[AvroContainer], manifests: Sequence[ManifestFile]
) -> tuple[list[int], list[tuple[int, bytes]]]:
    """The number of entries of each manifest, and the blocks of all, decompressed, each with its number of entries."""
    blocks: list[tuple[int, bytes]] = []
    counts = []
    for container, manifest in zip(containers, manifests, strict=True):
        rows = 0
        for block, raw in read_contents(container, _what(manifest), manifest.entries_count):
            if block.records:
                blocks.append((block.records, raw))
            rows += block.records
        counts.append(rows)
    return counts, blocks


def _flat_record(record: dict[str, Any], flat: _FlatSchema) -> dict[str, Any]:
    layout = flat.layout
    values = [value.bytes if isinstance(value, uuid.UUID) else value for value in layout.partition_values(record)]
    partition = dict(zip(flat.partition, values, strict=True))
    return {**layout.entry_values(record), **layout.data_file_values(record), **partition}


def _partition_types(flat: _FlatSchema) -> dict[str, Any]:
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
