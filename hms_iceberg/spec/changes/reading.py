"""Reads the changes and requirements of a request: by a table of what there is, one entry a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hms_iceberg.errors import CorruptFileError, InvalidInputError
from hms_iceberg.spec.json_model import JsonObject

T = TypeVar("T")


def read_by_kind(
    data: Any, what: str, member: str, kinds: Mapping[str, Callable[[JsonObject], T]]
) -> list[tuple[str, T]]:
    """What a list of JSON objects stands for, each with the name of its kind.

    Args:
        data: the parsed JSON.
        what: what an object of the list is, for messages.
        member: the member that says the kind.
        kinds: how each kind is read.

    Raises:
        InvalidInputError: it is no such list, a kind is not known, or a member is missing or of the wrong type.
    """
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InvalidInputError(f"Cannot read the {what}s of the request: expected a list, got {str(data)[:200]}.")
    read = []
    for each in data:
        try:
            body = JsonObject(each, f"the {what}")
            kind = body.text(member)
            body.what = f"{what} {kind!r}"
            if kind not in kinds:
                raise InvalidInputError(f"Unknown {what} {kind!r}: expected one of {', '.join(kinds)}.")
            read.append((kind, kinds[kind](body)))
        except CorruptFileError as error:
            raise InvalidInputError(f"Cannot read a {what} of the request: {error}.") from error
    return read


def integers(body: JsonObject, key: str) -> list[int]:
    """A list of integers.

    Raises:
        InvalidInputError: it is something else.
    """
    values = body.sequence(key)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in values):
        raise InvalidInputError(f"{key!r} of {body.what}: expected numbers, got {str(values)[:200]}.")
    return values


def texts(body: JsonObject, *keys: str) -> list[str]:
    """A list of texts, under the first of some names that is there.

    Raises:
        InvalidInputError: it is something else.
    """
    values = body.sequence(next((key for key in keys if body.has(key)), keys[0]))
    if not all(isinstance(each, str) for each in values):
        raise InvalidInputError(f"{keys[0]!r} of {body.what}: expected texts, got {str(values)[:200]}.")
    return values


def text_map(body: JsonObject, *keys: str) -> dict[str, str]:
    """An object from text to text, under the first of some names that is there."""
    for key in keys:
        found = body.text_map_or_none(key)
        if found is not None:
            return found
    body.text(keys[0])  # raises, as it is missing
    raise AssertionError
