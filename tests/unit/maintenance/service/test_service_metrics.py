"""What the service did is counted, and told as lines of JSON with the run that they are of."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.cli.main import main
from hms_iceberg.maintenance.service import service as service_module
from hms_iceberg.maintenance.service.metrics import ServiceMetrics
from hms_iceberg.maintenance.service.service import Limits, MaintenanceService
from hms_iceberg.printable import JsonFormatter, log_fields
from tests.unit.maintenance.service.test_service import make

prometheus = pytest.importorskip("prometheus_client")


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    found = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    found.create_namespace("web")
    return found


def test_runs_steps_bytes_and_the_oldest_debt_are_counted(catalog: Any) -> None:
    registry = prometheus.CollectorRegistry()
    metrics = ServiceMetrics(registry)
    make(catalog, "web.small", 6)
    make(catalog, "web.more", 6)
    service = MaintenanceService(catalog, limits=Limits(1, None, 1), on_step=metrics.step)
    assert metrics.not_ready() == "The first run is not over."

    def value(name: str, **labels: str) -> float:
        found = registry.get_sample_value(f"hms_iceberg_maintenance_{name}", labels)
        return -1.0 if found is None else found

    first = service.run()  # of one byte: the second table is left
    metrics.report(first)
    assert metrics.not_ready() is None
    assert value("actions_total", action="rewrite_data_files", outcome="done") == 1
    assert value("actions_total", action="rewrite_data_files", outcome="left") == 1
    assert value("input_bytes_total", action="rewrite_data_files") > 1000
    assert value("oldest_debt_seconds") == first.debt_seconds > 0
    assert (value("tables"), value("runs_total", outcome="done")) == (2, 1)
    metrics.report(service.run())
    assert value("oldest_debt_seconds") == 0
    metrics.failure(OSError("no metastore"))
    assert value("runs_total", outcome="failed") == 1
    assert metrics.not_ready() == "The last run failed: no metastore"
    assert value("last_run_timestamp_seconds") > 1.7e9 and value("run_seconds_count") == 2


def test_the_debts_of_dropped_tables_are_forgotten(catalog: Any) -> None:
    make(catalog, "web.small", 6)
    service = MaintenanceService(catalog)
    assert service.run(dry_run=True).debt_seconds > 0
    catalog.drop_table("web.small", purge_requested=True)
    assert service.run(dry_run=True).debt_seconds == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_single_run_that_is_stopped_says_what_is_left(
    catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    number: signal.Signals, code: int, output: str,
) -> None:  # fmt: skip
    for name in ("a", "b"):
        make(catalog, f"web.{name}", 6)
    step = MaintenanceService._step

    def stopped(*arguments: Any) -> Any:
        done = step(*arguments)
        os.kill(os.getpid(), number)
        arguments[0].stop.wait(10)
        return done

    monkeypatch.setattr(service_module.MaintenanceService, "_step", stopped)
    words = ["maintain", "-p", "type=hadoop", "-p", f"warehouse={tmp_path}", "--jobs", "1", "--output", output]
    assert main(words) == code
    told = capsys.readouterr()
    if output == "text":
        assert told.err == "Stopped. Left for the next run: web.b.\n"
        return
    *steps, run = map(json.loads, told.out.splitlines())
    assert [each["table"] for each in steps] == ["web.a"]
    assert run["not_looked_at"] == ["web.b"] and run["tables"] == 1
    assert {each["run"] for each in (*steps, run)} == {run["run"]} and len(run["run"]) == 12
    assert all(each["time"].endswith("+00:00") for each in (*steps, run))


def test_metrics_need_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maintain", "--metrics-port", "1"]) == 2
    assert "--metrics-port needs --every" in capsys.readouterr().err


def test_lines_of_a_json_log_name_the_run_and_the_table() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log = logging.Logger("of_a_test")
    log.addHandler(handler)
    with log_fields(run="4f2a"), log_fields(table="web.t\x1b[0m"):
        log.warning("It is %s", "so\nand so")
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            log.error("It failed", exc_info=True)
    log.info("alone")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert (first["run"], first["table"], first["level"]) == ("4f2a", "web.t\x1b[0m", "WARNING")
    assert (first["message"], first["logger"]) == ("It is so\nand so", "of_a_test")
    assert "ZeroDivisionError" in second["traceback"]
    assert "run" not in third and "\x1b" not in stream.getvalue()
