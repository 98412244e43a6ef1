"""Extending sessions, and what must not be extended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.embedded.jars import find_java
from hms_iceberg.spark import compiler, configure, extend
from hms_iceberg.spark.compiler import load_bridge
from tests.support.pyspark_home import spark_release
from tests.support.spark_session import quiet_builder
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def test_an_extended_session_comes_back_as_it_is(spark: SparkSession) -> None:
    assert extend(spark) is spark
    assert extend(spark, properties={}) is spark


def test_sessions_with_different_properties_work_side_by_side(
    spark: SparkSession, metastore: EmbeddedMetastore, orders: Table, namespace: str
) -> None:
    from pyspark.errors import AnalysisException

    bridge = load_bridge(spark)
    first = extend(spark, {"io.first": "1"}, catalogs={"mine": {"uri": metastore.uri}})
    second = extend(first, {"io.second": "2"})
    assert extend(second, {"io.second": "2"}) is second
    made = [second, second.newSession(), *map(_wrapped(second), _cloned(second, second.newSession()))]
    made.append(made[-1].newSession())  # Spark's clones forget the options that a session was built with
    wanted = [(spark, {}), (first, {"io.first": "1"})]
    wanted += [(each, {"io.first": "1", "io.second": "2"}) for each in made]
    for session, properties in wanted:
        assert rows_of(session, f"select count(*) from {namespace}.orders") == [(6,)]
        assert dict(bridge.properties(session._jsparkSession)) == properties
    for session in (first, *made):
        assert rows_of(session, f"select count(*) from mine.{namespace}.orders") == [(6,)]
    with pytest.raises(AnalysisException, match="mine"):
        spark.table(f"mine.{namespace}.orders")


def test_what_the_bridge_relies_on_is_there_and_its_absence_is_seen(spark: SparkSession) -> None:
    load_bridge(spark)
    shapes: Any = spark.sparkContext._gateway.jvm.hms_iceberg.bridge.wire.Shapes
    assert not dict(shapes.missing(spark.version))
    relation = "org.apache.spark.sql.execution.datasources.LogicalRelation"
    assert shapes.absent(relation, "relation output") is None
    assert shapes.absent(relation, "relation gone") == f"{relation}.gone"
    assert shapes.absent(f"{relation}.Gone", "") == f"{relation}.Gone"


def _cloned(*sessions: SparkSession) -> list[Any]:
    return [session._jsparkSession.cloneSession() for session in sessions]


def _wrapped(owner: SparkSession) -> Callable[[Any], SparkSession]:
    return lambda jsession: type(owner)(owner.sparkContext, jsession)


def _plain(spark: SparkSession) -> SparkSession:
    """A session over the same context, with nothing of ours."""
    context: Any = spark.sparkContext
    home = context._jvm.org.apache.spark.sql
    made = (home.classic if spark_release() >= (4, 0) else home).SparkSession(context._jsc.sc())
    session = type(spark)(context, made)
    extend(spark)  # the constructor made the new one the default
    return session


def test_the_session_that_was_given_and_its_new_ones_stay_as_they_were(
    spark: SparkSession, orders: Table, namespace: str
) -> None:
    plain = _plain(spark)
    extended = extend(plain)
    try:
        assert extended.newSession().table(f"{namespace}.orders").count() == 6
        for session in (plain, plain.newSession()):
            assert session.range(2).count() == 2
            assert session.conf.get("spark.sql.catalog.spark_catalog", "builtin") == "builtin"
    finally:
        extend(spark)


USERS_CATALOG = """
package users;

public final class Catalog extends org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension {
  public boolean tableExists(org.apache.spark.sql.connector.catalog.Identifier ident) {
    return ident.name().equals("made_up") || super.tableExists(ident);
  }

  public org.apache.spark.sql.connector.catalog.Table loadTable(org.apache.spark.sql.connector.catalog.Identifier ident)
      throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException {
    if (ident.name().equals("made_up")) {
      throw new IllegalStateException("the user's own catalog was asked");
    }
    return super.loadTable(ident);
  }
}
"""


def test_a_session_catalog_of_the_users_own_is_asked_for_what_is_not_iceberg(
    spark: SparkSession, orders: Table, namespace: str, tmp_path: Path
) -> None:
    gateway: Any = spark.sparkContext._gateway
    compiler._write_jar(tmp_path / "users.jar", compiler._compile(gateway, {"Catalog.java": USERS_CATALOG}))
    compiler._driver_loader(gateway).addURL(gateway.jvm.java.io.File(str(tmp_path / "users.jar")).toURI().toURL())
    plain = _plain(spark)
    plain.conf.set("spark.sql.catalog.spark_catalog", "users.Catalog")
    extended = extend(plain)
    try:
        for session in (extended, extended.newSession(), extend(extended, {"io.other": "1"})):
            assert session.table(f"{namespace}.orders").count() == 6
            assert session.sql(f"show tables in {namespace}").count() == 1
            with pytest.raises(Exception, match="the user's own catalog was asked"):
                session.table(f"{namespace}.made_up")
    finally:
        extend(spark)


def test_classes_that_another_user_could_have_put_into_the_cache_are_compiled_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway: Any = spark.sparkContext._gateway
    one = {"One.java": "package somewhere; public final class One {}"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = compiler._jar(gateway, one, "one.jar")
    made = jar.stat().st_ino
    assert jar.parent == tmp_path / "hms_iceberg"
    assert compiler._jar(gateway, one, "one.jar").stat().st_ino == made
    jar.write_bytes(b"not ours")
    jar.chmod(0o666)
    compiler._jar(gateway, one, "one.jar")
    assert zipfile.ZipFile(jar).namelist() == ["somewhere/One.class"]
    assert jar.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("XDG_CACHE_HOME", "~/nowhere")  # a user without a home
    assert zipfile.ZipFile(compiler._jar(gateway, one, "one.jar")).namelist() == ["somewhere/One.class"]


def test_classes_that_were_compiled_at_the_installation_serve_every_user(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import java_gateway

    gateway: Any = spark.sparkContext._gateway
    one = {"One.java": "package somewhere; public final class One {}"}
    monkeypatch.setattr(compiler, "bridge_sources", lambda version: one)
    monkeypatch.setattr(compiler, "installation_folder", lambda: tmp_path / "environment")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = compiler._bridge_of(gateway, spark.version)[1]

    launch, jvms = java_gateway.launch_gateway, list[int]()

    def one_that_does_not_end() -> Any:
        launched: Any = launch()
        jvms.append(launched.proc.pid)
        shutdown = launched.shutdown
        launched.shutdown = lambda: (shutdown(), os.kill(jvms[0], signal.SIGSTOP))
        return launched

    monkeypatch.setattr(java_gateway, "launch_gateway", one_that_does_not_end)
    monkeypatch.setattr(compiler, "_END_SECONDS", 1.0)

    jar = compiler.compile_ahead()  # in a JVM of its own

    with pytest.raises(ProcessLookupError):
        os.kill(jvms[0], 0)

    assert jar == tmp_path / "environment" / name
    assert zipfile.ZipFile(jar).namelist() == ["somewhere/One.class"]
    assert jar.stat().st_mode & 0o777 == 0o644
    assert compiler._jar(gateway, {}, name) == jar  # nothing is compiled
    jar.chmod(0o666)
    assert compiler._jar(gateway, one, name) == tmp_path / "cache" / "hms_iceberg" / name
    monkeypatch.setattr(compiler, "installation_folder", lambda: Path("/proc/environment"))  # nobody can write there
    assert compiler._installed(gateway, one, name) is None


def test_the_bridge_is_compiled_in_another_jvm_while_spark_starts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j import java_gateway

    gateway: Any = spark.sparkContext._gateway
    one = {"One.java": "package somewhere; public final class One {}"}
    monkeypatch.setattr(compiler, "bridge_sources", lambda version: one)
    monkeypatch.setattr(compiler, "installation_folder", lambda: tmp_path / "environment")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = compiler._bridge_of(gateway, spark.version)[1]
    jar = tmp_path / "cache" / "hms_iceberg" / name

    with compiler.compiled_beside(Path("/nowhere/java")):
        pass
    assert not jar.exists()  # it is the session that compiles, then

    jvms = list[Any]()
    launch = java_gateway.launch_gateway
    monkeypatch.setattr(java_gateway, "launch_gateway", lambda **given: jvms.append(launch(**given)) or jvms[-1])
    with compiler.compiled_beside(find_java()):
        pass
    assert zipfile.ZipFile(jar).namelist() == ["somewhere/One.class"]
    assert compiler._jar(gateway, {}, name) == jar  # nothing is compiled
    assert jvms[0][2].poll() is not None  # its JVM has ended

    with compiler.compiled_beside(find_java()):
        pass
    assert len(jvms) == 1


def test_new_sessions_of_an_extended_one_are_extended(spark: SparkSession, orders: Table, namespace: str) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.shuffle.partitions", "3")
    assert rows_of(other, f"select count(*) from {namespace}.orders") == [(6,)]
    assert other.table(f"{namespace}.orders.files").count() == 2
    assert other.read.format("iceberg").load(f"{namespace}.orders").where("id > 4").count() == 2
    assert other.readStream.table(f"{namespace}.orders").isStreaming
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_the_builder_returns_the_extended_session(spark: SparkSession, orders: Table, namespace: str) -> None:
    from pyspark.sql import SparkSession

    assert SparkSession.builder.getOrCreate().table(f"{namespace}.orders").count() == 6
    assert SparkSession.active().table(f"{namespace}.orders").count() == 6


def test_queries_of_several_threads_do_not_disturb_each_other(
    spark: SparkSession, orders: Table, namespace: str
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with orders.transaction() as transaction:
        transaction.set_properties({"write.format.default": "orc"})
    orders.append(orders.scan("id = 6").to_arrow())

    def count(above: int) -> list[tuple[Any, ...]]:
        session = spark.newSession() if above % 2 else spark
        files = session.sql(f"select record_count from {namespace}.orders.files where file_format = 'ORC'").collect()
        rows = rows_of(session, f"select count(*) from {namespace}.orders where id > {above}")
        return [*rows, tuple(files[0])]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, [0, 1, 2, 3, 4, 5] * 2)) == [[(7 - n,), (1,)] for n in range(6)] * 2


def test_sessions_open_on_threads_whose_class_loader_does_not_see_the_bridge(
    spark: SparkSession, metastore: EmbeddedMetastore, orders: Table, namespace: str
) -> None:
    """As servers made of Hive's open them (HiveThriftServer2): Spark loads catalogs with the thread's loader."""
    jvm: Any = spark._jvm
    extend(spark, catalogs={"served": {"uri": metastore.uri}})
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    fresh = spark.newSession()
    thread.setContextClassLoader(jvm.java.lang.ClassLoader.getSystemClassLoader())
    try:
        fresh.sql(f"use {namespace}")
        opened = fresh.sql("select count(*) from orders")
        named = fresh.sql(f"select count(*) from served.{namespace}.orders")
        assert thread.getContextClassLoader() == jvm.java.lang.ClassLoader.getSystemClassLoader()
    finally:
        thread.setContextClassLoader(before)
    assert (opened.collect()[0][0], named.collect()[0][0]) == (6, 6)


def test_a_spark_connect_session_is_refused_with_the_reason() -> None:
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UnsupportedError, match=r"Spark Connect .* driver's JVM"):
        extend(connect)


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"expected a pyspark\.sql\.SparkSession"):
        extend("spark")  # type: ignore[arg-type]


def test_a_builder_keeps_its_settings(metastore: EmbeddedMetastore) -> None:
    from pyspark.sql import SparkSession

    builder = configure(quiet_builder(metastore)).config("spark.test.setting", "x").appName("renamed")
    assert isinstance(builder, SparkSession.Builder)
    assert builder._options["spark.hadoop.hive.metastore.uris"] == metastore.uri
    assert builder._options["spark.test.setting"] == "x"
    assert builder._options["spark.app.name"] == "renamed"
    assert builder._options["spark.sql.catalogImplementation"] == "hive"


RUNNING = """
    import warnings
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession
    import hms_iceberg.spark

    builder = (
        SparkSession.builder.master("{master}").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m").config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", "{warehouse}")
        .config("spark.hadoop.hive.metastore.uris", "{uri}").enableHiveSupport()
    )
    plain = builder.getOrCreate()
    plain.sparkContext.setLogLevel("ERROR")
    plain.conf.set("spark.sql.shuffle.partitions", "5")
    plain.range(3).createOrReplaceTempView("three")
    spark = hms_iceberg.spark.extend(plain)
    count = lambda: spark.sql("select count(*), sum(id) from {table}").collect()[0]
    assert tuple(count()) == (5, 20), count()
    assert spark.table("three").count() == 3
    assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
    spark.stop()
    spark = hms_iceberg.spark.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    assert tuple(count()) == (5, 20)
    assert tuple(spark.sql("select max(_pos), count(distinct _file) from {table}").collect()[0]) == (2, 2)
    assert tuple(spark.sql("select max(_pos), count(distinct _file), sum(id) from {other}").collect()[0]) == (0, 3, 9)
    assert spark.table("{other}.files").where("file_format = 'ORC'").count() == 3
    batches = []
    stream = spark.readStream.table("{other}").where("id > 2")
    query = stream.writeStream.foreachBatch(lambda frame, _: batches.append(frame.count())).trigger(availableNow=True)
    assert query.start().awaitTermination(100) and batches == [2]
    spark.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize("master", ["local[2]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.whole)])
def test_a_running_session_is_extended_and_another_one_after_it(
    master: str, metastore: EmbeddedMetastore, catalog: Catalog, orders: Table, namespace: str, commit: Any
) -> None:
    from tests.support.spark_tables import data_files, delete_positions

    commit(orders, delete_positions(orders, (data_files(orders)[0], [0])))
    other = catalog.create_table(f"{namespace}.other", orders.schema(), properties={"write.format.default": "orc"})
    for number in (2, 3, 4):
        other.append(orders.scan(f"id = {number}").to_arrow())
    program = textwrap.dedent(RUNNING).format(
        master=master, warehouse=metastore.warehouse, uri=metastore.uri, table=f"{namespace}.orders",
        other=f"{namespace}.other",
    )  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
