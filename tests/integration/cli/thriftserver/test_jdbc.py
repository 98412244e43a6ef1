"""Clients by Hive's JDBC driver: beeline, and programs."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.command_server import rows, run
from tests.support.maven import Artifact, UnavailableError, fetched

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


# What DBeaver and Tableau ask before they show anything.
METADATA = """
import json, sys
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

url, namespace, py4j, jars = sys.argv[1:]
gateway = JavaGateway(gateway_parameters=GatewayParameters(port=launch_gateway(jarpath=py4j, classpath=jars)))
jvm = gateway.jvm
jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")
client = jvm.java.sql.DriverManager.getConnection(url, "me", "")
about = client.getMetaData()

def rows(found, *columns):
    told = []
    while found.next():
        told.append([found.getObject(each) for each in columns])
    return told

only_tables = gateway.new_array(jvm.java.lang.String, 1)
only_tables[0] = "TABLE"
statement = client.createStatement()
found = statement.executeQuery(f"select * except (doc), to_json(doc) as a from {namespace}.t")
columns = range(1, found.getMetaData().getColumnCount() + 1)
print(json.dumps({
    "schemas": [each for each, in rows(about.getSchemas(), 1) if each == namespace],
    "tables": sorted(rows(about.getTables(None, namespace, "%", None), "TABLE_NAME", "TABLE_TYPE")),
    "only_tables": sorted(rows(about.getTables(None, namespace, "%", only_tables), "TABLE_NAME")),
    "columns": rows(about.getColumns(None, namespace, "t", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME"),
    "decimal": rows(about.getColumns(None, namespace, "t", "price"), "DECIMAL_DIGITS", "ORDINAL_POSITION", "REMARKS"),
    "types": sorted(name for name, in rows(about.getTypeInfo(), "TYPE_NAME")),
    "keys": rows(about.getPrimaryKeys(None, namespace, "t"), 1) + rows(about.getImportedKeys(None, namespace, "t"), 1),
    "result": [found.getMetaData().getColumnTypeName(each) for each in columns],
    "rows": [[str(found.getObject(each)) for each in columns] for _ in range(2) if found.next()],
}))
client.close()
gateway.shutdown()
"""
JAVA = {
    "BIGINT": -5,
    "DECIMAL": 3,
    "STRING": 12,
    "BINARY": -2,
    "TIMESTAMP": 93,
    "STRUCT": 2002,
    "ARRAY": 2003,
    "MAP": 2000,
}


def drivers() -> dict[str, str]:
    """Class paths of Hive's driver: that among Spark's jars, and today's."""
    import pyspark

    found = {"of Spark": f"{Path(pyspark.__file__).parent / 'jars'}/*"}
    newest = Artifact("org.apache.hive", "hive-jdbc", "4.0.1", without=(("*", "*"),), classifier="standalone")
    try:
        found["4.0.1"] = f"{fetched('hive-jdbc-4.0.1', (newest,))}/*"
    except UnavailableError as error:
        warnings.warn(f"Not tried: {error}", stacklevel=1)
    return found


@pytest.mark.since_spark("4.0", "variant")
def test_drivers_of_hive_find_schemas_tables_columns_of_every_kind_and_rows(
    thrift_port: int, catalog: Catalog, namespace: str
) -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    url = f"jdbc:hive2://127.0.0.1:{thrift_port}"
    beeline = (
        "java",
        "-cp",
        f"{jars}/*",
        "org.apache.hive.beeline.BeeLine",
        "-u",
        url,
        "-n",
        "me",
        "--silent=true",
        "-e",
    )
    run(
        *beeline,
        f"create table {namespace}.t (id bigint not null, price decimal(10,2) comment 'in euro', name string,"
        " raw binary, at timestamp, there timestamp_ntz, place struct<x: int, tags: array<string>>, sizes array<int>,"
        " named map<string, int>, doc variant) using iceberg tblproperties ('format-version' = '3');"
        f"create view {namespace}.v as select id from {namespace}.t;"
        f"create table {namespace}.plain (id int) using parquet;"
        f"insert into {namespace}.t select 1L, 1.25, 'a', x'00ff', timestamp'2026-01-31 12:00:00',"
        " timestamp_ntz'2026-01-31 12:00:00', named_struct('x', 1, 'tags', array('b')), array(1, null), map('k', 1),"
        " parse_json('{\"a\": 7}');",
    )
    py4j = str(next(jars.glob("py4j-*.jar")))
    for name, path in drivers().items():
        ran = run(sys.executable, "-W", "ignore", "-c", METADATA, url, namespace, py4j, path)
        told = json.loads(ran.splitlines()[-1])
        assert told["schemas"] == [namespace], name
        assert told["tables"] == [["plain", "TABLE"], ["t", "TABLE"], ["v", "VIEW"]]
        assert told["only_tables"] == [["plain"], ["t"]]
        kinds = ["BIGINT", "DECIMAL(10,2)", "STRING", "BINARY", "TIMESTAMP", "TIMESTAMP"]
        nested = ["STRUCT<x: INT, tags: ARRAY<STRING>>", "ARRAY<INT>", "MAP<STRING, INT>"]
        assert [each[2] for each in told["columns"]] == [*kinds, *nested, "BINARY"]  # variant is none of Hive's types
        assert all(number == JAVA[re.split(r"[<(]", kind)[0]] for _, number, kind in told["columns"])
        assert told["decimal"] == [[2, 2, "in euro"]]
        assert {"BIGINT", "DECIMAL", "STRUCT", "TIMESTAMP", "STRING"} <= set(told["types"])
        assert told["keys"] == []
        assert told["result"][:6] == ["bigint", "decimal", "string", "binary", "timestamp", "timestamp"]
        [[id_, price, text, _, at, there, place, *_, a]] = told["rows"]
        assert (id_, price, text, a) == ("1", "1.25", "a", '{"a":7}')
        assert at.startswith("2026-01-31") and there.startswith("2026-01-31") and place == '{"x":1,"tags":["b"]}'


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
