"""Two servers on one metastore, all of which are killed now and then while clients commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
import urllib3

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import CommitStateUnknownError, IcebergError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.rest_client.channel import new_key
from hms_iceberg.spec.changes.differences import table_requirements, table_updates
from tests.support.ports import free_port
from tests.support.tables import check_snapshot

pytestmark = [pytest.mark.slow, pytest.mark.whole]

NAME = "chaos.events"
SCHEMA = pa.schema([("who", pa.string()), ("number", pa.int64())])
ROUNDS = 2
SECONDS_BETWEEN = 4
Row = tuple[str, int]


class ServerProcess:
    """`hms-iceberg rest` on a port that it keeps when it is started again."""

    def __init__(self, metastore: EmbeddedMetastore, log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "hms_iceberg", "rest", "--uri", metastore.uri, "--port", str(self.port)]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "--workers", "2"], stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kills all processes of the server."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            with suppress(urllib3.exceptions.HTTPError):
                if urllib3.request("GET", f"{self.url}/health", timeout=5, retries=False).status == 200:
                    return
            assert time.monotonic() < deadline, self._log.read_text()[-3000:]
            time.sleep(0.2)


@dataclass
class Told:
    """What clients were told of the rows that they appended."""

    acknowledged: set[Row] = field(default_factory=set)
    unknown: set[Row] = field(default_factory=set)
    refusals: Counter[str] = field(default_factory=Counter)


Append = Callable[[Row], bool]
"""Appends a row: true if it was done, false if the client does not know, `IcebergError` if it was not done."""


def one(row: Row) -> pa.Table:
    return pa.table({"who": [row[0]], "number": [row[1]]}, schema=SCHEMA)


def ours(**properties: str) -> Append:
    """This package, through a server or by Thrift."""
    catalog: list[Catalog] = []

    def append(row: Row) -> bool:
        if not catalog:
            catalog.append(load_catalog("client", **properties))
        try:
            catalog[0].load_table(NAME).append(one(row))
        except CommitStateUnknownError:
            return False
        return True

    return append


def pyicebergs(url: str) -> Append:
    """PyIceberg through a server. 409 and 503 say that nothing was done, all others that nobody knows."""
    from pyiceberg.catalog import load_catalog as load_peer
    from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServiceUnavailableError
    from requests import RequestException

    def append(row: Row) -> bool:
        try:
            table = load_peer("peer", type="rest", uri=url).load_table(NAME)
        except Exception as error:
            raise IcebergError(type(error).__name__) from error
        try:
            table.append(one(row))
        except (CommitFailedException, ServiceUnavailableError) as error:
            raise IcebergError(type(error).__name__) from error
        except (CommitStateUnknownException, RequestException):
            return False
        return True

    return append


def repeating(urls: Sequence[str], metastore: EmbeddedMetastore) -> Append:
    """A client that sends one request with its key to one server after the other until there is an answer."""
    catalog = load_catalog("keyed", type="hive", uri=metastore.uri)
    path = "/v1/namespaces/chaos/tables/events"

    def append(row: Row) -> bool:
        table = catalog.load_table(NAME)
        change = table.transaction()
        change.append(one(row))
        updates = table_updates(table.metadata, change.metadata)
        body = {"requirements": table_requirements(table.metadata, updates), "updates": updates}
        key = new_key()
        for attempt in range(200):
            try:
                answer = urllib3.request(
                    "POST",
                    urls[attempt % len(urls)] + path,
                    json=body,
                    headers={"Idempotency-Key": key},
                    timeout=30,
                    retries=False,
                )
            except urllib3.exceptions.HTTPError:
                time.sleep(0.1)
                continue
            if answer.status == 200:
                return True
            if answer.status == 409:
                raise IcebergError("409")
            time.sleep(0.1)
        return False

    return append


def keep_on(who: str, append: Append, told: Told, is_over: threading.Event) -> None:
    """Appends rows of a client one by one; one that was certainly not appended is appended again."""
    number = 0
    while not is_over.is_set():
        row = (who, number)
        try:
            (told.acknowledged if append(row) else told.unknown).add(row)
            number += 1
            if who.startswith("thrift"):  # which would be first nearly always
                time.sleep(0.3)
        except IcebergError as error:
            time.sleep(0.2)
            told.refusals[f"{who.split()[0]}: {type(error).__name__} {str(error)[:60]}"] += 1


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[EmbeddedMetastore]:
    with EmbeddedMetastore(tmp_path / "metastore") as running:
        yield running


def test_no_acknowledged_change_is_lost_or_made_twice(metastore: EmbeddedMetastore, tmp_path: Path) -> None:
    catalog = load_catalog("judge", type="hive", uri=metastore.uri)
    catalog.create_namespace("chaos")
    properties = {"commit.retry.num-retries": "20", "commit.retry.min-wait-ms": "20"}
    catalog.create_table(NAME, SCHEMA, properties=properties)
    servers = [ServerProcess(metastore, tmp_path / f"server{number}.log") for number in range(2)]
    told, is_over = Told(), threading.Event()
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        urls = [server.url for server in servers]
        appends = {
            "ours 0": ours(type="rest", uri=urls[0]),
            "ours 1": ours(type="rest", uri=urls[1]),
            "peer 0": pyicebergs(urls[0]),
            "peer 1": pyicebergs(urls[1]),
            "keyed 0": repeating(urls, metastore),
            "keyed 1": repeating(urls[::-1], metastore),
            "thrift 0": ours(type="hive", uri=metastore.uri),
            "thrift 1": ours(type="hive", uri=metastore.uri),
        }
        threads = [
            threading.Thread(target=keep_on, args=(who, append, told, is_over)) for who, append in appends.items()
        ]
        for thread in threads:
            thread.start()
        for _ in range(ROUNDS):
            for server in servers:
                time.sleep(SECONDS_BETWEEN)
                server.kill()
                server.start()
                server.wait()
            time.sleep(SECONDS_BETWEEN)
            metastore.kill()
            metastore.start()
            time.sleep(SECONDS_BETWEEN)
            servers[0].kill()  # while the metastore is away as well
            metastore.kill()
            servers[0].start()
            metastore.start()
            servers[0].wait()
        is_over.set()
        for thread in threads:
            thread.join(180)
        assert not any(thread.is_alive() for thread in threads)
        for server in servers:
            server.wait()
        for url in urls:  # no lock is left that keeps others out
            ours(type="rest", uri=url)(("last", 0))
    finally:
        is_over.set()
        for server in servers:
            server.kill()
    table = catalog.load_table(NAME)
    found = Counter(zip(*(table.scan().to_arrow()[name].to_pylist() for name in ("who", "number")), strict=True))
    found.pop(("last", 0))
    assert max(found.values()) == 1
    assert told.acknowledged <= found.keys()
    assert found.keys() <= told.acknowledged | told.unknown
    committed = Counter(who for who, _ in told.acknowledged)
    assert set(committed) == set(appends), (committed, told.refusals)
    for snapshot in table.snapshots()[-20:]:
        check_snapshot(table.metadata, snapshot, table.storage)  # type: ignore[arg-type]
