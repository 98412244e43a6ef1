"""Administration of locks: list them, find their holders, and release those of dead processes."""

from __future__ import annotations

import logging
import threading
import time

from hms_iceberg.errors import IcebergError, LockError, MetastoreError, MetastoreUnavailableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.locking.lock_info import AGENTS, LockInfo, is_dead, lock_info
from hms_iceberg.metastore import Identifier

logger = logging.getLogger(__name__)

_PAUSES = (1.0, 4.0, 25.0)  # seconds before each look
_ANSWER_SECONDS = 30.0


def give_back_late_locks(client: HmsClient, identifier: Identifier, agent: str) -> None:
    """Releases locks of an agent (none of which is in use) that the server grants after their request was given up;
    watches in the background for half a minute."""
    arguments = (client, identifier, agent)
    threading.Thread(target=_watch, args=arguments, name="hms-iceberg-late-locks", daemon=True).start()


def _watch(client: HmsClient, identifier: Identifier, agent: str) -> None:
    name = ".".join(identifier)
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            for row in client.show_locks(identifier[0], identifier[1], _ANSWER_SECONDS):
                if row.agentInfo == agent:
                    client.unlock(row.lockid, name, _ANSWER_SECONDS)
                    logger.info("Lock %d on table %s, which came late, was given back", row.lockid, name)
        except IcebergError as error:
            logger.info("Late locks on %s cannot be looked for: %s", name, error)


def list_locks(client: HmsClient, namespace: str | None = None, table: str | None = None) -> list[LockInfo]:
    """Locks granted and waiting, by number: of one table, of one namespace, or all."""
    rows = client.show_locks(namespace.lower() if namespace else None, table.lower() if table else None)
    return [lock_info(row) for row in rows]


def is_abandoned(lock: LockInfo) -> bool:
    """Whether a lock certainly has no user: a process of this machine that has ended, or has given it up, held it."""
    return AGENTS.is_left_behind(lock.agent) or is_dead(lock.host, lock.agent)


def blocked_by(lock: LockInfo, locks: list[LockInfo]) -> list[LockInfo]:
    """The writers that wait because of a lock: those after it on the same table."""
    same = [other for other in locks if (other.database, other.table) == (lock.database, lock.table)]
    return [other for other in same if other.state == "waiting" and other.lock_id > lock.lock_id]


def release_lock(client: HmsClient, lock_id: int, *, force: bool = False, silence: float = 240.0) -> LockInfo:
    """Releases the lock of a holder that was silent for `silence` seconds (writers are for 240 at most), and returns
    it; with `force` a living holder's commit may be lost, or undo another. Locks of Hive transactions are refused."""
    lock = next((lock for lock in list_locks(client) if lock.lock_id == lock_id), None)
    if lock is None:
        raise LockError(f"There is no lock {lock_id} (any more) in the metastore at {client.pool}.")
    if lock.transaction_id:
        raise LockError(
            f"The {lock} belongs to Hive transaction {lock.transaction_id} and cannot be released alone. End the "
            f"transaction in Hive: abort transactions {lock.transaction_id}"
        )
    beats = lock.silence is None or lock.silence < silence
    if beats and not force and not is_abandoned(lock):
        since = "unknown" if lock.silence is None else f"{lock.silence:.0f} s ago"
        raise LockError(
            f"The {lock} is not released, as its holder may live: its last sign of life is {since}, and writers may be "
            f"silent for {silence:.0f} s. Wait, or end the holder and force the release (--force)."
        )
    try:
        client.unlock(lock_id, f"{lock.database}.{lock.table}")
    except MetastoreUnavailableError:
        raise
    except MetastoreError as error:
        raise LockError(f"The {lock} could not be released: {error}") from error
    return lock
