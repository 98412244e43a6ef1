"""Histories of writers of several processes, some of them killed and some with a network that fails, are serial."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.histories import changes_of, check_files, check_history
from tests.support.history_writers import Job, Writers, notes_of
from tests.support.thrift_proxy import ThriftProxy

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("HMS_ICEBERG_HISTORIES", "3"))
WRITERS, CHANGES = 3, 8
SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("writer", "number", "value")])
# A network that fails may also hit what is only read; a commit fails then, and nothing was changed.
CONFLICTS = ("CommitConflictError",)
FAILURES = (*CONFLICTS, "CommitFailedError", "MetastoreUnavailableError", "MetastoreAnswerLostError", "LockError")


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as writers:
        yield writers


@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("lock", ["true", "false"], ids=["lock", "compare-and-swap"])
def test_a_history_is_a_serial_order_of_the_acknowledged_changes_and_perhaps_of_unknown_ones(
    metastore: EmbeddedMetastore,
    catalog: Catalog,
    namespace: str,
    writers: Writers,
    tmp_path: Path,
    lock: str,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Every third history has a network that fails, every second one killed writers; seeds decide the rest."""
    choose = random.Random(f"{lock} {seed}")
    properties = {
        "engine.hive.lock-enabled": lock,
        "commit.retry.num-retries": "30",
        "commit.retry.min-wait-ms": "10",
        "commit.status-check.num-retries": "2",
        "commit.status-check.min-wait-ms": "10",
        "write.delete.mode": choose.choice(["copy-on-write", "merge-on-read"]),
        "write.update.mode": choose.choice(["copy-on-write", "merge-on-read"]),
        "write.metadata.previous-versions-max": "1000",
    }
    table = catalog.create_table(f"{namespace}.t", SCHEMA, properties=properties)
    with ExitStack() as stack:
        uri = metastore.uri
        if seed % 3 == 1:
            proxy = stack.enter_context(ThriftProxy(metastore.port))
            proxy.fail_at_random(random.Random(seed), 0.04)
            uri = proxy.uri
        # Half of the writers with a lock do without the server's comparison, as with a server that has none.
        more = {"iceberg.hive.lock-compare-enabled": choose.choice(["true", "false"])}
        more["hive.metastore.client.connect.retry.delay"] = "10ms"
        notes = [tmp_path / f"{number}.jsonl" for number in range(WRITERS)]
        start = time.monotonic() + 0.3
        pids = [
            writers.start(
                Job(uri, more, f"{namespace}.t", number, WRITERS, choose.randrange(10**6), CHANGES, start, str(note))
            )
            for number, note in enumerate(notes)
        ]
        if seed % 2 == 0:
            for number in range(choose.choice([1, 1, 2])):
                kill(pids[number], notes[number], choose)
        writers.wait()
    changes = [change for note in notes for change in changes_of(notes_of(note))]
    record_property("outcomes", dict(Counter(f"{change.kind} {change.outcome}" for change in changes)))
    table.refresh()
    check_history(table, changes, FAILURES if seed % 3 == 1 else CONFLICTS)
    check_files(table, changes)
    table.append(pa.table({"writer": [9], "number": [9], "value": [0]}))  # the next commit is made


def kill(pid: int, notes: Path, choose: random.Random) -> None:
    """Kills a writer a little after it has begun one of its changes."""
    changes = choose.randrange(1, CHANGES)
    deadline = time.monotonic() + 60
    while len(changes_of(notes_of(notes))) < changes and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(choose.uniform(0, 0.06))
    with suppress(ProcessLookupError):  # it was quicker
        os.kill(pid, signal.SIGKILL)
