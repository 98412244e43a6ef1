"""Whether a manifest may list files with matching rows, from the partition summaries in the manifest list.

Source: Iceberg specification, "Scan Planning" and "Manifest Lists" (field summary).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.bound import BoundReference
from hms_iceberg.expressions.bounds import UNKNOWN_VALUES, MightMatchVisitor, ValueSummary
from hms_iceberg.expressions.metrics import bound_value
from hms_iceberg.expressions.projections import inclusive_projection
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.expressions.visitors import fold
from hms_iceberg.spec.manifests.manifest import FieldSummary
from hms_iceberg.spec.partitioning import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.types import DoubleType, FloatType, StructType, UUIDType


class PartitionSummaries(Protocol):
    """The part of a manifest list's row that is evaluated; `spec.manifests.ManifestFile` has it."""

    @property
    def partitions(self) -> Sequence[FieldSummary | None] | None:
        """One summary per field of the partition spec; None where the writer left it, or all of them, out."""


def manifest_evaluator(
    spec: PartitionSpec, schema: Schema, expression: BooleanExpression, case_sensitive: bool = True
) -> Callable[[PartitionSummaries], bool]:
    """A function that is False only for manifests in which certainly no file has a matching row.

    Args:
        spec: the partition spec of the manifests.
        schema: the columns that the expression names.
        expression: a predicate over rows, bound or unbound.
        case_sensitive: how column names are matched.

    Raises:
        UnknownColumnError: there is no such column.
        TypeMismatchError: a literal does not compare with its column.
    """
    projected = inclusive_projection(schema, spec, case_sensitive)(expression)
    return partition_summary_evaluator(spec.partition_type(schema), projected)


def partition_summary_evaluator(
    partition_type: StructType, expression: BooleanExpression
) -> Callable[[PartitionSummaries], bool]:
    """The same for a predicate over the partition's fields, such as an inclusive projection."""
    decide = fold(bind(partition_type, expression), MightMatchVisitor())
    positions = {field.field_id: position for position, field in enumerate(partition_type.fields)}

    def evaluate(manifest: PartitionSummaries) -> bool:
        summaries = manifest.partitions
        usable = summaries if summaries is not None and len(summaries) == len(positions) else None

        def lookup(ref: BoundReference) -> ValueSummary:
            return UNKNOWN_VALUES if usable is None else summarize_partitions(usable[positions[ref.field_id]], ref)

        return decide(lookup)

    return evaluate


def summarize_partitions(summary: FieldSummary | None, ref: BoundReference) -> ValueSummary:
    """What a field summary says about the partition values of a manifest.

    Without bounds all values are null or NaN, as the specification has it. Bounds of UUIDs are not used: Java orders
    UUIDs as two signed numbers, so that its bounds may exclude values that are there. A summary that is None says
    nothing.
    """
    if summary is None:
        return UNKNOWN_VALUES
    floating = isinstance(ref.type, (FloatType, DoubleType))
    without_bounds = summary.lower_bound is None and summary.upper_bound is None
    no_nans = not floating or summary.contains_nan is False
    has_usable_bounds = not isinstance(ref.type, UUIDType)
    lower, upper = summary.lower_bound, summary.upper_bound
    return ValueSummary(
        no_nulls=not summary.contains_null,
        only_nulls=summary.contains_null and without_bounds and no_nans,
        no_nans=no_nans,
        only_nans=floating and without_bounds and summary.contains_nan is True,
        lower=bound_value(ref.type, lower) if has_usable_bounds and lower is not None else None,
        upper=bound_value(ref.type, upper) if has_usable_bounds and upper is not None else None,
    )
