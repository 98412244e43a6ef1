"""Killed executors and drivers, and tasks that are tried again: every row is written once, a table is as it was or
whole, files that nothing references are those of killed processes only, and nobody waits for a lock.

A test run kills each statement of one driver at one of three points, other ones for every commit;
HMS_ICEBERG_TESTS=all takes all.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.hdfs_path import local_path
from tests.support.spark_statements import SLOWLY, Driver
from tests.support.spread import ALL, SEED
from tests.support.thrift_proxy import Fault, ThriftProxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS, NEW = 4000, 1000
OLD, LATER = range(ROWS), range(ROWS, 2 * ROWS)
SELECT = f"select slow(id) as id, id as v from range({ROWS}, {2 * ROWS}, 1, 2)"
UPDATE = "update {t} set v = slow(id) + 1 where id >= 0"
MERGE = (
    f"merge into {{t}} t using (select id from range(0, {ROWS + NEW}, 1, 2)) s on t.id = s.id"
    " when matched then update set v = slow(s.id) + 1 when not matched then insert (id, v) values (s.id, s.id)"
)
MERGED = {**{n: n + 1 for n in OLD}, **{n: n for n in range(ROWS, ROWS + NEW)}}
STATEMENTS = {
    "inserted": (f"insert into {{t}} {SELECT}", {n: n for n in range(2 * ROWS)}),
    "updated_cow": (UPDATE, {n: n + 1 for n in OLD}),
    "merged_mor": (MERGE, MERGED),
    "overwritten": (f"insert overwrite {{t}} {SELECT}", {n: n for n in LATER}),
    "created": (f"create table {{t}} using iceberg as {SELECT}", {n: n for n in LATER}),
    "deleted_mor": ("delete from {t} where slow(id) % 2 = 0", {n: n for n in OLD if n % 2}),
    "streamed": ("stream {source} {t} {checkpoint} slow(id)", {n: n for n in range(2 * ROWS)}),
    "merged_cow": (MERGE, MERGED),
    "updated_mor": (UPDATE, {n: n + 1 for n in OLD}),
    "emptied": ("delete from {t} where id >= 0", {}),
    "deleted_cow": ("delete from {t} where slow(id) % 4 = 0", {n: n for n in OLD if n % 4}),
}
"""By the names of tables: statements, and the rows after them."""
MOST_STEPS = {"deleted_cow": 8_000}
"""Its condition is evaluated twice: to find the files, and only then to write them."""
BY_DRIVER = "deleted_mor"
"""Its tasks tell the driver the positions, and write no file."""
FORMATS = ("orc", "avro", "parquet")
POINTS = WRITING, SENT, MADE = "its tasks write", "its commit is sent", "its commit is made"
SHIFTS = range(len(POINTS)) if ALL else [SEED % len(POINTS)]


@dataclass
class Cluster:
    """A driver with two executors, which speaks to the metastore through a proxy."""

    driver: Driver
    proxy: ThriftProxy
    shift: int

    def point(self, name: str) -> str:
        """Where the statement is when the driver is killed."""
        point = POINTS[(list(STATEMENTS).index(name) + self.shift) % len(POINTS)]
        return SENT if point == WRITING and "slow" not in STATEMENTS[name][0] else point


@pytest.fixture(scope="module", params=SHIFTS)
def cluster(
    request: pytest.FixtureRequest, metastore: EmbeddedMetastore, catalog: Catalog, tmp_path_factory: Any
) -> Iterator[Cluster]:
    conf = {"spark.master": "local-cluster[2,8,1024]"}
    name = f"killed_{os.getpid()}_{request.param}"
    catalog.create_namespace(name)
    with ThriftProxy(urlsplit(metastore.uri).port or 0) as proxy:
        first = f"create table {name}.first using iceberg as select 1"
        with Driver(uri=proxy.uri, warehouse=metastore.warehouse, conf=conf, first=first) as driver:
            assert driver.wait() == "ready\n"
            driver.begin([f"insert into {name}.first select 2"])  # the first lock asks what the metastore can do
            assert driver.wait() == "[]\n"
            yield Cluster(driver, proxy, request.param)


@pytest.fixture
def statement(namespace: str, tmp_path: Path) -> Callable[[str, int], str]:
    """The statement of a table, with steps of work for each row."""
    places = {"source": str(tmp_path / "source"), "checkpoint": str(tmp_path / "checkpoint")}
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": LATER}), tmp_path / "source" / "rows.parquet")

    def slowed(name: str, steps: int) -> str:
        steps = min(steps, MOST_STEPS.get(name, steps))
        work = lambda found: SLOWLY.format(found[1], steps) if steps else found[1]  # noqa: E731
        text = re.sub(r"slow\(([^)]*)\)", work, STATEMENTS[name][0])
        return text.format(t=f"{namespace}.{name}", **places)

    return slowed


@pytest.fixture
def files(metastore: EmbeddedMetastore, namespace: str) -> Callable[[str], set[str]]:
    """All files in the folder of a table's data, but for checksums."""

    def in_folder(name: str) -> set[str]:
        folder = local_path(str(metastore.warehouse)) / f"{namespace}.db" / name / "data"
        return {str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")}

    return in_folder


def make(catalog: Catalog, name: str) -> Table:
    mode = "merge-on-read" if name.endswith("_mor") else "copy-on-write"
    statement = name.rpartition(".")[2]
    form = FORMATS[list(STATEMENTS).index(statement) % 3] if statement in STATEMENTS else "orc"
    properties = {"format-version": "2", "write.format.default": form}
    for kind in ("delete", "update", "merge"):  # rows go to files one by one, and are not brought together before
        properties |= {f"write.{kind}.mode": mode, f"write.{kind}.distribution-mode": "none"}
    table = catalog.create_table(name, pa.schema([("id", pa.int64()), ("v", pa.int64())]), properties=properties)
    for start in (0, 1):  # two files, for two tasks
        table.append(pa.table({"id": OLD[start::2], "v": OLD[start::2]}))
    return table


def needed_files(table: Table) -> set[str]:
    """The files of data and deletes that a snapshot of the table names; none is in a snapshot twice."""
    paths = table.refresh().inspect.files().column("file_path").to_pylist()
    assert not [path for path, times in Counter(paths).items() if times > 1]
    return {path.removeprefix("file:") for path in table.inspect.all_files().column("file_path").to_pylist()}


def content(table: Table) -> dict[int, int]:
    rows = table.refresh().scan().to_arrow().to_pydict()
    assert len(set(rows["id"])) == len(rows["id"])
    return dict(zip(rows["id"], rows["v"], strict=True))


def stream_again(spark: SparkSession, name: str, folder: Path) -> None:
    """Another driver goes on with the stream."""
    source = spark.readStream.schema("id bigint").parquet(str(folder / "source")).selectExpr("id", "id as v")
    again = source.writeStream.trigger(availableNow=True).option("checkpointLocation", str(folder / "checkpoint"))
    assert again.toTable(name).awaitTermination(120)


def wait_for(happened: Callable[[], bool], driver: Driver | None = None, seconds: float = 480) -> None:
    until = time.monotonic() + seconds
    while not happened():
        if driver is not None:
            driver.check()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_tasks_that_fail_and_are_tried_again_write_every_row_once_and_leave_no_file(
    cluster: Cluster, catalog: Catalog, namespace: str, files: Callable[[str], set[str]]
) -> None:
    table = make(catalog, f"{namespace}.flaky")
    cluster.driver.begin([f"insert into {namespace}.flaky select flaky(id) - {NEW}, id from range(0, {NEW}, 1, 2)"])
    assert cluster.driver.wait() == "[]\n"
    assert content(table) == {**{n - NEW: n for n in range(NEW)}, **{n: n for n in OLD}}
    wait_for(lambda: files("flaky") == needed_files(table), seconds=30)


def test_executors_killed_in_the_middle_of_writes_cost_no_row_and_double_none(
    cluster: Cluster, catalog: Catalog, namespace: str,
    statement: Callable[[str, int], str], files: Callable[[str], set[str]],
) -> None:  # fmt: skip
    sample = (("inserted", "merged_mor"), ("merged_cow", "streamed"))[SEED % 2]
    killed = [name for name, (text, _) in STATEMENTS.items() if "slow" in text and (ALL or name in sample)]
    tables = {name: make(catalog, f"{namespace}.{name}") for name in killed if name != "created"}
    before = {name: files(name) for name in killed}
    cluster.driver.begin([statement(name, 12_000) for name in killed])
    wait_for(lambda: all(files(name) > before[name] for name in killed if name != BY_DRIVER), cluster.driver)
    for executor in cluster.driver.executors():  # all: which of them writes is for Spark to say
        os.kill(executor, signal.SIGKILL)
    assert cluster.driver.wait() == "[]\n"
    left = set()
    for name in killed:
        table = tables.get(name) or catalog.load_table(f"{namespace}.{name}")
        assert content(table) == STATEMENTS[name][1], name
        assert needed_files(table) <= files(name), name
        left |= files(name) - needed_files(table)
    assert left  # of the killed executors: they did write


def test_an_epoch_that_a_new_driver_repeats_leaves_the_table_the_files_that_it_has(
    cluster: Cluster, spark: SparkSession, catalog: Catalog, namespace: str,
    statement: Callable[[str, int], str], files: Callable[[str], set[str]], tmp_path: Path,
) -> None:  # fmt: skip
    table = make(catalog, f"{namespace}.streamed")
    cluster.driver.begin([statement("streamed", 0)])
    assert cluster.driver.wait() == "[]\n"
    for log in ("0", ".0.crc"):  # as if it was killed before Spark noted that the epoch is committed
        (tmp_path / "checkpoint" / "commits" / log).unlink()
    stream_again(spark, f"{namespace}.streamed", tmp_path)
    assert len(table.refresh().snapshots()) == 3
    assert files("streamed") == needed_files(table)
    assert content(table) == STATEMENTS["streamed"][1]


def test_a_driver_killed_in_every_kind_of_write_leaves_tables_as_they_were_or_whole_and_no_lock(
    cluster: Cluster, spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path,
    statement: Callable[[str, int], str], files: Callable[[str], set[str]],
) -> None:  # fmt: skip
    tables = {name: make(catalog, f"{namespace}.{name}") for name in STATEMENTS if name != "created"}
    before = {name: (table.refresh().metadata_location, files(name)) for name, table in tables.items()}
    held, end = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        held.release()
        end.wait()

    at = {point: [name for name in STATEMENTS if cluster.point(name) == point] for point in POINTS}

    def hold_commits(point: str) -> None:
        for method in ("alter_table_with_environment_context", "create_table"):
            if point == MADE:
                cluster.proxy.on(method, Fault.DROP_ANSWER, times=-1, after=hold)
            else:
                cluster.proxy.on(method, Fault.DROP_REQUEST, times=-1, before=hold)

    for point in (SENT, MADE):
        hold_commits(point)
        cluster.driver.begin([statement(name, 0) for name in at[point]])
        for _ in at[point]:
            wait_for(lambda: held.acquire(blocking=False), cluster.driver)
        cluster.proxy.heal()
    hold_commits(WRITING)  # of one that has written everything before the last of them has begun to
    cluster.driver.begin([statement(name, 200_000) for name in at[WRITING]])
    seen = {name: before[name][1] if name in before else set() for name in at[WRITING] if name != BY_DRIVER}
    wait_for(lambda: all(files(name) > old for name, old in seen.items()), cluster.driver)
    cluster.driver.kill()
    end.set()

    assert ("created" in {name for _, name in catalog.list_tables(namespace)}) == ("created" in at[MADE])
    if "created" in at[MADE]:
        tables["created"] = catalog.load_table(f"{namespace}.created")
    for name, table in tables.items():
        if name in at[MADE]:
            assert content(table) == STATEMENTS[name][1], name
            assert needed_files(table) <= files(name), name
        else:
            assert table.refresh().metadata_location == before[name][0], name
            assert needed_files(table) == before[name][1], name
    for name, table in tables.items():  # no lock is waited for: that would end in an error
        rows = len(content(table))
        spark.sql(f"insert into {namespace}.{name} values (-1, -1)")
        assert len(content(table)) == rows + 1, name

    stream_again(spark, f"{namespace}.streamed", tmp_path)
    assert content(tables["streamed"]) == {-1: -1, **STATEMENTS["streamed"][1]}
