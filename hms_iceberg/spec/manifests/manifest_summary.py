"""What a manifest list says of the partitions in a manifest.

Source: Iceberg specification, "Manifest Lists", ``field_summary``.
"""

from __future__ import annotations

import math
from typing import Any

from hms_iceberg.spec.data_types import DoubleType, FloatType, IcebergType, StructType
from hms_iceberg.spec.manifests.manifest_values import FieldSummary
from hms_iceberg.spec.values.single_values import to_bytes


class PartitionSummary:
    """Gathers nulls, NaN and bounds of the partitions of a manifest, field by field."""

    def __init__(self, partition_type: StructType) -> None:
        self._fields = [_FieldStatistics(field.field_type) for field in partition_type.fields]
        # Two zeros of different sign are equal to a set, but not to a bound.
        self._distinct = not any(
            isinstance(field.field_type, FloatType | DoubleType) for field in partition_type.fields
        )
        self._seen: set[tuple[Any, ...]] = set()

    def add(self, partition: tuple[Any, ...]) -> None:
        """Take one file's partition into account."""
        if self._distinct:
            if partition in self._seen:
                return
            self._seen.add(partition)
        for statistics, value in zip(self._fields, partition, strict=False):
            statistics.add(value)

    def summaries(self) -> tuple[FieldSummary, ...]:
        """One summary per partition field, in the spec's order."""
        return tuple(statistics.summary() for statistics in self._fields)


class _FieldStatistics:
    def __init__(self, field_type: IcebergType) -> None:
        self._type = field_type
        self._is_floating = isinstance(field_type, FloatType | DoubleType)
        self._contains_null = False
        self._contains_nan = False
        self._lower: Any = None
        self._upper: Any = None

    def add(self, value: Any) -> None:
        if value is None:
            self._contains_null = True
        elif self._is_floating and math.isnan(value):
            self._contains_nan = True
        else:
            if self._lower is None or self._before(value, self._lower):
                self._lower = value
            if self._upper is None or self._before(self._upper, value):
                self._upper = value

    def summary(self) -> FieldSummary:
        lower = None if self._lower is None else to_bytes(self._type, self._lower)
        upper = None if self._upper is None else to_bytes(self._type, self._upper)
        return FieldSummary(self._contains_null, self._contains_nan, lower, upper)

    def _before(self, left: Any, right: Any) -> bool:
        if self._is_floating and left == right:
            # -0.0 comes before 0.0, so that a bound never hides one of the two.
            return math.copysign(1.0, left) < math.copysign(1.0, right)
        return bool(left < right)
