"""Iceberg tables in Spark SQL, beside everything else that a session holds."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_tables import Rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def stock(spark: SparkSession, namespace: str) -> str:
    """A plain Hive table."""
    spark.sql(f"create table {namespace}.stock (item string, pieces int) stored as parquet")
    spark.sql(f"insert into {namespace}.stock values ('pen', 10), ('ink', 0), ('hat', 3)")
    return f"{namespace}.stock"


def test_a_table_is_read_by_its_name(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    assert rows_of(spark, f"select * from {name} where id < 3") == [(1, "pen", 1.5), (2, "ink", 3.0)]
    assert spark.table(name).count() == 6
    assert spark.table(f"spark_catalog.{name}").where("item is null").collect()[0].id == 3
    spark.sql(f"use {namespace}")
    assert rows_of(spark, "select max(id) from orders") == [(6,)]


def test_names_follow_the_session_s_rule_for_case(spark: SparkSession, orders: Table, namespace: str) -> None:
    assert rows_of(spark, f"select ID from {namespace.upper()}.Orders where ITEM = 'cap' and Id > 4") == [(5,)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(Exception, match="ITEM"):
        spark.sql(f"select id from {namespace}.orders where ITEM = 'cap'")
    assert rows_of(spark, f"select id from {namespace}.orders where item = 'cap'") == [(5,)]


def test_joins_with_hive_tables(spark: SparkSession, orders: Table, stock: str, namespace: str) -> None:
    query = f"select o.id, s.pieces from {namespace}.orders o join {stock} s using (item) where s.pieces > 0"
    assert rows_of(spark, query) == [(1, 10), (6, 10)]
    anti = f"select item from {stock} where item not in (select item from {namespace}.orders where item is not null)"
    assert rows_of(spark, anti) == [("hat",)]
    assert rows_of(spark, f"select count(*) from {stock}") == [(3,)]


def test_ctes_subqueries_unions_and_correlated_subqueries(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    cte = (
        f"with dear as (select * from {name} where price > 2), all as (select * from dear union all select * from dear)"
    )
    assert rows_of(spark, f"{cte} select count(*), sum(price) from all") == [(4, 22.0)]
    assert rows_of(spark, f"select id from {name} where price = (select max(price) from {name})") == [(5,)]
    correlated = f"select id from {name} o where exists (select 1 from {name} p where p.item = o.item and p.id <> o.id)"
    assert rows_of(spark, correlated) == [(1,), (6,)]
    assert rows_of(spark, f"select id from {name} order by id limit 2") == [(1,), (2,)]


def test_temporary_and_stored_views(spark: SparkSession, orders: Table, namespace: str) -> None:
    spark.sql(f"create or replace temporary view cheap as select id, price from {namespace}.orders where price < 2")
    assert rows_of(spark, "select id from cheap") == [(1,), (6,)]
    spark.table(f"{namespace}.orders").where("id = 4").createOrReplaceTempView("fourth")
    assert rows_of(spark, "select item from fourth") == [("pad",)]
    spark.sql(f"create view {namespace}.pens as select id from {namespace}.orders where item = 'pen'")
    assert rows_of(spark, f"select * from {namespace}.pens") == [(1,), (6,)]


def test_hive_tables_can_be_written_from_iceberg_tables(spark: SparkSession, orders: Table, namespace: str) -> None:
    spark.sql(f"create table {namespace}.copied stored as parquet as select * from {namespace}.orders")
    spark.sql(f"insert into {namespace}.copied select id + 10, item, price from {namespace}.orders where id = 1")
    assert rows_of(spark, f"select id from {namespace}.copied where item = 'pen'") == [(1,), (6,), (11,)]


def test_time_travel_by_snapshot_tag_branch_and_time(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    first, second = orders.metadata.snapshots
    orders.manage_snapshots().create_tag(first.snapshot_id, "opening").create_branch(
        second.snapshot_id, "work"
    ).commit()
    counts = {
        f"version as of {first.snapshot_id}": 3,
        f"version as of '{second.snapshot_id}'": 6,
        "version as of 'opening'": 3,
        "for system_version as of 'work'": 6,
        f"timestamp as of timestamp_millis({first.timestamp_ms})": 3,
        f"timestamp as of '{moment(first.timestamp_ms)}'": 3,
        "timestamp as of current_timestamp()": 6,
        "timestamp as of current_timestamp() + interval 1 day": 6,
        f"timestamp as of (select timestamp_millis({first.timestamp_ms}))": 3,
    }
    found = {text: spark.sql(f"select * from {name} {text}").count() for text in counts}
    assert found == counts
    both = f"select count(*) from {name} n join {name} version as of {first.snapshot_id} o on n.id = o.id"
    assert rows_of(spark, both) == [(3,)]
    assert spark.read.option("versionAsOf", "opening").table(name).count() == 3
    assert spark.read.option("timestampAsOf", moment(first.timestamp_ms)).table(name).count() == 3


def moment(milliseconds: int) -> str:
    time = dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc)
    return time.strftime("%Y-%m-%d %H:%M:%S.%f")


def test_an_unknown_version_is_refused_by_name(spark: SparkSession, orders: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    name = f"{namespace}.orders"
    with pytest.raises(AnalysisException, match=r"NoSuchSnapshotError: .* has no snapshot 77"):
        spark.sql(f"select * from {name} version as of 77")
    with pytest.raises(AnalysisException, match=r"NoSuchRefError: .* has no branch or tag 'nightly'"):
        spark.sql(f"select * from {name} version as of 'nightly'")
    with pytest.raises(AnalysisException, match=r"NoSuchSnapshotError: .* had no snapshot at"):
        spark.sql(f"select * from {name} timestamp as of '2001-01-01'")


def test_the_table_describes_itself(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    described = {row.col_name: row.data_type for row in spark.sql(f"describe extended {name}").collect()}
    assert described["id"] == "bigint"
    assert (described["Provider"], described["Type"]) == ("iceberg", "MANAGED")
    assert described["Location"] == orders.location()
    properties = {row.key: row.value for row in spark.sql(f"show tblproperties {name}").collect()}
    assert properties["format-version"] == "2"
    assert properties["current-snapshot-id"] == str(orders.current_snapshot().snapshot_id)
    assert "USING iceberg" in spark.sql(f"show create table {name}").collect()[0][0]
    tables = spark.sql(f"show tables in {namespace}").where("not isTemporary").collect()
    assert [row.tableName for row in tables] == ["orders"]


@pytest.mark.since_spark("4.0", "SHOW COLUMNS of tables of catalogs")
def test_columns_are_shown(spark: SparkSession, orders: Table, namespace: str) -> None:
    shown = spark.sql(f"show columns in {namespace}.orders").collect()
    assert [row.col_name for row in shown] == ["id", "item", "price"]


def test_explain_shows_snapshot_files_and_filters(spark: SparkSession, orders: Table, namespace: str) -> None:
    plan = spark.sql(f"explain select id from {namespace}.orders where id > 4").collect()[0][0]
    snapshot = orders.current_snapshot().snapshot_id
    assert (
        f"iceberg {namespace}.orders at snapshot {snapshot}: 1 of 2 files, planned for id is not null and id > 4"
        in plan
    )
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,4)]" in plan


def test_an_empty_table_has_no_rows(spark: SparkSession, catalog, namespace: str) -> None:  # type: ignore[no-untyped-def]
    catalog.create_table(f"{namespace}.empty", Rows({"a": __import__("pyarrow").int64()}).schema)
    assert rows_of(spark, f"select * from {namespace}.empty") == []
    assert rows_of(spark, f"select count(*) from {namespace}.empty where a > 1") == [(0,)]


def test_an_unknown_table_stays_unknown(spark: SparkSession, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"select * from {namespace}.t{uuid.uuid4().hex}")
