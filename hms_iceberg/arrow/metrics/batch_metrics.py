"""Column metrics counted while batches are written, for formats whose files do not hold them.

Source: Iceberg specification, "Data File Fields" (counts and bounds), "Appendix D".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import integer_type, to_stored
from hms_iceberg.arrow.columns.shape_columns import NoShapeError, extents
from hms_iceberg.arrow.metrics.footer_metrics import NONE, ColumnMetrics, MetricsMode
from hms_iceberg.spec.data_types import (
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    UnknownType,
    UUIDType,
    leaf_positions,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.shapes import Extent
from hms_iceberg.spec.values.single_values import bounds_to_bytes, corners_of

SHAPES = (GeometryType, GeographyType)


class BatchMetrics:
    """Counts values, nulls and NaN and keeps bounds of the leaves that are in no list or map."""

    def __init__(
        self,
        schema: Schema,
        modes: Mapping[int, MetricsMode],
        kinds: tuple[type[IcebergType], ...] = (IcebergType,),
    ) -> None:
        self._leaves = [
            (_Shapes if isinstance(field.field_type, SHAPES) else _Leaf)(field, path, modes[field.field_id])
            for field, path in leaf_positions(schema.fields)
            if modes.get(field.field_id, NONE).counts and isinstance(field.field_type, kinds)
        ]

    def add(self, batch: pa.RecordBatch) -> None:
        for leaf in self._leaves:
            leaf.add(batch)

    def result(self) -> ColumnMetrics:
        metrics = ColumnMetrics()
        for leaf in self._leaves:
            leaf.put(metrics)
        return metrics


class _Leaf:
    def __init__(self, field: NestedField, path: tuple[int, ...], mode: MetricsMode) -> None:
        self._id = field.field_id
        self._kind: IcebergType = field.field_type
        self._path = path
        self._mode = mode
        self._values = self._nulls = self._nans = 0
        self._floating = False
        self._low: Any = None
        self._high: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        array = batch.column(self._path[0])
        for position in self._path[1:]:
            array = pc.struct_field(array, [position])
        self._values += len(array)
        self._nulls += array.null_count
        if pa.types.is_floating(array.type):
            self._floating = True
            nan = pc.is_nan(array)
            count = pc.sum(nan).as_py() or 0
            self._nans += count
            if count:
                array = array.filter(pc.invert(nan))
        if self._mode.bounds and not isinstance(self._kind, UnknownType) and array.null_count < len(array):
            self._widen(array)

    def _widen(self, array: pa.Array) -> None:
        if isinstance(self._kind, (FixedType, UUIDType)):
            array = array.cast(pa.binary())
        elif integers := integer_type(self._kind):
            array = array.view(integers)
        found = pc.min_max(array)
        pair = pa.array([found["min"], found["max"]], array.type)
        if isinstance(self._kind, UUIDType):
            pair = pair.cast(pa.binary(16))
        low, high = to_stored(pair, self._kind)
        if self._floating:  # a zero may have stood for the other one; as a bound either sign must be covered
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        self._low = low if self._low is None else min(self._low, low, key=_ordering)
        self._high = high if self._high is None else max(self._high, high, key=_ordering)

    def put(self, metrics: ColumnMetrics) -> None:
        metrics.value_counts[self._id] = self._values
        metrics.null_value_counts[self._id] = self._nulls
        if self._floating:
            metrics.nan_value_counts[self._id] = self._nans
        if self._low is None:
            return
        lower, upper = bounds_to_bytes(self._kind, self._low, self._high, self._mode.width)
        metrics.lower_bounds[self._id] = lower
        if upper is not None:
            metrics.upper_bounds[self._id] = upper


class _Shapes(_Leaf):
    """Bounds of a geometry or geography: the corners of the box around the coordinates."""

    def __init__(self, field: NestedField, path: tuple[int, ...], mode: MetricsMode) -> None:
        super().__init__(field, path, mode)
        self._found: Extent | None = None
        self._known = True

    def _widen(self, array: pa.Array) -> None:
        try:
            found = extents(array.storage if isinstance(array, pa.ExtensionArray) else array)
        except NoShapeError:  # as others wrote it: what it covers is not known
            self._known = False
            return
        # What edges on the globe reach beyond their ends depends on how they are interpolated.
        self._known = self._known and not (found.edges and isinstance(self._kind, GeographyType))
        self._found = found.whole() if self._found is None else self._found.widened(found.whole())

    def put(self, metrics: ColumnMetrics) -> None:
        super().put(metrics)
        assert isinstance(self._kind, SHAPES)
        corners = corners_of(self._found, self._kind) if self._known and self._found is not None else None
        if corners is not None:
            metrics.lower_bounds[self._id], metrics.upper_bounds[self._id] = corners


def _ordering(value: Any) -> Any:
    return (value, math.copysign(1.0, value)) if isinstance(value, float) else value
