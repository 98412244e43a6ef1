"""Scans and commits are counted for Prometheus, at a port that answers probes too."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.reporters.prometheus import TableMetrics, count, metrics_server
from hms_iceberg.reports import CommitReport, MetastoreCall, MigrationReport, listen, tell_event
from tests.unit.test_reports import SCHEMA, rows

prometheus = pytest.importorskip("prometheus_client")


def test_scans_and_commits_are_counted(tmp_path: Path) -> None:
    registry = prometheus.CollectorRegistry()
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("web")
    table = catalog.create_table("web.t", SCHEMA)
    metrics = TableMetrics(registry)
    with listen(metrics):
        table.append(rows(1))
        table.append(rows(2))
        table.delete("id = 1")
        assert table.scan("id = 2").to_arrow().num_rows == 1
    metrics(CommitReport("web.t", "conflict", 5, 2.0, 0.5, error="CommitConflictError: late"))

    def value(name: str, **labels: str) -> float:
        found = registry.get_sample_value(f"hms_iceberg_{name}", labels)
        return -1.0 if found is None else found

    assert (value("commits_total", outcome="made"), value("commits_total", outcome="conflict")) == (3, 1)
    assert (value("commit_attempts_total"), value("commit_lock_seconds_sum")) == (8, 0.5)
    assert value("commit_lock_seconds_count") == 1, "the others took no lock"
    assert value("commit_seconds_count") == 4
    assert value("commit_bytes_total", operation="append", change="added") > 0
    assert value("commit_bytes_total", operation="delete", change="removed") > 0
    assert value("planning_seconds_count") == 2  # of the delete, and of the scan
    assert value("planning_files_total", result="kept") == 2
    assert value("planning_manifests_total", result="read") + value("planning_manifests_total", result="cached") >= 2


def test_calls_of_the_metastore_and_migrations_are_counted() -> None:
    registry = prometheus.CollectorRegistry()
    with count(registry):
        tell_event(lambda: MetastoreCall("get_table_req", "answered", 0.25))
        tell_event(lambda: MetastoreCall("get_table_req", "refused", 0.5))
        for outcome in ("made", "failed"):
            tell_event(lambda outcome=outcome: MigrationReport("web.t", "copy", outcome, 60.0, 2, 300, 4096))
    tell_event(lambda: MetastoreCall("get_table_req", "answered", 0.25))  # nobody listens any more

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"hms_iceberg_{name}", labels)

    call = "metastore_call_seconds"
    assert value(f"{call}_count", method="get_table_req", outcome="answered") == 1
    assert value(f"{call}_sum", method="get_table_req", outcome="refused") == 0.5
    assert value("migration_seconds_sum", method="copy", outcome="failed") == 60
    assert [value(f"migration_{each}_total", method="copy") for each in ("files", "records", "bytes")] == [4, 600, 8192]


def test_metrics_and_probes_are_asked_for_at_one_port() -> None:
    registry = prometheus.CollectorRegistry()
    prometheus.Counter("seen", "Seen.", registry=registry).inc()
    reasons: list[str | None] = ["the metastore is away"]

    def ask(port: int, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    probes = {"/ready": lambda: reasons[0], "/health": lambda: None}
    with metrics_server("127.0.0.1", 0, registry, probes) as port:
        assert "seen_total 1.0" in ask(port, "/metrics")[1]
        assert ask(port, "/health") == (200, "ok\n")
        assert ask(port, "/ready") == (503, "the metastore is away\n")
        reasons[0] = None
        assert ask(port, "/ready") == (200, "ok\n")
        taken = metrics_server("127.0.0.1", port, registry)
        with pytest.raises(ConfigurationError, match=f"Cannot tell metrics at 127.0.0.1:{port}"):
            taken.__enter__()
