"""`like` patterns as prefix or exact comparisons, the only ones that bounds and partitions can answer."""

from __future__ import annotations

from hms_iceberg.expressions.terms import Term
from hms_iceberg.expressions.tree import (
    BooleanExpression,
    EqualTo,
    NotEqualTo,
    NotStartsWith,
    StartsWith,
)


def like_predicate(term: Term, pattern: str, escape: str, negated: bool) -> BooleanExpression:
    """The predicate of `term [not] like 'pattern' escape 'e'`.

    Args:
        term: the column or transform.
        pattern: the pattern.
        escape: the character that makes the next one literal.
        negated: whether it is `not like`.

    Raises:
        ValueError: the pattern is neither a text nor a text followed by %, or the escape stands before nothing special.
    """
    text, is_prefix = _read(pattern, escape)
    if is_prefix:
        return NotStartsWith(term, text) if negated else StartsWith(term, text)
    return NotEqualTo(term, text) if negated else EqualTo(term, text)


def _read(pattern: str, escape: str) -> tuple[str, bool]:
    """The text that the pattern begins with, and whether anything may follow it."""
    text: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            following = pattern[position + 1 : position + 2]
            if following not in ("%", "_", escape) or not following:
                raise ValueError(
                    f"the escape {escape!r} in the pattern {pattern!r} must stand before %, _ or itself; "
                    f"write {escape * 2!r} for the character"
                )
            text.append(following)
            position += 2
            continue
        if character == "_":
            raise ValueError(
                f"like {pattern!r} is not possible: _ stands for any character; write \\_ for the character"
            )
        if character == "%":
            if pattern[position:].strip("%"):
                raise ValueError(
                    f"like {pattern!r} is not possible: % may only stand at the end (a prefix); write \\% for the "
                    "character"
                )
            return "".join(text), True
        text.append(character)
        position += 1
    return "".join(text), False
