"""Isolation levels of operations that read before they write, and where a table sets them.

Source: Iceberg documentation, "Configuration": `write.delete.isolation-level` and its like; the default is
serializable.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from hms_iceberg.spec.table_properties import ISOLATION_LEVELS


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
    return Isolation(ISOLATION_LEVELS[operation].of(properties))
