"""Which manifests may hold files of some partitions, by the summaries in the manifest list."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from hms_iceberg.scan.partition_columns import stored_value
from hms_iceberg.spec.data_types import IcebergType, StructType, UnknownType, UUIDType
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


class HeldPartitions:
    """Some partitions, of any specs. Each field is looked at by itself: a manifest that has the values of two
    partitions may hold a third one."""

    def __init__(self, partitions: Iterable[tuple[int, tuple[Any, ...]]], base: TableMetadata) -> None:
        by_spec: dict[int, set[tuple[Any, ...]]] = {}
        for spec_id, partition in partitions:
            by_spec.setdefault(spec_id, set()).add(partition)
        self._fields = {
            spec_id: _fields(base.spec_by_id(spec_id).partition_type(base.schema()), found)
            for spec_id, found in by_spec.items()
        }

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """False only if certainly no file of a manifest is in any of the partitions."""
        fields = self._fields.get(manifest.partition_spec_id)
        if fields is None:
            return False
        summaries = manifest.partitions
        if summaries is None or len(summaries) != len(fields):
            return True
        return all(field.may_be_in(summary) for field, summary in zip(fields, summaries, strict=True))


def _fields(partition_type: StructType, partitions: Iterable[tuple[Any, ...]]) -> list[_FieldValues]:
    columns = zip(*partitions, strict=True)
    return [
        _FieldValues(field.field_type, set(values))
        for field, values in zip(partition_type.fields, columns, strict=True)
    ]


class _FieldValues:
    """The values of some partitions in one field."""

    def __init__(self, field_type: IcebergType, values: set[Any]) -> None:
        self._type = field_type
        self._has_null = None in values
        numbers = {each for each in values if each is not None}
        self._has_nan = any(_is_nan(each) for each in numbers)
        # Bounds of UUIDs are not used, as Java orders these otherwise; of what was dropped nothing is known.
        self._sorted: list[Any] = []
        # Bounds of UUIDs are not used, as Java orders these otherwise; of what was dropped nothing is known.
        self._is_known = not isinstance(field_type, UUIDType | UnknownType)
        if self._is_known:
            try:
                self._sorted = sorted(each for each in numbers if not _is_nan(each))
            except TypeError:  # values that are not of one type
                self._is_known = False

    def may_be_in(self, summary: FieldSummary) -> bool:
        if not self._is_known or (self._has_null and summary.contains_null):
            return True
        if self._has_nan and summary.contains_nan is not False:
            return True
        if (
            summary.lower_bound is None
            and summary.upper_bound is None
            and (summary.contains_null or summary.contains_nan)
        ):
            return False  # whatever is neither null nor NaN has bounds
        lower, upper = (stored_value(self._type, each) for each in (summary.lower_bound, summary.upper_bound))
        try:
            first = 0 if lower is None else bisect_left(self._sorted, lower)
            return first < len(self._sorted) and (upper is None or self._sorted[first] <= upper)
        except TypeError:
            return True


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
