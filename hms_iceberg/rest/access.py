"""Callers of the server, the rights that they may have, and the rule that grants them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum


class Right(IntEnum):
    """A right on a namespace or a table; each includes those before it."""

    NONE = 0
    READ = 1  # to look at it and read its rows
    WRITE = 2  # to commit to it
    MANAGE = 3  # to create, drop, rename and register, and to change a namespace


@dataclass(frozen=True)
class Caller:
    """The sender of a request: a name, and the groups that the caller belongs to."""

    name: str
    groups: frozenset[str] = frozenset()


ANYBODY = Caller("anybody")
"""Whoever asks a server that wants no login."""

Rule = Callable[[Caller, Right, str, str | None], bool]
"""Whether a caller has a right on a namespace, or on a table or view in it."""


@dataclass(frozen=True)
class Access:
    """A caller with the rule that says what callers may do."""

    caller: Caller
    rule: Rule

    @property
    def allows_everything(self) -> bool:
        return self.rule is everything

    def allows(self, right: Right, namespace: str, name: str | None = None) -> bool:
        """Whether the caller has a right on a namespace (`name` is None), or on a table or view in it."""
        return right is Right.NONE or self.rule(self.caller, right, namespace.lower(), name and name.lower())


def everything(caller: Caller, right: Right, namespace: str, name: str | None) -> bool:
    """The rule of a server without a policy."""
    return True
