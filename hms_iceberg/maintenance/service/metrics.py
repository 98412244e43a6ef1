"""Metrics of the maintenance service for Prometheus, and whether it is ready."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hms_iceberg.maintenance.service.service import RunReport, Step
from hms_iceberg.reporters.prometheus import prometheus

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400)


class ServiceMetrics:
    """Counts the runs and the steps of a service."""

    def __init__(self, registry: CollectorRegistry) -> None:
        client = prometheus()
        self._not_ready: str | None = "The first run is not over."
        self._runs = client.Counter(
            "hms_iceberg_maintenance_runs",
            "Runs over all tables, by outcome: done; failed, if a table or the whole run was.",
            ("outcome",),
            registry=registry,
        )
        self._run_seconds = client.Histogram(
            "hms_iceberg_maintenance_run_seconds", "Time of a run.", buckets=_BUCKETS, registry=registry
        )
        self._last = client.Gauge(
            "hms_iceberg_maintenance_last_run_timestamp_seconds", "When the last run ended.", registry=registry
        )
        self._tables = client.Gauge(
            "hms_iceberg_maintenance_tables", "Tables that the last run looked at.", registry=registry
        )
        self._actions = client.Counter(
            "hms_iceberg_maintenance_actions",
            "Actions, by outcome: done, failed, left for another run. An empty action: the table could not be read.",
            ("action", "outcome"),
            registry=registry,
        )
        self._action_seconds = client.Histogram(
            "hms_iceberg_maintenance_action_seconds",
            "Time of an action.",
            ("action",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._input_bytes = client.Counter(
            "hms_iceberg_maintenance_input_bytes",
            "Bytes of the files that actions read to write them anew.",
            ("action",),
            registry=registry,
        )
        self._debt = client.Gauge(
            "hms_iceberg_maintenance_oldest_debt_seconds",
            "How long the oldest need that is left has been known; 0 if none is left.",
            registry=registry,
        )

    def step(self, step: Step) -> None:
        self._actions.labels(step.action, step.outcome).inc()
        if step.outcome in ("done", "failed") and step.action:
            self._action_seconds.labels(step.action).observe(step.seconds)
            self._input_bytes.labels(step.action).inc(step.input_bytes)

    def report(self, report: RunReport) -> None:
        self._not_ready = None
        self._ended("failed" if report.failed else "done")
        self._run_seconds.observe(report.seconds)
        self._tables.set(report.tables)
        self._debt.set(report.debt_seconds)

    def failure(self, error: Exception) -> None:
        self._not_ready = f"The last run failed: {error}"
        self._ended("failed")

    def _ended(self, outcome: str) -> None:
        self._runs.labels(outcome).inc()
        self._last.set(time.time())

    def not_ready(self) -> str | None:
        """Why the service does not do its work: no run has ended yet, or the last one failed as a whole."""
        return self._not_ready
