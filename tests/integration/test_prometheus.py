"""A real Prometheus scrapes the maintenance service, a migration and the REST server, and answers the dashboard."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.hive_warehouse import HiveWarehouse, write_files
from tests.support.ports import free_port
from tests.unit.maintenance.service.test_service import make
from tests.unit.reporters.test_dashboard import queries

pytestmark = pytest.mark.slow

CONFIG = """\
global: {scrape_interval: 200ms}
scrape_configs:
  - {job_name: hms_iceberg, static_configs: [{targets: ["127.0.0.1:%d", "127.0.0.1:%d", "127.0.0.1:%d"]}]}
"""
SCRAPES = 10


def ask(port: int, query: str) -> list[dict[str, Any]]:
    words = urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{words}", timeout=60) as answer:
        told = json.load(answer)
    assert told["status"] == "success"
    found: list[dict[str, Any]] = told["data"]["result"]
    return found


def until(port: int, query: str) -> list[dict[str, Any]]:
    """What a query finds once it finds something."""
    end = time.monotonic() + 180
    while time.monotonic() < end:
        try:
            if found := ask(port, query):
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"Nothing found in three minutes: {query}")


def test_prometheus_scrapes_services_and_answers_the_dashboard_s_queries(
    tmp_path: Path, catalog: Catalog, namespace: str, metastore: EmbeddedMetastore
) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs a Prometheus: apt install prometheus")
    make(catalog, f"{namespace}.small", 6, **{"engine.hive.lock-enabled": "true"})
    hive = HiveWarehouse(catalog, namespace)
    write_files(hive.create("plain", "id int").table.sd.location, pa.table({"id": pa.array([1], pa.int32())}))
    metrics, of_migration, of_rest, rest_port, port = (free_port() for _ in range(5))
    (tmp_path / "prometheus.yml").write_text(CONFIG % (metrics, of_migration, of_rest))
    ours = [sys.executable, "-m", "hms_iceberg"]
    maintain = [*ours, "maintain", "--uri", metastore.uri, "--table", f"{namespace}.small"]
    maintain += ["--every", "1s", "--metrics-port", str(metrics), "--output", "json"]
    follow = [
        *ours,
        "migrate",
        f"{namespace}.plain",
        "--follow",
        f"{namespace}.copy",
        "--uri",
        metastore.uri,
    ]
    follow += ["--interval", "1s", "--metrics-port", str(of_migration)]
    rest = [*ours, "rest", "--uri", metastore.uri, "--port", str(rest_port), "--metrics-port", str(of_rest)]
    server = [program, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    server += [f"--web.listen-address=127.0.0.1:{port}"]
    with (
        subprocess.Popen(maintain, stdout=subprocess.DEVNULL) as service,
        subprocess.Popen(follow, stdout=subprocess.DEVNULL) as follower,
        subprocess.Popen(rest, stdout=subprocess.DEVNULL) as catalogs,
        subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as prometheus,
    ):
        try:
            until(port, 'hms_iceberg_maintenance_runs_total{outcome="done"} >= 2')
            until(port, f"count_over_time(hms_iceberg_maintenance_tables[5m]) >= {SCRAPES}")
            done = until(port, 'hms_iceberg_maintenance_actions_total{outcome="done"}')
            assert "rewrite_data_files" in {each["metric"]["action"] for each in done}
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/ready", timeout=60) as answer:
                assert answer.status == 200
            made = until(port, 'hms_iceberg_migration_seconds_count{method="follow",outcome="made"} >= 2')
            assert len(made) == 1
            (files,) = until(port, "hms_iceberg_migration_files_total")
            assert files["value"][1] == "1"
            calls = until(port, 'hms_iceberg_metastore_call_seconds_count{outcome="answered"} >= 2')
            assert {each["metric"]["instance"] for each in calls} == {
                f"127.0.0.1:{each}" for each in (metrics, of_migration)
            }
            until(port, f"count_over_time(up{{instance='127.0.0.1:{of_rest}'}}[5m]) >= {SCRAPES}")
            with load_catalog("asked", type="rest", uri=f"http://127.0.0.1:{rest_port}") as asked:
                assert asked.load_table(f"{namespace}.small").scan().to_arrow().num_rows
            until(port, 'hms_iceberg_rest_request_seconds_count{status="200"} >= 1')
            for query in queries():  # a rate wants two scrapes of a series
                until(port, query.replace("$__rate_interval", "1m"))
            service.send_signal(signal.SIGTERM)
            assert service.wait() == 0
        finally:
            for each in (prometheus, follower, catalogs, service):
                each.terminate()
