"""Manifests decoded to columns: a polars frame with one row per live file, with what entries inherit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, IcebergError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.entry_frames import (
    DELETE_ONLY,
    FILE_COLUMNS,
    MAPS,
    METRIC_COLUMNS,
    UNUSED,
    FlatSchema,
    decode,
    decode_portions,
    file_dtypes,
    flat_schema,
    manifest_name,
    metric_dtypes,
    portions,
)
from hms_iceberg.scan.manifests.metric_columns import Metric, metric_dtype, metric_name
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.data_types import (
    IcebergType,
    NestedField,
    PrimitiveType,
    StringType,
)
from hms_iceberg.spec.manifests.avro_container import AvroContainer, read_container
from hms_iceberg.spec.manifests.manifest_layout import MALFORMED, entry_layout
from hms_iceberg.spec.manifests.manifest_list_avro import Count, check_contents, check_counts
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestContent, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.values.single_values import from_bytes

# The column that says to which of several manifests an entry belongs.
MANIFEST = "manifest"
_DELETED = int(ManifestEntryStatus.DELETED)
_ADDED = int(ManifestEntryStatus.ADDED)


@dataclass(frozen=True)
class InflatedEntries:
    """All entries of some manifests, removed files included, and their bytes."""

    blocks: Sequence[tuple[int, bytes]]  # inflated, each with its number of entries
    types: Mapping[str, Any]  # of the fields of an entry in Avro, in their order, without records in records
    columns: pl.DataFrame  # as they are in the file, under the names that they have here, without metrics
    files: pl.DataFrame  # as `ManifestDecoder.entries` has them, without metrics

    @property
    def body(self) -> bytes:
        return b"".join(raw for _, raw in self.blocks)

    def of_blocks(self, chosen: np.ndarray) -> InflatedEntries:
        """The entries of some blocks, for each of which it is said whether it is chosen."""
        if chosen.all():
            return self
        rows = pl.Series(np.repeat(chosen, [count for count, _ in self.blocks]))
        blocks = [block for block, is_chosen in zip(self.blocks, chosen, strict=True) if is_chosen]
        return InflatedEntries(blocks, self.types, self.columns.filter(rows), self.files.filter(rows))


class ManifestDecoder:
    """The columns of one manifest's bytes, or of several small ones of one spec and `columnar_schema` as one, because
    most of the cost of a small one is the call."""

    def __init__(self, files: Sequence[tuple[bytes, ManifestFile]], partitions: PartitionColumns) -> None:
        self.manifests = [manifest for _, manifest in files]
        self._partitions = partitions
        self._containers = [_container(data, manifest) for data, manifest in files]
        self._names = partitions.columns(self.manifests[0].partition_spec_id)
        self._flat = _flat_schema_of(self._containers[0], self.manifests[0], self._names)

    @property
    def size(self) -> int:
        return sum(len(each.data) for each in self._containers)

    def files(self, metrics: Sequence[Metric] = ()) -> pl.DataFrame:
        """One row for each live file, inherited values filled in: `FILE_COLUMNS` (without `DELETE_ONLY` for data),
        partition columns, metrics by `metric_name`, and the number of its manifest."""
        rows = self._checked((), metrics)
        live = self._without_removed(rows)
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in self._names}}
        if all(each.content is ManifestContent.DATA for each in self.manifests):
            dtypes = {name: dtype for name, dtype in dtypes.items() if name not in DELETE_ONLY}
        dtypes |= {metric_name(each): metric_dtype(each) for each in metrics}
        frame = live.select(MANIFEST, **_columns(live, dtypes, self.manifests))
        check_sequence_numbers(frame, self.manifests)
        return frame

    def entries(self, metrics: Sequence[str] | None = None) -> pl.DataFrame:
        """One row for each entry, removed files included: `status`, `FILE_COLUMNS`, partition columns, `MANIFEST` and
        maps of metrics, which are all if none are named."""
        metrics = ("column_sizes", *METRIC_COLUMNS) if metrics is None else metrics
        rows = self._checked(metrics)
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in self._names}}
        dtypes |= {name: metric_dtypes()[name] for name in metrics}
        return rows.select(MANIFEST, "status", **_columns(rows, dtypes, self.manifests))

    def has(self, names: Sequence[str]) -> bool:
        """Whether entries have all of these fields."""
        return self._flat.columns >= set(names)

    @property
    def has_other_fields(self) -> bool:
        """Whether entries have fields that the specification does not know."""
        return bool(self._flat.columns - {"status", *FILE_COLUMNS, *metric_dtypes(), *UNUSED.values(), *self._names})

    def inflated(self) -> InflatedEntries:
        """Every entry with its bytes. Fields that the specification does not know are no columns where polars cannot
        read the file."""
        counts = [0] * len(self.manifests)
        try:
            inflated = list(portions(self._containers, self.manifests, counts))
        except CorruptFileError as error:
            raise CorruptManifestError(str(error)) from error
        types = {field["name"]: field["type"] for field in json.loads(self._flat.text)["fields"]}
        names = [name for name in types if name not in MAPS]
        columns = decode_portions(inflated, self._containers, self.manifests, self._flat, names)
        columns = _numbered(columns.rechunk(), counts)  # once, rather than whenever polars looks at some of them
        check_frame(columns, self.manifests, self._partitions)
        dtypes = {**file_dtypes(), **{name: self._partitions.dtypes[name] for name in self._names}}
        files = columns.select(MANIFEST, "status", **_columns(columns, dtypes, self.manifests))
        return InflatedEntries(list(chain.from_iterable(inflated)), types, columns, files)

    def metrics(self, metrics: Sequence[Metric]) -> dict[Metric, pl.Series]:
        """Some metrics, in the rows of :meth:`files`."""
        live = self._without_removed(self._all(["status"], metrics))
        return {metric: live[metric_name(metric)] for metric in metrics}

    def _all(self, columns: list[str], metrics: Sequence[Metric] = ()) -> pl.DataFrame:
        rows, frame = decode(self._containers, self.manifests, self._flat, columns, metrics)
        return _numbered(frame, rows)

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
    """A key that is equal for manifests that can be decoded as one."""
    names = partitions.columns(manifest.partition_spec_id)
    container = _container(data, manifest)
    return container.codec.encode() + _flat_schema_of(container, manifest, names).text


def _container(data: bytes, manifest: ManifestFile) -> AvroContainer:
    try:
        return read_container(data, manifest_name(manifest))
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error


def _flat_schema_of(container: AvroContainer, manifest: ManifestFile, names: tuple[str, ...]) -> FlatSchema:
    layout = entry_layout(container.schema_json, manifest_name(manifest))
    if len(names) != len(layout.partition):
        raise CorruptManifestError(
            f"Cannot read {manifest_name(manifest)}: its partitions have {len(layout.partition)} values, partition "
            f"spec {manifest.partition_spec_id} has {len(names)} fields"
        )
    try:
        return flat_schema(container.schema_json, names)
    except MALFORMED as error:
        raise CorruptManifestError(
            f"Cannot read {manifest_name(manifest)}: its Avro schema is damaged ({error!r})"
        ) from error


def _numbered(frame: pl.DataFrame, counts: Sequence[int]) -> pl.DataFrame:
    """Rows with the number of the manifest that they are of, of each as many as its count says."""
    numbers = pl.Series(np.repeat(np.arange(len(counts)), counts), dtype=pl.Int64)
    return frame.insert_column(frame.width, numbers.alias(MANIFEST))


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


def check_sequence_numbers(frame: pl.DataFrame, manifests: Sequence[ManifestFile]) -> None:
    """Refuses live files of which it is not known when they were added."""
    missing = frame["sequence_number"].null_count()
    if missing:
        row = frame.filter(frame["sequence_number"].is_null()).row(0, named=True)
        raise CorruptManifestError(
            f"Cannot read {manifest_name(manifests[row[MANIFEST]])}: {row['file_path']} was carried over from another "
            "manifest and has no sequence number; only added files inherit one"
        )


def check_frame(entries: pl.DataFrame, manifests: Sequence[ManifestFile], partitions: PartitionColumns) -> None:
    """Compares entries with the rows of the manifest list: counts, contents, and the range of partitions. Source:
    Iceberg specification, "Manifest Lists"."""
    fields = _ordered_fields(entries, manifests[0], partitions)
    width = len(partitions.columns(manifests[0].partition_spec_id))
    found: list[dict[int, Count]] = [{} for _ in manifests]
    contents: list[set[int]] = [set() for _ in manifests]
    groups = _groups(entries, [name for name, _ in fields.values()])
    for number, status, kind, files, rows, *_ in groups:
        before = found[number].get(status, (0, 0))
        found[number][status] = before[0] + files, before[1] + rows
        contents[number].add(kind)
    for manifest, counts, kinds in zip(manifests, found, contents, strict=True):
        check_counts(manifest, counts)
        check_contents(manifest, kinds)
    for number, status, _, _, _, *ends in groups:
        summaries = manifests[number].partitions
        if status == int(ManifestEntryStatus.DELETED) or summaries is None or len(summaries) != width:
            continue
        for (place, (_, field)), low, high in zip(fields.items(), ends[::2], ends[1::2], strict=True):
            if low is not None:
                _check_range(manifests[number], summaries[place], field, low, high)


def _groups(entries: pl.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Entries by manifest, status and content: their number, their rows, and least and greatest value of columns."""
    content = entries["content"] if "content" in entries.columns else pl.Series([0]).new_from_index(0, entries.height)
    content = content.fill_null(0) if content.null_count() else content
    keys = [entries[MANIFEST], entries["status"], content]
    if entries.height and all(key.min() == key.max() for key in keys):
        # The usual case, for which grouping takes longer than all the rest.
        ends = [end for name in names for end in (entries[name].min(), entries[name].max())]
        return [(*(key[0] for key in keys), entries.height, entries["record_count"].sum(), *ends)]
    ranges = [
        each for name in names for each in (pl.min(name).alias(f"{name} low"), pl.max(name).alias(f"{name} high"))
    ]
    grouped = entries.group_by(MANIFEST, "status", content.alias("content"))
    return grouped.agg(pl.len(), pl.sum("record_count"), *ranges).rows()


def _ordered_fields(
    entries: pl.DataFrame, manifest: ManifestFile, partitions: PartitionColumns
) -> dict[int, tuple[str, NestedField]]:
    """The partition fields whose values can be compared with a manifest list: by their places, with their columns."""
    spec_id = manifest.partition_spec_id
    columns = zip(partitions.columns(spec_id), partitions.structs[spec_id].fields, strict=True)
    return {
        place: (name, field)
        for place, (name, field) in enumerate(columns)
        if _has_one_order(field.field_type) and name in entries.columns
    }


def _has_one_order(kind: IcebergType) -> bool:
    """Whether all who write stored values of a type order them alike."""
    return isinstance(kind, StringType) or (isinstance(kind, PrimitiveType) and kind.integer_bits > 0)


def _check_range(manifest: ManifestFile, summary: FieldSummary, field: NestedField, low: Any, high: Any) -> None:
    """Compares the partition values of a field in live entries with the manifest list."""
    least = _bound(field.field_type, summary.lower_bound, low, manifest)
    most = _bound(field.field_type, summary.upper_bound, high, manifest)
    if low < least or high > most:
        raise CorruptManifestError(
            f"Cannot read manifest {manifest.manifest_path}: its files have partition values {field.name} from {low!r} "
            f"to {high!r}, the manifest list says {least!r} to {most!r}. The file was damaged or replaced. Restore it, "
            "or go back to a snapshot that does not use it."
        )


def _bound(kind: IcebergType, bound: bytes | None, found: Any, manifest: ManifestFile) -> Any:
    """A bound of a summary; the value found if there is none or it is not of the kind."""
    try:
        value = found if bound is None else from_bytes(kind, bound)
    except IcebergError as error:
        raise CorruptManifestError(
            f"Cannot read the partition summaries of manifest {manifest.manifest_path}: {error}"
        ) from error
    return value if isinstance(value, type(found)) else found
