"""A policy file: who may do what.

    rules:
      - groups: [analysts]
        namespaces: ["sales*"]
        right: read
      - principals: [etl]
        namespaces: [sales]
        tables: ["events_*"]
        right: write

What no rule allows is refused. Patterns are those of a shell, without regard to case. A rule for some tables only gives
no right on their namespace but to look at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.rest.access import Caller, Right
from hms_iceberg.rest.security.logins import read_yaml

EVERYTHING = ("*",)
_RIGHTS = {right.name.lower(): right for right in Right if right is not Right.NONE}
_KEYS = {"principals", "groups", "namespaces", "tables", "right"}


@dataclass(frozen=True)
class PolicyRule:
    """One rule: for callers by name or by group, on namespaces and tables (and views) by patterns."""

    right: Right
    principals: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = EVERYTHING
    tables: tuple[str, ...] = EVERYTHING

    def allows(self, caller: Caller, right: Right, namespace: str, name: str | None) -> bool:
        is_meant = _fits(caller.name, self.principals) or any(_fits(group, self.groups) for group in caller.groups)
        if not is_meant or not _fits(namespace, self.namespaces):
            return False
        if name is not None:
            return self.right >= right and _fits(name, self.tables)
        # To list the tables of a namespace, one of them is enough; to change it, all are needed.
        return right <= Right.READ or (self.right >= right and "*" in self.tables)


@dataclass(frozen=True)
class Policy:
    """A list of rules; an action is allowed if one of them allows it."""

    rules: tuple[PolicyRule, ...]

    def __call__(self, caller: Caller, right: Right, namespace: str, name: str | None) -> bool:
        return any(rule.allows(caller, right, namespace, name) for rule in self.rules)


def read_policy(path: Path) -> Policy:
    """The policy of a file; one bad rule refuses the whole file with a ConfigurationError."""
    rules = read_yaml(path, "policy").get("rules")
    if not isinstance(rules, list):
        raise ConfigurationError(f"The policy {path} has no list 'rules'.")
    return Policy(tuple(_rule(entry, f"Rule {number} of the policy {path}") for number, entry in enumerate(rules, 1)))


def _rule(entry: Any, what: str) -> PolicyRule:
    if not isinstance(entry, Mapping):
        raise ConfigurationError(f"{what}: expected a mapping, got {entry!r:.100}.")
    unknown = sorted(map(str, entry.keys() - _KEYS))
    if unknown:
        raise ConfigurationError(f"{what}: unknown keys {unknown}; there are {', '.join(sorted(_KEYS))}.")
    right = _RIGHTS.get(str(entry.get("right")))
    if right is None:
        raise ConfigurationError(f"{what}: 'right' is one of {', '.join(_RIGHTS)}, got {entry.get('right')!r:.100}.")
    lists = {key: _texts(entry.get(key), f"{what}: {key!r}") for key in sorted(_KEYS - {"right"}) if key in entry}
    if not lists.get("principals") and not lists.get("groups"):
        raise ConfigurationError(f"{what}: it names neither principals nor groups. '*' stands for all of them.")
    patterns = {key: tuple(each.lower() for each in lists[key]) for key in ("namespaces", "tables") if key in lists}
    named = {key: lists[key] for key in ("principals", "groups") if key in lists}
    return PolicyRule(right, **named, **patterns)


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ConfigurationError(f"{what}: expected a list of texts, got {value!r:.100}.")
    return tuple(value)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
