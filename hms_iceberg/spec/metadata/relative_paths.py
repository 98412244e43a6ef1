"""Locations in metadata of format version 4, which may be relative to the table's own location.

Source: Iceberg specification, "Paths in Metadata", "Path Resolution".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import CorruptMetadataError

FIRST_VERSION = 4
"""The first format version with relative locations."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOCATIONS = {
    "snapshots": "manifest-list",
    "metadata-log": "metadata-file",
    "statistics": "statistics-path",
    "partition-statistics": "statistics-path",
}


def is_relative(path: str) -> bool:
    """Whether a path in metadata of version 4 lacks a URI scheme."""
    return _SCHEME.match(path) is None


def resolved(path: str, base: str) -> str:
    """The location that a path in metadata of version 4 stands for.

    Args:
        path: an absolute location, or one relative to the table's.
        base: the table's location; a separator at its end is kept, and another one follows it.
    """
    return f"{base}/{path}" if is_relative(path) else path


def table_location(location: str | None, metadata_file: str | None) -> str:
    """The location of a table of version 4.

    Args:
        location: what its metadata says; None if they leave it to the catalog.
        metadata_file: where the metadata were read; None if that is not known.

    Returns:
        what the metadata say, or else the folder that holds the file's folder `metadata`.

    Raises:
        CorruptMetadataError: the location is relative, or nothing says it.
    """
    if location is not None:
        if is_relative(location):
            raise CorruptMetadataError(f"the location {location!r} of a table of format version 4 has no scheme")
        return location
    folder, _, name = (metadata_file or "").rpartition("/")[0].rpartition("/")
    if name != "metadata" or not folder:
        raise CorruptMetadataError(
            "the metadata do not say the table's location, and their file is in no folder 'metadata' that would tell "
            "it. Have the writer store the location in the metadata"
        )
    return folder


def with_absolute_locations(data: Mapping[str, Any], base: str) -> dict[str, Any]:
    """The JSON of metadata of version 4 with every location absolute.

    Args:
        data: the parsed JSON; what is not of the expected form is left for its parser to refuse.
        base: the table's location.
    """
    made = {**data, "location": base}
    for key, name in _LOCATIONS.items():
        if isinstance(items := data.get(key), list):
            made[key] = [_absolute(each, name, base) for each in items]
    return made


def _absolute(item: Any, name: str, base: str) -> Any:
    if isinstance(item, dict) and isinstance(path := item.get(name), str):
        return {**item, name: resolved(path, base)}
    return item
