"""Table properties that may be set, and those that stand for parts of the metadata.

Source: Iceberg documentation, "Configuration", reserved table properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.table_properties import PARQUET_CODEC

FORMAT_VERSION_PROPERTY = "format-version"
RESERVED_PROPERTIES = frozenset(
    {
        FORMAT_VERSION_PROPERTY,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that stand for parts of the metadata; they are never kept as properties."""

NEW_TABLE_PROPERTIES = {PARQUET_CODEC.name: PARQUET_CODEC.default}
"""Set in new tables as Java sets them: without the property, older writers would compress with gzip."""


def property_values(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as text: numbers and booleans are written as Java writes them.

    Raises:
        InvalidInputError: a name is no text, or a value is None or not text, number or boolean.
    """
    texts: dict[str, str] = {}
    for name, value in properties.items():
        if not isinstance(name, str) or value is None or not isinstance(value, (str, int, float)):
            raise InvalidInputError(
                f"Invalid table property {name!r}: expected text, got {value!r}; remove a property instead of setting "
                "it to None"
            )
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def split_properties(properties: Mapping[str, Any]) -> tuple[dict[str, str], int | None]:
    """Properties without `format-version`, and the format version that it asks for.

    Raises:
        InvalidInputError: a reserved name is set, or the format version is no number.
    """
    texts = property_values(properties)
    version = texts.pop(FORMAT_VERSION_PROPERTY, None)
    reserved = sorted(RESERVED_PROPERTIES & texts.keys())
    if reserved:
        raise InvalidInputError(
            f"Table properties must not contain {', '.join(map(repr, reserved))}: these names stand for parts of the "
            "table's metadata; leave them out"
        )
    if version is None:
        return texts, None
    if not version.strip().isdigit():
        raise InvalidInputError(f"Table property 'format-version' is {version!r}, expected 1, 2 or 3")
    return texts, int(version)
