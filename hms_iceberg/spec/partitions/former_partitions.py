"""Partitions as they were stored before columns were promoted.

Source: Iceberg specification, "Schema Evolution" (a promotion must not change results of transforms), "Truncate
Transform Details" (which an int's overflow breaks).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import TruncateTransform


def former_partitions(spec: PartitionSpec, schema: Schema, partition: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The other forms in which a partition of today's stored values may have been written; mostly none."""
    forms = [_forms(field, schema, value) for field, value in zip(spec.fields, partition, strict=True)]
    return [form for form in product(*forms) if form != tuple(partition)]


def _forms(field: PartitionField, schema: Schema, value: Any) -> tuple[Any, ...]:
    if isinstance(field.transform, TruncateTransform) and schema.has_field(field.source_id):
        former = field.transform.before_promotion(schema.find_type(field.source_id))
        if former is not None and value == former[0]:
            return former
    return (value,)
