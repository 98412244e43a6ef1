"""Hive tables in an extended session are what they were: read, written and changed by Spark alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def sales(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.sales"
    spark.sql(f"create table {name} (id int, amount double) partitioned by (day string) stored as parquet")
    spark.sql(f"insert into {name} partition (day = 'mon') values (1, 1.0), (2, 2.0)")
    spark.sql(f"insert into {name} partition (day = 'tue') values (3, 3.0)")
    return name


def test_rows_and_partitions_are_written(spark: SparkSession, sales: str) -> None:
    spark.sql(f"insert overwrite table {sales} partition (day = 'mon') values (9, 9.0)")
    assert rows_of(spark, f"select * from {sales}") == [(3, 3.0, "tue"), (9, 9.0, "mon")]
    assert spark.sql(f"show partitions {sales}").count() == 2
    spark.sql(f"alter table {sales} drop partition (day = 'tue')")
    spark.sql(f"alter table {sales} add partition (day = 'wed')")
    assert {row[0] for row in spark.sql(f"show partitions {sales}").collect()} == {"day=mon", "day=wed"}
    spark.sql(f"truncate table {sales}")
    assert rows_of(spark, f"select * from {sales}") == []


def test_tables_are_made_changed_and_dropped(spark: SparkSession, sales: str, namespace: str) -> None:
    spark.sql(f"create table {namespace}.similar like {sales}")
    spark.sql(f"create table {namespace}.copied stored as orc as select id, amount from {sales}")
    spark.sql(f"create table {namespace}.files using json as select id from {sales}")
    assert rows_of(spark, f"select count(*) from {namespace}.similar") == [(0,)]
    assert rows_of(spark, f"select sum(id) from {namespace}.copied") == [(6,)]
    assert rows_of(spark, f"select sum(id) from {namespace}.files") == [(6,)]
    spark.sql(f"alter table {namespace}.copied add columns (note string)")
    spark.sql(f"alter table {namespace}.copied set tblproperties ('a' = 'b')")
    spark.sql(f"alter table {namespace}.copied rename to {namespace}.moved")
    assert spark.table(f"{namespace}.moved").columns == ["id", "amount", "note"]
    spark.sql(f"analyze table {namespace}.moved compute statistics")
    spark.sql(f"drop table {namespace}.moved")
    names = {row.tableName for row in spark.sql(f"show tables in {namespace}").where("not isTemporary").collect()}
    assert names == {"sales", "similar", "files"}


def test_dataframe_writers_work(spark: SparkSession, sales: str, namespace: str) -> None:
    frame = spark.createDataFrame([(1, "x")], "id int, name string")
    name = f"{namespace}.written"
    frame.write.saveAsTable(name)
    frame.write.mode("append").saveAsTable(name)
    frame.write.insertInto(name)
    assert spark.table(name).count() == 3
    frame.write.mode("overwrite").format("orc").saveAsTable(name)
    assert rows_of(spark, f"select * from {name}") == [(1, "x")]
    frame.write.format("hive").mode("overwrite").saveAsTable(f"{namespace}.hive_written")
    frame.write.format("hive").mode("append").saveAsTable(f"{namespace}.hive_written")
    assert spark.table(f"{namespace}.hive_written").count() == 2


def test_partitions_that_others_made_are_found(spark: SparkSession, sales: str) -> None:
    described = {row.col_name: row.data_type for row in spark.sql(f"describe extended {sales}").collect()}
    folder = Path(described["Location"].removeprefix("file:"))
    (folder / "day=thu").mkdir()
    spark.sql(f"msck repair table {sales}")
    assert "day=thu" in {row[0] for row in spark.sql(f"show partitions {sales}").collect()}
    assert "ParquetHiveSerDe" in described["Serde Library"]


def test_the_extended_list_of_tables_tells_tables_of_hive_and_of_iceberg_apart(
    spark: SparkSession, sales: str, namespace: str
) -> None:
    spark.sql(f"create table {namespace}.ice (id bigint, day string) using iceberg partitioned by (day)")
    spark.sql(f"create table {namespace}.lookalike (n int) stored as orc tblproperties ('note' = 'table_type:ICEBERG')")
    spark.sql("create or replace temporary view shown_view as select 1 as n")
    listed = {row.tableName: row for row in spark.sql(f"show table extended in {namespace} like '*'").collect()}
    assert set(listed) >= {"ice", "lookalike", sales.partition(".")[2], "shown_view"}
    ice = listed["ice"].information
    assert "\nProvider: iceberg\n" in ice and "Serde" not in ice and "InputFormat" not in ice
    assert "Schema: root\n |-- id: long (nullable = true)\n |-- day: string (nullable = true)\n" in ice
    assert listed["ice"].namespace == namespace and listed["ice"].isTemporary is False
    for other in ("lookalike", sales.partition(".")[2]):
        assert "\nProvider: hive\n" in listed[other].information and "Serde Library: " in listed[other].information
    assert [row.tableName for row in spark.sql(f"show table extended in {namespace} like 'ic*'").collect()] == ["ice"]
    spark.catalog.dropTempView("shown_view")


def test_time_travel_on_a_hive_table_is_refused_as_spark_does(spark: SparkSession, sales: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="Time travel"):
        spark.sql(f"select * from {sales} version as of 1")
