"""Metrics of an ingest for Prometheus, and whether it is ready."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hms_iceberg.errors import IcebergError
from hms_iceberg.ingest.settings import BatchReport
from hms_iceberg.reporters.prometheus import prometheus

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class IngestMetrics:
    """An observer that counts batches, rows and failures."""

    def __init__(self, registry: CollectorRegistry) -> None:
        client = prometheus()
        self._not_ready: str | None = "It has not begun to read."
        self._batches = client.Counter("hms_iceberg_ingest_batches", "Batches that were committed.", registry=registry)
        self._rows = client.Counter(
            "hms_iceberg_ingest_rows", "Changes of rows that were committed.", ("table",), registry=registry
        )
        self._letters = client.Counter(
            "hms_iceberg_ingest_dead_letters", "Events that went to the table of dead letters.", registry=registry
        )
        self._repeated = client.Counter(
            "hms_iceberg_ingest_repeated_events", "Events that their table had already.", registry=registry
        )
        self._failures = client.Counter(
            "hms_iceberg_ingest_failures",
            "Failures after which it reads on from where the tables are.",
            registry=registry,
        )
        self._lag = client.Gauge(
            "hms_iceberg_ingest_lag_events", "Events that the topics have and the tables have not.", registry=registry
        )
        self._at_hand = client.Gauge(
            "hms_iceberg_ingest_batch_events", "Events of the batch that is collected.", registry=registry
        )
        self._seconds = client.Histogram(
            "hms_iceberg_ingest_commit_seconds", "Time of a batch's commit.", buckets=_BUCKETS, registry=registry
        )
        self._last = client.Gauge(
            "hms_iceberg_ingest_last_commit_timestamp_seconds", "When the last batch was committed.", registry=registry
        )

    def batch(self, report: BatchReport) -> None:
        self._not_ready = None
        self._batches.inc()
        for table, rows in report.rows.items():
            self._rows.labels(table).inc(rows)
        self._letters.inc(report.dead_letters)
        self._repeated.inc(report.repeated)
        self._lag.set(report.lag)
        self._at_hand.set(0)
        self._seconds.observe(report.seconds)
        self._last.set(time.time())

    def reading(self, lag: int, at_hand: int) -> None:
        """Notes that events are read, or waited for."""
        self._not_ready = None
        self._lag.set(lag)
        self._at_hand.set(at_hand)

    def failure(self, error: IcebergError) -> None:
        self._not_ready = f"The last attempt failed: {error}"
        self._failures.inc()

    def not_ready(self) -> str | None:
        """Why it does not do its work: it has not begun to read, or the last attempt failed."""
        return self._not_ready
