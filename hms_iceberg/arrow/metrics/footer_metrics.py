"""The column metrics that a table keeps (write.metadata.metrics.*), and those of Parquet files from their footers.

Only footers are read, so that a migration can take in thousands of files. Source: Iceberg specification, "Data File
Fields", "Appendix D: Single-value serialization"; Iceberg documentation, "Configuration"; Parquet's statistics.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_types import bound_decoder
from hms_iceberg.arrow.columns.geoarrow import footer_corners
from hms_iceberg.arrow.columns.legacy_calendar import Rule, text_marks, writer_calendar
from hms_iceberg.arrow.columns.projection import FileLeaf, file_leaves, identified
from hms_iceberg.arrow.metrics.file_footer import ChunkStatistics, FileFooter, FooterEnd
from hms_iceberg.arrow.metrics.variant_bounds import variant_bounds
from hms_iceberg.arrow.storage.arrow_storage import open_for_arrow
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.data_types import (
    GeographyType,
    GeometryType,
    IcebergType,
    NestedType,
    VariantType,
)
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import LINEAGE
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import COLUMN_METRICS_MODE, DEFAULT_METRICS_MODE, METRICS_MAX_COLUMNS
from hms_iceberg.spec.values.single_values import bounds_to_bytes
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """The metrics kept for one column; bounds are cut to `width` code points or bytes, None keeps them whole."""

    counts: bool
    bounds: bool
    width: int | None = None


NONE = MetricsMode(False, False)
COUNTS = MetricsMode(True, False)
FULL = MetricsMode(True, True)
TRUNCATE_16 = MetricsMode(True, True, 16)
_NAMED = {"none": NONE, "counts": COUNTS, "full": FULL}


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], sort_order: SortOrder | None = None
) -> dict[int, MetricsMode]:
    """The metrics mode of every primitive field and lineage column by field id. As in Java, only the first 100 columns
    have one by default, columns of the sort order keep bounds, and a setting that says nothing of a mode is passed over
    with a warning: tables have had such ones for years."""
    is_set = DEFAULT_METRICS_MODE.name in properties
    default = _mode_of(DEFAULT_METRICS_MODE.name, DEFAULT_METRICS_MODE.of(properties), TRUNCATE_16)
    primitives = list(_primitive_ids(schema.as_struct()))
    limit = len(primitives) if is_set else _max_columns(properties)
    modes = {field_id: default if index < limit else NONE for index, field_id in enumerate(primitives)}
    modes |= dict.fromkeys(LINEAGE, default if len(primitives) <= limit else NONE)
    for sorted_by in sort_order.fields if sort_order is not None else ():
        if sorted_by.source_id in modes and not modes[sorted_by.source_id].bounds:
            modes[sorted_by.source_id] = TRUNCATE_16
    for name, text in COLUMN_METRICS_MODE.of_columns(properties):
        column = schema.index_by_name.get(name)
        if column in modes:
            modes[column] = _mode_of(COLUMN_METRICS_MODE.name + name, text, modes[column])
    return modes


def _mode_of(name: str, text: str, otherwise: MetricsMode) -> MetricsMode:
    match = DEFAULT_METRICS_MODE.match(text)
    if match is None:
        logger.warning("Property %s is %r, expected %s. It is passed over.", name, text, DEFAULT_METRICS_MODE.expected)
        return otherwise
    return MetricsMode(True, True, int(match[1])) if match[1] else _NAMED[match[0]]


def _max_columns(properties: Mapping[str, str]) -> int:
    limit = METRICS_MAX_COLUMNS.of(properties)
    if limit < 0:
        logger.warning("Property %s is %d, and is passed over.", METRICS_MAX_COLUMNS.name, limit)
        return METRICS_MAX_COLUMNS.default
    return limit


def _primitive_ids(kind: IcebergType) -> Iterator[int]:
    """Ids of primitive fields: first the columns of a struct, then what is nested in them."""
    if not isinstance(kind, NestedType):
        return
    children = kind.children()
    yield from (child.field_id for child in children if not isinstance(child.field_type, NestedType))
    for child in children:
        yield from _primitive_ids(child.field_type)


FloatBounds = Mapping[int, tuple[float, float] | None]
# What is read of a file to find its footer, at once; most footers are smaller.
_TAIL_BYTES = 64 * 1024
AS_STORED = {"coerce_int96_timestamp_unit": "us", "arrow_extensions_enabled": False}
"""How pyarrow gives the columns of a file."""


@dataclass(frozen=True, slots=True)
class ColumnMetrics:
    """The metrics of a content file by field id, named as in `DataFile`."""

    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)

    def update(self, other: ColumnMetrics) -> None:
        for name in self.__slots__:
            getattr(self, name).update(getattr(other, name))

    def as_fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class ColumnFile(pq.ParquetFile):
    """A Parquet file whose columns are asked for by their places: it makes no table of their names, which takes longer
    than all else of a wide file's footer."""

    def _build_nested_paths(self) -> dict[str, list[int]]:
        return {}


def read_footer(storage: Storage, location: str) -> FileFooter:
    """The footer of a Parquet file that others may have written; its numbers do not contradict each other."""
    with open_for_arrow(storage, location) as file, decoding(location, "Parquet", "its footer"):
        footer = footer_of(file, location)
        footer.check(location)
        return footer


def footer_of(file: pa.NativeFile, location: str) -> FileFooter:
    """The footer of an open Parquet file, read in one piece if it is not large; a damaged one raises errors of pyarrow
    or OSError."""
    size = file.size()
    tail = file.read_at(min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
    needed = int.from_bytes(tail[-8:-4], "little") + 12 if tail[-4:] == b"PAR1" else 0
    if len(tail) < needed <= size:
        tail = file.read_at(needed, size - needed)
    whole = pa.BufferReader(tail) if 0 < needed <= len(tail) else file
    opened = ColumnFile(whole, **AS_STORED)
    metadata = opened.metadata
    end = FooterEnd.of(metadata, tail[4 - needed : -8])
    if end.is_encrypted:
        raise UnsupportedError(
            f"Cannot read {location}: its columns are encrypted with keys of Parquet's own, which only those have who "
            "wrote it. Write it anew without."
        )
    return FileFooter(metadata, end, opened.schema_arrow)


def data_file_from_parquet(
    storage: Storage,
    location: str,
    schema: Schema,
    *,
    spec_id: int = 0,
    partition: tuple[Any, ...] = (),
    properties: Mapping[str, str] | None = None,
    name_mapping: NameMapping | None = None,
    content: DataFileContent = DataFileContent.DATA,
    modes: Mapping[int, MetricsMode] | None = None,
    sort_order_id: int | None = None,
    size: int | None = None,
    footer: FileFooter | None = None,
    nan_counts: Mapping[int, int] | None = None,
    float_bounds: FloatBounds | None = None,
    equality_ids: tuple[int, ...] | None = None,
    counted: ColumnMetrics | None = None,
    nan_leaves: Collection[int] = (),
    key_metadata: bytes | None = None,
) -> DataFile:
    """Describes a Parquet file as a manifest does, from its footer alone. `counted` metrics and `float_bounds` of the
    writer go before the footer's; `nan_counts` and `nan_leaves` are not in footers."""
    if footer is None:
        footer = read_footer(storage, location)
    if modes is None:
        modes = metrics_modes(schema, properties or {})
    leaves = leaves_of_footer(footer.metadata, name_mapping, location)
    metrics = metrics_from_footer(
        footer, leaves, schema, modes, nan_counts or {}, float_bounds=float_bounds or {}, nan_leaves=nan_leaves
    )
    if counted is not None:
        metrics.update(counted)
    return DataFile(
        content=content,
        file_path=location,
        file_format="PARQUET",
        spec_id=spec_id,
        partition=partition,
        record_count=footer.rows,
        file_size_in_bytes=storage.length(location) if size is None else size,
        split_offsets=split_offsets(footer.metadata),
        sort_order_id=sort_order_id,
        equality_ids=equality_ids,
        key_metadata=key_metadata,
        **metrics.as_fields(),
    )


def leaves_of_footer(footer: pq.FileMetaData, mapping: NameMapping | None, location: str) -> list[FileLeaf]:
    """The leaves of a Parquet file with their field ids; refuses a footer whose schema Arrow reads otherwise."""
    leaves = file_leaves(identified(footer.schema.to_arrow_schema(), mapping))
    if len(leaves) != footer.num_columns:
        raise CorruptDataFileError(
            f"Cannot read the footer of {location}: its schema has {len(leaves)} columns, its row groups "
            f"{footer.num_columns}."
        )
    return leaves


def calendar_rules(footer: pq.FileMetaData, leaves: list[FileLeaf]) -> dict[int, Rule]:
    """The rules that make values of a file's leaves proleptic, by the leaf's place; empty for a file of the proleptic
    calendar."""
    if not any(pa.types.is_temporal(leaf.type) for leaf in leaves):
        return {}
    calendar = writer_calendar(text_marks(footer.metadata))
    if not calendar.is_legacy:
        return {}
    found = (
        (leaf.index, calendar.rule(leaf.type, footer.schema.column(leaf.index).physical_type == "INT96"))
        for leaf in leaves
    )
    return {index: rule for index, rule in found if rule is not None}


def split_offsets(footer: pq.FileMetaData) -> tuple[int, ...] | None:
    """The start of each row group, ascending; None for a file without rows or with offsets that make no sense."""
    starts = []
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        if not group.num_columns:
            return None
        chunk = group.column(0)
        start = chunk.data_page_offset
        if chunk.dictionary_page_offset:
            start = min(start, chunk.dictionary_page_offset)
        starts.append(start)
    ascending = all(left < right for left, right in itertools.pairwise(starts))
    return tuple(starts) if starts and ascending else None


def metrics_from_footer(
    footer: FileFooter,
    leaves: list[FileLeaf],
    schema: Schema,
    modes: Mapping[int, MetricsMode],
    nan_counts: Mapping[int, int],
    row_groups: range | list[int] | None = None,
    float_bounds: FloatBounds = MappingProxyType({}),
    rules: Mapping[int, Rule] | None = None,
    nan_leaves: Collection[int] = (),
) -> ColumnMetrics:
    """Metrics of a Parquet file, or of some of its row groups. As in Java, fields inside lists and maps have only
    sizes, and a column needs statistics in every row group. `float_bounds` go before the footer's."""
    metrics = ColumnMetrics()
    groups = range(footer.metadata.num_row_groups) if row_groups is None else row_groups
    rules = calendar_rules(footer.metadata, leaves) if rules is None else rules
    by_id: dict[int, list[FileLeaf]] = defaultdict(list)
    for leaf in leaves:
        if leaf.owner_id is not None:
            by_id[leaf.owner_id].append(leaf)
    for field_id, same in by_id.items():
        mode = modes.get(field_id, NONE)
        known = schema.index_by_id.get(field_id) or LINEAGE.get(field_id)
        if mode.counts and known is not None and isinstance(known.field_type, VariantType):
            _variants(metrics, field_id, footer, groups, same, mode, rules, nan_leaves)
        if not mode.counts or known is None or len(same) != 1 or not known.field_type.is_primitive:
            continue
        leaf = same[0]
        if leaf.field_id != field_id:
            continue
        chunks = [footer.metadata.row_group(group).column(leaf.index) for group in groups]
        metrics.column_sizes[field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        if leaf.repeated:
            continue
        statistics = [footer.statistics(group, leaf.index) for group in groups]
        _counts(metrics, field_id, statistics, footer.metadata.schema.column(leaf.index), nan_counts)
        if isinstance(known.field_type, (GeometryType, GeographyType)):
            corners = footer_corners(chunks, known.field_type) if mode.bounds else None
            if corners is not None:
                metrics.lower_bounds[field_id], metrics.upper_bounds[field_id] = corners
        elif mode.bounds and field_id in float_bounds:
            _known_bounds(metrics, field_id, known.field_type, float_bounds[field_id])
        elif mode.bounds:
            _bounds(metrics, field_id, statistics, leaf, known.field_type, mode.width, rules.get(leaf.index))
    return metrics


def _counts(
    metrics: ColumnMetrics,
    field_id: int,
    statistics: Sequence[ChunkStatistics],
    descriptor: Any,
    nan_counts: Mapping[int, int],
) -> None:
    metrics.value_counts[field_id] = sum(each.values for each in statistics)
    if descriptor.max_definition_level == 0:
        metrics.null_value_counts[field_id] = 0
    else:
        nulls = [each.nulls for each in statistics if each.nulls is not None]
        if len(nulls) == len(statistics):
            metrics.null_value_counts[field_id] = sum(nulls)
    if field_id in nan_counts:
        metrics.nan_value_counts[field_id] = nan_counts[field_id]


def _variants(
    metrics: ColumnMetrics,
    field_id: int,
    footer: FileFooter,
    groups: Sequence[int],
    leaves: list[FileLeaf],
    mode: MetricsMode,
    rules: Mapping[int, Rule],
    nan_leaves: Collection[int],
) -> None:
    metadata = next((leaf for leaf in leaves if leaf.below == ("metadata",) and not leaf.repeated), None)
    if metadata is None:
        return
    statistics = [footer.statistics(group, metadata.index) for group in groups]
    _counts(metrics, field_id, statistics, footer.metadata.schema.column(metadata.index), {})
    if mode.bounds:
        bounds = variant_bounds(footer, groups, leaves, mode.width, rules, nan_leaves)
        for kept, bound in zip((metrics.lower_bounds, metrics.upper_bounds), bounds, strict=True):
            if bound is not None:
                kept[field_id] = bound


def _known_bounds(metrics: ColumnMetrics, field_id: int, kind: IcebergType, bounds: tuple[float, float] | None) -> None:
    if bounds is not None:
        lower, upper = bounds_to_bytes(kind, *bounds, None)
        metrics.lower_bounds[field_id] = lower
        metrics.upper_bounds[field_id] = upper or b""


def _bounds(
    metrics: ColumnMetrics,
    field_id: int,
    statistics: Sequence[ChunkStatistics],
    leaf: FileLeaf,
    kind: IcebergType,
    width: int | None,
    rule: Rule | None,
) -> None:
    decode = bound_decoder(leaf.type, kind)
    if decode is None:
        return
    lows, highs = [], []
    for each in statistics:
        if each.extremes is None:
            if each.is_null:
                continue  # nothing to bound
            return
        if rule is not None and rule.changes(leaf.type, each.extremes[0]):
            return  # to some readers the values are others than to some
        low, high = decode(each.extremes[0], False), decode(each.extremes[1], True)
        if low is None or high is None:
            return
        lows.append(low)
        highs.append(high)
    if not lows:
        return
    low, high = min(lows, key=_ordering), max(highs, key=_ordering)
    lower, upper = bounds_to_bytes(kind, low, high, width)
    metrics.lower_bounds[field_id] = lower
    if upper is not None:
        metrics.upper_bounds[field_id] = upper


def _ordering(value: Any) -> Any:
    """Sorts -0.0 before 0.0, as bounds must."""
    return (value, math.copysign(1.0, value)) if isinstance(value, float) else value
