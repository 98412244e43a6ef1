"""The command as a service: batches told as JSON, metrics and probes, and an end by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from hms_iceberg.catalog import Catalog
from tests.support.kafka import KafkaBroker, json_event
from tests.support.ports import free_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@contextmanager
def service(catalog: Catalog, kafka: KafkaBroker, topic: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    own = ["--uri", catalog.properties["uri"], "--brokers", kafka.address, "--topic", topic, "--format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hms_iceberg", "ingest", *own, "--output", "json", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def metrics_at(port: int) -> list[str]:
    """The lines of metrics; none while nobody listens."""
    try:
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}/metrics", retries=False)
    except urllib3.exceptions.HTTPError:
        time.sleep(0.1)
        return []
    return answer.data.decode().splitlines()


def test_a_service_tells_its_batches_and_its_metrics_and_ends_behind_a_batch(
    catalog: Catalog, namespace: str, kafka: KafkaBroker
) -> None:
    topic, table, port = kafka.create_topic(), f"{namespace}.log", free_port()
    kafka.send(topic, [json_event({"n": each}) for each in range(3)])
    words = ("--table", table, "--create", "--every", "1s", "--metrics-port", str(port))
    with service(catalog, kafka, topic, *words) as process:
        batch = told(process)
        assert (batch["event"], batch["rows"], batch["offsets"]) == ("batch", {table: 3}, {f"{topic}-0": 3})
        for probe in ("health", "ready"):
            assert urllib3.request("GET", f"http://127.0.0.1:{port}/{probe}").status == 200
        metrics = metrics_at(port)
        assert f'hms_iceberg_ingest_rows_total{{table="{table}"}} 3.0' in metrics
        assert "hms_iceberg_ingest_batches_total 1.0" in metrics
        assert "hms_iceberg_ingest_lag_events 0.0" in metrics
        kafka.send(topic, [json_event({"n": 3})])
        assert told(process)["rows"] == {table: 1}
        process.send_signal(signal.SIGTERM)
        end = told(process)
        assert (end["event"], end["offsets"]) == ("stopped", {f"{topic}-0": 4})
        assert process.wait(60) == 0
    assert catalog.load_table(table).scan().count() == 4


def test_a_service_waits_for_a_metastore_and_a_bad_event_ends_it(
    catalog: Catalog, namespace: str, kafka: KafkaBroker
) -> None:
    topic, table = kafka.create_topic(), f"{namespace}.log"
    kafka.send(topic, [(None, b"{")])
    with service(catalog, kafka, topic, "--table", table, "--create", "--every", "1s") as process:
        assert told(process)["type"] == "BadEventError"
        assert process.wait(60) == 1
    nowhere = f"thrift://127.0.0.1:{free_port()}"
    words = ("--table", table, "--create", "--uri", nowhere, "-p", "hive.client.connect-timeout=1")
    with service(catalog, kafka, topic, *words) as process:
        failure = told(process)
        assert (failure["event"], failure["type"]) == ("failure", "MetastoreUnavailableError")
        process.send_signal(signal.SIGINT)
        assert told(process)["event"] == "stopped"
        assert process.wait(60) == 0


def test_a_batch_at_hand_is_committed_when_a_signal_comes(catalog: Catalog, namespace: str, kafka: KafkaBroker) -> None:
    topic, table, port = kafka.create_topic(), f"{namespace}.log", free_port()
    kafka.send(topic, [json_event({"n": 1})])
    words = ("--table", table, "--create", "--every", "1h", "--metrics-port", str(port))
    with service(catalog, kafka, topic, *words) as process:
        while "hms_iceberg_ingest_batch_events 1.0" not in metrics_at(port):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert [told(process)["event"] for _ in range(2)] == ["batch", "stopped"]
    assert catalog.load_table(table).scan().count() == 1
