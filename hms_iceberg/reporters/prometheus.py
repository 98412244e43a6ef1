"""Metrics for Prometheus, and the port at which metrics and health are asked for.

They are of scans and commits, of calls of the metastore, and of migrations.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from hms_iceberg.errors import ConfigurationError, MissingDependencyError
from hms_iceberg.reports import (
    CONFLICT,
    FAILED,
    MADE,
    UNKNOWN,
    CommitReport,
    Event,
    MetastoreCall,
    Report,
    listen,
    listen_to_events,
)

__all__ = ["EventMetrics", "TableMetrics", "count"]

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

logger = logging.getLogger(__name__)

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LONG_BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400)
Probe = Callable[[], str | None]
"""Says why the answer is no; None for yes."""


def prometheus() -> Any:
    """The package `prometheus_client`, or an error that says how to install it."""
    try:
        import prometheus_client
    except ImportError as error:
        raise MissingDependencyError("Metrics need prometheus-client: pip install 'hms_iceberg[metrics]'") from error
    return prometheus_client


class TableMetrics:
    """A listener that counts scans and commits for Prometheus; give it to `hms_iceberg.reports.listen`.

    Args:
        registry: where the metrics go; the default one of `prometheus_client` unless given.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        client = prometheus()
        to = {"registry": registry or client.REGISTRY}
        self._commits = client.Counter(
            "hms_iceberg_commits", "Commits, by outcome: made, conflict, unknown, failed.", ("outcome",), **to
        )
        for outcome in (MADE, CONFLICT, UNKNOWN, FAILED):
            self._commits.labels(outcome)  # told as 0, so that the first one is seen as a change
        self._attempts = client.Counter(
            "hms_iceberg_commit_attempts", "Attempts of commits; those beyond the first lost to another writer.", **to
        )
        self._commit_seconds = client.Histogram(
            "hms_iceberg_commit_seconds", "Time of a commit, over all its attempts.", buckets=BUCKETS, **to
        )
        self._lock_seconds = client.Histogram(
            "hms_iceberg_commit_lock_seconds",
            "Time that a commit waited for the lock of its table, over all its attempts.",
            buckets=BUCKETS,
            **to,
        )
        self._commit_bytes = client.Counter(
            "hms_iceberg_commit_bytes",
            "Bytes of files that commits added and removed, by operation; compaction is of operation replace.",
            ("operation", "change"),
            **to,
        )
        self._planning_seconds = client.Histogram(
            "hms_iceberg_planning_seconds", "Time to plan a scan, or a part of it.", buckets=BUCKETS, **to
        )
        self._planned_files = client.Counter(
            "hms_iceberg_planning_files", "Data files that planning kept or left out.", ("result",), **to
        )
        self._manifests = client.Counter(
            "hms_iceberg_planning_manifests",
            "Manifests that planning read, had in its cache, or left out.",
            ("result",),
            **to,
        )

    def __call__(self, report: Report) -> None:
        if isinstance(report, CommitReport):
            self._of_commit(report)
            return
        found = report.metrics
        self._planning_seconds.observe(found.seconds)
        self._planned_files.labels("kept").inc(found.files_kept)
        self._planned_files.labels("skipped").inc(found.files_total - found.files_kept)
        kept = found.manifests_kept + found.delete_manifests_kept
        self._manifests.labels("cached").inc(found.manifests_cached)
        self._manifests.labels("read").inc(max(0, kept - found.manifests_cached))
        self._manifests.labels("skipped").inc(found.manifests_total + found.delete_manifests_total - kept)

    def _of_commit(self, report: CommitReport) -> None:
        self._commits.labels(report.outcome).inc()
        self._attempts.inc(report.attempts)
        self._commit_seconds.observe(report.seconds)
        if report.lock_seconds:  # most commits to a metastore that compares for itself take no lock
            self._lock_seconds.observe(report.lock_seconds)
        for change in ("added", "removed"):
            size = report.summary.get(f"{change}-files-size", "")
            if size.isdigit() and report.operation:
                self._commit_bytes.labels(report.operation, change).inc(int(size))


class EventMetrics:
    """A listener that counts calls of the metastore and migrations; give it to `hms_iceberg.reports.listen_to_events`.

    Args:
        registry: where the metrics go; the default one of `prometheus_client` unless given.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        client = prometheus()
        to = {"registry": registry or client.REGISTRY}
        self._call_seconds = client.Histogram(
            "hms_iceberg_metastore_call_seconds",
            "Time of a call of the metastore, by Thrift method and outcome: answered; refused, also where there is no "
            "such table; failed, if no answer came.",
            ("method", "outcome"),
            buckets=BUCKETS,
            **to,
        )
        self._migration_seconds = client.Histogram(
            "hms_iceberg_migration_seconds",
            "Time of a migration (in place, copy) or of a round of a table that follows (follow), by outcome.",
            ("method", "outcome"),
            buckets=_LONG_BUCKETS,
            **to,
        )
        self._migrated = {
            name: client.Counter(f"hms_iceberg_migration_{name}", f"{what} that were migrated.", ("method",), **to)
            for name, what in (("files", "Files"), ("records", "Rows"), ("bytes", "Bytes of files"))
        }

    def __call__(self, event: Event) -> None:
        if isinstance(event, MetastoreCall):
            self._call_seconds.labels(event.method, event.outcome).observe(event.seconds)
            return
        self._migration_seconds.labels(event.method, event.outcome).observe(event.seconds)
        for name, counter in self._migrated.items():
            counter.labels(event.method).inc(getattr(event, name))


def count(registry: CollectorRegistry | None = None) -> ExitStack:
    """Counts scans, commits, calls of the metastore and migrations of this process.

    Args:
        registry: where the metrics go; the default one of `prometheus_client` unless given.

    Returns:
        what ends it: `close()`, or a `with` block.

    Raises:
        MissingDependencyError: `prometheus-client` is not installed.
    """
    listening = ExitStack()
    listening.enter_context(listen(TableMetrics(registry)))
    listening.enter_context(listen_to_events(EventMetrics(registry)))
    return listening


# ------------------------------------------------------------------------------------------------- the port


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """Neither scrapes nor probes are worth a line of the log."""

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def metrics_server(
    host: str, port: int, registry: CollectorRegistry, probes: Mapping[str, Probe] | None = None
) -> Iterator[int]:
    """Serves `/metrics`, and probes such as `/ready`, at a port of their own (0: a free one) while the context is open.
    A probe answers 200, or 503 with the reason. The context gives the port."""
    told = prometheus().make_wsgi_app(registry, disable_compression=True)
    known = dict(probes or {})

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path in known:
            reason = known[path]()
            start("503 Service Unavailable" if reason else "200 OK", [("Content-Type", "text/plain; charset=utf-8")])
            return [(reason or "ok").encode() + b"\n"]
        answer: Iterable[bytes] = told(environ, start)
        return answer

    try:
        server = make_server(host, port, application, server_class=_Server, handler_class=_Quiet)
    except OSError as error:
        raise ConfigurationError(f"Cannot tell metrics at {host}:{port}: {error}.") from error
    thread = threading.Thread(target=server.serve_forever, name="iceberg-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
