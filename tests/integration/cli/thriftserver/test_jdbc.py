"""Clients by Hive's JDBC driver: beeline, and programs."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.command_server import rows, run

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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
