"""How deep conditions may be within one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hms_iceberg.errors import InvalidInputError

# How deep `and`, `or` and `not` may alternate: trees are walked by recursion, for which the stack must be enough.
MAX_DEPTH = 100


class Deep(Protocol):
    """A condition that knows its depth."""

    @property
    def depth(self) -> int:
        """How many `and`, `or` and `not` are in one another."""


def depth_above(children: Sequence[Deep]) -> int:
    """How deep a condition is that combines others.

    Args:
        children: the others, each with its depth.

    Returns:
        the number of levels.

    Raises:
        InvalidInputError: there are too many.
    """
    depth = 1 + max(child.depth for child in children)
    if depth > MAX_DEPTH:
        raise InvalidInputError(
            f"Cannot combine conditions: 'and', 'or' and 'not' alternate {depth} levels deep, at most {MAX_DEPTH} are "
            f"possible. Combine all alternatives of a level at once: Or(a, b, c), or In(column, values)."
        )
    return depth
