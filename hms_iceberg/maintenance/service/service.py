"""Runs of the service over the tables of a catalog."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitStateUnknownError, IcebergError, NoSuchNamespaceError, NoSuchTableError
from hms_iceberg.maintenance.repair.repair_journal import SERVICE_STATE
from hms_iceberg.maintenance.service.assessment import Need, needs_of
from hms_iceberg.maintenance.service.claim import claimed, new_owner
from hms_iceberg.maintenance_policy import Policies, Policy
from hms_iceberg.metastore import Identifier, TableRows
from hms_iceberg.printable import log_fields
from hms_iceberg.spec.snapshots_and_refs import Operation
from hms_iceberg.table.needed_files.needed_by_others import table_rows_of
from hms_iceberg.table.needed_files.remembered_rows import RememberedRows
from hms_iceberg.table.table import Table

logger = logging.getLogger(__name__)

# Of a table that was done and that nobody changed; snapshots grow old meanwhile. What failed is tried again sooner: a
# storage may be back, or a ticket.
_LOOK_AGAIN_SECONDS = 60 * 60
_TRY_AGAIN_SECONDS = 60
_AWAKE_SECONDS = 0.25  # so often a main thread that waits wakes: a signal's handler runs in no other
_PLANNED, _DONE, _FAILED, _LEFT = "planned", "done", "failed", "left"


@dataclass(frozen=True)
class Limits:
    """How much one run does."""

    tables_at_once: int = 2  # tables that are worked on side by side
    seconds: float | None = None  # after so many, nothing new is begun; None for no limit
    # of the files that are rewritten in a run; an action of more waits for a run of its own. None for no limit.
    input_bytes: int | None = None


@dataclass(frozen=True)
class Step:
    """One action for one table."""

    table: str  # the table's name
    action: str  # the action; empty if the table as a whole could not be looked at
    why: str  # what was found
    outcome: str  # `planned` (a dry run), `done`, `failed` or `left` (for another run)
    result: str = ""  # what was done, or why not
    seconds: float = 0.0  # how long it took
    input_bytes: int = 0  # of the files that it reads and writes anew


@dataclass(frozen=True)
class RunReport:
    """The report of one run of the service."""

    tables: int  # how many were looked at
    steps: tuple[Step, ...]  # what was done, or would be
    unmatched: tuple[str, ...] = ()  # the patterns that no table matches
    not_looked_at: tuple[str, ...] = ()  # the tables that a stop or a limit of time left out
    seconds: float = 0.0  # how long it took
    debt_seconds: float = 0.0  # how long the oldest need that is left has been known; 0 if none is

    @property
    def failed(self) -> bool:
        """Whether anything failed."""
        return any(step.outcome == _FAILED for step in self.steps)


@dataclass(frozen=True)
class _Settled:
    """Remembers a table that needed nothing, so that it is looked at again only when it changes or time is up."""

    state: object  # in which it was left
    until: float  # then it is looked at all the same, by the monotonic clock
    next_wait: float  # how many seconds it is left alone if something fails the next time

    @staticmethod
    def after(before: _Settled | None, state: object, failed: bool) -> _Settled:
        """Decides what to do after a look at a table."""
        now = time.monotonic()
        if not failed:
            return _Settled(state, now + _LOOK_AGAIN_SECONDS, _TRY_AGAIN_SECONDS)
        wait = min(before.next_wait if before else _TRY_AGAIN_SECONDS, _LOOK_AGAIN_SECONDS)
        return _Settled(state, now + wait, 2 * wait)


@dataclass
class MaintenanceService:
    """Keeps the tables of a catalog in order.

    One table's failure is never another's. What a run leaves undone, the next one finds. A table where nothing is left
    to do is looked at again when it has changed, and after an hour; one where something failed when it has changed, and
    after a minute, then two, four … up to an hour.
    """

    catalog: Catalog
    patterns: Sequence[str] = ("*",)  # which tables, such as `web.*`; all unless given
    policies: Policies = field(default_factory=Policies)  # what is kept up in which table
    limits: Limits = field(default_factory=Limits)  # how much one run does
    # set it to end a run: what is begun is finished or given up cleanly, nothing new is begun
    stop: threading.Event = field(default_factory=threading.Event)
    on_step: Callable[[Step], None] = lambda step: None  # called with each step when it is over, by several threads
    clock: Callable[[], float] = time.time  # seconds since 1970, which ages, days and months are told by
    run_id: str = ""  # of the run that is under way, or the last one; in lines of a JSON log, and in those of steps
    _debts: _Debts = field(default_factory=lambda: _Debts())
    _settled: dict[Identifier, _Settled] = field(default_factory=dict)
    _rows: TableRows | None = None
    _owner: str = field(default_factory=new_owner)

    def run(self, dry_run: bool = False, names: Sequence[Identifier] | None = None) -> RunReport:
        """Looks at every table once, or at those of some names, and does what it needs, or only tells of it."""
        self.run_id, started = uuid.uuid4().hex[:12], time.monotonic()
        rows = table_rows_of(self.catalog.metastore)
        self._rows = None if rows is None else RememberedRows(rows)
        budget = _Budget(self.limits, self.stop)
        names = list(self._names() if names is None else names)
        with ThreadPoolExecutor(self.limits.tables_at_once, thread_name_prefix="iceberg-maintain") as pool:
            looks = [pool.submit(self._looked_after, name, budget, dry_run) for name in names]
            try:
                while wait(looks, _AWAKE_SECONDS).not_done:
                    pass
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
            looked = [each.result() for each in looks]
        found = [".".join(name) for name in names]
        self._debts.only_of(found)
        unmatched = [
            each for each in self.patterns if each != "*" and not any(fnmatchcase(name, each) for name in found)
        ]
        return RunReport(
            tables=sum(each is not None for each in looked),
            steps=tuple(step for each in looked for step in each or ()),
            unmatched=tuple(unmatched),
            not_looked_at=tuple(name for name, each in zip(found, looked, strict=True) if each is None),
            seconds=time.monotonic() - started,
            debt_seconds=self._debts.oldest_seconds(),
        )

    def run_every(
        self,
        seconds: float,
        on_report: Callable[[RunReport], None] = lambda report: None,
        on_failure: Callable[[IcebergError], None] = lambda error: None,
    ) -> None:
        """Runs again and again until it is stopped; a run that fails is logged, and the next one follows."""
        while not self.stop.is_set():
            try:
                on_report(self.run())
            except IcebergError as error:
                logger.warning("The run failed, and the next one follows in %.0f s: %s", seconds, error)
                logger.debug("The run failed", exc_info=error)
                on_failure(error)
            self.stop.wait(seconds)

    def _names(self) -> Iterator[Identifier]:
        for namespace in self.catalog.list_namespaces():
            try:
                tables = self.catalog.list_tables(namespace)
            except NoSuchNamespaceError:  # dropped meanwhile
                continue
            for identifier in tables:
                if any(fnmatchcase(".".join(identifier), pattern) for pattern in self.patterns):
                    yield identifier

    # --------------------------------------------------------------------------------------------- a table

    def _looked_after(self, identifier: Identifier, budget: _Budget, dry_run: bool) -> list[Step] | None:
        """The steps for a table; None if the run was over before it was looked at."""
        with log_fields(run=self.run_id, table=".".join(identifier)):
            return None if budget.is_over() else self._table(identifier, budget, dry_run)

    def _table(self, identifier: Identifier, budget: _Budget, dry_run: bool) -> list[Step]:
        name = ".".join(identifier)
        steps: list[Step] = []

        def note(step: Step) -> None:
            steps.append(step)
            self.on_step(step)

        try:
            table = self.catalog.load_table(identifier)
            if self._is_settled(table):
                return steps
            policy = self.policies.of(name, table.properties)
            needs = list(needs_of(table, policy, self._rows, self.clock))
            self._debts.note(name, {need.action for need in needs})
            if dry_run:
                for need in needs:
                    note(Step(name, need.action, need.why, _PLANNED, input_bytes=need.input_bytes))
                return steps
            looked_at = self._maintain(table, policy, budget, note) if needs else _state(table)
            if not (budget.is_over() or any(step.outcome == _LEFT for step in steps)):
                failed = any(step.outcome == _FAILED for step in steps)
                self._settled[identifier] = _Settled.after(self._settled.get(identifier), looked_at, failed)
        except NoSuchTableError:
            logger.info("Table %s was dropped before it was looked at", name)
        except Exception as error:  # one table's failure is never another's
            bug = None if isinstance(error, IcebergError) else error
            logger.warning("Could not look after table %s: %s", name, error, exc_info=bug)
            note(Step(name, "", "", _FAILED, f"{type(error).__name__}: {error}"))
        return steps

    def _is_settled(self, table: Table) -> bool:
        settled = self._settled.get(table.identifier)
        return settled is not None and settled.state == _state(table) and time.monotonic() < settled.until

    def _maintain(self, table: Table, policy: Policy, budget: _Budget, note: Callable[[Step], None]) -> object:
        """Does what a table needs, and returns the state of the table at which nothing more was needed, or None if the
        next run has to look again."""
        name = ".".join(table.identifier)
        known = {snapshot.snapshot_id for snapshot in table.snapshots()}
        with claimed(table, self._owner) as claim:
            if claim is None:
                note(Step(name, "", "", _LEFT, "another service is at work on it"))
                return None
            done: set[str] = set()
            while True:
                # Looked at again after each action, as one changes what the others find.
                needs = needs_of(table.refresh(), policy, self._rows, self.clock)
                need = next((each for each in needs if each.action not in done), None)
                if need is None:
                    # What others wrote meanwhile may need an action that was done before they wrote.
                    return None if _has_new_rows(table, known) else _state(table)
                done.add(need.action)
                if not budget.take(need.input_bytes):
                    note(Step(name, need.action, need.why, _LEFT, "the limits of this run are reached"))
                    continue
                if not claim.renew():
                    note(Step(name, need.action, need.why, _LEFT, "another service took the table over"))
                    return None
                note(self._step(name, need, lambda: budget.is_over() or not claim.keep()))

    def _step(self, name: str, need: Need, stop: Callable[[], bool]) -> Step:
        started = time.monotonic()
        try:
            done = need.run(stop)
            result, outcome = done.result, _FAILED if done.failed else _DONE
        except CommitStateUnknownError:
            raise
        except IcebergError as error:
            logger.warning("%s of table %s failed: %s", need.action, name, error)
            result, outcome = f"{type(error).__name__}: {error}", _FAILED
        if outcome == _DONE:
            self._debts.paid(name, need.action)
        return Step(name, need.action, need.why, outcome, result, time.monotonic() - started, need.input_bytes)


def _has_new_rows(table: Table, known: Set[int]) -> bool:
    """Whether a snapshot beside the known ones did more than replace files, as maintenance does."""
    new = [snapshot for snapshot in table.snapshots() if snapshot.snapshot_id not in known]
    return any(snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE for snapshot in new)


def _state(table: Table) -> object:
    """The part of a table's metadata that, apart from time, has to change before it can need care again."""
    metadata = table.metadata
    properties = {name: value for name, value in metadata.properties.items() if not name.startswith(SERVICE_STATE)}
    return metadata.table_uuid, metadata.refs, metadata.default_spec_id, metadata.format_version, properties


class _Debts:
    """Since when each need of a table has been known."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: dict[tuple[str, str], float] = {}

    def note(self, table: str, actions: Set[str]) -> None:
        """Notes what a table needs; what it needs no more is forgotten."""
        now = time.monotonic()
        with self._lock:
            for gone in [each for each in self._since if each[0] == table and each[1] not in actions]:
                del self._since[gone]
            for action in actions:
                self._since.setdefault((table, action), now)

    def paid(self, table: str, action: str) -> None:
        """Notes that an action was done."""
        with self._lock:
            self._since.pop((table, action), None)

    def only_of(self, tables: Sequence[str]) -> None:
        """Forgets tables that are gone."""
        known = set(tables)
        with self._lock:
            self._since = {each: since for each, since in self._since.items() if each[0] in known}

    def oldest_seconds(self) -> float:
        """The age of the oldest need; 0 if there is none."""
        with self._lock:
            return time.monotonic() - min(self._since.values()) if self._since else 0.0


class _Budget:
    """The time and the bytes that a run may still use."""

    def __init__(self, limits: Limits, stop: threading.Event) -> None:
        self._end = None if limits.seconds is None else time.monotonic() + limits.seconds
        self._left = limits.input_bytes
        self._whole = limits.input_bytes
        self._stop = stop
        self._lock = threading.Lock()

    def is_over(self) -> bool:
        """Whether nothing new is to be begun."""
        return self._stop.is_set() or (self._end is not None and time.monotonic() > self._end)

    def take(self, size: int) -> bool:
        """Takes bytes off the budget; False if too few are left. A request above the whole budget takes all of it."""
        if self.is_over():
            return False
        with self._lock:
            if self._left is None or size == 0:
                return True
            if size > self._left and self._left != self._whole:
                return False
            self._left = max(0, self._left - size)
            return True
