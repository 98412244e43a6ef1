"""Tests of a partition transform as tests of the column itself.

`days(ts) = date'2024-01-01'` is `ts >= timestamp'2024-01-01' and ts < timestamp'2024-01-02'`: what looks at bounds,
partitions and rows then needs to know nothing of transforms. Only buckets, and binary values cut off, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.expressions.bound import (
    BoundLiteralPredicate,
    BoundReference,
    BoundTerm,
    BoundTransform,
    BoundUnaryPredicate,
)
from hms_iceberg.expressions.conversion import ABOVE_ALL, BELOW_ALL, LiteralPlace, integer_place, value_range
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Operator, Or
from hms_iceberg.spec.data_types import DecimalType, StringType
from hms_iceberg.spec.partition_transforms import Transform, TruncateTransform, UnknownTransform
from hms_iceberg.spec.values.single_values import decimal_value, unscaled_value


def bind_transform(ref: BoundReference, transform: Transform) -> BoundTerm:
    """The term of a transform of a field; the field itself for identity.

    Args:
        ref: the bound reference to the field.
        transform: the transform.

    Raises:
        TypeMismatchError: the transform does not take the field's type, or nobody knows what it does.
    """
    if transform.is_identity:
        return ref
    if isinstance(transform, UnknownTransform):
        raise TypeMismatchError(f"Cannot filter on {transform}({ref.name}): the transform is not known")
    if not transform.can_transform(ref.type):
        raise TypeMismatchError(
            f"Cannot filter on {transform} of column {ref.name!r}: the transform does not take {ref.type} values"
        )
    return BoundTransform(ref, transform)


def is_rewritten(term: BoundTransform) -> bool:
    """True if comparisons of the term become comparisons of its source."""
    source = term.ref.type
    if isinstance(term.transform, TruncateTransform) and isinstance(source, StringType):
        return True
    return term.transform.is_void or term.transform.first_source(source) is not None


def rewrite_comparison(operation: Operator, term: BoundTransform, at: LiteralPlace) -> BooleanExpression:
    """Rewrites a comparison of a transform's result with a value as one of the column itself, where that says the
    same.

    Args:
        operation: the operator.
        term: the bound transform.
        at: the point among the values of the transform's results.

    Returns:
        the bound test; that of the transform where no range of the column says it.
    """
    transform, ref, value = term.transform, term.ref, at.value
    if transform.is_void:
        return AlwaysFalse()
    if isinstance(transform, TruncateTransform) and isinstance(ref.type, StringType):
        return _truncated_string(operation, ref, transform.width, value)
    first = transform.first_source(ref.type)
    if first is None:
        return BoundLiteralPredicate(operation, term, value)
    if isinstance(ref.type, DecimalType):
        scale = ref.type.scale
        return _ranges(operation, ref, unscaled_value(value, scale), first)
    return _ranges(operation, ref, value, first)


def _ranges(operation: Operator, ref: BoundReference, value: int, first: Callable[[int], int]) -> BooleanExpression:
    """The comparison as limits of the source; `first(n)` is the first source value whose result is n or more."""
    start, end = first(value), first(value + 1)
    if operation is Operator.LT:
        return _limit(Operator.LT, ref, start)
    if operation is Operator.LT_EQ:
        return _limit(Operator.LT, ref, end)
    if operation is Operator.GT:
        return _limit(Operator.GT_EQ, ref, end)
    if operation is Operator.GT_EQ:
        return _limit(Operator.GT_EQ, ref, start)
    if operation is Operator.EQ:
        if start == end:
            return AlwaysFalse()
        return And(_limit(Operator.GT_EQ, ref, start), _limit(Operator.LT, ref, end))
    return Or(_limit(Operator.LT, ref, start), _limit(Operator.GT_EQ, ref, end))


def _limit(operation: Operator, ref: BoundReference, value: int) -> BooleanExpression:
    """`ref < value` or `ref >= value`, for a value that the type's range may not reach."""
    if isinstance(ref.type, DecimalType):
        largest = 10**ref.type.precision - 1
        beyond = ABOVE_ALL if value > 0 else BELOW_ALL
        at = LiteralPlace(decimal_value(value, ref.type.scale)) if abs(value) <= largest else beyond
    else:
        at = integer_place(value, False, ref.type)
    below = operation is Operator.LT
    low, _ = value_range(ref.type)
    if at.value is None or at.value == low:
        everything = below == (at.side > 0)
        return _not_null(ref) if everything else AlwaysFalse()
    return BoundLiteralPredicate(operation, ref, at.value)


def _not_null(ref: BoundReference) -> BooleanExpression:
    return BoundUnaryPredicate(Operator.NOT_NULL, ref) if ref.nullable else AlwaysTrue()


def _truncated_string(operation: Operator, ref: BoundReference, width: int, value: Any) -> BooleanExpression:
    """A comparison of the first `width` characters of a column."""
    cut, too_long = value[:width], len(value) > width

    def test(with_operation: Operator, prefix: str = cut) -> BooleanExpression:
        return BoundLiteralPredicate(with_operation, ref, prefix)

    if operation in (Operator.GT, Operator.GT_EQ, Operator.NOT_EQ, Operator.NOT_STARTS_WITH):
        return _negated_string(operation.negated, ref, width, value)
    if operation is Operator.STARTS_WITH:
        return AlwaysFalse() if too_long else test(Operator.STARTS_WITH)
    if operation is Operator.EQ:
        if too_long:
            return AlwaysFalse()
        return test(Operator.STARTS_WITH) if len(value) == width else test(Operator.EQ)
    if too_long or (operation is Operator.LT_EQ and len(value) == width):
        return Or(test(Operator.LT), test(Operator.STARTS_WITH))
    if operation is Operator.LT:
        return test(Operator.LT) if value else AlwaysFalse()
    return test(Operator.LT_EQ)


def _negated_string(operation: Operator, ref: BoundReference, width: int, value: Any) -> BooleanExpression:
    positive = _truncated_string(operation, ref, width, value)
    if isinstance(positive, AlwaysFalse):
        return _not_null(ref)
    parts = positive.operands if isinstance(positive, Or) else (positive,)
    return And(*(each.negate() for each in parts if isinstance(each, BoundLiteralPredicate)))
