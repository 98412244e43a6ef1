"""Two services over one neglected warehouse on the real metastore, and maintenance that is killed for real."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance import check_table, rewrite_data_files
from hms_iceberg.maintenance.service.claim import CLAIM
from hms_iceberg.maintenance.service.service import MaintenanceService
from hms_iceberg.maintenance_policy import Policies
from hms_iceberg.spec import table_properties
from hms_iceberg.table import Table
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUIET = {"maintenance.remove-orphans": "false", "commit.retry.min-wait-ms": "20"}
POLICY = "default: {compact-min-files: 2, rewrite-manifests-min-count: 3}\n"


def small_files(table: Table) -> None:
    table.append(rows(1, 2))
    table.append(rows(3, 4))


def by_position(table: Table) -> None:
    table.append(rows(1, 2, 3, 4))
    table.delete("id = 1")


def by_key(table: Table) -> None:
    table.append(rows(1, 2))
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([1]), "city": ["Bonn"]}), columns=["id", "city"])


def old_snapshots(table: Table) -> None:
    table.append(rows(1))
    table.delete("id = 1")
    table.append(rows(2))


def many_manifests(table: Table) -> None:
    for number, city in enumerate(("Bonn", "Ulm", "Rom")):
        table.append(rows(number, city=city))


def stray_files(table: Table) -> None:
    table.append(rows(1))
    table.storage.create(f"{table.location()}/data/lost.parquet", b"lost")


def one_file(table: Table) -> None:
    table.append(rows(1))


def no_manifest_list(table: Table) -> None:
    small_files(table)
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    table.storage.delete(snapshot.manifest_list)


def no_data_file(table: Table) -> None:
    small_files(table)
    table.storage.delete(next(iter(table.scan().plan_files())).file.file_path)


def claimed_by_the_living(table: Table) -> None:
    small_files(table)
    table.set_properties({CLAIM: f"other/1/x until {int(time.time() * 1000) + 600_000}"})


def claimed_by_the_dead(table: Table) -> None:
    small_files(table)
    table.set_properties({CLAIM: f"other/1/x until {int(time.time() * 1000) - 1}"})


YOUNG = {"maintenance.remove-orphans-age-ms": "0", "maintenance.remove-orphans": "true"}
NOW = {**YOUNG, "maintenance.nobody-writes": "true"}
OLD = {"history.expire.max-snapshot-age-ms": "1"}
# Name, format version, properties, what happened to the table, and what is done about it.
Case = tuple[str, int, dict[str, str], Callable[[Table], None], set[str]]
CASES: list[Case] = [
    *((f"small_{version}", version, {}, small_files, {"rewrite_data_files"}) for version in (1, 2, 3)),
    ("keys_2", 2, {}, by_key, {"convert_equality_deletes"}),
    ("keys_3", 3, {}, by_key, {"convert_equality_deletes"}),
    ("positions_2", 2, {}, by_position, set()),
    ("vectors_3", 3, {}, by_position, set()),
    ("old_1", 1, OLD, old_snapshots, {"expire_snapshots"}),
    ("old_2", 2, OLD, old_snapshots, {"expire_snapshots"}),
    ("kept", 2, {**OLD, "gc.enabled": "false"}, old_snapshots, set()),
    ("manifests_2", 2, {}, many_manifests, {"rewrite_manifests"}),
    ("manifests_3", 3, {}, many_manifests, {"rewrite_manifests"}),
    ("strays", 2, NOW, stray_files, {"remove_orphan_files"}),
    ("too_young", 2, YOUNG, stray_files, {""}),
    ("empty", 2, {}, lambda table: None, set()),
    ("fine", 2, {}, one_file, set()),
    ("off", 2, {"maintenance.enabled": "false"}, small_files, set()),
    ("wrong_setting", 2, {"maintenance.compact": "perhaps"}, small_files, {""}),
    ("no_list", 2, {}, no_manifest_list, {""}),
    ("no_file", 2, {}, no_data_file, {""}),
    ("alive", 2, {}, claimed_by_the_living, {""}),
    ("dead", 2, {}, claimed_by_the_dead, {"rewrite_data_files"}),
]
UNREADABLE = {"no_list", "no_file"}


def service(metastore: EmbeddedMetastore, namespace: str, policy: Path) -> subprocess.Popen[str]:
    words = ["--uri", metastore.uri, "--output", "json", "--table", f"{namespace}.*", "--policy", str(policy)]
    with open(policy.with_suffix(".log"), "a") as log:  # nobody reads a pipe while it runs
        return subprocess.Popen(
            [sys.executable, "-m", "hms_iceberg", "maintain", "--every", "1s", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def lines_until_a_run_without_steps(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What a service tells, until a run had nothing to do but what cannot be done."""
    assert process.stdout is not None
    found: list[dict[str, Any]] = []
    while True:
        found.append(json.loads(process.stdout.readline()))
        if found[-1]["event"] == "run" and found[-1]["done"] == 0:
            return found


def test_two_services_bring_a_neglected_warehouse_in_order(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    content = {}
    for name, version, properties, neglect, _ in CASES:
        given = {**QUIET, **(MERGE_ON_READ if version > 1 else {}), **properties, "format-version": str(version)}
        with monkeypatch.context() as other_engine:
            other_engine.setattr(table_properties, "check_policy", lambda properties: None)  # it checks nothing
            table = catalog.create_table(f"{namespace}.{name}", SCHEMA, partition_spec=BY_CITY, properties=given)
        neglect(table)
        if name not in UNREADABLE:
            content[name] = table.refresh().scan().to_arrow().sort_by("id")
    processes = [service(metastore, namespace, policy) for _ in range(2)]
    told = [line for process in processes for line in lines_until_a_run_without_steps(process)]
    for process in processes:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        output = process.stdout.read()  # which has the rest of a line that was read in part
        process.communicate()
        assert process.returncode == 0, policy.with_suffix(".log").read_text()
        told += [json.loads(line) for line in output.splitlines()]

    steps = [line for line in told if line["event"] == "step"]
    done = Counter((step["table"].split(".")[1], step["action"]) for step in steps if step["outcome"] == "done")
    expected = {(name, action) for name, *_, actions in CASES for action in actions if action}
    assert set(done) >= expected
    assert set(done.values()) == {1}, "two services did the same work"
    other = {(step["table"].split(".")[1], step["outcome"]) for step in steps if step["outcome"] != "done"}
    problems = {
        ("wrong_setting", "failed"),
        ("too_young", "failed"),
        ("no_list", "failed"),
        ("no_file", "failed"),
        ("alive", "left"),
    }
    # Where one service was at work, the other one may have come too late.
    late = {(name, "left") for name in ("no_file", *(name for name, _ in expected))}
    assert problems <= other <= problems | late

    for name, before in content.items():
        table = catalog.load_table(f"{namespace}.{name}")
        assert table.scan().to_arrow().sort_by("id").equals(before)
        assert check_table(table).findings == ()
        assert (CLAIM in table.properties) == (name == "alive")
    assert not catalog.load_table(f"{namespace}.strays").storage.exists(
        f"{catalog.load_table(f'{namespace}.strays').location()}/data/lost.parquet"
    )
    readable = [f"{namespace}.{name}" for name in content if name not in ("wrong_setting", "too_young", "alive")]
    again = MaintenanceService(catalog, readable, Policies.load(policy)).run()
    assert [step for step in again.steps if step.action != "remove_orphan_files"] == []


CHILD = """
    import os, signal, sys
    from hms_iceberg.catalog import load_catalog
    from hms_iceberg.maintenance import rewrite_data_files

    uri, name, point = sys.argv[1:4]
    catalog = load_catalog("child", type="hive", uri=uri)
    table = catalog.load_table(name)

    def dying(owner, method, when, which=0):
        original, calls = getattr(owner, method), []

        def call(*arguments, **options):
            if method == "alter_table" and arguments[1] not in name:
                return original(*arguments, **options)  # of the scratch row that tells what the server can do
            calls.append(method)
            if len(calls) <= which:
                return original(*arguments, **options)
            if when == "after":
                original(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, method, call)

    if point == "between two files":
        dying(table.storage, "open_output", "before", 1)
    elif point == "under the lock":
        dying(catalog.metastore.client, "alter_table", "before")
    elif point == "after the first commit":
        dying(catalog.metastore.client, "alter_table", "after")
    rewrite_data_files(table, options={"min-input-files": 2, "max-concurrent-file-group-rewrites": 1})
"""


@pytest.mark.parametrize("point", ["between two files", "under the lock", "after the first commit"])
def test_a_compaction_that_is_killed_loses_nothing_and_is_finished_by_the_next(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, point: str
) -> None:
    table = catalog.create_table(f"{namespace}.t", SCHEMA, partition_spec=BY_CITY, properties=QUIET | MERGE_ON_READ)
    for number in (1, 2):
        table.append(pa.concat_tables([rows(number), rows(10 + number, city="Ulm"), rows(20 + number, city="Rom")]))
    table.delete("id = 1")
    before = table.scan().to_arrow().sort_by("id")
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), metastore.uri, f"{namespace}.t", point], cwd=ROOT, timeout=120
    )
    assert child.returncode == -signal.SIGKILL
    assert table.refresh().scan().to_arrow().sort_by("id").equals(before)
    rewrite_data_files(table, options={"min-input-files": 2})
    assert len(list(table.scan().plan_files())) == 3
    assert table.scan().to_arrow().sort_by("id").equals(before)
    assert check_table(table).findings == ()
