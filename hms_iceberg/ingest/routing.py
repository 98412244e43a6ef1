"""The table that an event belongs to, by a template such as `shop.{source.table}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.ingest.records import Change, EventProblem, Record
from hms_iceberg.metastore import Identifier

_FIELD = re.compile(r"\{([^{}]*)\}")
_PARTS = 2


@dataclass(frozen=True)
class TableTemplate:
    """The name of a table, with fields of the event in braces: `{topic}`, or the path of a field of its value. Names
    become lower case, as the metastore has them."""

    text: str

    def __post_init__(self) -> None:
        """Refuses what cannot be a namespace and a name."""
        plain = _FIELD.sub("x", self.text)
        if "{" in plain or "}" in plain or not all(_FIELD.findall(self.text) or ["x"]):
            raise InvalidInputError(
                f"Table {self.text!r} cannot be read: braces hold the path of a field, such as 'shop.{{source.table}}'."
            )
        parts = plain.split(".")
        if len(parts) != _PARTS or not all(parts):
            raise InvalidInputError(f"Table {self.text!r} is no namespace and name, such as 'shop.{{source.table}}'.")

    @cached_property
    def fixed(self) -> Identifier | None:
        """The one table that all events belong to; None if fields decide."""
        return None if _FIELD.search(self.text) else _identifier(self.text)

    def may_be(self, namespace: str, name: str | None = None) -> bool:
        """Whether an event may belong to a table of this name, or to any in a namespace."""
        namespaces, names = _FIELD.sub("*", self.text).lower().split(".")
        return fnmatchcase(namespace.lower(), namespaces) and (name is None or fnmatchcase(name.lower(), names))

    def table_of(self, record: Record, change: Change) -> Identifier:
        """The table that an event belongs to; an EventProblem if a field is missing, or the name is invalid."""
        if self.fixed is not None:
            return self.fixed
        return _identifier(_FIELD.sub(lambda found: _field(found[1], record, change.facts), self.text))


def _identifier(text: str) -> Identifier:
    parts = text.lower().split(".")
    if len(parts) != _PARTS or not all(parts):
        raise EventProblem(f"it belongs to table {text!r}, which is no namespace and name")
    return (parts[0], parts[1])


def _field(path: str, record: Record, facts: Mapping[str, Any]) -> str:
    if path == "topic":
        return record.topic.replace(".", "_")
    value: Any = facts
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, (str, int)) or isinstance(value, bool) or value == "":
        raise EventProblem(f"its field {path!r}, which names its table, is {value!r}")
    return str(value)
