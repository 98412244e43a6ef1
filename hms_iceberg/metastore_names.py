"""Names and properties as callers give them, in the form that a metastore takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier

_NO_NAME = re.compile(r"[/\\\x00-\x1f\x7f]")


def table_identifier(identifier: str | Identifier) -> Identifier:
    """`"db.name"` or `("db", "name")` as a tuple of the two.

    Raises:
        InvalidInputError: not a namespace and a name.
    """
    parts = tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)
    if len(parts) != 2 or not all(isinstance(part, str) and part.strip() for part in parts):
        raise InvalidInputError(
            f"Not the name of a table: {identifier!r}. Expected a namespace and a name, such as 'db.events' or "
            "('db', 'events')."
        )
    for part in parts:
        if part.strip() in (".", "..") or _NO_NAME.search(part):
            raise InvalidInputError(
                f"Not the name of a table: {identifier!r}. {part!r} would lead to another folder: a name has no slash "
                "and no control character, and is neither '.' nor '..'."
            )
    return parts


def metadata_file_location(location: str) -> str:
    """The location of a metadata file, as it is given.

    Raises:
        InvalidInputError: it is empty.
    """
    if not location.strip():
        raise InvalidInputError(
            f"Not the location of a metadata file: {location!r}. Expected one such as "
            "'s3://bucket/table/metadata/00003-….metadata.json'."
        )
    return location


def namespace_name(namespace: str | Identifier) -> str:
    """`"db"` or `("db",)` as text.

    Raises:
        InvalidInputError: not one name; a Hive Metastore has one level of namespaces.
    """
    parts = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    if len(parts) != 1 or not isinstance(parts[0], str) or not parts[0].strip() or "." in parts[0]:
        raise InvalidInputError(
            f"Not the name of a namespace: {namespace!r}. Expected one name, such as 'db' or ('db',): a Hive "
            "Metastore has one level of namespaces."
        )
    return parts[0]


def text_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as text; booleans as `true` and `false`.

    Raises:
        InvalidInputError: a property without a value.
    """
    text = {}
    for key, value in properties.items():
        if value is None:
            raise InvalidInputError(f"Property {key!r}: expected a value, got None. Leave the key out.")
        text[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return text
