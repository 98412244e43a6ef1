"""Reports of scans and commits: what was planned and what was committed, and for whom it is told; and events.

Each report is a line of the log (logger `hms_iceberg.reports`, level INFO), and is handed to every listener of this
process. What Apache Iceberg calls a `MetricsReporter` is a listener: a function of one report. Nothing is put together
while nobody listens. Calls of the metastore and migrations are events, which have listeners of their own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import Any

from hms_iceberg.errors import ConfigurationError

__all__ = ["CommitReport", "Listening", "MetastoreCall", "MigrationReport", "ScanReport", "listen", "listen_to_events"]

logger = logging.getLogger(__name__)

REPORTER = "metrics-reporter-impl"
"""The property of a catalog that names a listener, as `module:function`."""


@dataclass(frozen=True)
class ScanReport:
    """A report of one plan of a scan, or of one part of it: a large table is planned in parts.

    Attributes:
        table: its name, or its location if that is all that is known.
        table_uuid: its UUID.
        snapshot_id: the snapshot that was planned; None for a table without one.
        schema_id: id of the schema that the filter is bound to.
        schema: that schema.
        row_filter: the filter, as an expression.
        metrics: the counts, see `hms_iceberg.scan.tasks.PlanMetrics`.
        bytes: size of the data files of the plan, in bytes.
    """

    table: str
    table_uuid: str
    snapshot_id: int | None
    schema_id: int
    schema: Any = field(repr=False)
    row_filter: Any
    metrics: Any
    bytes: int

    def __str__(self) -> str:
        found = self.metrics
        return (
            f"Planned {self.table} at {self.snapshot_id or 'no snapshot'}: {found.files_kept} of {found.files_total} "
            f"files, {found.delete_files_kept} delete files, {found.manifests_kept} of {found.manifests_total} "
            f"manifests, {found.manifests_cached} of them cached ({found.seconds:.3f} s)"
        )


MADE, CONFLICT, UNKNOWN, FAILED = "made", "conflict", "unknown", "failed"


@dataclass(frozen=True)
class CommitReport:
    """A report of one commit over all its attempts.

    Attributes:
        table: its name.
        outcome: `made`; `conflict`: other commits were first, or took away what it relied on; `unknown`: nobody can
            tell; or `failed`.
        attempts: how often the metastore was asked, or would have been.
        seconds: how long it took.
        lock_seconds: of these, how long it waited for the table's lock.
        table_uuid: its UUID; empty if it was not made.
        location: the new metadata file, if it was made.
        snapshot_id: the snapshot that is current after it, if the commit made it.
        sequence_number: of that snapshot.
        operation: of that snapshot: `append`, `overwrite` …
        summary: of that snapshot: what was added and removed.
        schema: the table's schema after it.
        error: why it was not made.
    """

    table: str
    outcome: str
    attempts: int
    seconds: float
    lock_seconds: float = 0.0
    table_uuid: str = ""
    location: str = ""
    snapshot_id: int | None = None
    sequence_number: int | None = None
    operation: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    schema: Any = field(default=None, repr=False)
    error: str = ""

    def __str__(self) -> str:
        told = f"(attempts: {self.attempts}, {self.seconds:.3f} s)"
        if self.outcome == MADE:
            return f"Committed {self.table}: {self.location} {told}"
        return f"Did not commit {self.table}, {self.outcome}: {self.error} {told}"


ANSWERED, REFUSED = "answered", "refused"


@dataclass(frozen=True)
class MetastoreCall:
    """A call of a Hive Metastore.

    Attributes:
        method: its Thrift name.
        outcome: `answered`; `refused`, also where there is no such table; or `failed`: no answer came.
        seconds: how long it took, over all attempts.
    """

    method: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class MigrationReport:
    """A migration of a Hive table that is over, or a round of a table that follows one.

    Attributes:
        table: name of the Hive table.
        method: `in place`, `copy` or `follow`.
        outcome: `made` or `failed`.
        seconds: how long it took.
        files, records, bytes: how much was taken over; rounds tell the files alone.
        error: why it was not made.
    """

    table: str
    method: str
    outcome: str
    seconds: float
    files: int = 0
    records: int = 0
    bytes: int = 0
    error: str = ""


Report = ScanReport | CommitReport
Reporter = Callable[[Report], object]
Event = MetastoreCall | MigrationReport


class _Listeners:
    """The listeners of this process; every change makes another tuple, so that telling needs no lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.all: tuple[Callable[[Any], object], ...] = ()
        self.named: frozenset[str] = frozenset()

    def add(self, reporter: Callable[[Any], object], name: str = "") -> None:
        with self._lock:
            if name and name in self.named:
                return
            self.all = (*self.all, reporter)
            self.named |= {name}

    def remove(self, reporter: Callable[[Any], object]) -> None:
        with self._lock:
            self.all = tuple(each for each in self.all if each is not reporter)

    def hear(self, report: Report | Event) -> None:
        for each in self.all:
            try:
                each(report)
            except Exception as error:
                logger.warning("The reporter %r failed: %s", each, error, exc_info=error)


_LISTENERS = _Listeners()
_LISTENERS_TO_EVENTS = _Listeners()


class Listening:
    """A listener that hears reports or events until it is closed; also a context manager."""

    def __init__(self, reporter: Callable[[Any], object], listeners: _Listeners) -> None:
        self._reporter = reporter
        self._listeners = listeners
        listeners.add(reporter)

    def close(self) -> None:
        """Ends the listening: the function hears no more."""
        self._listeners.remove(self._reporter)

    def __enter__(self) -> Listening:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def listen(reporter: Reporter) -> Listening:
    """Has a function called with each report of a scan or a commit of this process, in the thread that made it.

    What the function raises is logged, and harms nothing.

    Args:
        reporter: the function.

    Returns:
        what ends it: `close()`, or a `with` block.
    """
    return Listening(reporter, _LISTENERS)


def listen_to_events(listener: Callable[[Event], object]) -> Listening:
    """Has a function called with each call of a metastore and each migration of this process, in the thread of it.

    What the function raises is logged, and harms nothing.

    Args:
        listener: the function.

    Returns:
        what ends it: `close()`, or a `with` block.
    """
    return Listening(listener, _LISTENERS_TO_EVENTS)


def tell(make: Callable[[], Report]) -> None:
    """Reports, if anybody listens."""
    is_logged = logger.isEnabledFor(logging.INFO)
    if not _LISTENERS.all and not is_logged:
        return
    report = make()
    if is_logged:
        logger.info("%s", report)
    _LISTENERS.hear(report)


def tell_event(make: Callable[[], Event]) -> None:
    """Tells of an event, if anybody listens."""
    if _LISTENERS_TO_EVENTS.all:
        _LISTENERS_TO_EVENTS.hear(make())


def listen_as_named(properties: Mapping[str, str]) -> None:
    """Has the listener hear reports that the properties of a catalog or of a session name, if any. It is a class that
    is called once, without arguments; it hears those of the whole process, once, however many catalogs name it."""
    named = properties.get(REPORTER)
    if not named or named in _LISTENERS.named:
        return
    module, _, name = named.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"Property {REPORTER!r} is {named!r}, and there is no such function: {error}. Name it as module:function."
        ) from error
    _LISTENERS.add(found() if isinstance(found, type) else found, named)
