"""A metastore that is killed in the middle of a commit and started again, and histories of writers that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import CommitStateUnknownError, MetastoreError
from hms_iceberg.hms import swap
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table
from tests.support.thrift_proxy import Fault, ThriftProxy

pytestmark = pytest.mark.slow

ALTER = "alter_table_with_environment_context"
SCHEMA = pa.schema([pa.field("writer", pa.int64()), pa.field("number", pa.int64())])
QUICK = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "10"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMetastore]:
    """A metastore of these tests' own, as they kill it."""
    with EmbeddedMetastore(tmp_path_factory.mktemp("metastore"), lock_expiry_seconds=4) as server:
        yield server


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "_LOOKS", (0.0, 0.05))


@pytest.mark.parametrize(
    ("lock", "method"),
    [("true", "lock"), ("true", ALTER), ("true", "unlock"), ("false", ALTER)],
    ids=["lock-lock", "lock-alter", "lock-unlock", "compare-and-swap-alter"],
)
@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, Fault.DROP_ANSWER], ids=["before", "after"])
def test_a_commit_whose_metastore_is_killed_is_reported_truly_and_the_next_one_is_made(
    server: EmbeddedMetastore, lock: str, method: str, fault: Fault
) -> None:
    server.start()
    properties = {
        "warehouse": server.warehouse,
        "iceberg.engine.hive.lock-enabled": lock,
        "hive.metastore.connect.retries": "2",
        "hive.metastore.client.connect.retry.delay": "50ms",
    }
    namespace = f"killed_{lock}_{method[:6]}_{fault.name.lower()}"
    with ThriftProxy(server.port) as proxy, load_catalog("x", type="hive", uri=proxy.uri, **properties) as catalog:
        catalog.create_namespace(namespace)
        table = catalog.create_table((namespace, "t"), SCHEMA, properties=QUICK)
        table.append(rows(0, 0))
        if fault is Fault.DROP_REQUEST:
            proxy.on(method, fault, before=server.kill)
        else:
            proxy.on(method, fault, after=server.kill)
        try:
            table.append(rows(0, 1))
            reported = "made"
        except CommitStateUnknownError:
            reported = "unknown"
        except MetastoreError:
            reported = "failed"
        proxy.heal()
        server.start()
        began = time.monotonic()
        table = catalog.load_table((namespace, "t"))
        made = [0, 1] in contents(table)
        assert reported == "unknown" or made == (reported == "made")
        assert made == (method == "unlock" or (method == ALTER and fault is Fault.DROP_ANSWER))
        table.append(rows(0, 2))
        assert contents(table) == ([[0, 0], [0, 1], [0, 2]] if made else [[0, 0], [0, 2]])
        assert time.monotonic() - began < 30, "within the time after which the server drops a lock"


def rows(writer: int, number: int) -> pa.Table:
    return pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA)


def contents(table: Table) -> list[list[int]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return sorted([row["writer"], row["number"]] for row in found)


# ------------------------------------------------------------------------------------------- histories

WRITER = """
import json, random, sys
import pyarrow as pa
from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import CommitStateUnknownError, IcebergError
from hms_iceberg.spec.types import LongType

uri, name, writer, lock, seed, count = sys.argv[1:]
catalog = load_catalog("w", type="hive", uri=uri, **{"iceberg.engine.hive.lock-enabled": lock})
table = catalog.load_table(name)
choose = random.Random(int(seed))

def report(kind, number, outcome):
    print(json.dumps([kind, int(writer), number, outcome]), flush=True)

print("ready", flush=True)
sys.stdin.readline()
for number in range(int(count)):
    kind = choose.choices(["append", "delete", "schema"], [6, 2, 1])[0]
    report(kind, number, "begun")
    try:
        if kind == "append":
            schema = pa.schema([pa.field("writer", pa.int64()), pa.field("number", pa.int64())])
            table.append(pa.table({"writer": [int(writer)], "number": [number]}, schema=schema))
        elif kind == "delete":
            number = choose.randrange(number + 1)
            table.delete(f"writer = {writer} and number = {number}")
        else:
            with table.update_schema() as update:
                update.add_column(f"extra_{writer}_{number}", LongType())
        report(kind, number, "made")
    except CommitStateUnknownError:
        report(kind, number, "unknown")
    except IcebergError as error:
        report(kind, number, f"failed: {type(error).__name__}: {error}")
catalog.close()
"""

HISTORIES = int(os.environ.get("HMS_ICEBERG_HISTORIES", "2"))


@pytest.mark.parametrize("lock", ["true", "false"], ids=["lock", "compare-and-swap"])
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_history_of_writers_some_of_them_killed_is_a_serial_one(
    server: EmbeddedMetastore, lock: str, seed: int
) -> None:
    """Every acknowledged change is there, every failed one is not, and those of killed writers are there or not."""
    server.start()
    choose = random.Random(seed)
    namespace = f"history_{lock}_{seed}_{time.time_ns() % 10**9}"
    with load_catalog("x", type="hive", uri=server.uri, warehouse=server.warehouse) as catalog:
        catalog.create_namespace(namespace)
        retries = {"commit.retry.num-retries": "30", "commit.retry.min-wait-ms": "10", "engine.hive.lock-enabled": lock}
        table = catalog.create_table((namespace, "t"), SCHEMA, properties={**QUICK, **retries})
        writers = [start_writer(server.uri, f"{namespace}.t", number, lock, choose) for number in range(3)]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        time.sleep(choose.uniform(0.1, 0.6))
        writers[0].send_signal(signal.SIGKILL)
        events = [event for writer in writers for event in finish(writer)]
        check_history(table.refresh(), events)
        table.append(rows(9, 9))
        assert [9, 9] in contents(table)


def start_writer(uri: str, name: str, number: int, lock: str, choose: random.Random) -> subprocess.Popen[str]:
    arguments = [uri, name, str(number), lock, str(choose.randrange(10**6)), "8"]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(writer: subprocess.Popen[str]) -> list[list[object]]:
    output, _ = writer.communicate(timeout=200)
    events = []
    for line in output.splitlines():
        if line.endswith("]"):  # a killed writer may leave half a line
            events.append(json.loads(line))
    return events


def check_history(table: Table, events: list[list[object]]) -> None:
    """A model of the table: what must be there, what must not, and what may or may not."""
    ended = [(kind, writer, number, outcome) for kind, writer, number, outcome in events if outcome != "begun"]
    failures = [event for event in ended if str(event[3]).startswith("failed")]
    assert failures == []
    open_at_the_end = _unfinished(events)
    appended = {(writer, number) for kind, writer, number, outcome in ended if (kind, outcome) == ("append", "made")}
    deleted = {(writer, number) for kind, writer, number, outcome in ended if (kind, outcome) == ("delete", "made")}
    unsure = {(writer, number) for kind, writer, number, outcome in ended if outcome == "unknown"}
    unsure |= {(writer, number) for kind, writer, number in open_at_the_end if kind == "append"}
    # A writer deletes its own rows only, so that its own order tells what is left of them.
    unsure |= {(w, n) for kind, writer, _ in open_at_the_end if kind == "delete" for w, n in appended if w == writer}
    found = [(writer, number) for writer, number in contents(table)]
    assert len(found) == len(set(found)), "nothing was applied twice"
    assert appended - deleted - unsure <= set(found) <= (appended - deleted) | unsure
    columns = {field.name for field in table.schema().fields}
    added = {
        f"extra_{writer}_{number}" for kind, writer, number, outcome in ended if (kind, outcome) == ("schema", "made")
    }
    may_be = {f"extra_{writer}_{number}" for kind, writer, number in open_at_the_end if kind == "schema"}
    assert added <= columns - {"writer", "number"} <= added | may_be
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()


def _unfinished(events: list[list[object]]) -> list[tuple[object, object, object]]:
    last: dict[object, list[object]] = {}
    for event in events:
        last[event[1]] = event
    return [(kind, writer, number) for kind, writer, number, outcome in last.values() if outcome == "begun"]
