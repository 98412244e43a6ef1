"""The service finds what tables need, does it within limits, and never twice at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.cli.stopping import stopped_by_signals
from hms_iceberg.errors import ConfigurationError, MetastoreUnavailableError
from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.service import claim as claim_module
from hms_iceberg.maintenance.service import service as service_module
from hms_iceberg.maintenance.service.claim import CLAIM, Claim, claimed
from hms_iceberg.maintenance.service.service import Limits, MaintenanceService, RunReport
from hms_iceberg.maintenance_policy import Policies, Policy
from hms_iceberg.processes import Process
from hms_iceberg.table import Table
from tests.support.hdfs_path import local_path
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, rows

QUIET = {"maintenance.remove-orphans": "false", "commit.retry.min-wait-ms": "1"}


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    """A catalog in a folder."""
    found = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    for name in ("web", "raw"):
        found.create_namespace(name)
    return found


def make(catalog: Any, name: str, files: int, version: int = 2, **properties: str) -> Table:
    """A table of so many files of a row each."""
    given = QUIET | MERGE_ON_READ | {"format-version": str(version)} | properties
    table = catalog.create_table(name, SCHEMA, partition_spec=BY_CITY, properties=given)
    for number in range(files):
        table.append(rows(number, 100 + number))
    return table


def outcomes(report: RunReport) -> list[tuple[str, str, str]]:
    """Table, action and outcome of each step."""
    return sorted((step.table, step.action, step.outcome) for step in report.steps)


def test_each_table_gets_what_it_needs_and_a_second_run_finds_nothing(catalog: Any) -> None:
    small = make(catalog, "web.small", 6)
    keyed = make(catalog, "web.keyed", 1, version=3)
    with keyed.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([0]), "city": ["Bonn"]}), columns=["id", "city"])
    make(catalog, "web.fine", 1)
    old = make(catalog, "raw.old", 2, **{"history.expire.max-snapshot-age-ms": "1"})
    before = {name: sorted(each.scan().to_arrow()["id"].to_pylist()) for name, each in (("s", small), ("k", keyed))}
    service = MaintenanceService(catalog)
    planned = service.run(dry_run=True)
    assert outcomes(planned) == [
        ("raw.old", "expire_snapshots", "planned"),
        ("web.keyed", "convert_equality_deletes", "planned"),
        ("web.small", "rewrite_data_files", "planned"),
    ]
    done = service.run()
    assert {each[:2] for each in outcomes(done)} > {each[:2] for each in outcomes(planned)}
    assert {step.outcome for step in done.steps} == {"done"} and not done.failed
    assert len(list(small.refresh().scan().plan_files())) == 1
    assert len(old.refresh().snapshots()) == 1
    assert before == {
        name: sorted(each.refresh().scan().to_arrow()["id"].to_pylist()) for name, each in (("s", small), ("k", keyed))
    }
    assert all(CLAIM not in each.properties for each in (small, keyed, old))
    assert all(check_table(each).findings == () for each in (small, keyed, old))
    assert service.run().steps == () and MaintenanceService(catalog).run().steps == ()


def test_only_tables_of_the_patterns_are_looked_at(catalog: Any) -> None:
    make(catalog, "web.small", 5)
    make(catalog, "raw.small", 5)
    assert [step.table for step in MaintenanceService(catalog, ["raw.*"]).run(dry_run=True).steps] == ["raw.small"]


@pytest.mark.parametrize("settings", [{"gc.enabled": "false"}, {"snapshot": "true"}, {"snapshot": "TRUE"}])
def test_tables_whose_files_belong_to_others_are_left_alone(catalog: Any, settings: dict[str, str]) -> None:
    table = make(catalog, "web.follower", 6, **{"history.expire.max-snapshot-age-ms": "1"}, **settings)
    table.set_properties({"maintenance.remove-orphans": "true"})
    before = table.metadata_location
    assert MaintenanceService(catalog).run().steps == ()
    assert table.refresh().metadata_location == before


def test_one_damaged_table_is_told_and_the_others_are_done(catalog: Any) -> None:
    broken = make(catalog, "web.broken", 5)
    make(catalog, "web.small", 5)
    local_path(broken.current_snapshot().manifest_list).write_bytes(b"")
    report = MaintenanceService(catalog).run()
    assert outcomes(report) == [("web.broken", "", "failed"), ("web.small", "rewrite_data_files", "done")]
    assert report.failed and "manifest list" in report.steps[0].result + report.steps[1].result


def test_what_cannot_be_done_is_tried_again_when_the_table_has_changed_or_after_longer_and_longer(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(service_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    table = make(catalog, "web.broken", 5)
    local_path(next(iter(table.scan().plan_files())).file.file_path).unlink()
    services = [MaintenanceService(catalog) for _ in range(2)]
    for service in services:  # the claim of one is no reason for the other to try again
        assert outcomes(service.run()) == [("web.broken", "rewrite_data_files", "failed")]
    assert [service.run().steps for service in services] == [(), ()]
    for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
        now[0] += minutes * 60 - 1
        assert services[0].run().steps == ()
        now[0] += 1
        assert services[0].run().failed
    table.refresh().append(rows(7))
    assert services[0].run().failed and not services[0].run().failed


def test_what_is_written_while_a_table_is_compacted_is_compacted_by_the_next_run(catalog: Any) -> None:
    table = make(catalog, "web.busy", 2, **{"maintenance.compact-min-files": "2"})
    late = iter([rows(7)])
    service = MaintenanceService(catalog, on_step=lambda _: [table.refresh().append(each) for each in late])
    for _ in range(2):
        assert outcomes(service.run()) == [("web.busy", "rewrite_data_files", "done")]
    assert len(list(table.refresh().scan().plan_files())) == 1
    assert service.run().steps == ()


def test_a_run_that_fails_is_told_in_one_line_and_the_next_one_follows(
    catalog: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service, runs = MaintenanceService(catalog), iter(range(2))

    def down() -> None:
        if next(runs) == 1:
            service.stop.set()
        raise MetastoreUnavailableError("No metastore answers.")

    monkeypatch.setattr(catalog, "list_namespaces", down)
    service.run_every(0.0)
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == 2 * [
        ("The run failed, and the next one follows in 0 s: No metastore answers.", None)
    ]


def test_limits_leave_work_for_the_next_run(catalog: Any) -> None:
    for name in ("web.a", "web.b"):
        make(catalog, name, 5)
    service = MaintenanceService(catalog, limits=Limits(tables_at_once=1, input_bytes=1))
    assert sorted(step.outcome for step in service.run().steps) == ["done", "left"]
    assert [step.outcome for step in service.run().steps] == ["done"]
    assert MaintenanceService(catalog, limits=Limits(seconds=0)).run().steps == ()


def test_a_table_is_worked_on_by_one_service_only(catalog: Any) -> None:
    table = make(catalog, "web.small", 5)
    with claimed(catalog.load_table("web.small"), "other") as claim:
        assert claim is not None
        report = MaintenanceService(catalog).run()
        assert [(step.outcome, step.result) for step in report.steps] == [("left", "another service is at work on it")]
    assert CLAIM not in table.refresh().properties
    table.set_properties({CLAIM: f"dead/1/x until {int(time.time() * 1000) - 1}"})
    assert [step.outcome for step in MaintenanceService(catalog).run().steps] == ["done"]


def test_the_claim_of_a_killed_service_of_this_machine_holds_nobody_up(catalog: Any) -> None:
    table = make(catalog, "web.small", 5)
    end = int(time.time() * 1000) + 600_000
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        service = replace(Process.this(), pid=other.pid, started="")
        table.set_properties({CLAIM: f"{service.host}/{service.mark}/x until {end}"})
        assert [step.outcome for step in MaintenanceService(catalog).run().steps] == ["left"]
        other.kill()
    assert [step.outcome for step in MaintenanceService(catalog).run().steps] == ["done"]


def test_services_side_by_side_do_everything_once(catalog: Any) -> None:
    tables = [make(catalog, f"web.t{number}", 5) for number in range(6)]
    reports: list[RunReport] = []
    services = [MaintenanceService(catalog) for _ in range(2)]
    threads = [threading.Thread(target=lambda each=each: reports.append(each.run())) for each in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [step.table for report in reports for step in report.steps if step.outcome == "done"]
    assert sorted(done) == sorted(f"web.t{number}" for number in range(6))
    for table in tables:
        assert len(list(table.refresh().scan().plan_files())) == 1 and CLAIM not in table.properties


def test_a_claim_that_another_took_is_not_released(catalog: Any) -> None:
    make(catalog, "web.t", 1)
    first, second = (Claim(catalog.load_table("web.t"), name) for name in ("a", "b"))
    assert first.renew() and not second.renew() and first.renew()
    second.release()
    assert catalog.load_table("web.t").properties[CLAIM].startswith("a until ")
    first.release()
    assert second.renew()


def test_of_two_services_that_see_no_claim_one_is_too_late(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, "web.t", 1, **{CLAIM: "what is no claim"})
    late = catalog.load_table("web.t")
    monkeypatch.setattr(late, "refresh", lambda: late)  # it looked before the other took the claim
    assert Claim(table, "a").renew() and not Claim(late, "b").renew()
    with claimed(late, "b") as claim:
        assert claim is None
    assert table.refresh().properties[CLAIM].startswith("a until ")


def test_a_claim_that_could_not_be_given_back_does_not_hold_its_service_up(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog, "web.small", 5)
    service, other = MaintenanceService(catalog), MaintenanceService(catalog)
    with monkeypatch.context() as away:
        away.setattr(Claim, "release", lambda claim: catalog.load_table("web.absent"))
        service.run()
    assert CLAIM in table.refresh().properties
    for number in range(5):
        table.append(rows(number))
    assert [step.outcome for step in other.run().steps] == ["left"]
    assert not service.run().failed
    assert CLAIM not in table.refresh().properties


def test_a_claim_is_prolonged_while_work_takes_long(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, "web.t", 1)
    held = Claim(catalog.load_table("web.t"), "a")
    assert held.renew()
    first = table.refresh().properties[CLAIM]
    assert held.keep() and table.refresh().properties[CLAIM] == first  # it is fresh yet
    monkeypatch.setattr(claim_module, "_RENEWED_AFTER_SECONDS", 0)
    time.sleep(0.002)
    assert held.keep() and table.refresh().properties[CLAIM] > first
    table.set_properties({CLAIM: f"b until {int(time.time() * 1000) + 60_000}"})
    assert not held.keep()


def test_a_signal_to_a_worker_is_heard_while_the_run_waits_for_it(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("web.a", "web.b"):
        make(catalog, name, 1)
    real, heard = catalog.load_table, []

    with stopped_by_signals() as stop:

        def load(identifier: Any) -> Table:
            time.sleep(0.3)  # until the main thread waits
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            end = time.monotonic() + 20
            while not stop.is_set() and time.monotonic() < end:
                time.sleep(0.01)
            heard.append(stop.is_set())
            return real(identifier)

        monkeypatch.setattr(catalog, "load_table", load)
        report = MaintenanceService(catalog, limits=Limits(tables_at_once=1), stop=stop).run()

    assert heard == [True]
    assert (report.tables, report.not_looked_at) == (1, ("web.b",))


def test_a_stopped_service_begins_nothing_new(catalog: Any) -> None:
    make(catalog, "web.small", 5)
    service = MaintenanceService(catalog)
    service.stop.set()
    assert service.run().steps == ()
    service.run_every(60)  # comes back at once


def test_policies_come_from_a_file_and_from_table_properties(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("default: {compact-min-files: 10}\ntables:\n  'raw.*': {expire-snapshots: false}\n")
    policies = Policies.load(path)
    assert policies.of("web.t", {}).compact_min_files == 10 and policies.of("web.t", {}).expire_snapshots
    assert not policies.of("raw.t", {}).expire_snapshots
    assert policies.of("raw.t", {"maintenance.expire-snapshots": "true"}) == Policy(compact_min_files=10)
    young = policies.of("web.t", {"maintenance.remove-orphans-age-ms": "0", "maintenance.nobody-writes": "true"})
    assert young.remove_orphans_age_ms == 0 and young.nobody_writes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "mapping"),
        ("default: {nope: 1}", "nope"),
        ("tables: {'a.*': {compact-min-files: many}}", "whole number"),
        ("default: {remove-orphans-age-ms: 86399999}", "default in .*24 hours.*nobody-writes"),
        ("tables: {'a.*': {remove-orphans-age-ms: 0}}", r"a\.\* in .*24 hours"),
        ("other: {}", "`default` and `tables`"),
        ("default: [", "Cannot read"),
    ],
)
def test_a_wrong_policy_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        Policies.load(path)
