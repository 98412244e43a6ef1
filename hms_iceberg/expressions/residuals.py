"""Predicates over rows for partitions: projections, and residuals, which are left to test in the rows of a partition.

An inclusive projection matches every partition that may hold a matching row; a strict one only those of which every row
matches. A residual has true or false in place of the tests that the partition decides.
Source: Iceberg specification, "Scan Planning" and "Partition Transforms".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.bound import BoundPredicate, BoundTransform, BoundVariantGet
from hms_iceberg.expressions.evaluate import Test, evaluator, value_test
from hms_iceberg.expressions.projections import project
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or
from hms_iceberg.expressions.visitors import ExpressionVisitor, RebuildingVisitor, fold
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema

Projection = Callable[[BooleanExpression], BooleanExpression]


def inclusive_projection(schema: Schema, spec: PartitionSpec, case_sensitive: bool = True) -> Projection:
    """A function from a predicate over rows to an unbound one, of `spec.partition_type(schema)`, that every partition
    with a matching row matches; AlwaysTrue where partitions say nothing."""
    visitor = _Inclusive(spec)
    return lambda expression: fold(bind(schema, expression, case_sensitive), visitor)


def strict_projection(schema: Schema, spec: PartitionSpec, case_sensitive: bool = True) -> Projection:
    """A function from a predicate over rows to an unbound one that holds only for partitions whose rows all match;
    AlwaysFalse if partitions say nothing."""
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


Residual = Callable[[Sequence[Any]], BooleanExpression]


def residual_evaluator(
    spec: PartitionSpec, expression: BooleanExpression, schema: Schema, case_sensitive: bool = True
) -> Residual:
    """A function from a partition tuple (stored values) to the bound predicate that its rows must still be tested with.
    Results are kept for partitions seen lately."""
    bound = bind(schema, expression, case_sensitive)
    if spec.is_unpartitioned() or not isinstance(bound, (And, Or, BoundPredicate)):
        return lambda partition: bound
    residual_of = fold(bound, _ResidualVisitor(spec, schema))
    cached = lru_cache(maxsize=4096)(residual_of)
    return lambda partition: cached(tuple(partition))


class _ResidualVisitor(ExpressionVisitor[Residual]):
    """Makes functions from a partition tuple to the part of the expression that is left."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self.spec = spec
        self.partition_type = spec.partition_type(schema)

    def visit_true(self) -> Residual:
        return lambda partition: AlwaysTrue()

    def visit_false(self) -> Residual:
        return lambda partition: AlwaysFalse()

    def visit_and(self, operands: Sequence[Residual]) -> Residual:
        parts = tuple(operands)
        return lambda partition: And(*(part(partition) for part in parts))

    def visit_or(self, operands: Sequence[Residual]) -> Residual:
        parts = tuple(operands)
        return lambda partition: Or(*(part(partition) for part in parts))

    def visit_bound(self, predicate: BoundPredicate) -> Residual:
        fields = self.spec.fields_by_source_id(predicate.ref.field_id)
        some = [self._test(project(field, predicate, strict=False)) for field in fields]
        every = [self._test(project(field, predicate, strict=True)) for field in fields]
        might = [test for test in some if test is not None]
        must = [test for test in every if test is not None]

        def residual(partition: Sequence[Any]) -> BooleanExpression:
            if any(test(partition) for test in must):
                return AlwaysTrue()
            if not all(test(partition) for test in might):
                return AlwaysFalse()
            return predicate

        return residual

    def _test(self, projected: BooleanExpression | None) -> Test | None:
        return None if projected is None else evaluator(self.partition_type, projected)


def residual_by_constants(expression: BooleanExpression, constants: Mapping[int, Any]) -> BooleanExpression:
    """The part of a bound predicate that is left where some fields are constant, by field id. Constant are columns that
    a file lacks (their initial default, or None) and those that partitions give."""
    return fold(expression, _ConstantResidual(constants))


class _ConstantResidual(RebuildingVisitor):
    def __init__(self, constants: Mapping[int, Any]) -> None:
        self.constants = constants

    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        ref, term = predicate.ref, predicate.term
        if ref.field_id not in self.constants:
            return predicate
        value = self.constants[ref.field_id]
        if isinstance(term, BoundTransform):
            value = term.transform.bind(ref.type)(value)
        elif isinstance(term, BoundVariantGet):
            value = None  # the only default of a variant
        return AlwaysTrue() if value_test(predicate)(value) else AlwaysFalse()
