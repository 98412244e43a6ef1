"""Statistics of columns for Spark's optimizer: how many values there are, and between what they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hms_iceberg.lazy import pl
from hms_iceberg.scan.delete_keys import key_metric_columns
from hms_iceberg.scan.partition_columns import stored_bounds
from hms_iceberg.scan.planner import file_metrics
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.schemas import spark_value
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)
from hms_iceberg.storage import Storage

_COUNTED = (IntegerType, LongType, DateType)
# What Spark compares by numbers. It takes a column of another type without bounds for one that has only nulls.
_BOUNDED = (BooleanType, *_COUNTED, DecimalType, FloatType, DoubleType, TimestamptzType)
_UNBOUNDED = (StringType, BinaryType)
_SKETCH = "apache-datasketches-theta-v1"


def column_statistics(plan: ScanPlan, columns: Sequence[str], storage: Storage) -> dict[str, dict[str, Any]]:
    """Statistics of the rows of a plan's files, deleted ones among them, by column as far as they are known, in JSON
    for the bridge's class Values; distinct counts are the sketch's, or bounded by the integers between the bounds."""
    fields = [
        field
        for field in plan.schema.fields
        if field.name in columns and isinstance(field.field_type, (*_BOUNDED, *_UNBOUNDED))
    ]
    if not fields or not plan.files.height:
        return {}
    metrics = file_metrics(plan, storage, {field.field_id: field.field_type for field in fields})
    if metrics.height != plan.files.height:
        return {}
    sketches = _distinct_values(plan)
    found = {field.name: _statistics(field, metrics, sketches.get(field.field_id)) for field in fields}
    return {name: known for name, known in found.items() if known}


def _distinct_values(plan: ScanPlan) -> Mapping[int, int]:
    """Estimates of distinct values by field id, as a sketch of the snapshot has them."""
    snapshot = plan.snapshot
    files = [each for each in plan.metadata.statistics if snapshot and each.snapshot_id == snapshot.snapshot_id]
    found = {}
    for blob in (blob for file in files for blob in file.blob_metadata):
        told = blob.properties.get("ndv", "") if blob.properties else ""
        if blob.type == _SKETCH and len(blob.fields) == 1 and told.isdigit():
            found[blob.fields[0]] = int(told)
    return found


def _statistics(field: NestedField, metrics: pl.DataFrame, sketch: int | None) -> dict[str, Any]:
    _, nulls, _, lower, upper = key_metric_columns(field.field_id)
    if metrics[nulls].has_nulls():
        return {}
    null_count = int(metrics[nulls].sum())
    values = int(metrics["record_count"].sum()) - null_count
    known: dict[str, Any] = {"nulls": null_count}
    distinct = sketch
    if isinstance(field.field_type, _BOUNDED) and values:
        is_empty = metrics[nulls] == metrics["record_count"]
        least, greatest = (stored_bounds(metrics[each], field.field_type) for each in (lower, upper))
        if ((least.is_null() | greatest.is_null()) & ~is_empty).any():
            return {}
        known["min"], known["max"] = (spark_value(field.field_type, each) for each in (least.min(), greatest.max()))
        if distinct is None and isinstance(field.field_type, _COUNTED):
            distinct = _whole(greatest.max()) - _whole(least.min()) + 1
        elif distinct is None and isinstance(field.field_type, BooleanType):
            distinct = 2
    if distinct is not None:
        known["distinct"] = max(0, min(distinct, values))
    return known


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else value.toordinal()
