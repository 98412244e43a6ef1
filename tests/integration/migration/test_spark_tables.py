"""Hive tables that real Spark wrote: after the migration Spark and Python return what Spark returned before."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration import MigrationOptions, migrate, rollback
from hms_iceberg.migration.rewrite import rewrite
from tests.support.hive_warehouse import HiveWarehouse, Rows, all_files, data_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TYPES = """
    select cast(id as tinyint) as i8, cast(id as smallint) as i16, cast(id as int) as i32, id as i64,
           cast(id as float) / 3 as f32, cast(id as double) / 7 as f64, id % 2 = 0 as b,
           cast(id * 1.25 as decimal(9, 2)) as d9, cast(id * 1000000000000.125 as decimal(38, 10)) as d38,
           concat('s', id) as s, cast(concat('b', id) as binary) as bin,
           date_add(date'1969-12-30', cast(id as int)) as day,
           timestamp'1969-12-31 23:59:58.123456' + make_interval(0, 0, 0, 0, 0, 0, id) as at,
           array(id, null) as l, map(concat('k', id), cast(id as int)) as m,
           named_struct('inner', cast(id as int), 'l', array(named_struct('x', concat('x', id)))) as st,
           if(id = 3, null, concat('p', id)) as part
    from range(5)
"""


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


def answer(spark: SparkSession, sql: str) -> list[Any]:
    return sorted((row.asDict(recursive=True) for row in spark.sql(sql).collect()), key=repr)


def migrated(warehouse: HiveWarehouse, name: str, **options: Any) -> Rows:
    """Migrates a table and checks that no file moved; what the metastore knew of it before."""
    before = warehouse.rows(name)
    files = data_files(before.location)
    migrate(warehouse.catalog, (warehouse.namespace, name), MigrationOptions(**options))
    assert data_files(before.location) == files
    return before


@pytest.mark.parametrize("layout", ["partitioned", "flat"])
@pytest.mark.parametrize("made", ["hive", "datasource"])
@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS"])
def test_spark_returns_the_same_rows_of_every_type(
    spark: SparkSession, warehouse: HiveWarehouse, layout: str, made: str, timestamps: str
) -> None:
    name = f"{warehouse.namespace}.t"
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in spark.sql(TYPES).schema]
    form = "stored as parquet" if made == "hive" else "using parquet"
    keys = f"partitioned by ({columns.pop()})" if layout == "partitioned" else ""
    spark.sql(f"create table {name} ({', '.join(columns)}) {form} {keys}")
    spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    try:
        spark.sql(f"insert into {name} {TYPES}")
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    expected = answer(spark, f"select * from {name}")
    filtered = answer(spark, f"select i32, part from {name} where i64 >= 2 and part is not null and at > '1970-01-01'")
    assert len(expected) == 5

    before = migrated(warehouse, "t")

    assert answer(spark, f"select * from {name}") == expected
    found = answer(spark, f"select i32, part from {name} where i64 >= 2 and part is not null and at > '1970-01-01'")
    assert found == filtered
    arrow = warehouse.catalog.load_table(name).scan().to_arrow().to_pylist()
    assert sorted(repr(row["i64"]) for row in arrow) == sorted(repr(row["i64"]) for row in expected)
    moments = {row["i64"]: row["at"].astimezone(dt.timezone.utc).replace(tzinfo=None) for row in arrow}
    assert moments == {row["i64"]: row["at"] for row in expected}
    assert answer(spark, f"select * from {name}_backup_") == expected

    rollback(warehouse.catalog, name)
    assert warehouse.rows("t") == before
    spark.catalog.refreshTable(name)
    assert answer(spark, f"select * from {name}") == expected


def test_names_in_upper_and_lower_case_survive(spark: SparkSession, warehouse: HiveWarehouse) -> None:
    name = f"{warehouse.namespace}.t"
    frame = spark.sql("select id as FlightId, named_struct('DepDelay', id) as Delays, id % 2 as TheMonth from range(4)")
    frame.write.partitionBy("TheMonth").saveAsTable(name, format="parquet")
    expected = answer(spark, f"select * from {name}")

    migrated(warehouse, "t")

    assert answer(spark, f"select * from {name}") == expected
    table = warehouse.catalog.load_table(name)
    assert [field.name for field in table.schema().fields] == ["FlightId", "Delays", "TheMonth"]
    delays = table.scan("TheMonth = 1").to_arrow()["Delays"].to_pylist()
    assert sorted(delay["DepDelay"] for delay in delays) == [1, 3]


def test_a_table_whose_files_have_other_case_than_hive_is_read_right(
    spark: SparkSession, warehouse: HiveWarehouse
) -> None:
    name = f"{warehouse.namespace}.t"
    made = warehouse.create("t", "flightid bigint, delays struct<depdelay:bigint>")
    frame = spark.sql("select id as FlightId, named_struct('DepDelay', id) as Delays from range(3)")
    frame.write.mode("append").parquet(made.table.sd.location)

    migrated(warehouse, "t")

    rows = warehouse.catalog.load_table(name).scan().to_arrow().to_pylist()
    assert sorted(row["flightid"] for row in rows) == [0, 1, 2]
    assert answer(spark, f"select flightid, delays.depdelay as d from {name}") == [
        {"flightid": number, "d": number} for number in range(3)
    ]


def test_timestamps_without_zone_stay_without_zone(spark: SparkSession, warehouse: HiveWarehouse) -> None:
    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} using parquet as select timestamp_ntz'2013-01-01 05:00:00.5' as at")
    expected = answer(spark, f"select * from {name}")

    migrated(warehouse, "t")

    assert str(warehouse.catalog.load_table(name).schema().find_field("at").field_type) == "timestamp"
    assert answer(spark, f"select * from {name}") == expected


def test_partitions_of_odd_names_that_spark_wrote_are_read(spark: SparkSession, warehouse: HiveWarehouse) -> None:
    name = f"{warehouse.namespace}.t"
    values = ["a/b", "50%", "x=y", "ü ber", "%2F", "a b", "q'uote", None]
    frame = spark.createDataFrame([(number, value) for number, value in enumerate(values)], "id int, k string")
    frame.write.partitionBy("k").saveAsTable(name, format="parquet")
    expected = answer(spark, f"select id, k from {name}")
    assert len(expected) == len(values)

    migrated(warehouse, "t")

    assert answer(spark, f"select id, k from {name}") == expected
    rows = warehouse.catalog.load_table(name).scan().to_arrow().to_pylist()
    assert {row["id"]: row["k"] for row in rows} == dict(enumerate(values))


def test_columns_that_were_added_later_are_null_in_older_files(spark: SparkSession, warehouse: HiveWarehouse) -> None:
    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} (id int) partitioned by (k int) stored as parquet")
    spark.sql(f"insert into {name} partition (k = 1) values (1)")
    spark.sql(f"alter table {name} add columns (late string comment 'came later')")
    spark.sql(f"insert into {name} partition (k = 2) values (2, 'x')")
    expected = answer(spark, f"select * from {name}")

    migrated(warehouse, "t")

    assert answer(spark, f"select * from {name}") == expected
    assert warehouse.catalog.load_table(name).schema().find_field("late").doc == "came later"


@pytest.mark.parametrize("how", ["drop table {}", "drop table {} purge", "truncate table {}"])
def test_spark_cannot_delete_data_through_the_backup(spark: SparkSession, warehouse: HiveWarehouse, how: str) -> None:
    from pyspark.errors import AnalysisException

    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} stored as parquet as select id, id % 2 as k from range(4)")
    before = migrated(warehouse, "t")
    files = all_files(before.location)

    if how.startswith("truncate"):
        with pytest.raises(AnalysisException, match="TRUNCATE"):
            spark.sql(how.format(f"{name}_backup_"))
    else:
        spark.sql(how.format(f"{name}_backup_"))

    assert all_files(before.location) == files
    assert warehouse.catalog.load_table(name).scan().to_arrow().num_rows == 4


def test_rows_appended_to_iceberg_are_not_seen_in_the_backup(spark: SparkSession, warehouse: HiveWarehouse) -> None:
    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} stored as parquet as select id from range(4)")
    expected = answer(spark, f"select * from {name}")
    migrated(warehouse, "t")

    warehouse.catalog.load_table(name).append(warehouse.catalog.load_table(name).scan().to_arrow())

    assert len(answer(spark, f"select * from {name}")) == 8
    assert answer(spark, f"select * from {name}_backup_") == expected


def test_the_procedure_takes_the_choices_of_the_command(spark: SparkSession, warehouse: HiveWarehouse) -> None:
    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} (c char(3), at timestamp) stored as parquet")
    spark.sql(f"insert into {name} values ('a', timestamp'2020-01-01')")
    choices = "char_as_string => true, timestamp_type => 'timestamptz', include_subdirectories => true, "
    choices += "ignore_missing_files => true"

    copied = spark.sql(f"call system.snapshot(source_table => '{name}', table => '{name}2', {choices})").collect()
    moved = spark.sql(f"call system.migrate(table => '{name}', drop_backup => true, {choices})").collect()

    assert [tuple(copied[0]), tuple(moved[0])] == [(1,), (1,)]
    assert warehouse.names() == ["t", "t2"] and spark.table(name).count() == 1
    for made in (name, f"{name}2"):
        assert [str(f.field_type) for f in warehouse.catalog.load_table(made).schema().fields] == [
            "string",
            "timestamptz",
        ]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("create table {} stored as textfile as select id from range(1)", "stored as LazySimpleSerDe"),
        ("create table {} using csv as select id from range(1)", "stored as csv"),
        ("create table {} using parquet clustered by (id) into 2 buckets as select id from range(1)", "bucketed"),
        ("create view {} as select id from range(1)", "it is a view"),
        ("create table {} (c char(3)) stored as parquet", "--char-as-string"),
    ],
)
def test_a_table_that_cannot_be_migrated_is_refused_and_stays(
    spark: SparkSession, warehouse: HiveWarehouse, statement: str, reason: str
) -> None:
    spark.sql(statement.format(f"{warehouse.namespace}.t"))
    before = warehouse.rows("t")

    with pytest.raises(UnsupportedError) as caught:
        migrate(warehouse.catalog, (warehouse.namespace, "t"))

    assert reason in str(caught.value)
    assert warehouse.rows("t") == before
    assert warehouse.names() == ["t"]


def test_days_of_the_old_calendar_are_refused_in_place_and_right_in_a_copy(
    spark: SparkSession, warehouse: HiveWarehouse
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    name = f"{warehouse.namespace}.t"
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    try:
        spark.sql(f"create table {name} using parquet as select date'1500-01-01' as day, array(date'1400-01-01') as l")
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
    expected, before = answer(spark, f"select * from {name}"), warehouse.rows("t")

    with pytest.raises(UnsupportedError, match=r"(?s)old calendar of Java.*\(in day, l.element\).*rewrite"):
        migrate(warehouse.catalog, name)
    assert warehouse.rows("t") == before

    rewrite(warehouse.catalog, name, rows=SparkCopier(spark))
    assert answer(spark, f"select * from {name}") == expected
    assert warehouse.catalog.load_table(name).scan("day = '1500-01-01'").to_arrow().to_pylist() == expected
