"""Tests of text or bytes turned into tests of their first characters or bytes, as `truncate` keeps them.

A literal shorter than the width is compared with the whole value, so that most tests carry over exactly. Text is cut by
code points. Source: Iceberg specification, "Truncate Transform Details".
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.expressions.bound import BoundLiteralPredicate, BoundPredicate, BoundSetPredicate
from hms_iceberg.expressions.literals import Literal, literal
from hms_iceberg.expressions.terms import Reference
from hms_iceberg.expressions.tree import (
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    Operator,
)
from hms_iceberg.expressions.tree import predicate as unbound_predicate


def project(width: int, term: Reference, predicate: BoundPredicate, strict: bool) -> BooleanExpression | None:
    """Finds the test of a truncated value that a test of the value implies (or, strictly, is implied by).

    Args:
        width: how many characters or bytes are kept.
        term: the partition field.
        predicate: a test with one or more values.
        strict: whether it must imply the test of the value.

    Returns:
        the unbound test; None if there is none.
    """
    if predicate.operation in (Operator.IN, Operator.NOT_IN):
        assert isinstance(predicate, BoundSetPredicate)
        return _set(width, term, predicate, strict)
    assert isinstance(predicate, BoundLiteralPredicate)
    operation, value = predicate.operation, predicate.value
    cut = literal(value[:width])
    if _is_exact(operation, len(value), width):
        return unbound_predicate(operation, term, cut)
    inexact = _STRICT if strict else _INCLUSIVE
    node = inexact.get(operation)
    return None if node is None else node(term, cut)


def _is_exact(operation: Operator, length: int, width: int) -> bool:
    """True if the test means the same for the whole value and for its beginning."""
    if operation in (Operator.LT, Operator.GT_EQ, Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        return length <= width
    return length < width


_INCLUSIVE: dict[Operator, Any] = {
    Operator.LT: LessThanOrEqual,
    Operator.LT_EQ: LessThanOrEqual,
    Operator.GT: GreaterThanOrEqual,
    Operator.GT_EQ: GreaterThanOrEqual,
    Operator.EQ: EqualTo,
    Operator.STARTS_WITH: EqualTo,
}
_STRICT: dict[Operator, Any] = {
    Operator.LT: LessThan,
    Operator.LT_EQ: LessThan,
    Operator.GT: GreaterThan,
    Operator.GT_EQ: GreaterThan,
    Operator.NOT_EQ: NotEqualTo,
    Operator.NOT_STARTS_WITH: NotEqualTo,
}


def _set(width: int, term: Reference, predicate: BoundSetPredicate, strict: bool) -> BooleanExpression | None:
    is_in = predicate.operation is Operator.IN
    if strict == is_in:  # only values that are known whole can be relied on
        known: list[Literal] = [literal(value) for value in predicate.values if len(value) < width]
        if not known:
            return None
        return In(term, known) if is_in else NotIn(term, known)
    cuts = [literal(value[:width]) for value in predicate.values]
    return In(term, cuts) if is_in else NotIn(term, cuts)
