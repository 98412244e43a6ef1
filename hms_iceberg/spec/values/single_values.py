"""Stored values in all their forms: bytes, JSON, Python objects and truncated bounds.

Stored values: bool; int for int, long, date (days), time and timestamps (micro- or nanoseconds); float; str; uuid.UUID;
bytes; decimal.Decimal at the type's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import BinaryType, FixedType, IcebergType, StringType
from hms_iceberg.spec.values.binary_values import from_bytes, point_from_bytes, point_to_bytes, to_bytes
from hms_iceberg.spec.values.decimals import (
    DECIMAL_CONTEXT,
    decimal_to_bytes,
    decimal_value,
    integer_to_bytes,
    unscaled_value,
)
from hms_iceberg.spec.values.forms.form import INT_RANGE, LONG_RANGE
from hms_iceberg.spec.values.forms.table import forms_of
from hms_iceberg.spec.values.json_values import from_json, to_json
from hms_iceberg.spec.values.python_values import from_python

__all__ = [
    "DECIMAL_CONTEXT",
    "INT_RANGE",
    "LONG_RANGE",
    "bounds_to_bytes",
    "decimal_to_bytes",
    "decimal_value",
    "from_bytes",
    "from_json",
    "from_python",
    "hash_function",
    "human_string",
    "integer_to_bytes",
    "point_from_bytes",
    "point_to_bytes",
    "to_bytes",
    "to_json",
    "truncate_lower",
    "truncate_upper",
    "unscaled_value",
]


# Of a fixed value no more than its first bytes may be left, which are no value of the type.
_SHORTENED = (StringType, BinaryType, FixedType)
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def bounds_to_bytes(kind: IcebergType, low: Any, high: Any, width: int | None) -> tuple[bytes, bytes | None]:
    """The least and the greatest stored value of a column as its bounds.

    Args:
        kind: the primitive type of the column.
        low: the least value.
        high: the greatest value.
        width: how many characters or bytes are kept; None keeps all.

    Returns:
        The bytes that a manifest holds; no upper bound if none is short enough.

    Raises:
        UnsupportedError, TypeMismatchError: as of `to_bytes`.
    """
    if width is not None:
        low, high = truncate_lower(kind, low, width), truncate_upper(kind, high, width)
    stored = BinaryType() if isinstance(kind, FixedType) else kind
    return to_bytes(stored, low), None if high is None else to_bytes(stored, high)


def truncate_lower(kind: IcebergType, value: Any, width: int) -> Any:
    """A value of at most `width` characters (or bytes) that is no greater; other types come back unchanged."""
    return value[:width] if isinstance(kind, _SHORTENED) else value


def truncate_upper(kind: IcebergType, value: Any, width: int) -> Any | None:
    """A value of at most `width` characters (or bytes) that is no smaller, or None if there is none.

    Characters are Unicode code points. Values of other types, and values that are short enough, come back unchanged.
    """
    if not isinstance(kind, _SHORTENED) or len(value) <= width:
        return value
    return _next_text(value[:width]) if isinstance(value, str) else _next_bytes(bytes(value[:width]))


def _next_text(prefix: str) -> str | None:
    for last in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[last]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CODE_POINT:
            return prefix[:last] + chr(following)
    return None


def _next_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def human_string(kind: IcebergType, value: Any) -> str:
    """Text of a stored value as Apache Iceberg in Java writes it in partition paths: ISO dates, base64 for bytes."""
    return "null" if value is None else forms_of(kind).text(kind, value)


def hash_function(source_type: IcebergType) -> Callable[[Any], int]:
    """The signed 32-bit Murmur3 hash of stored values of a type (Appendix B), also if bucket does not allow it.

    Raises:
        TypeMismatchError: the specification defines no hash for the type.
    """
    hash_value = forms_of(source_type).hash
    if hash_value is None:
        raise TypeMismatchError(f"Values of type {source_type} cannot be hashed into buckets")
    return partial(hash_value, source_type)
