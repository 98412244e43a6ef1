"""Typed members of parsed JSON objects, with errors that name the member, what was expected and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import CorruptMetadataError


class JsonObject:
    """A parsed JSON object whose members are read by type; null counts as missing.

    Args:
        data: the parsed JSON.
        what: what it stands for, for messages.

    Raises:
        CorruptMetadataError: `data` is no object; so do the methods, for a member that is missing or of another type.
    """

    __slots__ = ("data", "what")

    def __init__(self, data: Any, what: str) -> None:
        if not isinstance(data, Mapping):
            raise CorruptMetadataError(f"{what} is {shown(data)}, expected an object")
        self.data = data
        self.what = what

    def has(self, key: str) -> bool:
        """True if the member is there and not null."""
        return self.data.get(key) is not None

    def _of(self, key: str, kind: type, expected: str) -> Any:
        value = self.data.get(key)
        if value is None:
            raise CorruptMetadataError(f"{self.what} lacks {key!r}, expected {expected}")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CorruptMetadataError(f"{key!r} of {self.what} is {shown(value)}, expected {expected}")
        return value

    def integer(self, key: str) -> int:
        """A 64-bit integer."""
        value: int = self._of(key, int, "an integer")
        if not -(2**63) <= value < 2**63:
            raise CorruptMetadataError(f"{key!r} of {self.what} is {value}, expected a 64-bit integer")
        return value

    def integer_or_none(self, key: str) -> int | None:
        """A 64-bit integer, or None if it is missing."""
        return self.integer(key) if self.has(key) else None

    def text(self, key: str) -> str:
        """A string."""
        value: str = self._of(key, str, "text")
        return value

    def text_or_none(self, key: str) -> str | None:
        """A string, or None if it is missing."""
        return self.text(key) if self.has(key) else None

    def sequence(self, key: str) -> list[Any]:
        """A list."""
        value: list[Any] = self._of(key, list, "a list")
        return value

    def sequence_or_empty(self, key: str) -> list[Any]:
        """A list; empty if it is missing."""
        return self.sequence(key) if self.has(key) else []

    def objects(self, key: str, what: str) -> list[JsonObject]:
        """A list of objects; empty if it is missing."""
        return [JsonObject(each, what) for each in self.sequence_or_empty(key)]

    def text_map_or_none(self, key: str) -> dict[str, str] | None:
        """An object from text to text, or None if it is missing."""
        if not self.has(key):
            return None
        value: dict[str, Any] = self._of(key, dict, "an object")
        for name, each in value.items():
            if not isinstance(each, str):
                raise CorruptMetadataError(f"{name!r} in {key!r} of {self.what} is {shown(each)}, expected text")
        return value


def shown(data: object) -> str:
    """The value as text, cut off if it is long."""
    text = repr(data)
    return text if len(text) <= 200 else text[:200] + " ..."
