"""Clients of Hive in Python: PyHive, SQLAlchemy and pandas, one after another."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.command_server import rows

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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

# One client's transaction on two tables beside another client, made in the end; then one whose client leaves.
TRANSACTION_CLIENTS = """
import json, sys
from pyhive import hive

port, namespace = int(sys.argv[1]), sys.argv[2]
one, other = (hive.connect("127.0.0.1", port, username=name) for name in ("one", "other"))

def ask(client, text):
    with client.cursor() as cursor:
        cursor.execute(text.format(n=namespace))
        return cursor.fetchall() if text.startswith("select") else None

COUNTS = "select (select count(*) from {n}.a), (select count(*) from {n}.b)"
told = []
for text in ("create table {n}.a (id bigint) using iceberg", "create table {n}.b (id bigint) using iceberg"):
    ask(one, text)
for end in ("call system.commit_transaction()", None):
    ask(one, "call system.begin_transaction()")
    ask(one, "insert into {n}.a values (1), (2)")
    ask(one, "insert into {n}.b select id from {n}.a")
    told += [ask(one, COUNTS), ask(other, COUNTS)]
    ask(one, end) if end else one.close()
    told.append(ask(other, COUNTS))
print(json.dumps(told))
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


def test_a_clients_transaction_is_seen_by_others_when_it_is_made_and_not_if_the_client_leaves(
    thrift_port: int, namespace: str
) -> None:
    pytest.importorskip("pyhive", reason="needs a client of Hive: pip install pyhive thrift_sasl pure-sasl")
    words = [sys.executable, "-W", "ignore", "-c", TRANSACTION_CLIENTS, str(thrift_port), namespace]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told == [[[2, 2]], [[0, 0]], [[2, 2]], [[4, 6]], [[2, 2]], [[2, 2]]]


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
