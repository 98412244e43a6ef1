"""Table properties that may be set, and those that stand for parts of the metadata.

Source: Iceberg documentation, "Configuration", reserved table properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from hms_iceberg.errors import ConfigurationError, InvalidInputError

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

NEW_TABLE_PROPERTIES = {"write.parquet.compression-codec": "zstd"}
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


_MODES = ("copy-on-write", "merge-on-read")
_LEVELS = ("serializable", "snapshot")
_FORMATS = ("parquet", "orc", "avro")
_DISTRIBUTIONS = ("none", "hash", "range")
_CHOICES = {
    **{f"write.{operation}.mode": _MODES for operation in ("delete", "update", "merge")},
    **{f"write.{operation}.isolation-level": _LEVELS for operation in ("delete", "update", "merge")},
    **{f"write.{operation}.distribution-mode": _DISTRIBUTIONS for operation in ("delete", "update", "merge")},
    "write.distribution-mode": _DISTRIBUTIONS,
    "write.format.default": _FORMATS,
    "write.delete.format.default": _FORMATS,
    "write.delete.granularity": ("file", "partition"),
    "write.metadata.compression-codec": ("none", "gzip"),
}
"""Values that every writer knows, ours and Java's; in upper or lower case."""


def check_choices(properties: Mapping[str, str]) -> None:
    """Refuses a value that no writer would accept, before it keeps all of them from writing.

    Raises:
        ConfigurationError: there is one; names those that may be set.
    """
    for name, choices in _CHOICES.items():
        text = properties.get(name)
        if text is not None and text.strip().lower() not in choices:
            near = get_close_matches(text.strip().lower(), choices, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(
                f"Table property {name!r}: expected one of {', '.join(choices)}, got {text!r}.{hint}"
            )


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
