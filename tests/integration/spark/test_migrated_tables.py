"""Files that Hive wrote, without field ids: their columns are found by the table's name mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark


@pytest.fixture
def trips(spark: SparkSession, catalog: Catalog, namespace: str) -> str:
    """A Hive table, by month, of files whose columns are in mixed case; then an Iceberg table."""
    from hms_iceberg.migration import migrate

    name = f"{namespace}.trips"
    spark.sql(
        f"create external table {name} (id bigint, who struct<name:string,age:int>, tags array<string>, "
        f"at timestamp, price decimal(9,2)) partitioned by (month int) stored as parquet "
        f"location '{catalog.load_namespace_properties(namespace)['location']}/trips'"
    )
    spark.sql(
        f"insert into {name} partition (month = 1) values "
        "(1, named_struct('name', 'Ada', 'age', 36), array('a', 'b'), timestamp'2024-01-05 10:00:00', 9.5), "
        "(2, null, null, null, null)"
    )
    mixed = spark.sql("select 3L as ID, named_struct('NAME', 'Bob', 'Age', 41) as WHO, 1.25bd as Price")
    mixed.withColumn("price", mixed["Price"].cast("decimal(9,2)")).withColumnRenamed("price", "PRICE").write.parquet(
        f"{catalog.load_namespace_properties(namespace)['location']}/trips/month=2"
    )
    spark.sql(f"msck repair table {name}")
    migrate(catalog, name)
    return name


def test_rows_columns_and_partitions_come_out_right(spark: SparkSession, trips: str) -> None:
    assert "iceberg" in spark.sql(f"explain select * from {trips}").collect()[0][0]
    query = f"select id, who.name, who.age, tags[1], cast(at as string), price, month from {trips}"
    assert [tuple(map(str, row)) for row in rows_of(spark, query)] == [
        ("1", "Ada", "36", "b", "2024-01-05 10:00:00", "9.50", "1"),
        ("2", "None", "None", "None", "None", "None", "1"),
        ("3", "Bob", "41", "None", "None", "1.25", "2"),
    ]


def test_filters_on_columns_in_mixed_case_find_their_rows(spark: SparkSession, trips: str) -> None:
    assert rows_of(spark, f"select id from {trips} where id >= 3") == [(3,)]
    assert rows_of(spark, f"select id from {trips} where who.age > 40") == [(3,)]
    assert rows_of(spark, f"select id from {trips} where month = 1 and price > 1") == [(1,)]
    assert rows_of(spark, f"select month, count(*) from {trips} group by month") == [(1, 2), (2, 1)]


def test_old_and_new_files_live_side_by_side(spark: SparkSession, trips: str, catalog: Catalog) -> None:
    table = catalog.load_table(trips)
    rows = table.scan(row_filter="id = 3").to_arrow()
    table.append(rows.set_column(rows.column_names.index("id"), "id", [[4]]))
    with table.update_schema() as update:
        update.rename_column("price", "cost")
    query = f"select id, who.name, cost, month from {trips} where cost is not null"
    assert [tuple(map(str, row)) for row in rows_of(spark, query)] == [
        ("1", "Ada", "9.50", "1"),
        ("3", "Bob", "1.25", "2"),
        ("4", "Bob", "1.25", "2"),
    ]
    assert rows_of(spark, f"select id from {trips} where cost < 2") == [(3,), (4,)]


@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.since_spark("4.1", "INSERT that leaves columns out")
def test_nested_columns_that_were_added_are_null_in_old_files(
    spark: SparkSession, trips: str, catalog: Catalog, vectorized: str
) -> None:
    spark.sql(
        f"alter table {trips} add columns (home struct<city: string, codes: array<struct<n: int>>>, "
        "stops array<struct<at: date>>, fees map<string, struct<x: double>>)"
    )
    spark.sql(
        f"insert into {trips} (id, home, stops, fees, month) values (4, named_struct('city', 'Rome', 'codes', "
        "array(named_struct('n', 7))), array(named_struct('at', date'2024-02-29')), "
        "map('toll', named_struct('x', 1.5D)), 1)"
    )
    new = (4, None, "Rome", 7, "2024-02-29", 1.5, 1)
    old = [(1, "Ada", *[None] * 4, 1), (2, *[None] * 5, 1), (3, "Bob", *[None] * 4, 2)]
    query = (
        "select id, who.name, home.city, home.codes[0].n, cast(stops[0].at as string), fees['toll'].x, month "
        f"from (select * from {trips}) where "
    )
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        assert rows_of(spark, query + "true") == [*old, new]
        assert rows_of(spark, query + "home is null and stops is null") == old
        assert rows_of(spark, f"select id from {trips} where home.city = 'Rome'") == [(4,)]
        assert rows_of(spark, f"select count(home), count(fees), count(*) from {trips}") == [(1, 1, 4)]
        spark.sql(f"update {trips} set home = named_struct('city', 'Bonn', 'codes', null) where id = 1")
        changed = (1, "Ada", "Bonn", None, None, None, 1)
        assert rows_of(spark, query + "true") == [changed, *old[1:], new]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_files_without_ids_and_without_a_mapping_are_refused(spark: SparkSession, trips: str, catalog: Catalog) -> None:
    catalog.load_table(trips).remove_properties("schema.name-mapping.default")
    with pytest.raises(Exception, match=r"has no field ids and its table has no name mapping"):
        spark.sql(f"select id from {trips}").collect()
