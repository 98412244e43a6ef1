"""What the extension holds on to in a session that lives long."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.spark import SparkEngine, compiler, extend
from tests.support.spark_tables import arrow_of
from tests.support.spread import ALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.spark

ROUNDS = 50 if ALL else 12  # of which each would leave a connection


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_many_queries_leave_no_connections_behind(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))

    def query(times: int) -> int:
        for _ in range(times):
            assert arrow_of(spark.sql(f"select * from {namespace}.t where id > 1")).num_rows == 2
        return len(os.listdir("/proc/self/fd"))

    before = query(5)
    assert query(25) < before + 10


def sockets(spark: SparkSession) -> int:
    """How many sockets Python and Spark's JVM have open, when what nobody uses any more is gone."""
    gc.collect()
    spark._jvm.System.gc()
    pids = ("self", spark._jvm.java.lang.ProcessHandle.current().pid())
    count = 0
    for folder in (Path(f"/proc/{pid}/fd") for pid in pids):
        for each in folder.iterdir():
            with suppress(FileNotFoundError):
                count += os.readlink(each).startswith("socket:")
    return count


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
@pytest.mark.parametrize(
    "what",
    ["a rewriting by Spark", pytest.param("a session with a query", marks=pytest.mark.whole), "a session that fails"],
)
def test_what_has_ended_leaves_no_connection_behind(
    spark: SparkSession, catalog: Catalog, namespace: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))

    def once(number: int) -> None:
        if what == "a rewriting by Spark":
            table.refresh().maintenance.rewrite_data_files(engine=SparkEngine(spark), options={"rewrite-all": "true"})
        elif what == "a session with a query":
            session = extend(spark, {"io.number": str(number)})
            assert arrow_of(session.sql(f"select * from {namespace}.t where id > 1")).num_rows == 2
        else:
            with pytest.raises(ConnectionRefusedError):
                extend(spark, {"io.number": str(number)})

    def refuse(*_: object) -> None:
        raise ConnectionRefusedError

    if what == "a session that fails":
        monkeypatch.setattr("hms_iceberg.spark.session.worker_function", refuse)
    once(-1)
    before = sockets(spark)
    for number in range(ROUNDS):
        once(number)
    until = time.monotonic() + 60
    while sockets(spark) > before + 10 and time.monotonic() < until:
        time.sleep(1)
    assert sockets(spark) <= before + 10


def test_an_answer_of_nearly_the_size_that_java_can_hold_is_received_to_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.jvm
    loader = compiler._driver_loader(gateway)
    classes = gateway.new_array(jvm.java.lang.Class, 2)
    classes[0] = jvm.java.lang.Class.forName("java.nio.channels.SocketChannel")
    classes[1] = jvm.java.lang.Class.forName("java.nio.ByteBuffer")
    receive = jvm.java.lang.Class.forName("hms_iceberg.bridge.wire.PythonSocket", True, loader).getDeclaredMethod(
        "receive", classes
    )
    receive.setAccessible(True)
    file = jvm.java.io.RandomAccessFile(str(tmp_path / "sparse"), "rw").getChannel()
    largest, rest = 2**31 - 1, 10
    buffer = file.map(jvm.java.nio.channels.FileChannel.MapMode.READ_WRITE, 0, largest)
    buffer.position(largest - rest)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        channel = jvm.java.nio.channels.SocketChannel.open(jvm.java.net.StandardProtocolFamily.UNIX)
        channel.connect(jvm.java.net.UnixDomainSocketAddress.of(str(tmp_path / "socket")))
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"0123456789")
        arguments = gateway.new_array(jvm.java.lang.Object, 2)
        arguments[0], arguments[1] = channel, buffer
        receive.invoke(None, arguments)
        channel.close()
    file.close()
    with (tmp_path / "sparse").open("rb") as received:
        received.seek(largest - rest)
        assert received.read() == b"0123456789"


@contextmanager
def locked(metastore: EmbeddedMetastore, namespace: str, tables: list[str]) -> Iterator[None]:
    """Somebody else holds the locks of some tables."""
    from hms_iceberg.hms.connection.client import HmsClient
    from hms_iceberg.hms.connection.client_settings import ClientSettings
    from hms_iceberg.hms.connection.thrift_types import ttypes

    with closing(HmsClient(ClientSettings.from_properties({"uri": metastore.uri}))) as client:
        kind = {"type": ttypes.LockType.EXCLUSIVE, "level": ttypes.LockLevel.TABLE, "dbname": namespace}
        parts = [ttypes.LockComponent(**kind, tablename=name.split(".")[1]) for name in tables]
        request = ttypes.LockRequest(parts, user="joe", hostname="far-away", agentInfo="Iceberg-of-joe")
        lock_id = client.lock(request, namespace).lockid
        try:
            yield
        finally:
            client.unlock(lock_id, namespace)


@pytest.mark.parametrize(
    "statement",
    [
        "insert into {} values (1)",
        "alter table {} add column more int",
        "alter table {} create tag kept",
        "delete from {} where id = 0",
    ],
    ids=["insert", "alter", "tag", "delete"],
)
def test_commits_that_wait_for_a_lock_hold_up_no_query(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, statement: str
) -> None:
    tables = [f"{namespace}.t{number}" for number in range(6)]
    for name in tables:
        catalog.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [0]}))
    running = [threading.Thread(target=spark.sql, args=(statement.format(name),)) for name in tables]
    with locked(metastore, namespace, tables):
        for thread in running:
            thread.start()
        time.sleep(1)
        assert spark.sql(f"select count(*) from {tables[0]} where id < 5").collect()[0][0] == 1
        waiting = [thread.is_alive() for thread in running]
    for thread in running:
        thread.join()
    assert all(waiting)


@pytest.mark.parametrize("kind", ["insert into {} values (1)", "update {} set id = 1 where id = 0"])
def test_a_statement_that_is_interrupted_while_it_commits_says_that_nobody_knows_its_outcome(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, kind: str
) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [0]}))
    seen: list[object] = []

    def run() -> None:
        seen.append(spark._jvm.java.lang.Thread.currentThread())
        try:
            spark.sql(kind.format(f"{namespace}.t"))
        except Exception as error:
            seen.append(error)

    running = threading.Thread(target=run)
    with locked(metastore, namespace, [f"{namespace}.t"]):
        running.start()
        until = time.monotonic() + 60
        while not in_call(spark, seen) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(0.5)  # it waits for the lock
        seen[0].interrupt()  # type: ignore[attr-defined]
        running.join(60)
        assert not running.is_alive()
        assert len(table.refresh().snapshots()) == 1
    assert "CommitStateUnknownError" in str(seen[1]) and f"{namespace}.t" in str(seen[1])
    until = time.monotonic() + 60
    while len(table.refresh().snapshots()) == 1 and time.monotonic() < until:
        time.sleep(0.1)
    # It was committed after all, with its files.
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ([0, 1] if "insert" in kind else [1])


def test_a_stream_that_is_stopped_while_it_commits_writes_its_epoch_once_when_it_starts_again(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "rows.parquet")

    def begin() -> Any:
        writer = spark.readStream.schema("id long").parquet(str(tmp_path)).writeStream.format("iceberg")
        return writer.option("checkpointLocation", str(tmp_path / "_checkpoint")).toTable(f"{namespace}.t")

    def wait(ready: Callable[[], bool], seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while not ready() and time.monotonic() < until:
            time.sleep(0.1)

    def committing() -> bool:
        threads = list(spark._jvm.java.lang.Thread.getAllStackTraces().keySet())
        return any(in_call(spark, [each]) for each in threads if f"id = {first.id}" in each.getName())

    with locked(metastore, namespace, [f"{namespace}.t"]):
        first = begin()
        wait(committing)
        time.sleep(0.5)  # it waits for the lock
        assert committing()
        stopping = threading.Thread(target=first.stop)
        stopping.start()
        stopping.join(5)
        if not stopping.is_alive():
            first = begin()
            wait(committing, 20)
    stopping.join(60)
    assert not stopping.is_alive()
    if not first.isActive:
        first = begin()
    first.processAllAvailable()
    first.stop()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert len(table.snapshots()) == 1
    named = {path.removeprefix("file:") for path in table.inspect.files()["file_path"].to_pylist()}
    assert {str(path) for path in Path(table.location().removeprefix("file:")).glob("data/*.parquet")} == named


def in_call(spark: SparkSession, seen: list[object]) -> bool:
    """Whether a thread of the JVM waits for Python to commit."""
    if not seen:
        return False
    stack = [str(each) for each in seen[0].getStackTrace()]  # type: ignore[attr-defined]
    return any("Planner.ask" in each for each in stack) and any(".commit(" in each for each in stack)


def test_python_is_no_callback_of_py4j_whose_port_every_user_of_the_machine_can_reach(spark: SparkSession) -> None:
    pool = spark.sparkContext._gateway.gateway_property.pool
    assert [each for each in pool.dict.values() if type(each).__module__.startswith("hms_iceberg")] == []
