"""The metrics of a frame's files, one column at a time.

A manifest stores metrics as maps from field id to value. Here the values of one field become a column with one row
per file, null where the file says nothing of the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_iceberg.scan.bounds import decode_bounds
from hms_iceberg.spec.types import IcebergType

if TYPE_CHECKING:
    import polars as pl


class MetricColumns:
    """Metrics by field id over the rows of one frame; each column is made once.

    Args:
        frame: a frame with ``record_count`` and the columns of ``METRIC_COLUMNS``.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self._values: dict[tuple[str, int], pl.Series] = {}
        self._bounds: dict[tuple[str, int, IcebergType], pl.Series] = {}

    def __len__(self) -> int:
        return self._frame.height

    @property
    def record_counts(self) -> pl.Series:
        """Rows in each file."""
        return self._frame["record_count"]

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
        """Lower bounds of a field, comparable (see :mod:`hms_iceberg.scan.bounds`)."""
        return self._bound("lower_bounds", field_id, field_type)

    def upper_bounds(self, field_id: int, field_type: IcebergType) -> pl.Series:
        """Upper bounds of a field, comparable."""
        return self._bound("upper_bounds", field_id, field_type)

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        """Lower and upper bounds of a field as they are stored."""
        return self._column("lower_bounds", field_id), self._column("upper_bounds", field_id)

    def _bound(self, name: str, field_id: int, field_type: IcebergType) -> pl.Series:
        key = (name, field_id, field_type)
        if key not in self._bounds:
            self._bounds[key] = decode_bounds(self._column(name, field_id), field_type)
        return self._bounds[key]

    def _column(self, name: str, field_id: int) -> pl.Series:
        key = (name, field_id)
        if key not in self._values:
            self._values[key] = map_values(self._frame[name], field_id)
        return self._values[key]


def map_values(maps: pl.Series, key: int) -> pl.Series:
    """The value of one key in each of a column of maps, null where a map lacks it.

    Args:
        maps: lists of key/value structs.
        key: the key.
    """
    import polars as pl

    value_type = maps.dtype.inner.to_schema()["value"]  # type: ignore[attr-defined]
    first = maps[0] if len(maps) else None
    # Files of one writer list their columns in the same order: look where the first file has the key.
    keys = [] if first is None else first.struct.field("key").to_list()
    if key in keys:
        pairs = maps.list.get(keys.index(key), null_on_oob=True)
        found = pairs.struct.field("key") == key
        if found.sum() == len(maps):
            return pairs.struct.field("value")
    if len(maps) == 0 or maps.null_count() == len(maps):
        return pl.Series(maps.name, [None] * len(maps), dtype=value_type)
    pairs = pl.DataFrame({"pair": maps}).with_row_index("row").explode("pair").unnest("pair")
    values = pairs.filter(pl.col("key") == key).unique("row", keep="last", maintain_order=True)
    rows = pl.DataFrame({"row": pl.Series(range(len(maps)), dtype=pl.UInt32)})
    return rows.join(values.select("row", "value"), on="row", how="left", maintain_order="left")["value"]
