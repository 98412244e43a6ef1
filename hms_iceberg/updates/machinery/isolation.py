"""Isolation levels of operations that read before they write, and where a table sets them.

Source: Iceberg documentation, "Configuration": `write.delete.isolation-level` and its like; the default is
serializable.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from hms_iceberg.errors import ConfigurationError


class Isolation(str, Enum):
    """How much of what an operation read must still hold when it commits."""

    SERIALIZABLE = "serializable"
    """Nobody added or removed rows that it would have read."""
    SNAPSHOT = "snapshot"
    """Nobody deleted rows of the files that it replaces."""
    NONE = "none"
    """Nothing but that the files which it removes are still there."""


def isolation_of(properties: Mapping[str, str], operation: str) -> Isolation:
    """The level that a table sets for `delete`, `update` or `merge`.

    Raises:
        ConfigurationError: no such level.
    """
    name = f"write.{operation}.isolation-level"
    text = properties.get(name, Isolation.SERIALIZABLE.value).strip().lower()
    try:
        return Isolation(text)
    except ValueError:
        levels = ", ".join(level.value for level in Isolation)
        raise ConfigurationError(f"Table property {name!r}: expected one of {levels}, got {text!r}.") from None
