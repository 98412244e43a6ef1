"""Sends reports of scans and commits to the REST catalog that the table is of.

Source: Iceberg's REST protocol, `ReportMetricsRequest`. Names of metrics are those of Iceberg's `ScanMetricsResult` and
`CommitMetricsResult`.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any

from hms_iceberg.errors import IcebergError
from hms_iceberg.expressions.json_filters import filter_to_json
from hms_iceberg.metastore import Identifier
from hms_iceberg.reports import MADE, CommitReport, Report, ScanReport
from hms_iceberg.rest_client.channel import RestChannel, table_path

logger = logging.getLogger(__name__)

ENDPOINT = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
ENABLED = "rest-metrics-reporting-enabled"
"""The property of Iceberg's that switches the reports of a REST catalog off."""

_MOST_WAITING = 100
_MOST_TABLES = 10_000
_OF_SUMMARY = {
    "added-data-files": ("added-data-files", "count"),
    "removed-data-files": ("deleted-data-files", "count"),
    "total-data-files": ("total-data-files", "count"),
    "added-delete-files": ("added-delete-files", "count"),
    "removed-delete-files": ("removed-delete-files", "count"),
    "total-delete-files": ("total-delete-files", "count"),
    "added-records": ("added-records", "count"),
    "removed-records": ("deleted-records", "count"),
    "total-records": ("total-records", "count"),
    "added-files-size-bytes": ("added-files-size", "bytes"),
    "removed-files-size-bytes": ("removed-files-size", "bytes"),
    "total-files-size-bytes": ("total-files-size", "bytes"),
}


class RestReporter:
    """A listener that sends what is of its catalog's tables, in a thread of its own, and loses it if that fails."""

    def __init__(self, channel: RestChannel) -> None:
        self._channel = channel
        self._tables: dict[str, Identifier] = {}
        self._waiting: queue.Queue[tuple[Identifier, dict[str, Any]] | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @staticmethod
    def is_wanted(channel: RestChannel) -> bool:
        """Whether the server takes reports, and the user has not switched them off."""
        return ENDPOINT in channel.endpoints and channel.properties.get(ENABLED, "true").lower() == "true"

    def note(self, uuid: str, identifier: Identifier) -> None:
        if len(self._tables) >= _MOST_TABLES:
            self._tables.clear()
        self._tables[uuid] = identifier

    def __call__(self, report: Report) -> None:
        """Has a report sent if its table is one of the catalog's."""
        identifier = self._tables.get(report.table_uuid)
        if identifier is None:
            return
        body = scan_to_json(report) if isinstance(report, ScanReport) else commit_to_json(report)
        if body is None:
            return
        self._start()
        try:
            self._waiting.put_nowait((identifier, body))
        except queue.Full:
            logger.debug("A report of %s is lost: too many wait", ".".join(identifier))

    def close(self) -> None:
        """Sends what waits, for at most a few seconds."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(5)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._send, name="iceberg-reports", daemon=True)
                self._thread.start()

    def _send(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            identifier, body = waiting
            try:
                self._channel.post(f"{table_path(identifier)}/metrics", body, "table")
            except IcebergError as error:
                logger.debug("A report of %s was not taken: %s", ".".join(identifier), error)


def scan_to_json(report: ScanReport) -> dict[str, Any] | None:
    """The body that tells of a scan; None for a table without a snapshot, or a filter that the protocol lacks."""
    if report.snapshot_id is None:
        return None
    try:
        row_filter = filter_to_json(report.row_filter)
    except IcebergError:
        return None
    found = report.metrics
    fields = report.schema.fields
    counts = {
        "result-data-files": found.files_kept,
        "result-delete-files": found.delete_files_kept,
        "total-data-manifests": found.manifests_total,
        "total-delete-manifests": found.delete_manifests_total,
        "scanned-data-manifests": found.manifests_kept,
        "scanned-delete-manifests": found.delete_manifests_kept,
        "skipped-data-manifests": found.manifests_total - found.manifests_kept,
        "skipped-delete-manifests": found.delete_manifests_total - found.delete_manifests_kept,
        "skipped-data-files": found.files_total - found.files_kept,
    }
    return {
        "report-type": "scan-report",
        "table-name": report.table,
        "snapshot-id": report.snapshot_id,
        "filter": row_filter,
        "schema-id": report.schema_id,
        "projected-field-ids": [each.field_id for each in fields],
        "projected-field-names": [each.name for each in fields],
        "metrics": {
            "total-planning-duration": _seconds(found.seconds),
            **{name: {"unit": "count", "value": value} for name, value in counts.items()},
            "total-file-size-in-bytes": {"unit": "bytes", "value": report.bytes},
        },
    }


def commit_to_json(report: CommitReport) -> dict[str, Any] | None:
    """The body that tells of a commit; None for one without a snapshot, which the protocol has no word for."""
    if report.outcome != MADE or report.snapshot_id is None:
        return None
    counts = {
        name: {"unit": unit, "value": int(report.summary[key])}
        for name, (key, unit) in _OF_SUMMARY.items()
        if str(report.summary.get(key) or "").isdigit()
    }
    return {
        "report-type": "commit-report",
        "table-name": report.table,
        "snapshot-id": report.snapshot_id,
        "sequence-number": report.sequence_number or 0,
        "operation": report.operation or "",
        "metrics": {
            "total-duration": _seconds(report.seconds),
            "attempts": {"unit": "count", "value": report.attempts},
            **counts,
        },
    }


def _seconds(seconds: float) -> dict[str, Any]:
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": int(seconds * 1_000_000_000)}
