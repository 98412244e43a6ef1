"""The parts of a test: its operator, and its term, which is a column by name or a partition transform of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Union

from hms_iceberg.errors import TypeMismatchError

if TYPE_CHECKING:
    from hms_iceberg.spec.partition_transforms import Transform


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


_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
# Words that are never read as a column where they stand without quotes.
RESERVED = frozenset(("and", "or", "not", "in", "is", "null", "like", "between", "true", "false"))


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by its name; nested columns are written with dots, "address.city".

    Args:
        name: the dotted name, without quotes.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeMismatchError(f"Cannot refer to column {self.name!r}: expected a name, such as 'address.city'")

    def __str__(self) -> str:
        parts = self.name.split(".")
        return ".".join(quote_name(part) for part in parts) if all(parts) else quote_name(self.name)


@dataclass(frozen=True, slots=True)
class Transformed:
    """A partition transform of a column, such as `bucket(16, id)` or `days(ts)`.

    Args:
        reference: the source column.
        transform: any transform of `hms_iceberg.spec.partition_transforms`.
    """

    reference: Reference
    transform: Transform

    def __str__(self) -> str:
        number = self.transform.argument
        arguments = str(self.reference) if number is None else f"{number}, {self.reference}"
        return f"{self.transform.sql_name}({arguments})"


Term = Union[Reference, Transformed]  # noqa: UP007  (an alias is evaluated, also by Python 3.10)


def to_term(term: str | Term) -> Term:
    """The term of a column name, or the term itself.

    Raises:
        TypeMismatchError: neither of them.
    """
    if isinstance(term, (Reference, Transformed)):
        return term
    return Reference(term)


def quote_name(part: str) -> str:
    """One part of a name as it must be written in a filter string: in back quotes if it is not a plain word."""
    if _PLAIN_NAME.fullmatch(part) and part.lower() not in RESERVED:
        return part
    return "`" + part.replace("`", "``") + "`"
