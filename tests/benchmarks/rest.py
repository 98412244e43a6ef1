"""The REST server beside Apache Iceberg's reference server, both on one metastore, which take turns.

    python -m tests.benchmarks.rest --folder DIR --prepare      makes the tables, once; takes minutes
    python -m tests.benchmarks.rest --folder DIR [--only load commit clients list plan] [--seconds 60]

The peer is the server of the REST Compatibility Kit over a `HiveCatalog`; its jars are fetched with Maven. Beside
both, the calls to the metastore that neither can do without, made by a client in this process, are told as
`metastore`. `load`: a table of 50 snapshots, without and with `If-None-Match`; first from servers that have just
started, then from such as have answered thousands of requests. `numbered`: loads from a Hive Metastore 3.1 that numbers
its changes (`iceberg.hive.trust-notifications`), also while another table changes ten times a second. `commit`: a
property is set, with the metastore's lock and without. `list`: 10,000 tables in one answer. Each with one client, in
turns, as medians. `clients`: 200 clients at once that load tables, and one that commits. `plan`: the first page and all
pages of 100,000 and 1,000,000 files, with the server's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import urllib3
from click import echo as say

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.rows.unchanged_rows import TRUST_NOTIFICATIONS
from tests.benchmarks.planning import build
from tests.benchmarks.spark_peers import runtime
from tests.support.hive_server.releases import HIVE_3_1
from tests.support.hive_server.server import HiveServer
from tests.support.maven import Artifact, fetched
from tests.support.ports import free_port
from tests.support.rest_kit import VERSION, kit_jars

TABLES = 10_000
SNAPSHOTS = 50
CLIENTS = 200
# Files of a plan, and how many of their columns have metrics.
FILES = {100_000: 20, 1_000_000: 4}
# What a client of Hive's metastore needs of a PySpark.
HIVE = ("hive-", "lib", "commons-lang-2", "commons-collections-3", "guava", "failureaccess", "jdo", "javax.jdo")
SECTIONS = ("load", "numbered", "commit", "clients", "list", "plan")


class Server:
    """One side: its name, where it listens, and its process."""

    def __init__(self, name: str, command: Sequence[str], environment: dict[str, str], port: int) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib3.request("GET", f"{self.url}/v1/config", retries=False, timeout=2)
                return
            except urllib3.exceptions.HTTPError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise OSError(f"{name} did not start") from None
                time.sleep(0.2)

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait()

    def peak_mib(self) -> int:
        """The most memory that its process had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024

    def processor_seconds(self) -> float:
        """Processor time that its process has taken."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours(uri: str, *properties: str) -> Server:
    """`hms-iceberg rest`."""
    port = free_port()
    command = [sys.executable, "-m", "hms_iceberg", "rest", "--uri", uri, "--port", str(port)]
    return Server("ours", [*command, *(part for each in properties for part in ("-p", each))], {}, port)


def reference(metastore: EmbeddedMetastore | HiveServer) -> Server:
    """Apache Iceberg's server over a `HiveCatalog`."""
    hive = fetched(f"rest-hive-{VERSION}", (Artifact("org.apache.iceberg", "iceberg-hive-metastore", VERSION),))
    spark = runtime()[1] / "pyspark" / "jars"
    jars = [each for each in sorted(spark.glob("*.jar")) if each.name.startswith(HIVE)]
    jars += hive.glob("iceberg-hive-metastore-*.jar")
    port = free_port()
    settings = {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.hive.HiveCatalog",
        "CATALOG_URI": metastore.uri,
        "CATALOG_WAREHOUSE": metastore.warehouse,
        "CATALOG_CLIENTS": "8",
        "CATALOG_REST_PORT": str(port),
    }
    path = os.pathsep.join([f"{kit_jars()}/*", *map(str, jars)])
    command = ["java", "-Xmx1g", "-cp", path, "org.apache.iceberg.rest.RESTCatalogServer"]
    return Server("reference", command, settings, port)


# ------------------------------------------------------------------------------------------------- the tables


def prepare(folder: Path) -> None:
    """Makes all tables in two metastores whose data are in the folder.

    The many tables have one of their own: in Derby, a comparison and swap goes through the parameters of all tables.
    """
    schema = pa.schema([pa.field(f"c{number}", pa.int64()) for number in range(20)])
    row = pa.table({"c0": pa.array([1], pa.int64())})
    with EmbeddedMetastore(folder / "few") as metastore, load_catalog("made", uri=metastore.uri) as catalog:
        for name in ("few", "planned"):
            catalog.create_namespace_if_not_exists(name)
        for number in range(8):
            if catalog.table_exists(f"few.t{number}"):
                continue
            table = catalog.create_table(f"few.t{number}", schema)
            for _ in range(SNAPSHOTS if number == 0 else 3):
                table.append(row)
        location = catalog.load_table("few.t1").metadata_location
        for files, measured in FILES.items():
            if not catalog.table_exists(f"planned.f{files}"):
                found = build(folder / f"files{files}", files, files // 10_000, measured)
                catalog.register_table(f"planned.f{files}", f"file:{found}")
    with EmbeddedMetastore(folder / "many") as metastore, load_catalog("made", uri=metastore.uri) as catalog:
        catalog.create_namespace_if_not_exists("many")
        missing = {f"t{number:05}" for number in range(TABLES)} - {name for _, name in catalog.list_tables("many")}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: catalog.register_table(f"many.{name}", location), sorted(missing)))


# -------------------------------------------------------------------------------------------- the measurement


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each of so many calls."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - began))
    return found


def in_turns(
    title: str,
    works: dict[Server, Callable[[], object]],
    rounds: int,
    times: int,
    bare: Callable[[], object] | None = None,
    warm: int | None = None,
) -> None:
    """Prints medians, slowest hundredths and the server's processor time, and the ratios of the first to the last.

    Before them, what the calls to the metastore alone (`bare`) take. The first calls (`warm`) do not count.
    """
    found: dict[Server, list[float]] = {server: [] for server in works}
    spent = dict.fromkeys(works, 0.0)
    alone: list[float] = []
    for work in works.values():
        timed(work, times // 4 if warm is None else warm)
    for _ in range(rounds):
        if bare is not None:
            alone += timed(bare, times)
        for server, work in works.items():
            before = server.processor_seconds()
            found[server] += timed(work, times)
            spent[server] += server.processor_seconds() - before
    shown = []
    if alone:
        say(f"{title:24} {'metastore':10} p50 {statistics.median(alone):.1f} least {min(alone):.1f} ms")
    for server, each in found.items():
        slowest = sorted(each)[int(0.99 * len(each))]
        shown.append((statistics.median(each), min(each), 1000 * spent[server] / len(each)))
        say(
            f"{title:24} {server.name:10} p50 {shown[-1][0]:.1f} least {min(each):.1f} p99 {slowest:.1f}, processor "
            f"{shown[-1][2]:.1f} ms"
        )
    ratios = [first / last if last else 0.0 for first, last in zip(shown[0], shown[-1], strict=True)]
    say(f"{title:24} ratios: p50 {ratios[0]:.2f}x, least {ratios[1]:.2f}x, processor {ratios[2]:.2f}x")


def asking(server: Server, method: str, path: str, body: Any = None, **headers: str) -> Callable[[], Any]:
    """A call that sends one request on a connection that is kept, and checks that it is answered."""
    pool = urllib3.connection_from_url(server.url, maxsize=1)
    data = None if body is None else json.dumps(body).encode()

    def ask() -> Any:
        answer = pool.request(method, path, body=data, headers=headers, timeout=300, retries=False)
        assert answer.status in (200, 304), (server.name, answer.status, answer.data[:300])
        return answer

    return ask


def load(servers: Sequence[Server], metastore: HmsClient) -> None:
    """A table's metadata."""
    path = "/v1/namespaces/few/tables/t0"
    works = {each: asking(each, "GET", path) for each in servers}
    bare = partial(metastore.get_table, "few", "t0")
    in_turns("load of a table", works, 5, 60, bare)
    # Java compiles what is called often: after some thousand loads a server in Java takes half as long.
    in_turns("load, warmed up", works, 5, 200, bare, 2000)
    unchanged: dict[Server, Callable[[], object]] = {}
    for each in servers:
        tag = asking(each, "GET", path)().headers.get("ETag", "")
        unchanged[each] = asking(each, "GET", path, **{"If-None-Match": tag})
    in_turns("load, unchanged", unchanged, 5, 60)


def load_numbered(metadata_location: str) -> None:
    """A table's metadata, from a metastore that numbers its changes."""
    with tempfile.TemporaryDirectory() as folder, HiveServer(HIVE_3_1, Path(folder)) as metastore, ExitStack() as stack:
        catalog = stack.enter_context(load_catalog("made", uri=metastore.uri, warehouse=metastore.warehouse))
        catalog.create_namespace("few")
        for name in ("t0", "changing"):
            catalog.register_table(f"few.{name}", metadata_location)
        servers = [ours(metastore.uri, f"{TRUST_NOTIFICATIONS}=true"), reference(metastore)]
        for each in servers:
            stack.callback(each.close)
        client = stack.enter_context(closing(_client(metastore)))
        works = {each: asking(each, "GET", "/v1/namespaces/few/tables/t0") for each in servers}
        bare = partial(client.get_table, "few", "t0")
        in_turns("load, numbered", works, 5, 60, bare)
        in_turns("load, numbered, warm", works, 5, 200, bare, 2000)
        ended = threading.Event()

        def change() -> None:
            row = client.get_table("few", "changing")
            while not ended.wait(0.1):
                row.parameters["a"] = str(time.time_ns())
                client.alter_table("few", "changing", row)

        other = threading.Thread(target=change)
        other.start()
        in_turns("load, others change", works, 5, 200)
        ended.set()
        other.join()


def commit(servers: Sequence[Server], metastore: HmsClient) -> None:
    """A property of a table of the side's own, with the metastore's lock and without."""
    for title, first, locks in (("commit", 2, "true"), ("commit without locks", 4, "false")):
        works: dict[Server, Callable[[], object]] = {}
        for number, each in enumerate(servers, first):
            path = f"/v1/namespaces/few/tables/t{number}"
            mode = {"action": "set-properties", "updates": {"engine.hive.lock-enabled": locks}}
            asking(each, "POST", path, {"requirements": [], "updates": [mode]})()
            body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "0"}}]}
            works[each] = _committing(each, path, body)
        in_turns(title, works, 4, 20, partial(_swap, metastore, "t6", locks == "true"))


def _swap(metastore: HmsClient, name: str, locks: bool) -> None:
    """What a commit asks the metastore, and nothing else."""
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname="few", tablename=name
    )
    request = ttypes.LockRequest([component], user="bench", hostname="here", agentInfo="bench")
    number = metastore.lock(request, name).lockid if locks else None
    row = metastore.get_table("few", name)
    row.parameters["a"] = str(time.time_ns())
    metastore.alter_table("few", name, row)
    if number is not None:
        metastore.unlock(number, name)


def _committing(server: Server, path: str, body: dict[str, Any]) -> Callable[[], object]:
    pool = urllib3.connection_from_url(server.url, maxsize=1)

    def ask() -> None:
        body["updates"][0]["updates"]["a"] = str(time.time_ns())
        answer = pool.request("POST", path, body=json.dumps(body).encode(), timeout=60, retries=False)
        assert answer.status == 200, (server.name, answer.data[:300])

    return ask


def list_tables(servers: Sequence[Server]) -> None:
    """The names of many tables, once: the reference has the metastore send all of their rows."""

    def listing(server: Server) -> Callable[[], None]:
        ask = asking(server, "GET", "/v1/namespaces/many/tables")

        def check() -> None:
            assert len(json.loads(ask().data)["identifiers"]) == TABLES, server.name

        return check

    in_turns(f"list of {TABLES} tables", {each: listing(each) for each in servers}, 1, 1)


def clients(servers: Sequence[Server], seconds: float) -> None:
    """Many clients at once."""
    for each in servers:
        done, errors = crowd(each, seconds)
        say(
            f"{CLIENTS} clients for {seconds:.0f} s     {each.name}: {done} requests, {len(errors)} errors {errors[:1]}"
        )


def crowd(server: Server, seconds: float) -> tuple[int, list[str]]:
    """How many requests were answered, and why others were not as they should be."""
    pool = urllib3.connection_from_url(server.url, maxsize=CLIENTS, block=False)
    ends = time.monotonic() + seconds
    done = [0] * CLIENTS
    errors: list[str] = []

    def client(number: int) -> None:
        while time.monotonic() < ends:
            try:
                if number == 0:
                    body = {"updates": [{"action": "set-properties", "updates": {"b": str(time.time_ns())}}]}
                    path = "/v1/namespaces/few/tables/t7"
                    answer = pool.request("POST", path, json={**body, "requirements": []}, timeout=60, retries=False)
                else:
                    path = f"/v1/namespaces/few/tables/t{number % 7}"
                    answer = pool.request("GET", path, timeout=60, retries=False)
                if answer.status != 200:
                    errors.append(f"{answer.status} {answer.data[:300]!r}")
                done[number] += 1
            except urllib3.exceptions.HTTPError as error:
                errors.append(repr(error))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done), errors


def plan(uri: str) -> None:
    """The pages of large plans, of a server of its own whose memory is told."""
    for files in FILES:
        server = ours(uri)
        try:
            path = f"/v1/namespaces/planned/tables/f{files}"
            first_page = asking(server, "POST", f"{path}/plan", {})
            began = time.perf_counter()
            first_page()
            cold = time.perf_counter() - began
            warm = statistics.median(timed(first_page, 15))
            began = time.perf_counter()
            found = sum(len(page["file-scan-tasks"]) for page in pages(server, path, first_page))
            whole = time.perf_counter() - began
            assert found == files, found
            say(
                f"plan of {files} files      first page {1000 * cold:.0f} ms cold, {warm:.1f} ms from the cache; all "
                f"pages {whole:.1f} s; {server.peak_mib()} MiB"
            )
        finally:
            server.close()


def pages(server: Server, path: str, first_page: Callable[[], Any]) -> Iterator[dict[str, Any]]:
    """All pages of a plan."""
    page = json.loads(first_page().data)
    yield page
    tasks = page["plan-tasks"]
    while tasks:
        page = json.loads(asking(server, "POST", f"{path}/tasks", {"plan-task": tasks.pop(0)})().data)
        yield page
        tasks += page.get("plan-tasks", [])


def _client(metastore: EmbeddedMetastore | HiveServer) -> HmsClient:
    return HmsClient(ClientSettings.from_properties({"uri": metastore.uri}))


@contextmanager
def both(metastore: EmbeddedMetastore) -> Iterator[list[Server]]:
    """Both sides, running."""
    with ExitStack() as stack:
        servers = [ours(metastore.uri), reference(metastore)]
        for each in servers:
            stack.callback(each.close)
        yield servers


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    if asked.prepare:
        prepare(asked.folder)
        return
    sides: dict[str, Callable[[Sequence[Server]], None]] = {
        "clients": lambda servers: clients(servers, asked.seconds),
        "list": list_tables,
    }
    for data, names in (("few", ("load", "numbered", "commit", "clients", "plan")), ("many", ("list",))):
        wanted = [name for name in names if name in asked.only]
        if not wanted:
            continue
        with EmbeddedMetastore(asked.folder / data) as metastore:
            if set(wanted) - {"plan", "numbered"}:
                with both(metastore) as servers, closing(_client(metastore)) as client:
                    sides["load"], sides["commit"] = partial(load, metastore=client), partial(commit, metastore=client)
                    for name in wanted:
                        if name in sides:
                            sides[name](servers)
            if "plan" in wanted:
                plan(metastore.uri)
            if "numbered" in wanted:
                with load_catalog("made", uri=metastore.uri) as catalog:
                    load_numbered(catalog.load_table("few.t0").metadata_location)


if __name__ == "__main__":
    main()
