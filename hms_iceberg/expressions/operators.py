"""What predicates do: the operations, their opposites, and their spelling."""

from __future__ import annotations

from enum import Enum


class Operation(Enum):
    """What a predicate does; the value is its spelling in a filter string."""

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
    def negated(self) -> Operation:
        """The operation that is true if this one is false."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Operation:
        """The comparison with its sides exchanged: `5 < a` is `a > 5`."""
        return _FLIPPED[self]


_PAIRS = (
    (Operation.IS_NULL, Operation.NOT_NULL),
    (Operation.IS_NAN, Operation.NOT_NAN),
    (Operation.LT, Operation.GT_EQ),
    (Operation.LT_EQ, Operation.GT),
    (Operation.EQ, Operation.NOT_EQ),
    (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH),
    (Operation.IN, Operation.NOT_IN),
)
_NEGATED = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_FLIPPED = {
    Operation.LT: Operation.GT,
    Operation.LT_EQ: Operation.GT_EQ,
    Operation.GT: Operation.LT,
    Operation.GT_EQ: Operation.LT_EQ,
    Operation.EQ: Operation.EQ,
    Operation.NOT_EQ: Operation.NOT_EQ,
}
