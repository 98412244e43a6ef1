"""The shell and the two servers: what their clients write and read, side by side, and how they end."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.guides import lines_of

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The guide's lines; what a test says of addresses and ports comes after them, and holds.
SHELL, QUERY, BARE_THRIFT, CONNECT = (words[1:] for words in lines_of("cli", "A shell and servers"))
((_, *THRIFT),) = lines_of("docs/COOKBOOK.md", "dbt, Superset and other BI tools")
assert set(BARE_THRIFT) <= set(THRIFT), "what runs below is the cookbook's line, which holds the guide's"
SMALL = ("--master", "local[2]", "--conf", "spark.driver.memory=1g", "--conf", "spark.sql.shuffle.partitions=2")
SMALL += ("--conf", "spark.sql.codegen.wholeStage=false", "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN")

CLIENTS = """
import threading, sys
from pyspark.sql import SparkSession

problems = []
def write(number):
    try:
        spark = SparkSession.builder.remote(sys.argv[1]).create()
        spark.sql(f"insert into {table} values ({number}, 'client')")
        spark.sql(f"update {table} set name = 'changed' where id = {number}") if number == 0 else None
        assert spark.sql(f"select count(*) from {table} where id = {number}").collect()[0][0] == 1
        spark.stop()
    except Exception as error:
        problems.append(error)

threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not problems, problems
"""

JDBC_CLIENTS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pyspark.java_gateway import launch_gateway

jvm = launch_gateway().jvm  # with Spark's jars, among which is Hive's driver
jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")

def write(number):
    client = jvm.java.sql.DriverManager.getConnection(sys.argv[1], "me", "")
    to = client.createStatement()
    to.execute("set spark.sql.shuffle.partitions = 1")
    to.execute(f"insert into {table} values ({number}, 'client')")
    found = to.executeQuery(f"select count(*), max(name) from {table} where id = {number}")
    assert found.next() and (found.getLong(1), found.getString(2)) == (1, "client")
    client.close()

with ThreadPoolExecutor(8) as pool:
    list(pool.map(write, range(10, 18)))
"""


PYHIVE_CLIENTS = """
import json, sys
from pyhive import hive

for statement in json.load(sys.stdin):
    with hive.connect("127.0.0.1", int(sys.argv[1]), username="me") as client, client.cursor() as cursor:
        cursor.execute(statement)
        columns = [name.rpartition(".")[2] for name, *_ in cursor.description or ()]
        # Where there is none, Spark 3.5 tells of one that it does not send.
        found = cursor.fetchall() if columns not in ([], ["Result"]) else []
    print(json.dumps(found))
"""

SQLALCHEMY_CLIENT = """
import json, sys
import pandas as pd
from sqlalchemy import create_engine, inspect

namespace = sys.argv[2]
engine = create_engine(f"hive://127.0.0.1:{sys.argv[1]}/default")
frame = pd.DataFrame({"id": [1, 2], "name": ["a", None]})
told = {}
with engine.connect() as client:
    for statement in (
        f"create table {namespace}.parted (id bigint, city string) using parquet partitioned by (city)",
        f"create view {namespace}.seen as select id from {namespace}.t",
    ):
        client.exec_driver_sql(statement)
frame.to_sql("t", engine, schema=namespace, if_exists="append", index=False, method="multi")
seen = inspect(engine)
told["tables"] = sorted(seen.get_table_names(schema=namespace))
told["views"] = "seen" in seen.get_view_names(schema=namespace)
told["has"] = [seen.has_table(name, schema=namespace) for name in ("t", "nosuch")]
told["columns"] = [each["name"] for each in seen.get_columns("t", schema=namespace)]
indexes = [seen.get_indexes(name, schema=namespace) for name in ("t", "parted")]
told["indexes"] = [[each["column_names"] for each in found] for found in indexes]
read = pd.read_sql(f"select id, name from {namespace}.t order by id", engine)
told["rows"] = [[number, None if pd.isna(name) else name] for number, name in read.itertuples(index=False)]
with engine.connect() as client:
    client.exec_driver_sql("set spark.hms_iceberg.answers=spark")
    told["spark"] = client.exec_driver_sql(f"show tables in {namespace} like 't'").fetchall()[0][:2]
print(json.dumps(told, default=list))
"""

# Each by a client of its own, so that each finds what no client before it has used.
STATEMENTS = (
    "select 1",
    "create table {n}.p (id bigint, name string) using iceberg",
    "create table {n}.o (id bigint, name string) using iceberg tblproperties ({orc})",
    "insert into {n}.p values (1, 'a'), (2, 'b'), (3, null)",
    "insert into {n}.o select /*+ coalesce(1) */ * from {n}.p",
    "select * from {n}.o where id < 3 order by id",
    "select * from {n}.p where name = 'b'",
    "delete from {n}.p where name = 'b'",
    "delete from {n}.o where name = 'b'",
    "update {n}.p set name = 'c' where id = 3",
    "update {n}.o set name = 'c' where id = 3",
    "merge into {n}.p t using {n}.o s on t.id = s.id when matched then update set * when not matched then insert *",
    "merge into {n}.o t using (select 9L as id, 'z' as name) s on t.id = s.id when not matched then insert *",
    "select operation from {n}.p.snapshots",
    "call system.rewrite_data_files(table => '{n}.o', options => map('rewrite-all', 'true'))",
    "alter table {n}.p add column more int",
    "alter table {n}.p add partition field bucket(4, id)",
    "create view {n}.v as select id, name from {n}.p",
    "select * from {n}.v order by id",
    "drop view {n}.v",
    "create table {n}.made using iceberg as select * from {n}.o",
    "insert overwrite {n}.made select 5L, 'five'",
    "select * from {n}.made",
    "drop table {n}.made",
    "select * from {n}.o order by id",
)
ORC = "'write.format.default'='orc'," + ",".join(
    f"'write.{change}.mode'='merge-on-read'" for change in ("delete", "update", "merge")
)


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> str:
    name = f"{namespace}.t"
    catalog.create_table(name, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    return name


def command(metastore: EmbeddedMetastore, *words: str) -> list[str]:
    own = ("--uri", metastore.uri, "-p", f"warehouse={metastore.warehouse}", *SMALL)
    return [sys.executable, "-m", "hms_iceberg", *words, *own]


@contextmanager
def server(metastore: EmbeddedMetastore, line: list[str], tmp_path: Path) -> Iterator[int]:
    """A server that listens, and ends by SIGTERM with exit code 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(tmp_path / "stderr.log", "w") as log:
        words = command(metastore, *line, "--port", str(port))
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, cwd=os.getcwd())
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Listening: "), (tmp_path / "stderr.log").read_text()[-3000:]
        assert f"://127.0.0.1:{port}" in line
        yield port
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "Stopping.\n"
        assert process.wait(timeout=60) == 0
        with socket.socket() as closed:
            assert closed.connect_ex(("127.0.0.1", port)) != 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def run(*command: str) -> str:
    """What a client that ends well writes."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def rows(catalog: Catalog, table: str) -> list[tuple[int, str]]:
    return sorted((row["id"], row["name"]) for row in catalog.load_table(table).scan().to_arrow().to_pylist())


@pytest.fixture(scope="module")
def thrift_port(metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Thrift server, which serves one client after another."""
    with server(metastore, THRIFT, tmp_path_factory.mktemp("thrift")) as port:
        yield port


def test_every_kind_of_statement_runs_after_the_clients_before_it_have_left(
    thrift_port: int, catalog: Catalog, namespace: str
) -> None:
    pytest.importorskip("pyhive", reason="needs a client of Hive: pip install pyhive thrift_sasl pure-sasl")
    statements = json.dumps([each.format(n=namespace, orc=ORC) for each in STATEMENTS])
    words = [sys.executable, "-W", "ignore", "-c", PYHIVE_CLIENTS, str(thrift_port)]
    ran = subprocess.run(words, input=statements, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = dict(zip(STATEMENTS, map(json.loads, ran.stdout.splitlines()), strict=True))
    selected = [rows for each, rows in told.items() if each.startswith("select *")]
    of_p = [[1, "a"], [3, "c"]]
    assert selected == [[[1, "a"], [2, "b"]], [[2, "b"]], of_p, [[5, "five"]], [*of_p, [9, "z"]]]
    changes = ["append", "overwrite", "overwrite", "overwrite"]
    assert [row[0] for row in told["select operation from {n}.p.snapshots"]] == changes
    assert rows(catalog, f"{namespace}.p") == [(1, "a"), (3, "c")]
    assert rows(catalog, f"{namespace}.o") == [(1, "a"), (3, "c"), (9, "z")]


def test_sqlalchemy_and_pandas_find_tables_as_on_hive(thrift_port: int, table: str, namespace: str) -> None:
    for client in ("pyhive", "sqlalchemy", "pandas"):
        pytest.importorskip(client, reason="needs clients of Hive: pip install pyhive thrift_sasl pure-sasl sqlalchemy")
    words = [sys.executable, "-W", "ignore", "-c", SQLALCHEMY_CLIENT, str(thrift_port), namespace]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["tables"] in (["parted", "seen", "t"], ["parted", "t"]) and told["views"]
    assert told["has"] == [True, False]
    assert told["columns"] == ["id", "name"]
    assert told["indexes"] == [[], [["city"]]]
    assert told["rows"] == [[1, "a"], [2, None]]
    assert told["spark"] == [namespace, "t"]


def test_beelines_then_eight_clients_side_by_side_write_and_read_tables_by_jdbc(
    thrift_port: int, catalog: Catalog, table: str, namespace: str
) -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    statements = (
        f"create table {namespace}.made using iceberg as select 1L as id, 'a' as name;"
        f"insert into {table} select * from {namespace}.made union all select 2, 'b' union all select 3, 'c';"
        f"delete from {table} where id = 2;"
        f"merge into {table} t using (select 3L as id, 'z' as name) s on t.id = s.id when matched then update set *;"
        f"call system.rewrite_manifests('{table}');"
        f"select name, id from {table} order by id;"
    )
    program = textwrap.dedent(JDBC_CLIENTS).replace("{table}", table)
    url = f"jdbc:hive2://127.0.0.1:{thrift_port}"
    quiet = ["-n", "me", "--outputformat=csv2", "--silent=true", "--showHeader=false"]
    beeline = ("java", "-cp", f"{jars}/*", "org.apache.hive.beeline.BeeLine", "-u", url, *quiet, "-e")
    assert run(*beeline, "select 1;").split()[-1] == "1"
    told = run(*beeline, statements)
    run(sys.executable, "-W", "ignore", "-c", program, url)
    assert told.split()[-2:] == ["a,1", "z,3"]
    assert rows(catalog, table) == [(1, "a"), (3, "z"), *((10 + number, "client") for number in range(8))]


@pytest.mark.since_spark("4.0", "a server of Spark Connect in PySpark")
def test_eight_clients_of_connect_write_side_by_side(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, tmp_path: Path
) -> None:
    pytest.importorskip("grpc", reason="needs the client of Spark Connect: pip install 'pyspark[connect]'")
    program = textwrap.dedent(CLIENTS).replace("{table}", table)
    with server(metastore, CONNECT, tmp_path) as port:
        run(sys.executable, "-W", "ignore", "-c", program, f"sc://127.0.0.1:{port}")
    assert rows(catalog, table) == [(0, "changed"), *((number, "client") for number in range(1, 8))]


def test_statements_of_the_command_line_end_at_the_first_that_fails(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, tmp_path: Path
) -> None:
    with catalog.load_table(table).transaction() as transaction:
        transaction.set_properties({"write.format.default": "orc"})  # which Python workers write and read
    script = tmp_path / "script.sql"
    script.write_text(
        f"select id, ';' as c, array(name) as names from {table} order by id; select nope from {table};\nx"
    )
    insert = f"insert into {table} values (1, 'a'), (2, null) -- ; no end"
    query = [word.replace("web.visits", table) for word in QUERY]
    words = command(metastore, *query, "--output", "json", "-e", insert, "-f", str(script))
    # As of an environment that is not activated: the `python3` of the PATH is another one.
    (other := tmp_path / "python3").write_text("#!/bin/sh\nexit 7\n")
    other.chmod(0o755)
    inactive = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    inactive.pop("PYSPARK_PYTHON", None)
    ran = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False, env=inactive)
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    count, *selected, error = told
    assert count == {"count(1)": 0}
    assert selected == [{"id": 1, "c": ";", "names": ["a"]}, {"id": 2, "c": ";", "names": [None]}], ran.stderr
    assert error["type"] == "SqlFailedError" and "UNRESOLVED_COLUMN" in error["message"]
    assert (ran.returncode, ran.stderr) == (1, ""), "Spark says nothing of itself, nor where it failed"


def test_the_prompt_runs_statements_completes_names_and_keeps_a_history(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, namespace: str, tmp_path: Path
) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(XDG_STATE_HOME=str(tmp_path), TERM="dumb", NO_COLOR="1")
        words = command(metastore, *SHELL)
        warehouse = words.index(f"warehouse={metastore.warehouse}")
        os.execv(sys.executable, [*words[: warehouse - 1], *words[warehouse + 1 :]])

    def until(text: str) -> str:
        shown = ""
        while text not in shown:
            assert select.select([terminal], [], [], 120)[0], shown
            shown += os.read(terminal, 4096).decode()
        return shown

    try:
        assert f"metastore {metastore.uri}" in until("iceberg> ")
        os.write(terminal, f"insert into {table} values\n".encode())
        until("      -> ")
        os.write(terminal, b"(7, 'seven');\n")
        until("iceberg> ")
        os.write(terminal, f"select name from {namespace}.\t where id = 7;\n".encode())
        assert "seven" in until(" s\r\n")
        os.write(terminal, f"\\d {table}\n".encode())
        assert "bigint" in until(" s\r\n")
        os.write(terminal, b"\\x\nhelp\n")
        assert "There is no \\x" in until("Guides: hms-iceberg docs spark")
        os.write(terminal, b"create database made_here;\n")
        until(" s\r\n")
        os.write(terminal, b"select nope;\n")
        assert "stacktrace" not in until("UNRESOLVED_COLUMN")
        os.write(terminal, b"exit\n")
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        os.close(terminal)
    assert f"select name from {table} where id = 7;" in (tmp_path / "hms_iceberg" / "sql_history").read_text()
    assert rows(catalog, table) == [(7, "seven")]
    location = catalog.load_namespace_properties("made_here")["location"]
    assert location == f"{catalog.load_namespace_properties('default')['location']}/made_here.db"
    catalog.drop_namespace("made_here")
