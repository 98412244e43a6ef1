"""Requests as endpoints see them, and their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from hms_iceberg.errors import InvalidInputError, NoSuchNamespaceError, NoSuchTableError, NoSuchViewError
from hms_iceberg.metastore import Identifier, namespace_name, table_identifier
from hms_iceberg.rest.access import Access

SEPARATOR = "\x1f"
"""Stands between the levels of a namespace in a path."""

Observer = Callable[[str, str, int, float], None]
"""ErrorKind of every answer: method, path of the route, status, seconds."""

T = TypeVar("T")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Answer:
    """The answer of an endpoint; `body` is a value that becomes JSON, JSON as bytes, or None."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


NOTHING = Answer(status=204)


@dataclass(frozen=True)
class Call:
    """A request and its caller: names of headers are in lower case, variables of the path decoded, `url` is the
    server's address as the client reached it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    access: Access
    url: str = ""

    @property
    def namespace(self) -> str:
        return one_level(self.path["namespace"].split(SEPARATOR))

    @property
    def table(self) -> Identifier:
        try:
            return exact_identifier(self.namespace, self.path["table"])
        except NoSuchNamespaceError as error:
            raise NoSuchTableError(str(error)) from error

    @property
    def view(self) -> Identifier:
        try:
            return exact_identifier(self.namespace, self.path["view"])
        except NoSuchNamespaceError as error:
            raise NoSuchViewError(str(error)) from error

    def read(self, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInputError(f"Cannot read the body of the request: {error}") from error

    def number(self, name: str) -> int | None:
        """A parameter that is a number of 1 or more; None if it is not given."""
        text = self.query.get(name)
        if text is None or text == "":
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
            raise InvalidInputError(f"Parameter {name!r}: expected a number of 1 or more, got {text[:50]!r}.")
        return int(text)

    def flag(self, name: str) -> bool:
        """A parameter that is true or false; false if it is not given."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "false"):
            raise InvalidInputError(f"Parameter {name!r}: expected true or false, got {text[:50]!r}.")
        return text == "true"


def one_level(levels: list[str] | tuple[str, ...]) -> str:
    """The name of a namespace in levels, of which a Hive Metastore has one: with several, it does not exist."""
    check_exact(*levels)
    if len(levels) > 1 or any("." in level.strip(".") for level in levels):
        raise NoSuchNamespaceError(
            f"Namespace {'.'.join(levels)[:200]!r} does not exist: a Hive Metastore has one level of namespaces."
        )
    return namespace_name(tuple(levels))


def exact_identifier(namespace: str, name: str) -> Identifier:
    """The identifier of a table or view whose name a metastore takes as it is."""
    check_exact(name)
    return table_identifier((namespace, name))


def check_exact(*names: str) -> None:
    """Refuses names that a metastore would take for other names, as it trims them and reads `@catalog#name`: a right
    to one name must not reach another."""
    for name in names:
        if name != name.strip() or name.startswith("@") or _CONTROL.search(name):
            raise InvalidInputError(
                f"Not a name: {name[:200]!r}. It has no spaces around it, no control characters, and no '@' before it."
            )
