"""Which snapshot a query reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark_tables import plan_text, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def add_row(table: Table, number: int) -> None:
    table.refresh()
    table.append(table.scan().to_arrow().slice(0, 1).set_column(0, "id", [[number]]))


def test_each_query_reads_the_newest_snapshot(spark: SparkSession, orders: Table, namespace: str) -> None:
    query = f"select count(*), max(id) from {namespace}.orders"
    assert rows_of(spark, query) == [(6, 6)]
    add_row(orders, 7)
    assert rows_of(spark, query) == [(7, 7)]
    add_row(orders, 8)
    assert spark.table(f"{namespace}.orders").count() == 8


def test_a_view_reads_the_newest_snapshot(spark: SparkSession, orders: Table, namespace: str) -> None:
    spark.sql(f"create view {namespace}.all_orders as select * from {namespace}.orders")
    assert rows_of(spark, f"select count(*) from {namespace}.all_orders") == [(6,)]
    add_row(orders, 7)
    assert rows_of(spark, f"select count(*) from {namespace}.all_orders") == [(7,)]


def test_all_references_of_a_query_read_one_snapshot(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    frame = spark.sql(
        f"with o as (select * from {name}) select (select count(*) from {name.upper()}), (select count(*) from o), "
        f"count(*) from {name} a join {name} b on a.id = b.id"
    )
    snapshots = {
        line.split("snapshot ")[1].split(":")[0] for line in plan_text(frame).splitlines() if "at snapshot" in line
    }
    assert len(snapshots) == 1
    assert [tuple(row) for row in frame.collect()] == [(6, 6, 6)]


def test_a_new_column_appears(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    assert spark.table(name).columns == ["id", "item", "price"]
    from hms_iceberg.spec.data_types import StringType

    with orders.update_schema() as update:
        update.add_column("note", StringType())
    assert spark.table(name).columns == ["id", "item", "price", "note"]
    assert rows_of(spark, f"select note from {name} where id = 1") == [(None,)]


def test_a_cached_table_is_kept_until_it_is_refreshed(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    spark.sql(f"cache table {name}")
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]
    add_row(orders, 7)
    spark.sql(f"refresh table {name}")
    assert rows_of(spark, f"select count(*) from {name}") == [(7,)]
    spark.sql(f"uncache table {name}")
    add_row(orders, 8)
    assert rows_of(spark, f"select count(*) from {name}") == [(8,)]


def test_a_cached_query_is_not_given_for_a_newer_snapshot(spark: SparkSession, orders: Table, namespace: str) -> None:
    frame = spark.sql(f"select id from {namespace}.orders where id > 3")
    frame.cache()
    assert frame.count() == 3
    add_row(orders, 7)
    assert rows_of(spark, f"select id from {namespace}.orders where id > 3") == [(4,), (5,), (6,), (7,)]
    frame.unpersist()


def test_an_old_snapshot_is_read_with_its_columns(spark: SparkSession, orders: Table, namespace: str) -> None:
    first = orders.metadata.snapshots[0].snapshot_id
    with orders.update_schema() as update:
        update.rename_column("item", "thing")
    table = f"{namespace}.orders"
    assert spark.sql(f"select * from {table} version as of {first}").columns == ["id", "item", "price"]
    assert rows_of(spark, f"select thing from {table} where thing = 'cap'") == [("cap",)]
    assert rows_of(spark, f"select item from {table} version as of {first} where item = 'ink'") == [("ink",)]
