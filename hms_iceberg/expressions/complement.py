"""The rows for which a predicate is not true: those for which it is false, and those for which it is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from hms_iceberg.expressions.binding import unary
from hms_iceberg.expressions.bound import BoundPredicate, BoundUnaryPredicate
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Operator, Or
from hms_iceberg.expressions.visitors import ExpressionVisitor, fold


def complement(expression: BooleanExpression) -> BooleanExpression:
    """The predicate that is true if a bound one is not.

    A file of which no row can match the complement holds only rows that match the predicate.
    """
    return fold(expression, _Complement())


class _Complement(ExpressionVisitor[BooleanExpression]):
    def visit_true(self) -> BooleanExpression:
        return AlwaysFalse()

    def visit_false(self) -> BooleanExpression:
        return AlwaysTrue()

    def visit_and(self, operands: Sequence[BooleanExpression]) -> BooleanExpression:
        return Or(*operands)

    def visit_or(self, operands: Sequence[BooleanExpression]) -> BooleanExpression:
        return And(*operands)

    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        opposite = predicate.negate()
        if isinstance(predicate, BoundUnaryPredicate):
            return opposite
        return Or(opposite, unary(Operator.IS_NULL, predicate.ref))
