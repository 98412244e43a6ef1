"""Transactions on several tables: statements of a session that become one commit, or none."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hms_iceberg.errors import IcebergError
from hms_iceberg.spark import apply_changes, transaction
from tests.support.guides import block
from tests.support.pyspark_home import spark_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark

COLUMNS = "(id bigint, v string, k int)"
ROWS = "(1, 'a', 1), (2, 'b', 2), (3, null, 2)"
# A statement of Spark, and what it is in DuckDB if that is not the same text.
STATEMENTS: tuple[tuple[str, str | None], ...] = (
    ("insert into {a} values (4, 'd', 1), (5, null, 3)", None),
    ("update {a} set v = concat(v, '!'), k = 3 where k = 1", None),
    ("delete from {a} where k = 2", None),  # a partition: metadata alone does it
    ("delete from {b} where id = 2", None),
    ("insert into {b} select id + 10, v, k from {a} where id <> 1", None),
    (
        "merge into {b} t using {a} s on t.id = s.id + 10 when matched and s.k = 3 then delete "
        "when matched then update set v = s.v when not matched then insert (id, v, k) values (s.id + 20, s.v, s.k)",
        None,
    ),
    ("insert overwrite {a} values (9, 'i', 2)", "delete from {a} where k = 2; insert into {a} values (9, 'i', 2)"),
    ("update {b} set k = (select max(k) from {a}) where v is null", None),
    ("insert into {a} select id + 100, v, k from {b}", None),
    ("truncate table {b}", "delete from {b}"),
    ("insert into {b} values (7, 'g', 7)", None),
)


@dataclass
class Tables:
    """Two tables, `a` copied on write and in partitions of k, `b` merged on read; and two sessions that see them."""

    spark: SparkSession
    namespace: str
    prefix: str = ""
    properties: dict[str, str] = field(default_factory=dict)  # of each table, instead of the usual ones
    other: SparkSession = field(init=False)

    def __post_init__(self) -> None:
        self.other = self.spark.newSession()
        modes = ", ".join(f"'write.{each}.mode' = 'merge-on-read'" for each in ("delete", "update", "merge"))
        self.names = {each: f"{self.prefix}{self.namespace}.{each}" for each in "ab"}
        usual = {"a": "'format-version' = '2'", "b": f"'format-version' = '3', {modes}"}
        for each, clause in (("a", "partitioned by (k)"), ("b", "")):
            own = self.properties.get(each, usual[each]).format(modes=modes)
            self.run(f"create table {{{each}}} {COLUMNS} using iceberg {clause} tblproperties ({own})")
        for each in "ab":
            self.run(f"insert into {{{each}}} values {ROWS}")

    def run(self, statement: str, session: SparkSession | None = None) -> list[tuple[Any, ...]]:
        """Runs a statement in the session of the transaction, or in another."""
        return [tuple(row) for row in (session or self.spark).sql(statement.format(**self.names)).collect()]

    def rows(self, session: SparkSession | None = None) -> list[list[tuple[Any, ...]]]:
        """All rows of both tables."""
        return [sorted(self.run(f"select * from {{{each}}}", session), key=str) for each in "ab"]

    def files(self) -> set[Path]:
        """All files in the folders of both tables."""
        folders = [self.run(f"describe table extended {{{each}}}") for each in "ab"]
        found = [next(row[1] for row in rows if row[0] == "Location") for rows in folders]
        return {path for each in found for path in Path(each.removeprefix("file:")).rglob("*") if path.is_file()}


@pytest.fixture
def tables(spark: SparkSession, namespace: str) -> Iterator[Tables]:
    yield Tables(spark, namespace)
    with pytest.raises(Exception, match="no open transaction"):
        spark.sql("call spark_catalog.system.rollback_transaction()")


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {
            "a": "'format-version' = '1', 'write.format.default' = 'orc'",
            "b": "'format-version' = '2', 'write.format.default' = 'avro', {modes}",
        },
        {
            "a": "'format-version' = '3', 'write.format.default' = 'avro', {modes}",
            "b": "'format-version' = '3', 'write.format.default' = 'orc'",
        },
    ],
    ids=["parquet", "orc and avro", "avro and orc"],
)
def test_statements_read_what_those_before_wrote_and_others_see_all_of_them_or_none(
    properties: dict[str, str], ice: SparkSession, namespace: str
) -> None:
    import duckdb

    tables = Tables(ice, namespace, "ice.", properties)
    tables.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    oracle = duckdb.connect()
    beside = oracle.cursor()
    for each in "ab":
        oracle.sql(f"create table {each} {COLUMNS.replace('string', 'varchar')}")
        oracle.sql(f"insert into {each} values {ROWS}")

    def known(connection: Any) -> list[list[tuple[Any, ...]]]:
        return [sorted(connection.sql(f"select * from {each}").fetchall(), key=str) for each in "ab"]

    chosen = random.Random(5)
    for end, statements in (("rollback", chosen.sample(STATEMENTS, 5)), ("commit", STATEMENTS)):
        tables.run("call ice.system.begin_transaction()")
        oracle.sql("begin")
        for statement, duck in statements:
            tables.run(statement)
            oracle.execute((duck or statement).format(a="a", b="b"))
            assert tables.rows() == known(oracle), statement
        assert tables.rows(tables.other) == known(beside)
        tables.run(f"call ice.system.{end}_transaction()")
        oracle.sql(end)
        assert tables.rows() == tables.rows(tables.other) == known(oracle) == known(beside)


def test_a_rollback_leaves_no_file_and_a_commit_says_what_it_changed(tables: Tables, catalog: Catalog) -> None:
    before, rows = tables.files(), tables.rows()

    tables.run("call system.begin_transaction()")
    tables.run("insert into {a} values (4, 'd', 1)")
    tables.run("alter table {a} add column w int")
    tables.run("merge into {b} t using {a} s on t.id = s.id when matched then update set v = 'new'")
    assert len(tables.files()) > len(before)
    assert tables.run("call system.rollback_transaction()") == [(tables.names["a"],), (tables.names["b"],)]
    assert tables.files() == before
    assert tables.rows() == rows

    tables.run("call system.begin_transaction(array('{a}', '{b}'))")
    tables.run("insert into {b} values (4, 'd', 1)")
    catalog.load_table(tables.names["a"]).delete("id = 1")  # read as it was when the transaction began
    assert tables.rows()[0] == rows[0]
    [(_, last)] = tables.run("select count(*), max_by(snapshot_id, committed_at) from {b}.snapshots")
    [(first,)] = tables.run("select snapshot_id from {b}.refs", tables.other)
    assert tables.run(f"select count(*) from {{b}} version as of {first}") == [(3,)]
    assert tables.run("call system.commit_transaction()") == [(tables.names["b"], first, last)]
    assert len(tables.rows()[0]) == 2


def test_a_commit_keeps_what_others_added_and_fails_whole_if_they_changed_what_it_read(
    tables: Tables, catalog: Catalog
) -> None:
    tables.run("call system.begin_transaction()")
    tables.run("insert into {a} values (4, 'd', 1)")
    tables.run("insert into {b} values (4, 'd', 1)")
    tables.run("insert into {a} values (5, 'e', 1)", tables.other)
    tables.run("call system.commit_transaction()")
    assert [len(rows) for rows in tables.rows()] == [5, 4]

    before = tables.rows()
    tables.run("call system.begin_transaction()")
    tables.run("insert into {b} values (6, 'f', 1)")
    tables.run("update {a} set v = 'mine' where id = 1")
    catalog.load_table(tables.names["a"]).delete("id = 1")
    files = tables.files()
    with pytest.raises(Exception, match=rf"CommitConflictError: Cannot .* table {tables.names['a']}"):
        tables.run("call system.commit_transaction()")
    assert tables.files() < files
    assert tables.rows() == [[row for row in before[0] if row[0] != 1], before[1]]
    tables.run("insert into {b} values (6, 'f', 1)")  # by itself again
    assert len(tables.rows(tables.other)[1]) == 5

    tables.run("call system.begin_transaction()")
    for each in "ab":
        tables.run(f"insert into {{{each}}} values (7, 'g', 1)")
    tables.run(f"alter table {{a}} rename to {tables.namespace}.renamed", tables.other)
    with pytest.raises(Exception, match=rf"NoSuchTableError: .*{tables.names['a']}"):
        tables.run("call system.commit_transaction()")
    assert len(tables.run("select * from {b}")) == 5


def test_what_cannot_be_taken_back_is_refused_and_the_transaction_goes_on(
    tables: Tables, ice: SparkSession, namespace: str, tmp_path: Path
) -> None:
    tables.run(f"create table {namespace}.hive (id bigint) using parquet")
    tables.run("create temporary view given as select 8 as id, 'h' as v, 8 as k")
    tables.run("call system.begin_transaction()")
    tables.run("insert into {a} values (4, 'd', 1)")
    before, rows = tables.files(), tables.rows()
    stream = tables.spark.readStream.format("rate").load().selectExpr("value as id", "'s' as v", "1 as k")
    refused: dict[str, Callable[[], Any]] = {
        statement: lambda statement=statement: tables.run(statement)
        for statement in (
            f"create table {namespace}.c (id int) using iceberg",
            f"create table {namespace}.c using iceberg as select 1 as id",
            "create or replace table {a} using iceberg as select 1 as id",
            "drop table {a}",
            f"alter table {{a}} rename to {namespace}.c",
            f"insert into {namespace}.hive values (1)",
            f"truncate table {namespace}.hive",
            f"drop table {namespace}.hive",
            f"create table {namespace}.c (id int) using parquet",
            f"create view {namespace}.v as select * from {{a}}",
            f"drop namespace {namespace} cascade",
            "call system.expire_snapshots('{a}')",
            "call system.ancestors_of('{a}')",
            "analyze table {a} compute statistics",
            "insert into ice.{a} select * from given",
            "update ice.{a} set v = 'x'",
            "delete from ice.{a}",
            "alter table ice.{a} set tblproperties ('x' = 'y')",
        )
    }
    refused["a stream"] = lambda: stream.writeStream.option("checkpointLocation", str(tmp_path)).toTable(
        tables.names["a"]
    )
    for what, attempt in refused.items():
        with pytest.raises(Exception, match=r"UnsupportedError: Cannot .* in transaction") as refusal:
            attempt()
        assert "call system.commit_transaction()" in str(refusal.value), what
    with pytest.raises(Exception, match=r"InvalidInputError: Transaction .* of this session is open already"):
        tables.run("call system.begin_transaction()")
    with pytest.raises(Exception, match="cannot be told of whole files"):  # when its files are written
        tables.run("insert into {b} replace where v like '%b' select * from given")

    assert tables.files() == before
    assert tables.rows() == rows
    assert tables.run("call system.commit_transaction()")[0][0] == tables.names["a"]
    assert tables.rows(tables.other) == rows


def test_a_transaction_is_its_session_s_and_its_data_frames_end_with_it(tables: Tables) -> None:
    tables.run("call system.begin_transaction()")
    tables.run("call system.begin_transaction()", tables.other)
    tables.run("insert into {a} values (4, 'd', 1)")
    tables.run("insert into {a} values (5, 'e', 1)", tables.other)
    tables.run("insert into {A} values (6, 'f', 1)".replace("{A}", tables.names["a"].upper()))
    assert [len(tables.rows(each)[0]) for each in (tables.spark, tables.other, tables.spark.newSession())] == [5, 4, 3]
    inside = tables.spark.table(tables.names["a"])
    assert inside.count() == 5
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda n: tables.run(f"insert into {{b}} values ({n}, 't', 1)"), range(10, 13)))
    assert [len(tables.rows(each)[1]) for each in (tables.spark, tables.other)] == [6, 3]
    tables.run("call system.rollback_transaction()")
    if spark_release() < (4, 1):
        with pytest.raises(Exception, match=r"in transaction .* committed or rolled back already"):
            inside.filter("id > 0").collect()
    else:
        assert inside.count() == 3
    tables.run("call system.commit_transaction()", tables.other)
    assert len(tables.rows()[0]) == 4


def test_what_is_cached_of_a_table_never_has_rows_of_a_transaction(tables: Tables) -> None:
    try:
        tables.run("cache table {a}")
        tables.run("call system.begin_transaction()")
        tables.run("insert into {a} values (4, 'd', 1)")
        tables.run("cache table {a}", tables.other)
        assert [len(tables.rows(each)[0]) for each in (tables.spark, tables.other)] == [4, 3]
        tables.run("insert into {a} values (5, 'e', 1)")
        assert [len(tables.rows(each)[0]) for each in (tables.spark, tables.other)] == [5, 3]
        cached = tables.spark.table(tables.names["a"]).filter("id > 3").cache()
        assert cached.count() == 2
        tables.run("cache table {a}")
        assert [len(tables.rows(each)[0]) for each in (tables.spark, tables.other)] == [5, 3]
        tables.run("call system.rollback_transaction()")
        assert [len(tables.rows(each)[0]) for each in (tables.spark, tables.other)] == [3, 3]
        tables.run("cache table {a}", tables.other)
        tables.run("call system.begin_transaction()")
        tables.run("insert into {a} values (4, 'd', 1)")
        tables.run("call system.commit_transaction()")
        assert [len(tables.rows(each)[0]) for each in (tables.spark, tables.other)] == [4, 4]
    finally:
        tables.spark.catalog.clearCache()


def test_the_guide_s_transaction_runs_as_it_stands(spark: SparkSession, catalog: Catalog) -> None:
    spark.sql("create namespace bank")
    try:
        spark.sql("create table bank.accounts using iceberg as select * from values (1, 100), (2, 0) as t(id, balance)")
        spark.sql("create table bank.entries (account int, amount int) using iceberg")
        for statement in block("spark", "Several tables, one commit", "sql").code.split(";"):
            if statement.strip():
                spark.sql(statement)
        exec(compile(block("spark", "Several tables, one commit", "python").code, "guide", "exec"), {"spark": spark})
        rows = [catalog.load_table(f"bank.{each}").scan().to_arrow() for each in ("accounts", "entries")]
        assert [sorted(zip(*each.to_pydict().values(), strict=True)) for each in rows] == [
            [(1, 70), (2, 30)],
            [(1, -30), (2, 30)],
        ]
    finally:
        spark.sql("drop namespace bank cascade")


def test_a_block_is_a_transaction_that_an_error_gives_up(tables: Tables) -> None:
    def failed() -> None:
        with transaction(tables.spark):
            tables.run("insert into {a} values (4, 'd', 1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failed()
    assert [len(rows) for rows in tables.rows()] == [3, 3]

    with transaction(tables.spark, "spark_catalog", tables=[tables.names["a"]]):
        tables.run("insert into {a} values (4, 'd', 1)")
        tables.run("insert into {b} values (4, 'd', 1)")
        assert [len(rows) for rows in tables.rows(tables.other)] == [3, 3]
    assert [len(rows) for rows in tables.rows(tables.other)] == [4, 4]


def test_events_are_applied_within_a_transaction_unless_they_come_with_a_name(tables: Tables) -> None:
    from pyspark.errors import PySparkException

    events = tables.spark.createDataFrame([(1, "event", 1), (50, "new", 1)], "id int, v string, k int")
    before = tables.rows()
    with transaction(tables.spark):
        apply_changes(events, tables.names["b"], keys=["id"])
        inside = tables.rows()
        assert {(1, "event", 1), (50, "new", 1)} <= set(inside[1])
        with pytest.raises((IcebergError, PySparkException), match="transaction"):
            apply_changes(events, tables.names["b"], keys=["id"], name="topic", offsets={"0": 1})
        assert tables.rows(tables.other) == before
    assert tables.rows(tables.other) == tables.rows() == inside


@pytest.mark.parametrize("setting", ["hive.exec.dynamic.partition.mode", "iceberg.hive.lock-timeout-ms"])
def test_a_setting_of_the_session_does_not_make_its_catalog_another_one(tables: Tables, setting: str) -> None:
    events = tables.spark.createDataFrame([(1, "event", 1)], "id int, v string, k int")
    with transaction(tables.spark):
        tables.spark.conf.set(setting, "100000")
        try:
            apply_changes(events, tables.names["b"], keys=["id"])  # in a copy of the session
        finally:
            tables.spark.conf.unset(setting)
        assert (1, "event", 1) in tables.rows()[1]
    assert (1, "event", 1) in tables.rows(tables.other)[1]
