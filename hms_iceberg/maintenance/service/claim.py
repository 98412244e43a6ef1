"""One run a table at a time, over all services of all machines.

A claim is a table property with an owner and an end. It is set by an ordinary commit, so that of two services that ask
at the same time one is told that it was too late; it needs no lock. If its service was killed it ends by itself, and
at once for the services of the same machine.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from hms_iceberg.errors import CommitConflictError, CommitFailedError
from hms_iceberg.processes import Process
from hms_iceberg.table.table import Table

CLAIM = "maintenance.state.claim"
_MINUTES = 30
_RENEWED_AFTER_SECONDS = 10 * 60


class Claim:
    def __init__(self, table: Table, owner: str) -> None:
        self._table = table
        self._owner = owner
        self._renewed = 0.0

    def renew(self) -> bool:
        """Takes the claim, or renews it; False if another service holds it."""
        current = self._table.refresh().properties.get(CLAIM)
        if current is not None and not self._is_own(current) and _is_held(current):
            return False
        value = f"{self._owner} until {int(time.time() * 1000) + _MINUTES * 60_000}"
        try:
            self._table.set_properties({CLAIM: value})
        except (CommitConflictError, CommitFailedError):
            return False
        self._renewed = time.monotonic()
        return True

    def keep(self) -> bool:
        """Renews the claim before it expires; False if another service holds it. To be called during long work."""
        return time.monotonic() - self._renewed < _RENEWED_AFTER_SECONDS or self.renew()

    def release(self) -> None:
        """Gives the claim back, if it is still held."""
        if self._is_own(self._table.refresh().properties.get(CLAIM, "")):
            self._table.remove_properties(CLAIM)

    def _is_own(self, claim: str) -> bool:
        return claim.startswith(f"{self._owner} until ")


def new_owner() -> str:
    """A name for a service of this process that no other has."""
    service = Process.this()
    return f"{service.host}/{service.mark}/{uuid.uuid4().hex[:8]}"


@contextmanager
def claimed(table: Table, owner: str) -> Iterator[Claim | None]:
    """A claim of a table for the time of the block; None if another service has it. The table moves to its newest
    version. A claim that the owner could not give back, as the metastore was away, is its own still."""
    claim = Claim(table, owner)
    if not claim.renew():
        yield None
        return
    try:
        yield claim
    finally:
        claim.release()


def _is_held(claim: str) -> bool:
    """Whether a claim has not ended, and its service may live."""
    owner, _, end = claim.rpartition(" until ")
    service = Process.find(owner.partition("/")[0], owner)
    return end.isdigit() and int(end) > time.time() * 1000 and (service is None or service.may_be_alive())
