"""The record of a primitive type: every form that its values have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

INT_RANGE = (-(2**31), 2**31 - 1)
LONG_RANGE = (-(2**63), 2**63 - 1)

Convert = Callable[[Any, Any], Any]
"""A function of the type (with its precision, scale or length) and a value."""


def _as_text(_: object, value: Any) -> str:
    return str(value)


@dataclass(frozen=True, kw_only=True)
class ValueForms:
    """The forms of the stored values of a primitive type, each as a function of the type and a value. What cannot be
    converted raises ValueError or TypeError; the callers name the type and the value."""

    to_bytes: Convert | None = None  # the bytes of a bound; None if values have no bounds
    from_bytes: Convert | None = None  # the value of such bytes, also of bytes from before the column was promoted
    to_json: Convert | None = None  # the value as default values in schemas are written; None if JSON has no form of it
    from_json: Convert | None = None  # the value of parsed JSON
    from_python: Convert | None = None  # the value of what a Python user writes
    text: Callable[[Any, Any], str] = _as_text  # the value as partition paths show it
    # the hash of bucket transforms, signed, of 32 bits; None if the specification defines none
    hash: Callable[[Any, Any], int] | None = None
    avro: Any = None  # the Avro type, or a function that makes it of the type


def check_integer(value: int, limits: tuple[int, int]) -> int:
    """The value, if it is an integer within the limits; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected an integer")
    if not limits[0] <= value <= limits[1]:
        raise ValueError(f"expected an integer from {limits[0]} to {limits[1]}")
    return value


def parsed_text(value: Any) -> str:
    """The value, if it is text; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value
