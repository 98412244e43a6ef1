"""What a predicate tests: a column by its name, or a partition transform of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from hms_iceberg.errors import TypeMismatchError

if TYPE_CHECKING:
    from hms_iceberg.spec.partition_transforms import Transform

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
        name, _, parameter = str(self.transform).rstrip("]").partition("[")
        arguments = f"{parameter}, {self.reference}" if parameter else str(self.reference)
        return f"{_FUNCTION_NAMES.get(name, name)}({arguments})"


Term = Union[Reference, Transformed]  # noqa: UP007  (an alias is evaluated, also by Python 3.10)

_FUNCTION_NAMES = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


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
