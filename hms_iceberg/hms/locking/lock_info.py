"""Locks as the metastore lists them: their holder, their age, their last heartbeat; and the name of a holder."""

from __future__ import annotations

import os
import re
import secrets
import time
import uuid
from dataclasses import dataclass

from hms_iceberg.hms.connection.thrift_types import ttypes
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

    @property
    def in_use(self) -> frozenset[str]:
        return frozenset(self._in_use)

    def new(self) -> str:
        """An agent for one lock, in use until it is retired."""
        agent = f"Iceberg-{str(uuid.uuid4())[:23]}-{self._process}/hms_iceberg/{Process.this().mark}"
        self._in_use.add(agent)
        return agent

    def retire(self, agent: str) -> None:
        """Notes that no lock of this agent is in use any more, whether or not it could be released."""
        self._in_use.discard(agent)

    def is_left_behind(self, agent: str | None) -> bool:
        """Whether it is a lock of this process that nothing uses: it was not given back, or came late."""
        match = _AGENT.match(agent or "")
        return match is not None and match[1] == self._process and agent not in self._in_use


AGENTS = LockAgents()


def is_dead(host: str | None, agent: str | None) -> bool:
    """Whether the holder of a lock certainly runs no more. A killed process leaves its lock behind, and the metastore
    drops it only after `hive.txn.timeout` (300 s)."""
    holder = Process.find(host, agent)
    return holder is not None and not holder.may_be_alive()


ACQUIRED = ttypes.LockState.ACQUIRED
WAITING = ttypes.LockState.WAITING
NOT_ACQUIRED = ttypes.LockState.NOT_ACQUIRED

_STATES = {1: "acquired", 2: "waiting", 3: "aborted", 4: "not acquired"}
_TYPES = {1: "shared read", 2: "shared write", 3: "exclusive", 4: "exclusive write"}


@dataclass(frozen=True)
class LockInfo:
    """A lock, granted or waiting, as `show_locks` lists it."""

    lock_id: int  # its number; numbers grow with time
    database: str  # database, table, partition: the locked object; None for all of them
    table: str | None
    partition: str | None
    state: str  # `acquired` or `waiting`
    type: str  # `exclusive`, `shared read` …
    user: str  # user, host, agent: who asked for it. `agent` begins with `Iceberg-` for Iceberg's writers.
    host: str
    agent: str
    # acquired_at, last_heartbeat: seconds since the epoch on the server's clock; None if it has none yet
    acquired_at: float | None
    last_heartbeat: float | None
    transaction_id: int = 0  # the Hive transaction that it belongs to, 0 for none
    blocked_by: int | None = None  # number of the lock that it waits for, None if the server does not say

    @property
    def age(self) -> float | None:
        """Seconds since it was granted; None while it waits."""
        return None if self.acquired_at is None else max(0.0, time.time() - self.acquired_at)

    @property
    def silence(self) -> float | None:
        """Seconds since its last heartbeat; None if the server has none."""
        return None if self.last_heartbeat is None else max(0.0, time.time() - self.last_heartbeat)

    def __str__(self) -> str:
        name = ".".join(part for part in (self.database, self.table, self.partition) if part)
        times = [f"held for {self.age:.0f} s"] if self.age is not None else []
        times += [f"last sign of life {self.silence:.0f} s ago"] if self.silence is not None else []
        about = f"{self.type} lock {self.lock_id} on {name} ({self.state}) of user {self.user} on host {self.host}"
        return ", ".join([f"{about}, agent {self.agent or 'unknown'}", *times])


def lock_info(row: ttypes.ShowLocksResponseElement) -> LockInfo:
    return LockInfo(
        lock_id=row.lockid,
        database=row.dbname or "",
        table=row.tablename,
        partition=row.partname,
        state=_STATES.get(row.state, str(row.state)),
        type=_TYPES.get(row.type, str(row.type)),
        user=row.user or "",
        host=row.hostname or "",
        agent=row.agentInfo or "",
        acquired_at=row.acquiredat / 1000 if row.acquiredat else None,
        last_heartbeat=row.lastheartbeat / 1000 if row.lastheartbeat else None,
        transaction_id=row.txnid or 0,
        blocked_by=row.blockedByExtId or None,
    )
