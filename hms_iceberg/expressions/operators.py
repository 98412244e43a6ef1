"""What predicates do: the operations, their opposites, and their spelling."""

from __future__ import annotations

from enum import Enum


class Operator(Enum):
    """The operation of a predicate; the value is its spelling in a filter string."""

    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"
    LT = "<"
    LT_EQ = "<="
    GT = ">"
    GT_EQ = ">="
    EQ = "="
    NOT_EQ = "!="
    STARTS_WITH = "like"
    NOT_STARTS_WITH = "not like"
    IN = "in"
    NOT_IN = "not in"

    @property
    def negated(self) -> Operator:
        """The operation that is true if this one is false."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Operator:
        """The comparison with its sides exchanged: `5 < a` is `a > 5`."""
        return _FLIPPED[self]


_PAIRS = (
    (Operator.IS_NULL, Operator.NOT_NULL),
    (Operator.IS_NAN, Operator.NOT_NAN),
    (Operator.LT, Operator.GT_EQ),
    (Operator.LT_EQ, Operator.GT),
    (Operator.EQ, Operator.NOT_EQ),
    (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH),
    (Operator.IN, Operator.NOT_IN),
)
_NEGATED = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.LT_EQ: Operator.GT_EQ,
    Operator.GT: Operator.LT,
    Operator.GT_EQ: Operator.LT_EQ,
    Operator.EQ: Operator.EQ,
    Operator.NOT_EQ: Operator.NOT_EQ,
}
