"""Aggregates that metadata alone answers: how many rows there are, and the least and the greatest value of a column.

As Apache Iceberg's Spark runtime does, bounds of types of a fixed size are taken for values that are in the file: every
writer takes them from what it wrote. Bounds of texts and bytes are cut off, so they answer nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hms_iceberg.expressions.residuals import residual_evaluator
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.lazy import pl
from hms_iceberg.scan.delete_keys import key_metric_columns
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.scan.partition_columns import stored_bounds
from hms_iceberg.scan.planner import file_metrics
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.schemas import spark_value
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    UUIDType,
)
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.spec.metadata_columns import is_metadata_column
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage

_FLOATS = (FloatType, DoubleType)
_FIXED_SIZE = (BooleanType, IntegerType, LongType, DateType, *MICRO_TIMESTAMPS, DecimalType, *_FLOATS)


def row_counts(snapshot: Snapshot | None, asked: Sequence[Mapping[str, str]], storage: Storage) -> list[Any] | None:
    """The answers to all aggregates over all rows of a snapshot, as its manifest list alone tells them. None if more
    than rows are counted, something is deleted, or the list does not tell (format version 1)."""
    if any("column" in each for each in asked):
        return None
    rows = 0
    for manifest in manifests_of(snapshot, storage) if snapshot else ():
        if manifest.content is ManifestContent.DELETES and manifest.has_live_files():
            return None
        if manifest.content is ManifestContent.DATA:
            if manifest.added_rows_count is None or manifest.existing_rows_count is None:
                return None
            rows += manifest.added_rows_count + manifest.existing_rows_count
    return [rows for _ in asked]


def metadata_answers(plan: ScanPlan, asked: Sequence[Mapping[str, str]], storage: Storage) -> list[Any] | None:
    """The answers to all aggregates (``op`` count, min or max, and ``column``) over a plan's rows, as JSON for the
    bridge's class Values; None if one is not known. The plan's filter must be the whole condition."""
    rows = _row_count(plan)
    if rows is None:
        return None
    names = sorted({each["column"] for each in asked if "column" in each})
    if not names:
        return [rows for _ in asked]
    if plan.delete_files.height:
        return None
    fields = [
        field
        for field in plan.schema.fields
        if field.name in names and field.field_type.is_primitive and not is_metadata_column(field.field_id)
    ]
    if len(fields) < len(names):
        return None
    columns = {field.name: _Column(plan, field) for field in fields}
    unknown = {each.field.field_id: each.field.field_type for each in columns.values() if not each.is_of_partition}
    if unknown:
        metrics = file_metrics(plan, storage, unknown)
        if metrics.height != plan.files.height:
            return None
        for column in columns.values():
            column.metrics = metrics
    answers = []
    for each in asked:
        known, answer = (True, rows) if "column" not in each else columns[each["column"]].answer(each["op"], rows)
        if not known:
            return None
        answers.append(answer)
    return answers


def _row_count(plan: ScanPlan) -> int | None:
    """How many rows match, if partitions decide the filter, and nothing is deleted but by deletion vectors: of position
    delete files, several may name one row."""
    if plan.delete_files.filter(pl.col("content_size_in_bytes").is_null()).height:
        return None
    if not isinstance(plan.row_filter, AlwaysTrue) and not _partitions_decide(plan):
        return None
    deleted = plan.delete_files["record_count"].sum() if plan.delete_files.height else 0
    return int(plan.files["record_count"].sum() or 0) - int(deleted)


def _partitions_decide(plan: ScanPlan) -> bool:
    """Whether every row of every planned file matches the filter, because its partition does."""
    for spec_id in plan.files["spec_id"].unique().to_list():
        residual = residual_evaluator(plan.metadata.spec_by_id(spec_id), plan.row_filter, plan.schema)
        columns = plan.partitions.columns(spec_id)
        if any(isinstance(each.field_type, UUIDType) for each in plan.partitions.structs[spec_id].fields):
            return False
        partitions = plan.files.filter(plan.files["spec_id"] == spec_id).select(columns).unique()
        if not columns or any(not isinstance(residual(row), AlwaysTrue) for row in partitions.iter_rows()):
            return False
    return True


class _Column:
    """The facts that metadata has of the values of one column."""

    def __init__(self, plan: ScanPlan, field: NestedField) -> None:
        self.field = field
        self.metrics: pl.DataFrame | None = None
        self._files = plan.files
        self._partition = dict(_identities(plan, field.field_id))
        self.is_of_partition = set(plan.files["spec_id"].unique().to_list()) <= set(self._partition)

    def answer(self, op: str, rows: int) -> tuple[bool, Any]:
        """Whether the answer is known, and the answer."""
        if op == "count":
            nulls = self._nulls()
            return nulls is not None, None if nulls is None else rows - nulls
        values = self._extremes(op)
        if values is None:
            return False, None
        value = values.min() if op == "min" else values.max()
        # Zero may be either zero, of which writers make the one that is safe as a bound.
        known = not (isinstance(self.field.field_type, _FLOATS) and value == 0)
        return known, spark_value(self.field.field_type, value)

    def _nulls(self) -> int | None:
        """How many rows have no value."""
        if self.is_of_partition:
            return sum(int(rows.filter(values.is_null()).sum()) for rows, values in self._partition_values())
        if self.metrics is None:
            return None
        nulls = self.metrics[key_metric_columns(self.field.field_id)[1]]
        return None if nulls.has_nulls() else int(nulls.sum())

    def _extremes(self, op: str) -> pl.Series | None:
        """Values among which the least (or greatest) is; None if it is not known for a file."""
        kind: IcebergType = self.field.field_type
        if not isinstance(kind, _FIXED_SIZE):
            return None
        if self.is_of_partition:
            found = [values.drop_nulls() for _, values in self._partition_values()]
            every = pl.concat(found) if found else pl.Series([], dtype=pl.Int64)
            return None if isinstance(kind, _FLOATS) and every.is_nan().any() else every
        if self.metrics is None:
            return None
        if isinstance(kind, MICRO_TIMESTAMPS) and (self.metrics["file_format"].str.to_uppercase() == "ORC").any():
            return None  # whose statistics have milliseconds, around which bounds leave room
        _, nulls, nans, lower, upper = key_metric_columns(self.field.field_id)
        bounds = stored_bounds(self.metrics[lower if op == "min" else upper], kind)
        is_empty = (self.metrics[nulls] == self.metrics["record_count"]).fill_null(False)
        if (bounds.is_null() & ~is_empty).any():
            return None
        if isinstance(kind, _FLOATS) and not (self.metrics[nans] == 0).fill_null(False).all():
            return None
        return bounds.drop_nulls()

    def _partition_values(self) -> Iterator[tuple[pl.Series, pl.Series]]:
        """Rows and the column's value in each file, by spec."""
        for spec_id, name in self._partition.items():
            files = self._files.filter(self._files["spec_id"] == spec_id)
            if files.height:
                yield files["record_count"], files[name]


def _identities(plan: ScanPlan, field_id: int) -> Iterator[tuple[int, str]]:
    """The specs by whose own values of a field files are partitioned, and the frame's columns of these."""
    for spec in plan.metadata.partition_specs:
        for field, column in zip(spec.fields, plan.partitions.columns(spec.spec_id), strict=True):
            if field.source_id == field_id and str(field.transform) == "identity":
                yield spec.spec_id, column
