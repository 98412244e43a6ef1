"""Shortened bounds of strings and binaries, as metrics of the mode `truncate(n)` hold them.

Source: Iceberg specification, "Data File Fields" (lower and upper bounds may be truncated as long as they bound).
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.spec.types import BinaryType, FixedType, IcebergType, StringType

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def truncate_lower(kind: IcebergType, value: Any, width: int) -> Any:
    """A value of at most `width` characters (or bytes) that is no greater; other types come back unchanged."""
    return value[:width] if isinstance(kind, (StringType, BinaryType, FixedType)) else value


def truncate_upper(kind: IcebergType, value: Any, width: int) -> Any | None:
    """A value of at most `width` characters (or bytes) that is no smaller, or None where there is none.

    Characters are Unicode code points. Values of other types, and values that are short enough, come back unchanged.
    """
    if not isinstance(kind, (StringType, BinaryType, FixedType)) or len(value) <= width:
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
