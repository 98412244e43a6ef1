"""Who asked for a lock, as its agent tells: which process, and whether anybody there still uses it.

Agents begin with `Iceberg-<uuid>`, as those of all Iceberg writers. The last part of the UUID is the same for all locks
of a process, so that a process knows its own locks without keeping a list of all that it ever took.
"""

from __future__ import annotations

import os
import re
import secrets
import uuid

from hms_iceberg.processes import Process

_AGENT = re.compile(r"Iceberg-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{12})/")


class LockAgents:
    """The agents of this process's locks, and which of them are in use."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._process = secrets.token_hex(6)
        self._in_use: set[str] = set()

    def new(self) -> str:
        """An agent for one lock, in use until it is retired."""
        agent = f"Iceberg-{str(uuid.uuid4())[:23]}-{self._process}/hms_iceberg/{Process.this().mark}"
        self._in_use.add(agent)
        return agent

    def retire(self, agent: str) -> None:
        """Nobody uses the lock of this agent any more, whether or not it could be given back."""
        self._in_use.discard(agent)

    def is_left_behind(self, agent: str | None) -> bool:
        """Whether it is a lock of this process that nothing uses: it was not given back, or came late."""
        match = _AGENT.match(agent or "")
        return match is not None and match[1] == self._process and agent not in self._in_use


AGENTS = LockAgents()


def is_dead(host: str | None, agent: str | None) -> bool:
    """True only if the holder of a lock certainly runs no more.

    A killed process leaves its lock behind, and the metastore drops it only after `hive.txn.timeout` (300 s).

    Args:
        host, agent: those of the lock, as the metastore has them.
    """
    holder = Process.find(host, agent)
    return holder is not None and not holder.may_be_alive()
