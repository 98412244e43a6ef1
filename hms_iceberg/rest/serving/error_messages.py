"""First words of error messages, which are those of Apache Iceberg's own server, since programs look for them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.errors import (
    AlreadyExistsError,
    IcebergError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    RefAlreadyExistsError,
)
from hms_iceberg.rest.serving.calls import SEPARATOR, Call


def error_message(error: Exception, call: Call | None, path: str, catalog: Catalog) -> str:
    """The message of an error, after the words that clients know; the catalog is asked what has a name that is
    taken."""
    message = str(error)
    if call is None:
        return message
    head = _known_words(error, call, path, catalog)
    if isinstance(error, NoSuchNamespaceError):
        return head  # which says all that there is to say
    return message if not head or message.startswith(head) else f"{head}. {message}"


def _known_words(error: Exception, call: Call, path: str, catalog: Catalog) -> str:
    names = _Names(call)
    if isinstance(error, NamespaceAlreadyExistsError):
        return f"Namespace already exists: {names.namespace}"
    if isinstance(error, NoSuchNamespaceError):
        return f"Namespace does not exist: {names.target_namespace or names.namespace}"
    if isinstance(error, NamespaceNotEmptyError):
        return f"Namespace {names.namespace} is not empty"
    if isinstance(error, NoSuchTableError):
        return f"Table does not exist: {names.name}"
    if isinstance(error, NoSuchViewError):
        return f"View does not exist: {names.name}"
    if isinstance(error, AlreadyExistsError) and not isinstance(error, RefAlreadyExistsError):
        wanted = "View" if "view" in path else "Table"
        taken = names.target or names.name
        found = _kind(taken, catalog)
        if names.target:
            return f"Cannot rename {names.name} to {names.target}. {found} already exists"
        return (
            f"{found} already exists: {taken}" if found == wanted else f"{found} with same name already exists: {taken}"
        )
    return ""


def _kind(name: str, catalog: Catalog) -> str:
    with suppress(IcebergError):
        return "View" if catalog.view_exists(name) else "Table"
    return "Table"


class _Names:
    """The names in a request's path and body."""

    def __init__(self, call: Call) -> None:
        body = _object(call.body)
        levels = body.get("namespace") if isinstance(body.get("namespace"), list) else []
        self.namespace = call.path.get("namespace", call.query.get("parent", "")).replace(SEPARATOR, ".")
        self.namespace = self.namespace or ".".join(map(str, levels or []))
        own = call.path.get("table") or call.path.get("view") or body.get("name")
        self.name = f"{self.namespace}.{own}"
        self.target = self.target_namespace = ""
        source, target = body.get("source"), body.get("destination")
        if isinstance(source, Mapping) and isinstance(target, Mapping):
            self.name, self.target = _identifier(source), _identifier(target)
            self.target_namespace = self.target.rpartition(".")[0]


def _identifier(data: Mapping[str, Any]) -> str:
    levels = data.get("namespace")
    return ".".join([*map(str, levels if isinstance(levels, list) else []), str(data.get("name"))])


def _object(body: bytes) -> Mapping[str, Any]:
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = msgspec.json.decode(body)
        if isinstance(found, Mapping):
            return found
    return {}
