"""One test of a column turned into a test of one partition field made from it.

A transform that keeps order puts neighbouring values into blocks, one partition value each. With T the transform:

| test  | some row of the block may match | every row of the block matches |
|-------|---------------------------------|--------------------------------|
| < v   | p <= T(v - 1)                   | p < T(v)                       |
| <= v  | p <= T(v)                       | p < T(v + 1)                   |
| > v   | p >= T(v + 1)                   | p > T(v)                       |
| >= v  | p >= T(v)                       | p > T(v - 1)                   |
| = v   | p = T(v)                        | (nothing is known)             |
| != v  | (nothing is known)              | p != T(v)                      |

where v - 1 and v + 1 are the neighbours of v among the type's values. Text and bytes have no such neighbours; how long
the literal is decides there.

Four faults of writers are taken into account. Until Iceberg 0.10, Java stored times before 1970 in the period after
the right one (rounded towards 1970, not down). Since then, it stores a timestamp before 1970 that is the last micro- or
nanosecond of the first second of a period in the period before the right one. And if `truncate` goes below the
smallest int or long, the stored value wraps around to the top of the range: that of an int's range also for a column of
longs, which may have been one of ints when the value was stored. Hours of the first and the last timestamps do not fit
into an int: they wrap around to the other end of its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.expressions.bound import (
    BoundLiteralPredicate,
    BoundPredicate,
    BoundSetPredicate,
    BoundTransform,
    BoundUnaryPredicate,
    BoundVariantGet,
)
from hms_iceberg.expressions.literals import Literal, Operator, literal, stored_literal
from hms_iceberg.expressions.terms import Reference
from hms_iceberg.expressions.tree import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    Or,
)
from hms_iceberg.expressions.tree import predicate as unbound_predicate
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    NANO_TIMESTAMPS,
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
)
from hms_iceberg.spec.values import datetimes
from hms_iceberg.spec.values.decimals import decimal_value, unscaled_value
from hms_iceberg.spec.values.forms.form import INT_RANGE, LONG_RANGE

Node = Callable[[Reference, Literal], BooleanExpression]


def project(field: PartitionField, predicate: BoundPredicate, strict: bool) -> BooleanExpression | None:
    """The unbound test of a partition field that a test of its source column implies, or if `strict` is implied by;
    None if nothing can be said."""
    transform, term = field.transform, Reference(field.name)
    if transform.is_void or isinstance(transform, UnknownTransform) or len(field.source_ids or ()) > 1:
        return None
    kind = predicate.ref.type
    if isinstance(predicate.term, BoundVariantGet):
        return None
    if isinstance(predicate.term, BoundTransform):
        if predicate.term.transform != transform:
            return None
        if isinstance(predicate, BoundUnaryPredicate) or not _folds(transform, kind):
            return _renamed(predicate, term)
        blocks = _of_result(transform, kind, term)
        return blocks.strict(predicate) if strict else blocks.inclusive(predicate)
    if not transform.can_transform(kind):
        return None
    if transform.is_identity:
        return _renamed(predicate, term)
    if isinstance(predicate, BoundUnaryPredicate):
        # A value never becomes null, nor null a value; no other transform takes types that have NaN.
        return _renamed(predicate, term)
    if isinstance(transform, BucketTransform):
        return _bucket(transform, term, predicate, strict)
    if isinstance(transform, TruncateTransform) and isinstance(kind, (StringType, BinaryType)):
        return _prefix_test(transform.width, term, predicate, strict)
    blocks = _blocks(transform, kind, term)
    return blocks.strict(predicate) if strict else blocks.inclusive(predicate)


def _renamed(predicate: BoundPredicate, term: Reference) -> BooleanExpression:
    """Applies a predicate to the partition field, which holds exactly the tested value (identity)."""
    if isinstance(predicate, BoundLiteralPredicate):
        return unbound_predicate(predicate.operation, term, predicate.literal)
    if isinstance(predicate, BoundSetPredicate):
        return unbound_predicate(predicate.operation, term, predicate.literals)
    return unbound_predicate(predicate.operation, term)


def values_of(predicate: BoundPredicate) -> tuple[Any, ...]:
    """The value or values of a test that has some."""
    if isinstance(predicate, BoundSetPredicate):
        return predicate.values
    assert isinstance(predicate, BoundLiteralPredicate)
    return (predicate.value,)


def _bucket(
    transform: BucketTransform, term: Reference, predicate: BoundPredicate, strict: bool
) -> BooleanExpression | None:
    node = {Operator.EQ: In, Operator.IN: In, Operator.NOT_EQ: NotIn, Operator.NOT_IN: NotIn}.get(predicate.operation)
    if node is None or strict == (node is In):
        return None
    bucket = transform.bind(predicate.ref.type)
    return node(term, sorted({bucket(value) for value in values_of(predicate)}))


@dataclass(frozen=True)
class _Blocks:
    """The blocks of an order-keeping transform, over integer units. Negative results may be stored one too high or too
    low, results below `lowest` as `wrapped` (None if unknown), and if it `folds`, results that no int holds at the
    other end of its range. `former` is a result that may be stored as another one, and that other one, which no value
    has."""

    term: Reference
    unit: Callable[[Any], int]
    block: Callable[[int], int]
    literal: Callable[[int], Literal]
    one_to_one: bool
    late_before_1970: bool
    early_before_1970: bool
    lowest: int
    wrapped: int | None
    folds: bool = False
    former: tuple[int, int] | None = None

    def inclusive(self, predicate: BoundPredicate) -> BooleanExpression | None:
        """The predicate that holds for the partition value if some row matches."""
        operation, units = predicate.operation, [self.unit(each) for each in values_of(predicate)]
        if operation in (Operator.EQ, Operator.IN):
            return self._among(units)
        if operation in (Operator.NOT_EQ, Operator.NOT_IN):
            return NotIn(self.term, self._literals(units)) if self.one_to_one else None
        value = units[0]
        if operation in (Operator.LT, Operator.LT_EQ):
            return self._up_to(self.block(value - (operation is Operator.LT)))
        return self._from(self.block(value + (operation is Operator.GT)))

    def strict(self, predicate: BoundPredicate) -> BooleanExpression | None:
        """The predicate of the partition value that implies that every row matches."""
        operation, units = predicate.operation, [self.unit(each) for each in values_of(predicate)]
        if operation in (Operator.EQ, Operator.IN):
            return In(self.term, self._literals(units)) if self.one_to_one else None
        if operation in (Operator.NOT_EQ, Operator.NOT_IN):
            return self._none_of(units)
        value = units[0]
        if operation in (Operator.LT, Operator.LT_EQ):
            return self._below(self.block(value + (operation is Operator.LT_EQ)))
        return self._above(self.block(value - (operation is Operator.GT_EQ)))

    def _literals(self, results: Iterable[int]) -> list[Literal]:
        return [self.literal(each) for each in sorted(set(results))]

    def _stored(self, units: Iterable[int]) -> list[Literal] | None:
        """All values that the blocks may be stored under; None if one is beyond the range."""
        stored: set[int] = set()
        if self.folds:
            results = [self.block(unit) for unit in units]
            near = range(-self.early_before_1970, self.late_before_1970 + 1)
            return self._literals(_fold(each + more) for each in results for more in (near if each < 0 else (0,)))
        for result in map(self.block, units):
            if result < self.lowest:
                if self.wrapped is None:
                    return None
                result = self.wrapped
            stored.add(result)
            if self.former is not None and result == self.former[0]:
                stored.add(self.former[1])
            if self.late_before_1970 and result < 0:
                stored.add(result + 1)
            if self.early_before_1970 and self.lowest < result < 0:
                stored.add(result - 1)
        return self._literals(stored)

    def _among(self, units: Iterable[int]) -> BooleanExpression:
        stored = self._stored(units)
        return NotNull(self.term) if stored is None else In(self.term, stored)

    def _none_of(self, units: Iterable[int]) -> BooleanExpression | None:
        stored = self._stored(units)
        return None if stored is None else NotIn(self.term, stored)

    def _up_to(self, result: int) -> BooleanExpression:
        if self.late_before_1970 and result < 0:
            result += 1
        if self.folds:
            return self._or_folded(result, LessThanOrEqual, GreaterThanOrEqual(self.term, self.literal(_FOLDED_LOW)))
        if result < self.lowest:
            return NotNull(self.term) if self.wrapped is None else EqualTo(self.term, self.literal(self.wrapped))
        limit = LessThanOrEqual(self.term, self.literal(result))
        return Or(limit, In(self.term, self._at_the_top)) if self._at_the_top else limit

    def _from(self, result: int) -> BooleanExpression:
        if self.early_before_1970 and result < 0:
            result -= 1
        if self.folds:
            return self._or_folded(result, GreaterThanOrEqual, LessThanOrEqual(self.term, self.literal(_FOLDED_HIGH)))
        if result < self.lowest:
            return NotNull(self.term)
        return GreaterThanOrEqual(self.term, self.literal(result))

    def _below(self, result: int) -> BooleanExpression | None:
        if self.early_before_1970 and result < 0:
            result -= 1
        if self.folds:
            return self._but_folded(result, LessThan, GreaterThan(self.term, self.literal(_FOLDED_HIGH)))
        return None if result < self.lowest else LessThan(self.term, self.literal(result))

    def _above(self, result: int) -> BooleanExpression | None:
        if self.late_before_1970 and result < 0:
            result += 1
        if self.folds:
            return self._but_folded(result, GreaterThan, LessThan(self.term, self.literal(_FOLDED_LOW)))
        if result < self.lowest:
            return None if self.wrapped is None else NotEqualTo(self.term, self.literal(self.wrapped))
        limit = GreaterThan(self.term, self.literal(result))
        return And(limit, NotIn(self.term, self._at_the_top)) if self._at_the_top else limit

    @property
    def _at_the_top(self) -> list[Literal]:
        """The literals as which results at the bottom of the range may be stored."""
        return self._literals(
            each for each in (self.wrapped, None if self.former is None else self.former[1]) if each is not None
        )

    def _or_folded(self, result: int, node: Node, folded: BooleanExpression) -> BooleanExpression:
        """The test for a partition limit, or `folded`; every value that is not null if no int holds the limit."""
        holds = INT_RANGE[0] <= result <= INT_RANGE[1]
        return Or(node(self.term, self.literal(result)), folded) if holds else NotNull(self.term)

    def _but_folded(self, result: int, node: Node, plain: BooleanExpression) -> BooleanExpression | None:
        """The test for a partition limit together with `plain`; None (nothing is known) if no int holds the limit."""
        holds = INT_RANGE[0] <= result <= INT_RANGE[1]
        return And(node(self.term, self.literal(result)), plain) if holds else None


def _fold(result: int) -> int:
    return (result - INT_RANGE[0]) % (1 << 32) + INT_RANGE[0]


# Hours of the first and of the last timestamp in microseconds, as they are stored; the first may be one too low.
_FOLDED_LOW = _fold(LONG_RANGE[0] // datetimes.MICROS_PER_HOUR - 1)
_FOLDED_HIGH = _fold(LONG_RANGE[1] // datetimes.MICROS_PER_HOUR)


def _folds(transform: Transform, kind: IcebergType) -> bool:
    return isinstance(transform, HourTransform) and isinstance(kind, MICRO_TIMESTAMPS)


def _of_result(transform: Transform, kind: IcebergType, term: Reference) -> _Blocks:
    """The blocks of a test of the result itself: each value is one."""
    blocks = _blocks(transform, kind, term)
    plain = replace(blocks, block=lambda unit: unit, one_to_one=True)
    return replace(plain, late_before_1970=False, early_before_1970=False)


def _blocks(transform: Transform, kind: IcebergType, term: Reference) -> _Blocks:
    result = transform.result_type(kind)
    if not isinstance(transform, TruncateTransform):
        one_to_one = isinstance(transform, DayTransform) and isinstance(kind, DateType)
        # Nanosecond timestamps are younger than the fault.
        late = not one_to_one and not isinstance(kind, NANO_TIMESTAMPS)
        return _Blocks(
            term=term,
            unit=int,
            block=transform.bind(kind),
            literal=lambda each: stored_literal(each, result),
            one_to_one=one_to_one,
            late_before_1970=late,
            early_before_1970=not isinstance(kind, DateType),
            lowest=INT_RANGE[0],
            wrapped=None,
            folds=_folds(transform, kind),
        )
    width = transform.width
    if isinstance(kind, DecimalType):
        scale, lowest, wrapped = kind.scale, 1 - 10**kind.precision, None
        return _Blocks(
            term=term,
            unit=lambda value: unscaled_value(value, scale),
            block=lambda unit: unit - unit % width,
            literal=lambda each: stored_literal(decimal_value(each, scale), result),
            one_to_one=width == 1,
            late_before_1970=False,
            early_before_1970=False,
            lowest=lowest,
            wrapped=wrapped,
        )
    lowest = INT_RANGE[0] if isinstance(kind, IntegerType) else LONG_RANGE[0]
    return _Blocks(
        term=term,
        unit=int,
        block=lambda unit: unit - unit % width,
        literal=lambda each: stored_literal(each, LongType()),
        one_to_one=width == 1,
        late_before_1970=False,
        early_before_1970=False,
        lowest=lowest,
        wrapped=transform.bind(kind)(lowest) if lowest % width else None,
        former=transform.before_promotion(kind),
    )


# ------------------------------------------------------------------------------------------------- text and bytes

# Tests of text or bytes become tests of their first characters or bytes, as `truncate` keeps them. A literal shorter
# than the width is compared with the whole value, so that most tests carry over exactly. Text is cut by code points.
# Source: Iceberg specification, "Truncate Transform Details".


def _prefix_test(width: int, term: Reference, predicate: BoundPredicate, strict: bool) -> BooleanExpression | None:
    """The unbound test of the first `width` characters or bytes that a test of the value implies, or if `strict` is
    implied by; None if there is none."""
    if predicate.operation in (Operator.IN, Operator.NOT_IN):
        assert isinstance(predicate, BoundSetPredicate)
        return _prefix_set(width, term, predicate, strict)
    assert isinstance(predicate, BoundLiteralPredicate)
    operation, value = predicate.operation, predicate.value
    cut = literal(value[:width])
    if _is_exact_prefix(operation, len(value), width):
        return unbound_predicate(operation, term, cut)
    inexact = _STRICT if strict else _INCLUSIVE
    node = inexact.get(operation)
    return None if node is None else node(term, cut)


def _is_exact_prefix(operation: Operator, length: int, width: int) -> bool:
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


def _prefix_set(width: int, term: Reference, predicate: BoundSetPredicate, strict: bool) -> BooleanExpression | None:
    is_in = predicate.operation is Operator.IN
    if strict == is_in:  # only values that are known whole can be relied on
        known: list[Literal] = [literal(value) for value in predicate.values if len(value) < width]
        if not known:
            return None
        return In(term, known) if is_in else NotIn(term, known)
    cuts = [literal(value[:width]) for value in predicate.values]
    return In(term, cuts) if is_in else NotIn(term, cuts)
