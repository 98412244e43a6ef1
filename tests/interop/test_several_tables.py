"""Transactions on several tables beside Apache Iceberg's Java and PyIceberg, and those of DuckDB, with kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import urllib3

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.commit.several_tables import unfinished_transactions
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance import check_table
from tests.interop.test_rest import DUCK, duckdb_python  # noqa: F401
from tests.support.dying_server import DEAD
from tests.support.ports import free_port
from tests.support.several_tables import SCHEMA, Storm, give_back_locks, open_intents, peer_table, rows

ROOT = Path(__file__).parents[2]
ROUNDS, SEED = int(os.environ.get("SEVERAL_ROUNDS", "5")), int(os.environ.get("SEVERAL_SEED", "1"))
# After how many calls of its commit the server dies: before the first move, between the two, after the last one.
DEATHS = range(40) if "SEVERAL_ROUNDS" in os.environ else (5, 11, 13, 14)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished_transactions, "_OWNER_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.02, 0.05))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 0.1)


@pytest.fixture(params=["true", "false"], ids=["lock", "compare-and-swap"])
def bank(request: pytest.FixtureRequest, metastore: EmbeddedMetastore) -> Iterator[Catalog]:
    properties = {"warehouse": metastore.warehouse, "iceberg.engine.hive.lock-enabled": request.param}
    with load_catalog("bank", type="hive", uri=metastore.uri, **properties) as catalog:
        yield catalog


@pytest.mark.slow
@pytest.mark.spark
# Threads of a killed owner die too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_random_transactions_beside_java_and_pyiceberg_are_seen_whole(
    bank: Catalog,
    metastore: EmbeddedMetastore,
    namespace: str,
    iceberg_java: Any,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    def java(name: str) -> None:
        with suppress(AssertionError):  # its connections are of before the metastore was killed
            iceberg_java.sql("SHOW NAMESPACES IN ice")
        iceberg_java.sql(f"INSERT INTO ice.{name} VALUES (0, 0)")

    storm = Storm(bank, metastore, namespace, [java, lambda name: peer_table(bank, name).append(rows((0, 0)))], SEED)
    storm.run(ROUNDS)
    record_property("ends", dict(storm.told))
    assert "is torn" not in caplog.text
    for name in storm.names:
        assert check_table(bank.load_table(name)).findings == ()
        of_java = iceberg_java.sql(f"SELECT id, amount FROM ice.{name}")
        ours = bank.load_table(name).scan().to_arrow().to_pylist()
        assert sorted(of_java) == sorted(list(each.values()) for each in ours)


@contextmanager
def dying_server(uri: str, calls: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL and the process of a server that dies after so many calls of a commit."""
    port = free_port()
    command = [sys.executable, "-m", "tests.support.dying_server", uri, str(port), str(calls)]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            for _ in range(600):
                with suppress(urllib3.exceptions.HTTPError):
                    urllib3.request("GET", f"{url}/v1/config", timeout=5, retries=False)
                    break
                assert process.poll() is None
                time.sleep(0.1)
            yield url, process
        finally:
            process.kill()


def duck(home: Path, url: str, name: str, *statements: str) -> subprocess.CompletedProcess[str]:
    """DuckDB's run of statements, in which `{t}` is the table."""
    environment = {**os.environ, "PYTHONPATH": str(home)}
    command = [sys.executable, "-c", DUCK, url, name]
    return subprocess.run(
        command, input=json.dumps(statements), capture_output=True, text=True, timeout=300, env=environment
    )


@pytest.mark.slow
def test_a_server_that_dies_while_duckdb_commits_to_two_tables_leaves_all_or_nothing(
    bank: Catalog,
    metastore: EmbeddedMetastore,
    namespace: str,
    duckdb_python: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"{namespace}.t{each}" for each in ("", "_other")]
    locks = {"engine.hive.lock-enabled": bank.properties["iceberg.engine.hive.lock-enabled"]}
    for name in names:
        bank.create_table(name, SCHEMA, properties=locks).append(rows((1, 100)))
    inserts = ["insert into {t} values (2, -30)", "insert into {t}_other values (2, 30)"]
    ends = set()
    for calls in DEATHS:
        before = counts(bank, names)
        with dying_server(metastore.uri, calls) as (url, process):
            ran = duck(duckdb_python, url, names[0], "begin", *inserts, "commit")
            is_dead = process.poll() == DEAD
        assert is_dead or ran.returncode == 0, ran.stderr[-2000:]
        found = counts(bank, names)
        made = [each + 1 for each in before]
        assert found in (before, made), f"after call {calls}"
        assert found == made or ran.returncode, f"DuckDB was told that it is done, after call {calls}"
        ends.add(found == made)
        give_back_locks(bank)
        for name in names:
            bank.load_table(name).append(rows((0, 0)))
        finished = [each + 1 for each in found]
        assert counts(bank, names) == finished, f"after call {calls}"
        for intent in open_intents(bank, names):  # of a server that died before the first move
            bank.metastore.finish(intent)
        assert counts(bank, names) == finished, f"after call {calls}"
        if not is_dead:
            break
    assert ends == {True, False}


def counts(bank: Catalog, names: list[str]) -> list[int]:
    """How many rows the tables have at one moment, by their metadata: DuckDB deletes its files if it has no answer."""
    heads = [each.current_snapshot() for each in bank.load_tables(names)]
    return [int(each.summary["total-records"]) for each in heads]
