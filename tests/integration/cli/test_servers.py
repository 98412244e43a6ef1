"""The shell and the two servers: what their clients write and read, side by side, and how they end."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.command_server import command, rows, run, server
from tests.support.guides import lines_of

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The guide's lines; what a test says of addresses and ports comes after them, and holds.
SHELL, QUERY, _, CONNECT = (words[1:] for words in lines_of("cli", "A shell and servers"))

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
        problems.append(str(error)[:2000])

threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
if problems:  # at once: the sessions of clients that failed are still open, and would be waited for
    import os
    print(*problems, sep="\\n", file=sys.stderr, flush=True)
    os._exit(1)
"""

TRANSACTION = """
import sys
from pyspark.sql import SparkSession

one, other = (SparkSession.builder.remote(sys.argv[1]).create() for _ in range(2))
def counted(spark):
    return spark.sql("select count(*) from {table}").collect()[0][0]
one.sql("call system.begin_transaction()").collect()
one.sql("delete from {table} where id > 3").collect()
told = [counted(one), counted(other)]
one.sql("call system.commit_transaction()").collect()
assert [*told, counted(other)] == [4, 8, 4], told
one.sql("call system.begin_transaction()").collect()
one.sql("delete from {table}").collect()
assert [counted(one), counted(other)] == [0, 4]
one.stop()
assert counted(other) == 4
other.stop()
"""


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> str:
    name = f"{namespace}.t"
    catalog.create_table(name, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    return name


@pytest.mark.since_spark("4.0", "a server of Spark Connect in PySpark")
def test_clients_of_connect_write_side_by_side_and_have_transactions_of_their_own(
    metastore: EmbeddedMetastore, catalog: Catalog, table: str, tmp_path: Path
) -> None:
    pytest.importorskip("grpc", reason="needs the client of Spark Connect: pip install 'pyspark[connect]'")
    with server(metastore, CONNECT, tmp_path) as port:
        for program, ids in ((CLIENTS, range(8)), (TRANSACTION, range(4))):
            run(sys.executable, "-W", "ignore", "-c", program.replace("{table}", table), f"sc://127.0.0.1:{port}")
            assert rows(catalog, table) == [(each, "client" if each else "changed") for each in ids]


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
