"""The metrics of files, one column at a time.

A file's metrics are maps from field id to value. Here the values of one field become a column with one row per file,
null if the file says nothing of the field. The files are those of a manifest, whose metrics are decoded when they
are first looked at; or objects: data files that are being committed, row groups of a file that is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hms_iceberg.expressions.bound import BoundReference
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import decode_bounds
from hms_iceberg.spec.data_types import IcebergType, UUIDType

# A map of metrics and a field: ("lower_bounds", 3). Without a field, the whole map.
Metric = tuple[str, int | None]
# How many values of maps are looked for in one go.
_PLACES_AT_ONCE = 4_000_000


def metric_name(metric: Metric) -> str:
    """The column that a metric is decoded to."""
    name, field_id = metric
    return name if field_id is None else f"{name}.{field_id}"


def metric_dtype(metric: Metric) -> Any:
    """The polars type of a metric: of the values of a map, or of the map."""
    name, field_id = metric
    value = pl.Binary if name.endswith("bounds") else pl.Int64
    return pl.List(pl.Struct({"key": pl.Int32, "value": value})) if field_id is None else value


class ContentMetrics(Protocol):
    """The part of a file that metrics are read from; `spec.manifests.DataFile` has it."""

    @property
    def record_count(self) -> int:
        """Rows in the file."""

    @property
    def value_counts(self) -> Mapping[int, int] | None:
        """Field id to number of values, nulls and NaN included."""

    @property
    def null_value_counts(self) -> Mapping[int, int] | None:
        """Field id to number of nulls."""

    @property
    def nan_value_counts(self) -> Mapping[int, int] | None:
        """Field id to number of NaN."""

    @property
    def lower_bounds(self) -> Mapping[int, bytes] | None:
        """Field id to lower bound as single-value bytes."""

    @property
    def upper_bounds(self) -> Mapping[int, bytes] | None:
        """Field id to upper bound as single-value bytes."""


class MetricSource(Protocol):
    """Where the metrics of some files are."""

    @property
    def record_counts(self) -> pl.Series:
        """Rows in each file."""

    @property
    def row_groups(self) -> pl.Series:
        """In how many parts each file may be split; 0 if unknown."""

    def load(self, metrics: Sequence[Metric]) -> Mapping[Metric, pl.Series]:
        """Loads metrics of fields; null if a file has none."""


class ObjectMetrics:
    """Metrics of files that are objects; a `MetricSource`."""

    def __init__(self, files: Sequence[ContentMetrics]) -> None:
        self._files = files

    @property
    def record_counts(self) -> pl.Series:
        return pl.Series([each.record_count for each in self._files], dtype=pl.Int64)

    @property
    def row_groups(self) -> pl.Series:
        """In how many parts each file may be split; 0 if unknown."""
        return pl.Series([len(getattr(each, "split_offsets", None) or ()) for each in self._files], dtype=pl.UInt32)

    def load(self, metrics: Sequence[Metric]) -> Mapping[Metric, pl.Series]:
        return {metric: self._column(metric) for metric in metrics}

    def _column(self, metric: Metric) -> pl.Series:
        name, field_id = metric
        maps: list[Mapping[int | None, Any] | None] = [getattr(each, name) for each in self._files]
        values = [None if each is None else each.get(field_id) for each in maps]
        return pl.Series(values, dtype=metric_dtype(metric))


class MetricColumns:
    """Metrics by field id, one row for each file, each column made once. A missing value is unknown, and so possible:
    nothing was written, or rows have the column's initial default."""

    def __init__(self, source: MetricSource, loaded: Mapping[Metric, pl.Series] | None = None) -> None:
        self._source = source
        self._values: dict[Metric, pl.Series] = {}
        self._bounds: dict[tuple[str, int, IcebergType], pl.Series] = {}
        self.keep(loaded or {})

    def __len__(self) -> int:
        return len(self.record_counts)

    @property
    def record_counts(self) -> pl.Series:
        return self._source.record_counts

    @property
    def loaded(self) -> Mapping[Metric, pl.Series]:
        return self._values

    def has(self, metrics: Sequence[Metric]) -> bool:
        return self._values.keys() >= set(metrics)

    def on(self, source: MetricSource) -> MetricColumns:
        """Keeps the loaded columns but for whole maps, which are large, and loads others from another source."""
        copy = MetricColumns(source, {each: values for each, values in self._values.items() if each[1] is not None})
        copy._bounds.update(self._bounds)
        return copy

    def prepare(self, metrics: Iterable[Metric]) -> None:
        """Loads several metrics at once, those that are not loaded yet."""
        missing = [metric for metric in metrics if metric not in self._values]
        if missing:
            self.keep(self._source.load(missing))

    def keep(self, loaded: Mapping[Metric, pl.Series]) -> None:
        """Takes metrics that were loaded elsewhere."""
        for metric, values in loaded.items():
            # A negative count stands for an unknown one.
            is_count = metric[0].endswith("counts") and metric[1] is not None
            self._values[metric] = values.set(values < 0, None) if is_count else values

    @property
    def columns_made(self) -> int:
        """The number of columns that were decoded from the source."""
        return len(self._values) + len(self._bounds)

    @property
    def size(self) -> int:
        return sum(int(each.estimated_size()) for each in (*self._values.values(), *self._bounds.values()))

    def value_counts(self, field_id: int) -> pl.Series:
        """Values of a field in each file, nulls and NaN included."""
        return self._column("value_counts", field_id)

    def null_counts(self, field_id: int) -> pl.Series:
        return self._column("null_value_counts", field_id)

    def nan_counts(self, field_id: int) -> pl.Series:
        return self._column("nan_value_counts", field_id)

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        """Lower and upper bounds of a field as they are stored."""
        self.prepare((("lower_bounds", field_id), ("upper_bounds", field_id)))
        return self._column("lower_bounds", field_id), self._column("upper_bounds", field_id)

    # ------------------------------------------------------------- what the rules of `metrics_filter` ask

    def lower(self, ref: BoundReference) -> pl.Series:
        """Lower bounds of a field, comparable (see :mod:`hms_iceberg.scan.partition_columns`)."""
        return self._bound("lower_bounds", ref)

    def upper(self, ref: BoundReference) -> pl.Series:
        return self._bound("upper_bounds", ref)

    def bounds(self, ref: BoundReference) -> tuple[pl.Series, pl.Series]:
        """Lower and upper bounds of a field, decoded at once."""
        self.prepare((("lower_bounds", ref.field_id), ("upper_bounds", ref.field_id)))
        return self.lower(ref), self.upper(ref)

    def may_be_null(self, ref: BoundReference) -> pl.Series:
        nulls = possibly(self.null_counts(ref.field_id) != 0)
        return nulls | self._uncounted_rows(ref) if _in_optional(ref) else nulls

    def may_be_value(self, ref: BoundReference) -> pl.Series:
        self.prepare((("value_counts", ref.field_id), ("null_value_counts", ref.field_id)))
        return possibly(self.value_counts(ref.field_id) != self.null_counts(ref.field_id))

    def may_be_nan(self, ref: BoundReference) -> pl.Series:
        return possibly(self.nan_counts(ref.field_id) != 0)

    def may_not_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where some row may be null, or a value other than NaN."""
        others = possibly(self.nan_counts(ref.field_id) != self.value_counts(ref.field_id))
        return others | self._uncounted_rows(ref) if _in_optional(ref) else others

    def may_be_number(self, ref: BoundReference) -> pl.Series:
        self.prepare((name, ref.field_id) for name in ("value_counts", "null_value_counts", "nan_value_counts"))
        known = self.nan_counts(ref.field_id) + self.null_counts(ref.field_id).fill_null(0)
        return possibly(known != self.value_counts(ref.field_id))

    def _uncounted_rows(self, ref: BoundReference) -> pl.Series:
        """Where values may be missing from the counts: some writers leave out rows whose struct is null."""
        every_row = self.value_counts(ref.field_id) == self.record_counts
        return ~every_row.fill_null(False)

    def _bound(self, name: str, ref: BoundReference) -> pl.Series:
        key = (name, ref.field_id, ref.type)
        if key not in self._bounds:
            stored = self._column(name, ref.field_id)
            if isinstance(ref.type, UUIDType):
                stored = self._of_one_row_group(stored)
            self._bounds[key] = decode_bounds(stored, ref.type)
        return self._bounds[key]

    def _of_one_row_group(self, stored: pl.Series) -> pl.Series:
        """Bounds of UUIDs that can be relied on: Java merges those of several row groups in another order."""
        nothing = pl.Series([None], dtype=pl.Binary).new_from_index(0, len(stored))
        return stored.zip_with(self._source.row_groups <= 1, nothing)

    def _column(self, name: str, field_id: int) -> pl.Series:
        self.prepare(((name, field_id),))
        return self._values[name, field_id]


def _in_optional(ref: BoundReference) -> bool:
    """Whether a field is null if a struct around it is."""
    return any(parent.optional for parent in ref.path[:-1])


def possibly(known: pl.Series) -> pl.Series:
    """True also where it is not known."""
    return known.fill_null(True) if known.null_count() else known


def map_values(maps: pl.Series, keys: Sequence[int]) -> list[pl.Series]:
    """The values of some keys in each of a column of maps, null if a map lacks one; the last of several counts."""
    value_type = maps.dtype.inner.to_schema()["value"]  # type: ignore[attr-defined]
    sizes = maps.list.len().fill_null(0).to_numpy()
    if not sizes.any():
        return [pl.Series([None], dtype=value_type).new_from_index(0, len(maps)) for _ in keys]
    pairs = maps.filter(pl.Series(sizes > 0)).explode()
    found, values = pairs.struct.field("key").to_numpy(), pairs.struct.field("value")
    rows = np.repeat(np.arange(len(maps)), sizes)
    step = max(1, _PLACES_AT_ONCE // len(maps))
    columns: list[pl.Series] = []
    for some in (keys[start : start + step] for start in range(0, len(keys), step)):
        ordered = np.sort(np.array(some))
        column = np.minimum(np.searchsorted(ordered, found), len(some) - 1)
        wanted = np.flatnonzero(ordered[column] == found)
        places = np.full((len(some), len(maps)), -1, np.int64)
        places[column[wanted], rows[wanted]] = wanted
        columns += [_gathered(values, places[np.searchsorted(ordered, key)]) for key in some]
    return columns


def _gathered(values: pl.Series, places: np.ndarray) -> pl.Series:
    """Values at some places, null for those that are negative."""
    chosen = pl.Series(places)
    return values.gather(chosen if (places >= 0).all() else chosen.set(chosen < 0, None))
