"""Predicates over rows turned into predicates over partition values.

*Inclusive*: every partition that may hold a matching row matches. *Strict*: every row of a matching partition matches.
Source: Iceberg specification, "Scan Planning" and "Partition Transforms".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.bound import BoundPredicate
from hms_iceberg.expressions.projection.transform_projections import project
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or
from hms_iceberg.expressions.visitors import ExpressionVisitor, fold
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema

Projection = Callable[[BooleanExpression], BooleanExpression]


def inclusive_projection(schema: Schema, spec: PartitionSpec, case_sensitive: bool = True) -> Projection:
    """A function from a predicate over rows to one that every partition with a matching row matches.

    Args:
        schema: the columns that predicates name.
        spec: the partition spec. Fields of dropped columns and of unknown transforms say nothing.
        case_sensitive: how column names are matched.

    Returns:
        A function of a bound or unbound predicate. Its result is unbound, over the names of the partition fields;
        bind it to `spec.partition_type(schema)`. AlwaysTrue if partitions say nothing.

    Raises:
        UnknownColumnError: (by the function) there is no such column.
        TypeMismatchError: (by the function) a literal does not compare with its column.
    """
    visitor = _Inclusive(spec)
    return lambda expression: fold(bind(schema, expression, case_sensitive), visitor)


def strict_projection(schema: Schema, spec: PartitionSpec, case_sensitive: bool = True) -> Projection:
    """A function from a predicate over rows to one that only partitions match in which every row does.

    Arguments, results and errors as of `inclusive_projection`; AlwaysFalse if partitions say nothing.
    """
    visitor = _Strict(spec)
    return lambda expression: fold(bind(schema, expression, case_sensitive), visitor)


class _ProjectionVisitor(ExpressionVisitor[BooleanExpression]):
    def __init__(self, spec: PartitionSpec) -> None:
        self.spec = spec

    def visit_true(self) -> BooleanExpression:
        return AlwaysTrue()

    def visit_false(self) -> BooleanExpression:
        return AlwaysFalse()

    def visit_and(self, operands: Sequence[BooleanExpression]) -> BooleanExpression:
        return And(*dict.fromkeys(operands))

    def visit_or(self, operands: Sequence[BooleanExpression]) -> BooleanExpression:
        return Or(*dict.fromkeys(operands))

    def projected(self, predicate: BoundPredicate, strict: bool) -> list[BooleanExpression]:
        fields = self.spec.fields_by_source_id(predicate.ref.field_id)
        results = (project(field, predicate, strict) for field in fields)
        return [each for each in results if each is not None]


class _Inclusive(_ProjectionVisitor):
    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        return And(*self.projected(predicate, strict=False))


class _Strict(_ProjectionVisitor):
    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        return Or(*self.projected(predicate, strict=True))
