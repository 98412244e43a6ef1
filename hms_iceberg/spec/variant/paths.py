"""Paths into variants, as filters write them and as bounds of their fields name them.

Source: Apache Iceberg specification, "Bounds for Variant"; RFC 9535, "Normalized Paths"; Spark's ``variant_get``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Path = tuple[str | int, ...]

_PART = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\f": "\\f", "\n": "\\n", "\r": "\\r", "'": "\\'", "\\": "\\\\"}
_MOST = 2**31 - 1


def parse_path(text: str) -> Path:
    """Field names and positions of a path such as ``$.a.b``, ``$['a']["b"]`` or ``$[0]``; ValueError for others."""
    parts: list[str | int] = []
    at = 1
    while text[:1] == "$" and at < len(text):
        found = _PART.match(text, at)
        if found is None:
            break
        name = next((each for each in (found[1], found[3], found[4]) if each is not None), None)
        parts.append(int(found[2]) if name is None else name)
        at = found.end()
    if text[:1] != "$" or at < len(text) or any(isinstance(each, int) and each > _MOST for each in parts):
        raise ValueError(f"{text!r} is no path into a variant; expected one such as $.a.b, $['a'] or $[0]")
    return tuple(parts)


def normalized_path(names: Iterable[str]) -> str:
    """The normalized path of fields within one another, such as ``$['a']['b']``."""
    return "$" + "".join(f"['{_escaped(name)}']" for name in names)


def _escaped(name: str) -> str:
    return "".join(_ESCAPES.get(each) or (each if each >= " " else f"\\u{ord(each):04x}") for each in name)
