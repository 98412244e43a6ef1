"""The metrics of a manifest's files, one column at a time.

A manifest stores metrics as maps from field id to value. Here the values of one field become a column with one row
per file, null where the file says nothing of the field. Maps are decoded when they are first looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hms_iceberg.lazy import pl
from hms_iceberg.scan.bound_columns import decode_bounds
from hms_iceberg.spec.types import IcebergType, UUIDType


class MetricColumns:
    """Metrics by field id over the rows of one frame; each column is made once.

    Args:
        files: the files, with ``record_count`` and ``split_offsets``.
        load: decodes some of ``METRIC_COLUMNS``, in the rows of ``files``.
        maps: map columns that are decoded already.
    """

    def __init__(
        self,
        files: pl.DataFrame,
        load: Callable[[Sequence[str]], pl.DataFrame],
        maps: dict[str, pl.Series] | None = None,
    ) -> None:
        self._files = files
        self._load = load
        self._maps: dict[str, pl.Series] = dict(maps or {})
        self._values: dict[tuple[str, int], pl.Series] = {}
        self._bounds: dict[tuple[str, int, IcebergType], pl.Series] = {}

    def __len__(self) -> int:
        return self._files.height

    @property
    def record_counts(self) -> pl.Series:
        """Rows in each file."""
        return self._files["record_count"]

    @property
    def columns_made(self) -> int:
        """How many columns are decoded."""
        return len(self._maps) + len(self._values) + len(self._bounds)

    @property
    def size(self) -> int:
        """Bytes of what is decoded."""
        series = [*self._maps.values(), *self._values.values(), *self._bounds.values()]
        return sum(int(each.estimated_size()) for each in series)

    def value_counts(self, field_id: int) -> pl.Series:
        """Values of a field in each file, nulls and NaN included."""
        return self._column("value_counts", field_id)

    def null_counts(self, field_id: int) -> pl.Series:
        """Nulls of a field in each file."""
        return self._column("null_value_counts", field_id)

    def nan_counts(self, field_id: int) -> pl.Series:
        """NaN of a field in each file."""
        return self._column("nan_value_counts", field_id)

    def lower_bounds(self, field_id: int, field_type: IcebergType) -> pl.Series:
        """Lower bounds of a field, comparable (see :mod:`hms_iceberg.scan.bound_columns`)."""
        return self._bound("lower_bounds", field_id, field_type)

    def upper_bounds(self, field_id: int, field_type: IcebergType) -> pl.Series:
        """Upper bounds of a field, comparable."""
        return self._bound("upper_bounds", field_id, field_type)

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        """Lower and upper bounds of a field as they are stored."""
        self.prepare(("lower_bounds", "upper_bounds"))
        return self._column("lower_bounds", field_id), self._column("upper_bounds", field_id)

    def prepare(self, names: Sequence[str]) -> None:
        """Decode several map columns at once, where they are not yet."""
        missing = [name for name in names if name not in self._maps]
        if missing:
            self._maps.update(self._load(missing).to_dict())

    def maps(self, name: str) -> pl.Series:
        """A whole map column."""
        self.prepare((name,))
        return self._maps[name]

    def _bound(self, name: str, field_id: int, field_type: IcebergType) -> pl.Series:
        key = (name, field_id, field_type)
        if key not in self._bounds:
            stored = self._column(name, field_id)
            if isinstance(field_type, UUIDType):
                stored = self._of_one_row_group(stored)
            self._bounds[key] = decode_bounds(stored, field_type)
        return self._bounds[key]

    def _of_one_row_group(self, stored: pl.Series) -> pl.Series:
        """Bounds of UUIDs that can be relied on: Java merges those of several row groups in another order."""
        row_groups = self._files["split_offsets"].list.len().fill_null(0)
        return stored.zip_with(row_groups <= 1, pl.Series([None], dtype=pl.Binary).new_from_index(0, len(stored)))

    def _column(self, name: str, field_id: int) -> pl.Series:
        key = (name, field_id)
        if key not in self._values:
            values = map_values(self.maps(name), field_id)
            if name.endswith("counts"):
                # A negative count stands for an unknown one.
                values = values.set(values < 0, None)
            self._values[key] = values
        return self._values[key]


def map_values(maps: pl.Series, key: int) -> pl.Series:
    """The value of one key in each of a column of maps, null where a map lacks it.

    Args:
        maps: lists of key/value structs.
        key: the key.
    """
    value_type = maps.dtype.inner.to_schema()["value"]  # type: ignore[attr-defined]
    if len(maps) == 0 or maps.null_count() == len(maps):
        return pl.Series(maps.name, [None] * len(maps), dtype=value_type)
    # Files of one writer list their columns in the same order: look where the first file has the key.
    first = maps[0]
    keys = [] if first is None else first.struct.field("key").to_list()
    if key in keys:
        at_place = maps.list.get(keys.index(key), null_on_oob=True)
        if (at_place.struct.field("key") == key).sum() == len(maps):
            return at_place.struct.field("value")
    pairs = pl.DataFrame({"pair": maps}).with_row_index("row").explode("pair").unnest("pair")
    values = pairs.filter(pl.col("key") == key).unique("row", keep="last", maintain_order=True)
    rows = pl.DataFrame({"row": pl.Series(range(len(maps)), dtype=pl.UInt32)})
    return rows.join(values.select("row", "value"), on="row", how="left", maintain_order="left")["value"]
