"""Names and properties as callers give them, in the form that a metastore takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier


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
    return parts


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
