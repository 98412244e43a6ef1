"""The metastore's lock on a table: taken in order, kept alive in the background, always given back.

An EXCLUSIVE table lock of Hive's transaction manager. Requests are granted in the order of their numbers, so that a
waiting one has a place in a queue over all machines; before it, the writers of this machine take turns.
"""

from __future__ import annotations

import logging
import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hms_iceberg.errors import (
    IcebergError,
    LockError,
    LockTimeoutError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
)
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import current_user
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.locking.host_lock import WARN_AFTER_SECONDS, HostLocks
from hms_iceberg.hms.locking.lock_admin import give_back_late_locks
from hms_iceberg.hms.locking.lock_info import ACQUIRED, AGENTS, NOT_ACQUIRED, WAITING, is_dead, lock_info
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.metastore import Identifier

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


@dataclass(eq=False)
class Heartbeat:
    """The heartbeat of one lock. `beat` sends it, and raises if the metastore cannot be reached or does not know the
    lock; the first is due after half of `interval` seconds; `describe` names the lock in the log."""

    beat: Callable[[], None]
    interval: float
    describe: str
    last_sign: float = field(default_factory=time.monotonic)
    due: float = 0.0
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.due = self.last_sign + self.interval / 2

    @property
    def is_alive(self) -> bool:
        """Whether the lock is believed to be held still: nothing failed, and the last heartbeat is not too long ago."""
        return self.failure is None and time.monotonic() - self.last_sign <= self.interval

    def send(self) -> None:
        """Sends a heartbeat now, and notes whether it arrived."""
        try:
            self.beat()
        except MetastoreUnavailableError as error:
            now = time.monotonic()
            if now - self.last_sign > self.interval:
                self.failure = error
            self.due = now + min(_RETRY_SECONDS, self.interval / 4)
            logger.warning("No sign of life of %s could be sent: %s", self.describe, error)
        except IcebergError as error:
            self.failure = error
            logger.warning("The metastore does not keep %s any more: %s", self.describe, error)
        else:
            self.last_sign = time.monotonic()
            self.due = self.last_sign + self.interval / 2


class HeartbeatThread:
    """Sends the heartbeats of all locks, while there are any: a metastore drops a lock that has none for
    `hive.txn.timeout` (five minutes by default), long after most commits are over."""

    def __init__(self, idle_seconds: float = 30.0) -> None:
        self._idle_seconds = idle_seconds
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._beats: list[Heartbeat] = []
        self._running = False
        self._wakes_at = 0.0

    def add(self, beat: Heartbeat) -> None:
        with self._changed:
            self._beats.append(beat)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="hms-iceberg-heartbeat", daemon=True).start()
            elif beat.due < self._wakes_at:
                self._changed.notify()

    def remove(self, beat: Heartbeat) -> None:
        """Sends this one no more; one that is on its way may still arrive."""
        with self._changed:
            if beat in self._beats:
                self._beats.remove(beat)

    def _wait(self, seconds: float) -> bool:
        """Waits so long, or until a lock is added that needs a heartbeat before that."""
        self._wakes_at = time.monotonic() + seconds
        is_woken = self._changed.wait(seconds)
        self._wakes_at = 0.0
        return is_woken

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._beats and not self._wait(self._idle_seconds) and not self._beats:
                    self._running = False
                    return
                now = time.monotonic()
                due = [beat for beat in self._beats if beat.due <= now and beat.failure is None]
                if not due:
                    next_due = min((beat.due for beat in self._beats if beat.failure is None), default=now + 60)
                    self._wait(max(0.0, next_due - now))
                    continue
            for beat in due:
                beat.send()


HEARTBEATS = HeartbeatThread()


_MAX_TEXT = 128  # of HL_USER, HL_HOST, HL_AGENT_INFO, HL_DB and HL_TABLE
_QUOTES = re.compile(r"['\\]")  # Hive 2.3 puts the texts of a lock into SQL as they are
_REFUSED_TRIES = 5
_ANSWER_SECONDS = 30.0
_DEAD_SECONDS = 1.0


class TableLock:
    """The exclusive lock on one table, or on several that the metastore grants all at once, by lower-case names."""

    excludes_all = True

    def __init__(self, client: HmsClient, database: str, table: str, settings: LockSettings, *more: Identifier) -> None:
        self._client = client
        self._tables = sorted({(database, table), *more})
        self._settings = settings
        self._agent = ""
        self._dead_since: dict[int, float] = {}
        self._host = HostLocks("/".join((str(client.pool), *each)) for each in self._tables)
        self._asked_at = 0.0
        self._lock_id: int | None = None
        self._heartbeat: Heartbeat | None = None
        self._granted = False
        self._answer_lost = False
        self._has_told = False

    @property
    def name(self) -> str:
        return " and ".join(".".join(each) for each in self._tables)

    @property
    def lock_id(self) -> int | None:
        """The metastore's number of the lock, granted or waiting; None if there is none."""
        return self._lock_id

    def try_acquire(self) -> bool:
        """Takes the lock if it is free; else keeps a place in its queue, until `acquire` or `release`."""
        try:
            if not self._host.try_acquire():
                return False
            self._granted = self._create(time.monotonic() + self._settings.timeout) == ACQUIRED
        except BaseException:
            self.release()
            raise
        return self._granted

    def acquire(self) -> None:
        """Takes the lock, waiting for it as long as `iceberg.hive.lock-timeout-ms` allows in all. Does nothing if it is
        held already, and keeps the place in the queue that `try_acquire` took."""
        if self._granted:
            return
        began = time.monotonic()
        deadline = began + self._settings.timeout
        try:
            if self._lock_id is None:  # else it has its place in the metastore's queue
                self._host.acquire(self._settings.timeout, lambda why: self._warn(f"{why} {self._blockers()}"))
            while True:
                state = WAITING if self._lock_id is not None else self._create(deadline)
                if state == ACQUIRED or self._wait_until_granted(began, deadline):
                    break
                logger.info("The metastore dropped the request for the lock on %s; it is made again", self.name)
                self._forget_request()
                time.sleep(self._settings.creation_min_wait)
        except BaseException:
            self.release()
            raise
        self._granted = True

    def ensure_active(self) -> None:
        """Checks that the lock is still held, as far as its heartbeats tell."""
        beat = self._heartbeat
        if not self._granted or beat is None or not beat.is_alive:
            why = str(beat.failure) if beat and beat.failure else "no sign of life got through in time"
            raise LockError(
                f"The lock on table {self.name} was lost ({why}). If this happens often, lower "
                "iceberg.hive.lock-heartbeat-interval-ms below the metastore's hive.txn.timeout."
            )

    def release(self) -> None:
        """Releases the lock. A failure is logged only: the metastore drops the lock by itself after a while."""
        self._granted = False
        self._stop_heartbeat()
        try:
            for lock_id in self._numbers():
                self._unlock(lock_id)
        finally:
            self._forget_request()
            if self._answer_lost:
                self._answer_lost = False
                give_back_late_locks(self._client, self._tables[0], self._agent)
            self._host.release()

    def _forget_request(self) -> None:
        self._stop_heartbeat()
        self._lock_id = None
        AGENTS.retire(self._agent)

    def _stop_heartbeat(self) -> None:
        if self._heartbeat is not None:
            HEARTBEATS.remove(self._heartbeat)
            self._heartbeat = None

    # ------------------------------------------------------------------------------------------- creation

    def _create(self, deadline: float) -> int:
        """Asks for the lock until there is an answer; returns its state."""
        deadline = min(deadline, time.monotonic() + self._settings.creation_timeout)
        self._agent = AGENTS.new()
        request = self._request()
        refused = 0
        for wait in _waits(self._settings.creation_min_wait, self._settings.creation_max_wait, 2.0):
            timeout = max(0.1, min(_ANSWER_SECONDS, deadline - time.monotonic()))
            error: MetastoreError
            try:
                self._asked_at = time.monotonic()
                answer = self._client.lock(request, self.name, timeout)
                self._keep_alive(answer.lockid)
                return int(answer.state)
            except MetastoreAnswerLostError as lost:
                self._answer_lost = True
                found = self._find(deadline)
                if found is not None:
                    return found
                error = lost
            except MetastoreUnavailableError:
                raise
            except MetastoreError as refusal:
                refused += 1
                error = refusal
                if refused == _REFUSED_TRIES or _cannot_lock(refusal) or self._has_long_name():
                    raise self._refused(refusal) from refusal
            except BaseException:  # an interrupt: the request may be on its way
                self._answer_lost = True
                raise
            if time.monotonic() + wait >= deadline:
                raise self._refused(error) from error
            logger.info("No lock on %s yet, asking again: %s", self.name, error)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _request(self) -> ttypes.LockRequest:
        components = [
            ttypes.LockComponent(
                type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=database, tablename=table
            )
            for database, table in self._tables
        ]
        return ttypes.LockRequest(
            component=components,
            user=_QUOTES.sub("_", current_user())[:_MAX_TEXT],
            hostname=socket.gethostname()[:_MAX_TEXT],
            agentInfo=self._agent[:_MAX_TEXT],
        )

    def _find(self, deadline: float) -> int | None:
        """The state of a lock whose answer was lost; None if the metastore has no such lock."""
        timeout = max(0.1, min(_ANSWER_SECONDS, deadline - time.monotonic()))
        for row in self._rows(timeout):
            if row.agentInfo == self._agent:
                self._keep_alive(row.lockid)
                return int(row.state)
        return None

    def _refused(self, error: IcebergError) -> LockError:
        remedy = "Try again."
        if _cannot_lock(error):
            remedy = (
                "Its database lacks the tables of Hive's transaction manager, or their version is another one: create "
                "them with Hive's schematool, or commit without locks (table property engine.hive.lock-enabled=false, "
                "if the metastore supports compare-and-swap)."
            )
        elif self._has_long_name():
            remedy = (
                f"Its tables of locks may hold no name of more than {_MAX_TEXT} characters. Commit, or rename it, "
                "without a lock (catalog property iceberg.engine.hive.lock-enabled=false, if the metastore supports "
                "compare-and-swap)."
            )
        return LockError(f"The metastore gave no lock on table {self.name}: {error} {remedy}")

    def _has_long_name(self) -> bool:
        """Whether a name may be too long for a lock: Hive 2.3 knows tables of 256 characters, and locks of 128."""
        return any(len(name) > _MAX_TEXT for each in self._tables for name in each)

    def _rows(self, timeout: float) -> list[ttypes.ShowLocksResponseElement]:
        """The locks on the tables, granted and waiting, by number; each once."""
        found = {row.lockid: row for each in self._tables for row in self._client.show_locks(each[0], each[1], timeout)}
        return [found[number] for number in sorted(found)]

    # -------------------------------------------------------------------------------------------- waiting

    def _wait_until_granted(self, began: float, deadline: float) -> bool:
        """Watches the queue, which is cheap for the server, and asks for the lock once no other writer is before this
        one. Returns False if the metastore does not know the request any more."""
        wait, position, moved = self._settings.check_min_wait, -1, time.monotonic()
        while True:
            ahead = self._ahead(deadline)
            if ahead == 0 or position == ahead == -1:
                state = self._check(deadline)
                if state != WAITING:
                    return state == ACQUIRED
            # A queue that moves is looked at often, most often by the next one; one that stands still, ever less.
            shortest, longest = self._settings.check_min_wait, self._settings.check_max_wait
            wait = min(longest, wait * 1.5) if ahead == position else shortest / 4 * max(1, ahead)
            if ahead != position:
                position, moved = ahead, time.monotonic()
            elif time.monotonic() - moved >= WARN_AFTER_SECONDS:
                self._warn(self._blockers())
            pause = wait * random.uniform(0.5, 1.0)
            if time.monotonic() + pause >= deadline:
                raise self._timeout(began)
            time.sleep(pause)

    def _ahead(self, deadline: float) -> int:
        """How many locks on the table have a lower number; -1 if the metastore does not tell."""
        timeout = max(0.1, min(_ANSWER_SECONDS, deadline - time.monotonic()))
        used = AGENTS.in_use  # before the list: what is given back while it is made is not left behind
        try:
            rows = self._rows(timeout)
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            logger.info("The locks on %s cannot be listed: %s", self.name, error)
            return -1
        assert self._lock_id is not None
        return sum(row.lockid < self._lock_id and not self._taken_from_nobody(row, used) for row in rows)

    def _taken_from_nobody(self, row: ttypes.ShowLocksResponseElement, used: frozenset[str]) -> bool:
        """Releases an abandoned lock that would block the table until the metastore's time-out: an earlier request of
        ours, or of a killed process of this machine, whose last request is given a moment."""
        agent = row.agentInfo
        if agent != self._agent and (agent in used or not AGENTS.is_left_behind(agent)):
            if not is_dead(row.hostname, agent):
                return False
            if time.monotonic() - self._dead_since.setdefault(row.lockid, time.monotonic()) < _DEAD_SECONDS:
                return False
        logger.warning("Lock %d on table %s, which nobody uses, is released: %s", row.lockid, self.name, lock_info(row))
        self._unlock(row.lockid)
        return True

    def _check(self, deadline: float) -> int:
        """The state of the request; `NOT_ACQUIRED` if the metastore does not know it any more."""
        assert self._lock_id is not None
        timeout = max(0.1, min(_ANSWER_SECONDS, deadline - time.monotonic()))
        try:
            return int(self._client.check_lock(self._lock_id, self.name, timeout).state)
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            if isinstance(error.__cause__, ttypes.NoSuchLockException):
                return NOT_ACQUIRED
            raise LockError(f"The request for the lock on table {self.name} was lost: {error} Try again.") from error

    def _timeout(self, began: float) -> LockTimeoutError:
        waited = time.monotonic() - began
        return LockTimeoutError(
            f"No lock on table {self.name} after {waited:.1f} s. {self._blockers()} Wait for the holder, or raise "
            "iceberg.hive.lock-timeout-ms. If the holder is dead, the metastore drops its lock after hive.txn.timeout "
            f"(300 s by default), and `hms-iceberg locks list {self.name}` shows the lock to release at once."
        )

    def _warn(self, why: str) -> None:
        """Logs once who holds the lock, and what the user can do."""
        if not self._has_told:
            self._has_told = True
            logger.warning(
                "Waiting for the lock on table %s, for up to %.0f s (iceberg.hive.lock-timeout-ms). %s If the holder "
                "is dead, `hms-iceberg locks list %s` shows how to release its lock.",
                self.name,
                self._settings.timeout,
                why,
                self.name,
            )

    def _blockers(self) -> str:
        try:
            rows = self._rows(_ANSWER_SECONDS)
        except IcebergError as error:
            return f"The locks on it cannot be listed: {error}"
        before = [lock_info(row) for row in rows if row.lockid != self._lock_id]
        holders = [info for info in before if info.state == "acquired"]
        waiting = len(before) - len(holders)
        held = "; ".join(map(str, holders)) or "nobody that the metastore lists"
        return f"It is held by: {held}." + (f" {waiting} more wait for it." if waiting else "")

    # ------------------------------------------------------------------------------------- keeping, giving

    def _keep_alive(self, lock_id: int) -> None:
        """Sends heartbeats from now on, whether the lock is granted or waits."""
        self._lock_id = lock_id
        name, interval = self.name, self._settings.heartbeat_interval
        timeout = min(_ANSWER_SECONDS, max(0.1, interval / 2))
        client = self._client
        self._heartbeat = Heartbeat(
            lambda: client.heartbeat(lock_id, name, timeout),
            interval,
            f"lock {lock_id} on table {name}",
            last_sign=self._asked_at,
        )
        HEARTBEATS.add(self._heartbeat)

    def _numbers(self) -> list[int]:
        """Ids of the locks to release: this one, and those of requests whose answer was lost."""
        numbers = [] if self._lock_id is None else [self._lock_id]
        if self._answer_lost:
            try:
                rows = self._rows(_ANSWER_SECONDS)
                numbers = sorted({row.lockid for row in rows if row.agentInfo == self._agent} | set(numbers))
            except IcebergError as error:
                logger.warning("Locks of %s on %s cannot be looked for: %s", self._agent, self.name, error)
        return numbers

    def _unlock(self, lock_id: int) -> None:
        try:
            self._client.unlock(lock_id, self.name, _ANSWER_SECONDS)
        except IcebergError as error:
            if isinstance(error.__cause__, ttypes.NoSuchLockException):
                logger.info("Lock %d on table %s is not there any more", lock_id, self.name)
                return
            logger.warning(
                "Lock %d on table %s could not be given back, and blocks it until the metastore drops it: %s",
                lock_id,
                self.name,
                error,
            )


def _waits(shortest: float, longest: float, growth: float) -> Iterator[float]:
    wait = shortest
    while True:
        yield wait * random.uniform(0.5, 1.0)
        wait = min(longest, wait * growth)


def _cannot_lock(error: IcebergError) -> bool:
    """Whether the metastore's database has no tables for locks, or tables of another version."""
    said = str(error)
    return "HIVE_LOCKS" in said or "NEXT_LOCK_ID" in said or "Unable to update transaction database" in said
