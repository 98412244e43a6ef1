"""The partitions of rows of `expression_strategies.tables`, also as faulty writers stored them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_iceberg.spec.data_types import DateType, LongType, TimestampType, TimestamptzType
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from tests.support.expression_strategies import value_of

SOURCES = (("a", 1), ("b", 2), ("s.c", 4))
"""The columns that can be partitioned on, with their ids."""

MICROS = (TimestampType, TimestamptzType)


def partition_of(row: tuple[Any, ...], spec: PartitionSpec, schema: Schema) -> tuple[Any, ...]:
    return _as_stored(_computed(row, spec, schema), spec)


def _as_stored(partition: Sequence[Any], spec: PartitionSpec) -> tuple[Any, ...]:
    """Hours that no int holds are stored at the other end of its range."""
    return tuple(
        (value + 2**31) % 2**32 - 2**31 if str(field.transform) == "hour" and value is not None else value
        for field, value in zip(spec.fields, partition, strict=True)
    )


def _computed(row: tuple[Any, ...], spec: PartitionSpec, schema: Schema) -> tuple[Any, ...]:
    names = {source_id: name for name, source_id in SOURCES}
    return tuple(
        field.transform.bind(schema.find_type(names[field.source_id]))(value_of(row, names[field.source_id]))
        for field in spec.fields
    )


def stored_partitions(row: tuple[Any, ...], spec: PartitionSpec, schema: Schema) -> list[tuple[Any, ...]]:
    """The partitions that writers may have stored a row in: the right one, and those of Java's faults."""
    names = {source_id: name for name, source_id in SOURCES}
    right = _computed(row, spec, schema)
    rounded_towards_1970, first_second_off = list(right), list(right)
    for position, field in enumerate(spec.fields):
        kind, transform = schema.find_type(names[field.source_id]), field.transform
        value, result = value_of(row, names[field.source_id]), right[position]
        if str(transform) not in ("year", "month", "day", "hour") or result is None or result >= 0:
            continue
        apply = transform.bind(kind)
        if isinstance(kind, MICROS) or (isinstance(kind, DateType) and str(transform) != "day"):
            starts_a_period = apply(value - 1) != result
            rounded_towards_1970[position] = result + (not starts_a_period)
        if not isinstance(kind, DateType):
            second = 1_000_000 if isinstance(kind, MICROS) else 1_000_000_000
            if value % second == second - 1:
                first_second_off[position] = apply(value - second)
    stored = (right, rounded_towards_1970, first_second_off, _before_promotion(row, right, spec, schema))
    return list(dict.fromkeys(_as_stored(each, spec) for each in stored))


def _before_promotion(
    row: tuple[Any, ...], right: Sequence[Any], spec: PartitionSpec, schema: Schema
) -> tuple[Any, ...]:
    """The partition of a row that was stored when its longs were ints, whose truncation wraps around."""
    names = {source_id: name for name, source_id in SOURCES}
    found = list(right)
    for position, field in enumerate(spec.fields):
        value = value_of(row, names[field.source_id])
        is_long = isinstance(schema.find_type(names[field.source_id]), LongType)
        if is_long and value is not None and -(2**31) <= value < 2**31 and str(field.transform).startswith("truncate"):
            found[position] = (right[position] + 2**31) % 2**32 - 2**31
    return tuple(found)
