"""Folding a predicate: one function for the structure, one class to fill in for the tests.

Translators (to pyarrow, polars, SQL ...) subclass `BoundExpressionVisitor` and call `fold`. A test on a transform (only
buckets, and cut-off binary values, survive binding) reaches the same methods; `term` says which it is. `complement`,
the rows for which a predicate is not true, is the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.expressions.binding import unary
from hms_iceberg.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
    BoundTerm,
    BoundUnaryPredicate,
)
from hms_iceberg.expressions.literals import Operator
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Not, Or, UnboundPredicate
from hms_iceberg.spec.values.shapes import Box

T = TypeVar("T")


class ExpressionVisitor(Generic[T]):
    """A method for each kind of node: the result for a tree is built from the leaves up."""

    def visit_true(self) -> T:
        raise NotImplementedError

    def visit_false(self) -> T:
        raise NotImplementedError

    def visit_not(self, child: T) -> T:
        """Negations; bound trees have none."""
        raise NotImplementedError

    def visit_and(self, operands: Sequence[T]) -> T:
        raise NotImplementedError

    def visit_or(self, operands: Sequence[T]) -> T:
        raise NotImplementedError

    def visit_unbound(self, predicate: UnboundPredicate) -> T:
        """Refuses unbound tests, unless a visitor takes them."""
        raise TypeMismatchError(f"Cannot evaluate {predicate}: bind the expression to a schema first")

    def visit_bound(self, predicate: BoundPredicate) -> T:
        raise NotImplementedError


class BoundExpressionVisitor(ExpressionVisitor[T]):
    """A visitor with one method per operation. Values are stored values of `term.type`; see `bound`."""

    def visit_not(self, child: T) -> T:
        """Never called: bound trees have no negation."""
        raise TypeMismatchError("Cannot evaluate a negation: bind the expression to a schema first")

    def visit_is_null(self, term: BoundTerm) -> T:
        raise NotImplementedError

    def visit_not_null(self, term: BoundTerm) -> T:
        raise NotImplementedError

    def visit_is_nan(self, term: BoundTerm) -> T:
        """False for null."""
        raise NotImplementedError

    def visit_not_nan(self, term: BoundTerm) -> T:
        """True for null."""
        raise NotImplementedError

    def visit_equal(self, term: BoundTerm, value: Any) -> T:
        """-0.0 equals 0.0; false for null and NaN."""
        raise NotImplementedError

    def visit_not_equal(self, term: BoundTerm, value: Any) -> T:
        """False for null, true for NaN."""
        raise NotImplementedError

    def visit_less_than(self, term: BoundTerm, value: Any) -> T:
        """False for null and NaN."""
        raise NotImplementedError

    def visit_less_than_or_equal(self, term: BoundTerm, value: Any) -> T:
        """False for null and NaN."""
        raise NotImplementedError

    def visit_greater_than(self, term: BoundTerm, value: Any) -> T:
        """False for null, TRUE for NaN."""
        raise NotImplementedError

    def visit_greater_than_or_equal(self, term: BoundTerm, value: Any) -> T:
        """False for null, TRUE for NaN."""
        raise NotImplementedError

    def visit_in(self, term: BoundTerm, values: tuple[Any, ...]) -> T:
        """Two or more values in ascending order; false for null and NaN."""
        raise NotImplementedError

    def visit_not_in(self, term: BoundTerm, values: tuple[Any, ...]) -> T:
        """Two or more values; false for null, true for NaN."""
        raise NotImplementedError

    def visit_starts_with(self, term: BoundTerm, prefix: str) -> T:
        """A prefix that is not empty; false for null."""
        raise NotImplementedError

    def visit_not_starts_with(self, term: BoundTerm, prefix: str) -> T:
        """False for null."""
        raise NotImplementedError

    def visit_intersects_box(self, term: BoundTerm, box: Box) -> T:
        """The box of the shape has a point in common with a given one; false for null and for empty shapes."""
        raise NotImplementedError

    def visit_not_intersects_box(self, term: BoundTerm, box: Box) -> T:
        """False for null, true for empty shapes."""
        raise NotImplementedError

    def visit_bound(self, predicate: BoundPredicate) -> T:
        method = getattr(self, _METHODS[predicate.operation])
        if isinstance(predicate, BoundLiteralPredicate):
            return method(predicate.term, predicate.value)
        if isinstance(predicate, BoundSetPredicate):
            return method(predicate.term, predicate.values)
        assert isinstance(predicate, BoundUnaryPredicate)
        return method(predicate.term)


_METHODS = {
    Operator.IS_NULL: "visit_is_null",
    Operator.NOT_NULL: "visit_not_null",
    Operator.IS_NAN: "visit_is_nan",
    Operator.NOT_NAN: "visit_not_nan",
    Operator.EQ: "visit_equal",
    Operator.NOT_EQ: "visit_not_equal",
    Operator.LT: "visit_less_than",
    Operator.LT_EQ: "visit_less_than_or_equal",
    Operator.GT: "visit_greater_than",
    Operator.GT_EQ: "visit_greater_than_or_equal",
    Operator.IN: "visit_in",
    Operator.NOT_IN: "visit_not_in",
    Operator.STARTS_WITH: "visit_starts_with",
    Operator.NOT_STARTS_WITH: "visit_not_starts_with",
    Operator.INTERSECTS_BOX: "visit_intersects_box",
    Operator.NOT_INTERSECTS_BOX: "visit_not_intersects_box",
}


def fold(expression: BooleanExpression, visitor: ExpressionVisitor[T]) -> T:
    """Applies a visitor to a tree, from the leaves up, and returns its result."""
    if isinstance(expression, (And, Or)):
        results = [fold(each, visitor) for each in expression.operands]
        return visitor.visit_and(results) if isinstance(expression, And) else visitor.visit_or(results)
    if isinstance(expression, BoundPredicate):
        return visitor.visit_bound(expression)
    if isinstance(expression, AlwaysTrue):
        return visitor.visit_true()
    if isinstance(expression, AlwaysFalse):
        return visitor.visit_false()
    if isinstance(expression, UnboundPredicate):
        return visitor.visit_unbound(expression)
    if isinstance(expression, Not):
        return visitor.visit_not(fold(expression.child, visitor))
    raise TypeMismatchError(f"Cannot evaluate {expression!r} ({type(expression).__name__}): expected an expression")


class RebuildingVisitor(ExpressionVisitor[BooleanExpression]):
    """Copies a tree, and simplifies it where its tests become true or false."""

    def visit_true(self) -> BooleanExpression:
        return AlwaysTrue()

    def visit_false(self) -> BooleanExpression:
        return AlwaysFalse()

    def visit_not(self, child: BooleanExpression) -> BooleanExpression:
        return Not(child)

    def visit_and(self, operands: Sequence[BooleanExpression]) -> BooleanExpression:
        return And(*operands)

    def visit_or(self, operands: Sequence[BooleanExpression]) -> BooleanExpression:
        return Or(*operands)


class _Unbinder(RebuildingVisitor):
    def visit_unbound(self, predicate: UnboundPredicate) -> BooleanExpression:
        return predicate

    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        return predicate.unbind()


def unbind(expression: BooleanExpression) -> BooleanExpression:
    """The tree by column names again: for logs, JSON, or another schema."""
    return fold(expression, _Unbinder())


def bound_predicates(expression: BooleanExpression) -> Iterator[BoundPredicate]:
    if isinstance(expression, BoundPredicate):
        yield expression
    elif isinstance(expression, (And, Or)):
        for each in expression.operands:
            yield from bound_predicates(each)
    elif isinstance(expression, Not):
        yield from bound_predicates(expression.child)


def referenced_field_ids(expression: BooleanExpression) -> set[int]:
    """The ids of all fields that a bound tree reads: what must be read beside the selected columns to filter rows."""
    return {predicate.ref.field_id for predicate in bound_predicates(expression)}


def complement(expression: BooleanExpression) -> BooleanExpression:
    """The predicate that is true if a bound one is not. A file of which no row can match the complement holds only rows
    that match the predicate."""
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
        return Or(opposite, unary(Operator.IS_NULL, predicate.term))
