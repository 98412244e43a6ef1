"""Hive tables of ORC and Avro files, and of several formats: after the migration everybody reads what Spark read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration import MigrationOptions, migrate, rollback
from tests.support.hdfs_path import local_path
from tests.support.hive_rows import every_type
from tests.support.hive_warehouse import HiveWarehouse, data_files, write_orc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TYPES = every_type()


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


@pytest.fixture(autouse=True)
def _dynamic_partitions(spark: SparkSession) -> None:
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")


def answer(spark: SparkSession, sql: str) -> list[Any]:
    rows = (row.asDict(recursive=True) for row in spark.sql(sql).collect())
    return sorted(({key: _plain(value) for key, value in row.items()} for row in rows), key=repr)


def ours(catalog: Catalog, name: str, **scan: Any) -> list[dict[str, Any]]:
    """Rows as Python reads them, in the shape in which Spark's are."""
    rows = catalog.load_table(name).scan(**scan).to_arrow().to_pylist()
    return sorted(({key: _plain(value) for key, value in row.items()} for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, bytearray):  # Spark 4.0's binary
        return bytes(value)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


@pytest.mark.parametrize("layout", ["partitioned", "flat"])
@pytest.mark.parametrize("made", ["stored as orc", "using orc", "stored as avro"])
def test_orc_and_avro_tables_have_the_same_rows_in_spark_and_python_and_are_taken_back(
    spark: SparkSession, warehouse: HiveWarehouse, layout: str, made: str
) -> None:
    name = f"{warehouse.namespace}.t"
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in spark.sql(TYPES).schema]
    keys = f"partitioned by ({columns.pop()})" if layout == "partitioned" else ""
    spark.sql(f"create table {name} ({', '.join(columns)}) {made} {keys}")
    spark.sql(f"insert into {name} {TYPES}")
    condition = "i64 >= 2 and s > 's1' and day >= '1970-01-01' and (at > '1970-01-01' or at is null)"
    expected = answer(spark, f"select * from {name}")
    filtered = answer(spark, f"select i32, part from {name} where {condition}")
    for row in (*expected, *filtered):  # through Hive's SerDe, Spark shows the name of a null's folder
        row["part"] = None if row["part"] == "__HIVE_DEFAULT_PARTITION__" else row["part"]
    assert len(expected) == 5 and len(filtered) == 3
    before = warehouse.rows("t")
    files = data_files(before.location)

    migrate(warehouse.catalog, name)

    assert data_files(before.location) == files
    assert repr(answer(spark, f"select * from {name}")) == repr(expected)
    assert answer(spark, f"select i32, part from {name} where {condition}") == filtered
    assert repr(ours(warehouse.catalog, name)) == repr(expected)
    kind = str(warehouse.catalog.load_table(name).schema().find_type("at"))
    assert kind == ("timestamptz" if "avro" in made else "timestamp")

    rollback(warehouse.catalog, name)
    assert warehouse.rows("t") == before
    spark.catalog.refreshTable(name)
    assert len(answer(spark, f"select * from {name}")) == 5


def test_partitions_of_several_formats_are_read_each_as_its_descriptor_says(
    spark: SparkSession, warehouse: HiveWarehouse
) -> None:
    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} (id int, price double) partitioned by (k int) stored as textfile")
    for number, kind in enumerate(("parquet", "orc", "avro")):
        part = f"{name}_{kind}"
        spark.sql(f"create table {part} (id int, price double) stored as {kind}")
        spark.sql(f"insert into {part} values ({number}, {number}.25), (null, null)")
        warehouse.attach_partition("t", [str(number)], f"t_{kind}")
    spark.sql(f"alter table {name} add columns (later string)")
    expected = answer(spark, f"select * from {name}")
    assert len(expected) == 6

    migrate(warehouse.catalog, name)

    assert answer(spark, f"select * from {name}") == ours(warehouse.catalog, name) == expected
    formats = {task.file.file_format for task in warehouse.catalog.load_table(name).scan().plan_files()}
    assert formats == {"PARQUET", "ORC", "AVRO"}
    rollback(warehouse.catalog, name)
    spark.catalog.refreshTable(name)
    assert answer(spark, f"select * from {name}") == expected

    spark.sql(f"insert into {name} partition (k = 9) values (9, 9.5, 'x')")
    with pytest.raises(UnsupportedError, match=r"(?s)partition k=9 is stored as LazySimpleSerDe.*--rewrite"):
        migrate(warehouse.catalog, name)


def test_files_of_hive_with_places_for_names_are_read_as_spark_reads_them(
    spark: SparkSession, warehouse: HiveWarehouse
) -> None:
    name = f"{warehouse.namespace}.t"
    columns = "Id int, price decimal(9,2), place struct<x:int,label:string>, later string"
    spark.sql(f"create table {name} ({columns}) stored as orc")
    folder = local_path(warehouse.rows("t").table.sd.location)
    place = pa.struct([("x", pa.int32()), ("label", pa.string())])
    old = {
        "_col0": pa.array([1, None], pa.int32()),
        "_col1": pa.array([Decimal("1.5"), None], pa.decimal128(7, 2)),
        "_col2": pa.array([{"x": 1, "label": "a"}, None], place),
    }
    write_orc(folder / "000000_0", pa.table(old))
    spark.sql(f"insert into {name} values (3, 3.25, named_struct('x', 3, 'label', 'c'), 'new')")
    expected = answer(spark, f"select * from {name}")
    assert len(expected) == 3

    migrate(warehouse.catalog, name)

    assert answer(spark, f"select * from {name}") == ours(warehouse.catalog, name) == expected
    assert [row["Id"] for row in ours(warehouse.catalog, name, row_filter="Id >= 2")] == [3]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kolkata"])
def test_orc_timestamps_show_the_clock_of_the_writer_whatever_its_zone(
    spark: SparkSession, warehouse: HiveWarehouse, zone: str
) -> None:
    name = f"{warehouse.namespace}.t"
    jvm: Any = spark.sparkContext._jvm
    clock = [
        dt.datetime(1950, 7, 1, 12, 0, 0, 123456),
        dt.datetime(2013, 11, 3, 1, 30),
    ]
    default = jvm.java.util.TimeZone.getDefault()
    spark.sql(f"create table {name} (at timestamp) stored as orc")
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(zone))
    try:
        spark.conf.set("spark.sql.session.timeZone", zone)
        texts = ", ".join(f"(timestamp_ltz'{each}')" for each in clock)
        spark.sql(f"insert into {name} values {texts}")
        shown = {row.at for row in spark.sql(f"select cast(at as string) as at from {name}").collect()}
    finally:
        jvm.java.util.TimeZone.setDefault(default)
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    migrate(warehouse.catalog, name)

    assert {str(row["at"]) for row in ours(warehouse.catalog, name)} == shown == {str(each) for each in clock}
    assert {row.at for row in spark.sql(f"select cast(at as string) as at from {name}").collect()} == shown


def test_orc_files_cannot_be_migrated_as_what_iceberg_would_not_read(
    spark: SparkSession, warehouse: HiveWarehouse
) -> None:
    name = f"{warehouse.namespace}.t"
    spark.sql(f"create table {name} stored as orc as select timestamp'2020-01-01' as at, date'1500-01-01' as day")
    before = warehouse.rows("t")

    with pytest.raises(UnsupportedError, match=r"(?s)ORC files hold times without zone.*--rewrite"):
        migrate(warehouse.catalog, name, MigrationOptions(timestamp_type="timestamptz"))

    assert warehouse.rows("t") == before and warehouse.names() == ["t"]
