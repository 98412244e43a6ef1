"""Proof by Spark before a switch and after it, and Hive tables that can only be copied."""

from __future__ import annotations

import datetime as dt
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.errors import MigrationError, UnsupportedError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import (
    MigrationOptions,
    add_folder,
    add_hive_files,
    migrate,
    plan_warehouse,
    rollback,
    snapshot,
)
from hms_iceberg.migration.rewrite import rewrite
from hms_iceberg.migration.verify import LEVELS, verify
from hms_iceberg.migration.warehouse.warehouse_plan import State
from tests.support import hive_acid
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, all_files, data_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.spark.migration.hive_reader import SparkHiveReader

pytestmark = pytest.mark.spark

ROWS = """
    select cast(id as int) as id, if(id = 2, null, concat('s', id)) as s, cast(id * 1.25 as decimal(9, 2)) as d,
           if(id = 1, double('NaN'), double(id) / 3) as f, date_add(date'1969-12-30', cast(id as int)) as day,
           timestamp'2013-01-01 05:00:00.123' as at, array(id, null) as l, map('k', id) as m,
           named_struct('x', cast(id as int)) as st, cast(concat('c', id) as char(5)) as c,
           if(id = 3, null, 'p') as part
    from range(5)
"""


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


@pytest.fixture
def reader(spark: SparkSession) -> SparkHiveReader:
    from hms_iceberg.spark.migration.hive_reader import SparkHiveReader

    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    return SparkHiveReader(spark)


def make(spark: SparkSession, name: str, form: str, rows: str = ROWS, keys: int = 1, properties: str = "") -> None:
    columns = [f"{field.name} {_type(field)}" for field in spark.sql(rows).schema]
    parts = f"partitioned by ({columns.pop()})" if keys else ""
    spark.sql(f"create table {name} ({', '.join(columns)}) {form} {parts} {properties}")
    spark.sql(f"insert into {name} {rows}")


def _type(field: Any) -> str:
    return str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING") or field.dataType.simpleString())


def answer(spark: SparkSession, name: str) -> list[str]:
    spark.catalog.refreshTable(name)
    return sorted(repr(row.asDict(recursive=True)) for row in spark.sql(f"select * from {name}").collect())


def test_every_level_finds_equal_tables_equal_and_each_its_difference(
    spark: SparkSession, catalog: Catalog, namespace: str, reader: SparkHiveReader
) -> None:
    name, rows = f"{namespace}.t", ROWS.replace("cast(concat('c', id) as char(5))", "1")
    make(spark, name, "stored as parquet", rows)

    def proof(hive: str, table: Any) -> tuple[str, ...]:
        return tuple(each for level in LEVELS for each in verify(hive, table, level, reader).differences)

    migrate(catalog, name, proof=proof)
    backup, table = f"{name}_backup_", catalog.load_table(name)
    told: list[tuple[str, int, int]] = []
    results = [verify(backup, table, level, reader, lambda *stage: told.append(stage)) for level in LEVELS]
    read = ("Reading the Iceberg table", 5, 5)
    of_hive = [(f"Reading {backup}", 0, 1), (f"Reading {backup}", 1, 1)]
    compared = [(f"Comparing rows with {backup}", done, 1) for done in (0, 1)]
    assert [each for each in told if each[0] != read[0] or each == read] == [*of_hive, read, *of_hive, *compared]
    assert [(each.rows, each.differences) for each in results] == [(5, ())] * 3

    spark.sql(f"update {name} set s = 's9' where id = 4")
    table = catalog.load_table(name)
    assert verify(backup, table, "counts", reader).is_equal
    sums = verify(backup, table, "sums", reader).differences
    assert [each.split(":")[0] for each in sums] == ["column 's'", "column 's'"] and "greatest value is s4" in sums[0]
    assert len(verify(backup, table, "rows", reader).differences) == 2
    spark.sql(f"delete from {name} where id = 0")
    [difference] = verify(backup, catalog.load_table(name), "counts", reader).differences
    assert difference == "the Hive table has 5 rows, the Iceberg table 4"


def test_values_that_changed_places_are_found_by_their_rows(
    spark: SparkSession, catalog: Catalog, namespace: str, reader: SparkHiveReader
) -> None:
    spark.sql(f"create table {namespace}.h stored as parquet as select * from values (1, 'a'), (2, 'b') as t(id, s)")
    table = catalog.create_table(f"{namespace}.i", pa.schema([("id", pa.int32()), ("s", pa.string())]))
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "s": ["b", "a"]}))

    assert verify(f"{namespace}.h", table, "sums", reader).differences == (
        "the values of every column are the same, but stand in other rows",
    )


def test_a_difference_stops_the_switch_and_leaves_the_hive_table_as_it_was(
    spark: SparkSession, catalog: Catalog, namespace: str, warehouse: HiveWarehouse
) -> None:
    make(spark, f"{namespace}.t", "stored as parquet", "select id, id % 2 as k from range(4)")
    before, files = warehouse.rows("t"), all_files(warehouse.rows("t").location)

    with pytest.raises(MigrationError, match="one is 1, the other 2"):
        migrate(catalog, f"{namespace}.t", proof=lambda hive, table: ("one is 1, the other 2",))

    assert (warehouse.rows("t"), warehouse.names()) == (before, ["t"])
    assert all_files(before.location) == files


@pytest.mark.parametrize(
    ("form", "keys"),
    [
        ("stored as textfile", 1),
        ("stored as rcfile", 0),
        ("row format serde 'org.apache.hadoop.hive.serde2.lazybinary.LazyBinarySerDe' stored as sequencefile", 0),
    ],
)
def test_what_can_only_be_copied_is_copied_proved_switched_and_taken_back(
    spark: SparkSession, catalog: Catalog, namespace: str, warehouse: HiveWarehouse, reader: Any, form: str, keys: int
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    name = f"{namespace}.t"
    make(spark, name, form, keys=keys, properties="tblproperties ('team' = 'ops')")
    expected, before = answer(spark, name), warehouse.rows("t")
    migrated = sorted(row.replace("'__HIVE_DEFAULT_PARTITION__'", "None") for row in expected)
    files = data_files(before.location)
    assert len(expected) == 5

    result = rewrite(
        catalog, name, rows=SparkCopier(spark), proof=lambda hive, it: verify(hive, it, "sums", reader).differences
    )

    assert result.records == 5 and 0 < result.files <= len(files)
    assert answer(spark, name) == migrated and answer(spark, f"{name}_backup_") == expected
    table = catalog.load_table(name)
    assert table.properties["team"] == "ops" and [field.name for field in table.spec().fields] == ["part"] * keys
    assert data_files(before.location) == files
    rollback(catalog, name)
    assert warehouse.rows("t") == before and answer(spark, name) == expected
    assert warehouse.names() == ["t"] and data_files(before.location) == files
    assert not all_files(local_path(table.location()))


@pytest.mark.parametrize(
    "form", ["using json", "using csv", "using parquet clustered by (id) into 2 buckets", "using orc"]
)
def test_what_spark_reads_as_a_data_source_is_copied_row_for_row(
    spark: SparkSession, catalog: Catalog, namespace: str, reader: Any, form: str
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    name = f"{namespace}.t"
    flat = """select cast(id as int) as id, if(id = 2, null, concat('s, "', id, '\\n')) as s, id / 3 as f,
                     cast(id * 1.25 as decimal(9, 2)) as d, date_add(date'1969-12-30', cast(id as int)) as day,
                     timestamp'2013-01-01 05:00:00.123' as at, id % 2 = 0 as b from range(5)"""
    columns = ", ".join(f"{field.name} {_type(field)}" for field in spark.sql(flat).schema)
    options = "options (multiLine 'true', quote '\"', escape '\"')" if "csv" in form else ""
    spark.sql(f"create table {name} ({columns}) {form} {options}")
    spark.sql(f"insert into {name} {flat}")
    expected = answer(spark, name)

    rewrite(catalog, name, rows=SparkCopier(spark), proof=lambda hive, it: verify(hive, it, "rows", reader).differences)

    assert answer(spark, name) == expected == answer(spark, f"{name}_backup_") and len(expected) == 5
    rollback(catalog, name)
    assert answer(spark, name) == expected


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_dates_of_the_old_calendar_are_copied_as_their_writer_meant_them_and_a_proof_sees_them_otherwise(
    spark: SparkSession, catalog: Catalog, namespace: str, reader: Any, form: str
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    name = f"{namespace}.t"
    spark.sql(f"create table {name} (d date, t timestamp) stored as {form}")
    modes = [f"spark.sql.parquet.{mode}RebaseModeInWrite" for mode in ("datetime", "int96")]
    for each in modes:
        spark.conf.set(each, "LEGACY")
    spark.conf.set("spark.sql.hive.convertMetastoreOrc", "false")  # Hive's writer knows the old calendar only
    try:
        spark.sql(f"insert into {name} values (date'1500-01-01', null), (date'2000-01-01', timestamp'2000-01-01')")
    finally:
        for each in (*modes, "spark.sql.hive.convertMetastoreOrc"):
            spark.conf.unset(each)
    expected = answer(spark, name)
    assert "datetime.date(1500, 1, 1)" in expected[0]

    with pytest.raises(UnsupportedError, match=r"(?s)calendar.*--rewrite.*Nothing was changed"):
        migrate(catalog, name)
    [plan] = plan_warehouse(catalog, [name]).tables
    assert plan.state is State.REWRITE and "calendar" in plan.reasons[0]

    def prove(hive: str, table: Any) -> tuple[str, ...]:
        return tuple(each for level in ("sums", "rows") for each in verify(hive, table, level, reader).differences)

    rewrite(catalog, name, rows=SparkCopier(spark), proof=prove)
    assert sorted(map(str, catalog.load_table(name).scan().to_arrow()["d"].to_pylist())) == ["1500-01-01", "2000-01-01"]
    assert answer(spark, name) == answer(spark, f"{name}_backup_") == expected


@pytest.mark.parametrize("form", ["INT96", "INT64"])
def test_what_hive_counted_in_the_old_calendar_is_refused_by_a_copy_too_as_plain_spark_does_not_know_its_marks(
    spark: SparkSession, catalog: Catalog, namespace: str, warehouse: HiveWarehouse, form: str
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    name = f"{namespace}.t"
    made = warehouse.create("t", "d date, t timestamp")
    marks = {"writer.date.proleptic": "false", "writer.time.zone": "America/New_York"}
    marks["writer.zone.conversion.legacy"] = "false"

    def write(file: str, day: dt.date, at: dt.datetime) -> None:
        rows = pa.table({"d": pa.array([day]), "t": pa.array([at], pa.timestamp("us"))})
        int96 = form == "INT96"
        marked = rows.replace_schema_metadata(marks)
        sink = io.BytesIO()
        pq.write_table(marked, sink, use_deprecated_int96_timestamps=int96, version="2.6")
        (made.location / file).write_bytes(sink.getvalue())

    write("000000_0", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1))
    write("000001_0", dt.date(1500, 1, 10), dt.datetime(1500, 1, 10))
    assert "datetime.date(1500, 1, 10)" in answer(spark, name)[0]  # Hive means the 1st
    files = all_files(made.location)

    for way in (lambda: migrate(catalog, name), lambda: rewrite(catalog, name, rows=SparkCopier(spark))):
        with pytest.raises(
            UnsupportedError, match=r"(?s)000001_0.*calendar.*stored as orc.*Nothing was changed"
        ) as told:
            way()
        assert "With --rewrite, Spark" not in str(told.value)
    assert (warehouse.rows("t"), all_files(made.location), warehouse.names()) == (made, files, ["t"])

    (made.location / "000001_0").unlink()
    rewrite(catalog, name, rows=SparkCopier(spark))
    assert [str(each) for each in catalog.load_table(name).scan().to_arrow()["d"].to_pylist()] == ["2020-01-01"]


LAZY, CSV = (f"org.apache.hadoop.hive.serde2.{name}" for name in ("lazy.LazySimpleSerDe", "OpenCSVSerde"))
# What Hive means by settings of a SerDe: the file, and the rows.
SETTINGS: dict[str, tuple[str, dict[str, str], bytes, list[tuple[Any, ...]]]] = {
    "null": (LAZY, {"serialization.null.format": "NA"}, b"1,NA\nNA,b\n2,\\N\n", [(1, None), (None, "b"), (2, "\\N")]),
    "escape": (LAZY, {"escape.delim": "\\"}, b"1,a\\,b\n2,c\\\\d\n", [(1, "a,b"), (2, "c\\d")]),
    "line": (LAZY, {"line.delim": "|"}, b"1,a|2,b|\n", [(1, "a|2")]),
    "rest": (LAZY, {"serialization.last.column.takes.rest": "true"}, b"1,a,b\r\n2\n", [(1, "a,b"), (2, None)]),
    "code": (LAZY, {"serialization.encoding": "ISO-8859-1"}, "1,ä\n".encode("latin1"), [(1, "ä")]),
    "csv": (CSV, {"quoteChar": "'"}, b"1,'a,b'\n2,'c\nd'\n", [("1", "a,b"), ("2", None), (None, None)]),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_copy_has_the_rows_that_settings_of_a_serde_mean(
    spark: SparkSession, catalog: Catalog, namespace: str, warehouse: HiveWarehouse, setting: str
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    serde, parameters, data, expected = SETTINGS[setting]
    delimiter = {"field.delim": ","} if serde == LAZY else {}
    info = ttypes.SerDeInfo(serializationLib=serde, parameters={**delimiter, **parameters})
    text = {
        "inputFormat": "org.apache.hadoop.mapred.TextInputFormat",
        "outputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    }
    made = warehouse.create("t", "id int, s string", serdeInfo=info, **text)
    (made.location / "000000_0").write_bytes(data)

    rewrite(catalog, f"{namespace}.t", rows=SparkCopier(spark))

    rows = catalog.load_table(f"{namespace}.t").scan().to_arrow().to_pylist()
    assert sorted(((row["id"], row["s"]) for row in rows), key=repr) == sorted(expected, key=repr)


def test_a_table_whose_serde_spark_lacks_is_refused_before_anything_is_written(
    spark: SparkSession, catalog: Catalog, namespace: str, warehouse: HiveWarehouse
) -> None:
    from hms_iceberg.spark.migration.hive_reader import SparkCopier

    made = warehouse.create("t", "id int", serdeInfo=ttypes.SerDeInfo(serializationLib="org.example.NoSuchSerDe"))
    for work in (
        lambda: rewrite(catalog, f"{namespace}.t", rows=SparkCopier(spark)),
        lambda: migrate(catalog, f"{namespace}.t"),
    ):
        with pytest.raises(UnsupportedError, match=r"(?s)NoSuchSerDe.*Nothing was changed"):
            work()
    assert (warehouse.rows("t"), all_files(made.location)) == (made, set())


def test_transactional_tables_and_files_as_hive_writes_them_are_refused_by_every_way(
    spark: SparkSession, catalog: Catalog, namespace: str, warehouse: HiveWarehouse
) -> None:
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    storage = {
        "inputFormat": f"{orc}InputFormat",
        "outputFormat": f"{orc}OutputFormat",
        "serdeInfo": ttypes.SerDeInfo(serializationLib=f"{orc}Serde"),
    }
    buckets = {"numBuckets": 1, "bucketCols": ["id"]}
    acid = warehouse.create("t", "id int, name string", parameters={"transactional": "true"}, **storage, **buckets)
    hive_acid.write(spark, acid.table.sd.location, [(1, "a"), (2, None)])
    plain = warehouse.create("plain", "id int, name string", location=acid.table.sd.location, **storage)
    loose = warehouse.create("loose", "id int, name string", **storage)
    [delta] = acid.location.glob("delta_*/bucket_*")
    shutil.copy(delta, loose.location / "000000_0")
    files = all_files(acid.location)

    ways: list[Any] = [lambda name: migrate(catalog, name), lambda name: snapshot(catalog, name, f"{namespace}.copy")]
    subdirectories = MigrationOptions(include_subdirectories=True)
    for name in ("t", "plain", "loose"):
        for way in (*ways, lambda name: migrate(catalog, name, subdirectories)):
            with pytest.raises(UnsupportedError, match=r"(?s)transactional \(ACID\).*Nothing was changed"):
                way(f"{namespace}.{name}")
    table = catalog.create_table(f"{namespace}.target", pa.schema([("id", pa.int32()), ("name", pa.string())]))
    ways = [
        lambda name: rewrite(catalog, name, rows=None),
        lambda name: add_hive_files(catalog, table.identifier, name),
    ]  # type: ignore[arg-type]
    for name in ("t", "plain"):
        for way in (*ways, lambda _: add_folder(catalog, table.identifier, acid.table.sd.location)):
            with pytest.raises(UnsupportedError, match=r"transactional.*have Hive copy it"):
                way(f"{namespace}.{name}")
    assert [warehouse.rows(name) for name in ("t", "plain", "loose")] == [acid, plain, loose]
    assert all_files(acid.location) == files and len(files) >= 1


def test_the_commands_copy_prove_compare_and_register(
    spark: SparkSession,
    catalog: Catalog,
    namespace: str,
    metastore: EmbeddedMetastore,
    capsys: pytest.CaptureFixture[str],
) -> None:
    uri = ["--uri", metastore.uri]
    make(spark, f"{namespace}.csv", "using csv", "select id, id % 2 as k from range(4)")
    make(spark, f"{namespace}.plain", "stored as parquet", "select id, id % 2 as k from range(4)")

    assert main(["migrate", f"{namespace}.*", *uri, "--rewrite", "--verify", "counts", "--output", "json"]) == 0
    told = {each["table"]: each["outcome"] for each in json.loads(capsys.readouterr().out)}
    assert told == {f"{namespace}.csv": "rewritten", f"{namespace}.plain": "migrated"}
    against = [f"{namespace}.plain", "--against", f"{namespace}.plain_backup_", *uri]
    assert main(["verify", *against]) == 0
    assert "4 rows" in capsys.readouterr().out
    catalog.load_table(f"{namespace}.plain").delete("id = 1")
    assert main(["verify", *against, "--level", "counts"]) == 1
    assert "4 rows, the Iceberg table 3" in capsys.readouterr().out

    location = catalog.load_table(f"{namespace}.csv").metadata_location
    assert main(["register", f"{namespace}.again", location, *uri]) == 0
    assert catalog.load_table(f"{namespace}.again").scan().count() == 4
    assert main(["register", f"{namespace}.again", location, *uri]) == 1
