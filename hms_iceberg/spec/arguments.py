"""Arguments that are of another type than they should be, refused with a name before anything is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from hms_iceberg.errors import InvalidInputError


def column_names(names: Any, argument: str) -> tuple[str, ...]:
    """Names of columns: a text alone would be taken for names of one letter each.

    Raises:
        InvalidInputError: it is something else.
    """
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        found = tuple(names)
        if all(isinstance(name, str) for name in found):
            return found
    example = f"({names!r},)" if isinstance(names, str) else "('id', 'city')"
    raise InvalidInputError(f"{argument}: expected names of columns such as {example}, got {names!r}.")


def whole_number(number: Any, argument: str, what: str) -> int:
    """A number from 0.

    Args:
        number: what was given.
        argument: its name.
        what: what it stands for: `a number of rows`.

    Raises:
        InvalidInputError: it is something else.
    """
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
        raise InvalidInputError(f"{argument}: expected {what} from 0, got {number!r}.")
    return int(number)


def snapshot_number(snapshot_id: Any) -> int:
    """The id of a snapshot.

    Raises:
        InvalidInputError: it is something else, as text is.
    """
    if isinstance(snapshot_id, bool) or not isinstance(snapshot_id, Integral):
        raise InvalidInputError(f"Snapshot id: expected an integer, got {snapshot_id!r}.")
    return int(snapshot_id)


def mapping(given: Any, argument: str) -> Mapping[str, Any]:
    """Values by name.

    Raises:
        InvalidInputError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{argument}: expected values by name, such as {{'owner': 'billing'}}, got {given!r}.")
    return given
