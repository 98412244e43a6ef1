"""What can be said of many rows from bounds and counts alone: does any row match, do all rows match?

One set of rules serves data files (`metrics`), manifests (`manifest_evaluator`) and row groups or pages of a file.

| test        | some row may match unless                        |
|-------------|--------------------------------------------------|
| is null     | there are no nulls                               |
| is not null | there are only nulls                             |
| is nan      | there are no NaN, or only nulls                  |
| is not nan  | there are only NaN and no nulls                  |
| <, <=       | only nulls or NaN; lower is not below            |
| >, >=       | only nulls; no NaN, and upper is not above       |
| =, in       | only nulls or NaN; no value lies in the bounds   |
| !=, not in  | only nulls; no NaN, both bounds are such a value |
| like 'x%'   | only nulls; the bounds' prefixes exclude x       |
| not like    | only nulls; both bounds start with x             |

All rows match where none may match the complement: where the test is neither false nor unknown of any.

Bounds may be wider than the values (truncated strings), never narrower; they do not cover NaN. A test of a bucket is
only decided where both bounds are the same value.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundReference,
    BoundSetPredicate,
    BoundTransform,
)
from hms_iceberg.expressions.complement import complement
from hms_iceberg.expressions.evaluate import value_test
from hms_iceberg.expressions.tree import BooleanExpression, Operation
from hms_iceberg.expressions.visitors import ExpressionVisitor, fold


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """What is known of the values of one column in many rows. Every field may be left unknown.

    Args:
        no_nulls: certainly no row is null.
        only_nulls: certainly every row is null.
        no_nans: certainly no row is NaN; True for types without NaN.
        only_nans: certainly every row that is not null is NaN.
        lower: no value but NaN is less; None where unknown.
        upper: no value but NaN is greater; None where unknown.
    """

    no_nulls: bool = False
    only_nulls: bool = False
    no_nans: bool = False
    only_nans: bool = False
    lower: Any = None
    upper: Any = None

    @classmethod
    def constant(cls, value: Any) -> ValueSummary:
        """The summary of rows that all have one stored value, or None."""
        if value is None:
            return cls(only_nulls=True, no_nans=True)
        if isinstance(value, float) and math.isnan(value):
            return cls(no_nulls=True, only_nans=True)
        return cls(no_nulls=True, no_nans=True, lower=value, upper=value)


UNKNOWN_VALUES = ValueSummary()

Lookup = Callable[[BoundReference], ValueSummary]
Decision = Callable[[Lookup], bool]


class MightMatchVisitor(ExpressionVisitor[Decision]):
    """Makes a function that is False only where certainly no row matches."""

    def visit_true(self) -> Decision:
        return lambda lookup: True

    def visit_false(self) -> Decision:
        return lambda lookup: False

    def visit_and(self, operands: Sequence[Decision]) -> Decision:
        decisions = tuple(operands)
        return lambda lookup: all(decide(lookup) for decide in decisions)

    def visit_or(self, operands: Sequence[Decision]) -> Decision:
        decisions = tuple(operands)
        return lambda lookup: any(decide(lookup) for decide in decisions)

    def visit_bound(self, predicate: BoundPredicate) -> Decision:
        decide, ref = might_match(predicate), predicate.ref
        return lambda lookup: decide(lookup(ref))


def rows_might_match(expression: BooleanExpression, summaries: Mapping[int, ValueSummary]) -> bool:
    """False only where certainly none of some rows matches a bound tree.

    Args:
        expression: the bound tree.
        summaries: field id to what is known of its values in these rows; nothing is known of other fields.
    """
    decide = fold(expression, MightMatchVisitor())
    return decide(lambda ref: summaries.get(ref.field_id, UNKNOWN_VALUES))


def rows_must_match(expression: BooleanExpression, summaries: Mapping[int, ValueSummary]) -> bool:
    """True only where certainly every one of some rows matches a bound tree. Arguments as of `rows_might_match`."""
    return not rows_might_match(complement(expression), summaries)


def might_match(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    """A function that is False only where certainly no row of a summary matches a bound test."""
    if isinstance(predicate.term, BoundTransform):
        test = _single_value_test(predicate)
        return lambda known: not (known.only_nulls or test(known) is False)
    return _MIGHT[predicate.operation](predicate)


def must_match(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    """A function that is True only where certainly every row of a summary matches a bound test."""
    others = fold(complement(predicate), MightMatchVisitor())
    return lambda known: not others(lambda ref: known)


def _single_value_test(predicate: BoundPredicate) -> Callable[[ValueSummary], bool | None]:
    """Whether the one value of a summary matches a test of its transform; None where it has more, or none."""
    assert isinstance(predicate.term, BoundTransform)
    transform = predicate.term.transform.bind(predicate.ref.type)
    test = value_test(predicate)

    def decide(known: ValueSummary) -> bool | None:
        if known.lower is None or known.lower != known.upper or not known.no_nans:
            return None
        return test(transform(known.lower))

    return decide


# -------------------------------------------------------------------------------------------- bounds and values


def _value(predicate: BoundPredicate) -> Any:
    assert isinstance(predicate, BoundLiteralPredicate)
    return predicate.value


def _values(predicate: BoundPredicate) -> tuple[Any, ...]:
    """The values of `=`, `!=`, `in` or `not in`, ascending."""
    return predicate.values if isinstance(predicate, BoundSetPredicate) else (_value(predicate),)


def _none_within(known: ValueSummary, values: tuple[Any, ...]) -> bool:
    """True where certainly none of the ascending values lies within the bounds."""
    first = 0 if known.lower is None else bisect_left(values, known.lower)
    return first == len(values) or (known.upper is not None and values[first] > known.upper)


def _only_value_of(known: ValueSummary, values: tuple[Any, ...]) -> bool:
    """True where all rows that are neither null nor NaN certainly hold the same one of the values."""
    return known.lower is not None and known.lower == known.upper and known.lower in values


def _excludes_prefix(known: ValueSummary, prefix: str) -> bool:
    """True where certainly no text starts with the prefix. Compared by code points."""
    if known.lower is not None and known.lower[: len(prefix)] > prefix:
        return True
    return known.upper is not None and known.upper < prefix


def _has_prefix(known: ValueSummary, prefix: str) -> bool:
    """True where certainly every text starts with the prefix."""
    if known.lower is None or known.upper is None:
        return False
    return bool(known.lower.startswith(prefix) and known.upper.startswith(prefix))


# ------------------------------------------------------------------------------------------------------- rules

Rule = Callable[[BoundPredicate], Callable[[ValueSummary], bool]]


def _empty(known: ValueSummary) -> bool:
    """True where no row has a value that compares as a number or text: all are null or NaN."""
    return known.only_nulls or known.only_nans


def _might_be_less(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    value, or_equal = _value(predicate), predicate.operation is Operation.LT_EQ

    def decide(known: ValueSummary) -> bool:
        if _empty(known):
            return False
        return known.lower is None or known.lower < value or (or_equal and known.lower == value)

    return decide


def _might_be_greater(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    value, or_equal = _value(predicate), predicate.operation is Operation.GT_EQ

    def decide(known: ValueSummary) -> bool:
        if known.only_nulls:
            return False
        if not known.no_nans or known.upper is None:
            return True
        return bool(known.upper > value or (or_equal and known.upper == value))

    return decide


def _might_equal(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    values = _values(predicate)
    return lambda known: not (_empty(known) or _none_within(known, values))


def _might_differ(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    values = _values(predicate)
    return lambda known: not (known.only_nulls or (known.no_nans and _only_value_of(known, values)))


def _might_start(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    prefix = _value(predicate)
    return lambda known: not (known.only_nulls or _excludes_prefix(known, prefix))


def _might_not_start(predicate: BoundPredicate) -> Callable[[ValueSummary], bool]:
    prefix = _value(predicate)
    return lambda known: not (known.only_nulls or _has_prefix(known, prefix))


_MIGHT: dict[Operation, Rule] = {
    Operation.IS_NULL: lambda _: lambda known: not known.no_nulls,
    Operation.NOT_NULL: lambda _: lambda known: not known.only_nulls,
    Operation.IS_NAN: lambda _: lambda known: not (known.no_nans or known.only_nulls),
    Operation.NOT_NAN: lambda _: lambda known: not (known.only_nans and known.no_nulls),
    Operation.LT: _might_be_less,
    Operation.LT_EQ: _might_be_less,
    Operation.GT: _might_be_greater,
    Operation.GT_EQ: _might_be_greater,
    Operation.EQ: _might_equal,
    Operation.NOT_EQ: _might_differ,
    Operation.IN: _might_equal,
    Operation.NOT_IN: _might_differ,
    Operation.STARTS_WITH: _might_start,
    Operation.NOT_STARTS_WITH: _might_not_start,
}
