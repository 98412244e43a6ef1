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
    Operation,
)
from hms_iceberg.expressions.tree import predicate as unbound_predicate


def project(width: int, term: Reference, predicate: BoundPredicate, strict: bool) -> BooleanExpression | None:
    """The test of a truncated value that a test of the value implies (or, strictly, is implied by); None for none.

    Args:
        width: how many characters or bytes are kept.
        term: the partition field.
        predicate: a test with one or more values.
        strict: whether it must imply the test of the value.
    """
    if predicate.operation in (Operation.IN, Operation.NOT_IN):
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


def _is_exact(operation: Operation, length: int, width: int) -> bool:
    """True if the test means the same for the whole value and for its beginning."""
    if operation in (Operation.LT, Operation.GT_EQ, Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return length <= width
    return length < width


_INCLUSIVE: dict[Operation, Any] = {
    Operation.LT: LessThanOrEqual,
    Operation.LT_EQ: LessThanOrEqual,
    Operation.GT: GreaterThanOrEqual,
    Operation.GT_EQ: GreaterThanOrEqual,
    Operation.EQ: EqualTo,
    Operation.STARTS_WITH: EqualTo,
}
_STRICT: dict[Operation, Any] = {
    Operation.LT: LessThan,
    Operation.LT_EQ: LessThan,
    Operation.GT: GreaterThan,
    Operation.GT_EQ: GreaterThan,
    Operation.NOT_EQ: NotEqualTo,
    Operation.NOT_STARTS_WITH: NotEqualTo,
}


def _set(width: int, term: Reference, predicate: BoundSetPredicate, strict: bool) -> BooleanExpression | None:
    is_in = predicate.operation is Operation.IN
    if strict == is_in:  # only values that are known whole can be relied on
        known: list[Literal] = [literal(value) for value in predicate.values if len(value) < width]
        if not known:
            return None
        return In(term, known) if is_in else NotIn(term, known)
    cuts = [literal(value[:width]) for value in predicate.values]
    return In(term, cuts) if is_in else NotIn(term, cuts)
