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

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> str:
    name = f"{namespace}.t"
    catalog.create_table(name, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    return name


def command(metastore: EmbeddedMetastore, *words: str) -> list[str]:
    own = ("--uri", metastore.uri, "-p", f"warehouse={metastore.warehouse}", *SMALL)
    return [sys.executable, "-m", "hms_iceberg", *words, *own]


@contextmanager
def server(metastore: EmbeddedMetastore, name: str, tmp_path: Path) -> Iterator[int]:
    """A server that listens, and ends by SIGTERM with exit code 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(tmp_path / "stderr.log", "w") as log:
        words = command(metastore, name, "--port", str(port))
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


def rows(catalog: Catalog, table: str) -> list[tuple[int, str]]:
    return sorted((row["id"], row["name"]) for row in catalog.load_table(table).scan().to_arrow().to_pylist())


def test_beeline_writes_and_reads_tables_and_calls_procedures(
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
    with server(metastore, "thriftserver", tmp_path) as port:
        beeline = [
            "java",
            "-cp",
            f"{jars}/*",
            "org.apache.hive.beeline.BeeLine",
            "-u",
            f"jdbc:hive2://127.0.0.1:{port}",
        ]
        quiet = ["-n", "me", "--outputformat=csv2", "--silent=true", "--showHeader=false", "-e", statements]
        ran = subprocess.run([*beeline, *quiet], capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.split()[-2:] == ["a,1", "z,3"]
    assert rows(catalog, table) == [(1, "a"), (3, "z")]


def test_eight_clients_of_connect_write_side_by_side(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, tmp_path: Path
) -> None:
    pytest.importorskip("grpc", reason="needs the client of Spark Connect: pip install 'pyspark[connect]'")
    program = textwrap.dedent(CLIENTS).replace("{table}", table)
    with server(metastore, "connect", tmp_path) as port:
        words = [sys.executable, "-W", "ignore", "-c", program, f"sc://127.0.0.1:{port}"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert rows(catalog, table) == [(0, "changed"), *((number, "client") for number in range(1, 8))]


def test_statements_of_the_command_line_end_at_the_first_that_fails(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        f"select id, ';' as c, array(name) as names from {table} order by id; select nope from {table};\nx"
    )
    insert = f"insert into {table} values (1, 'a'), (2, null) -- ; no end"
    words = command(metastore, "sql", "--output", "json", "-e", insert, "-f", str(script))
    ran = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert told[:2] == [{"id": 1, "c": ";", "names": ["a"]}, {"id": 2, "c": ";", "names": [None]}], ran.stderr
    assert told[2]["type"] == "SqlFailedError"
    assert "UNRESOLVED_COLUMN" in told[2]["message"]
    assert (len(told), ran.returncode) == (3, 1)


def test_the_prompt_runs_statements_completes_names_and_keeps_a_history(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, namespace: str, tmp_path: Path
) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(XDG_STATE_HOME=str(tmp_path), TERM="dumb", NO_COLOR="1")
        os.execv(sys.executable, command(metastore, "sql"))

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
