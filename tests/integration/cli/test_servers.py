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

from tests.support.readme import lines_of

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The README's lines; what a test says of addresses and ports comes after them, and holds.
SHELL, QUERY, THRIFT, CONNECT = (words[1:] for words in lines_of("A shell and servers"))
SMALL = ("--master", "local[2]", "--conf", "spark.driver.memory=1g", "--conf", "spark.sql.shuffle.partitions=2")

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


def test_beeline_then_eight_clients_side_by_side_write_and_read_tables_by_jdbc(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, namespace: str, tmp_path: Path
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
    with server(metastore, THRIFT, tmp_path) as port:
        url = f"jdbc:hive2://127.0.0.1:{port}"
        quiet = ["-n", "me", "--outputformat=csv2", "--silent=true", "--showHeader=false", "-e", statements]
        beeline = run("java", "-cp", f"{jars}/*", "org.apache.hive.beeline.BeeLine", "-u", url, *quiet)
        run(sys.executable, "-W", "ignore", "-c", program, url)
    assert beeline.split()[-2:] == ["a,1", "z,3"]
    assert rows(catalog, table) == [(1, "a"), (3, "z"), *((10 + number, "client") for number in range(8))]


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
    script = tmp_path / "script.sql"
    script.write_text(
        f"select id, ';' as c, array(name) as names from {table} order by id; select nope from {table};\nx"
    )
    insert = f"insert into {table} values (1, 'a'), (2, null) -- ; no end"
    query = [word.replace("web.visits", table) for word in QUERY]
    words = command(metastore, *query, "--output", "json", "-e", insert, "-f", str(script))
    ran = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    count, *selected, error = told
    assert count == {"count(1)": 0}
    assert selected == [{"id": 1, "c": ";", "names": ["a"]}, {"id": 2, "c": ";", "names": [None]}], ran.stderr
    assert error["type"] == "SqlFailedError" and "UNRESOLVED_COLUMN" in error["message"]
    assert ran.returncode == 1


def test_the_prompt_runs_statements_completes_names_and_keeps_a_history(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, namespace: str, tmp_path: Path
) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(XDG_STATE_HOME=str(tmp_path), TERM="dumb", NO_COLOR="1")
        os.execv(sys.executable, command(metastore, *SHELL))

    def until(text: str) -> str:
        shown = ""
        while text not in shown:
            assert select.select([terminal], [], [], 120)[0], shown
            shown += os.read(terminal, 4096).decode()
        return shown

    try:
        until("iceberg> ")
        os.write(terminal, f"insert into {table} values\n".encode())
        until("      -> ")
        os.write(terminal, b"(7, 'seven');\n")
        until("iceberg> ")
        os.write(terminal, f"select name from {namespace}.\t where id = 7;\n".encode())
        assert "seven" in until(" s\r\n")
        os.write(terminal, b"select nope;\n")
        assert "stacktrace" not in until("UNRESOLVED_COLUMN")
        os.write(terminal, b"exit\n")
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        os.close(terminal)
    assert f"select name from {table} where id = 7;" in (tmp_path / "hms_iceberg" / "sql_history").read_text()
    assert rows(catalog, table) == [(7, "seven")]
