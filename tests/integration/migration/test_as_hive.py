"""The way back with what was appended since: in the Hive table Spark reads the rows that it read in the Iceberg one."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance import rewrite_data_files
from hms_iceberg.migration import MigrationOptions, migrate, rollback
from hms_iceberg.table import Table
from tests.support.hive_rows import every_type
from tests.support.hive_warehouse import HiveWarehouse, all_files, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


def rows_of(form: str, first: int, end: int) -> str:
    """Rows of every type; ORC files written here hold no fractions of seconds before 1970."""
    year = 1970 if "orc" in form else 1969
    part = "if(id % 5 = 3, null, concat('p/=%', id % 7))"
    rows = every_type(first, end, start=f"{year}-12-31 23:59:58.123456", part=part)
    return rows.replace("as i64", "as I64")


def answer(spark: SparkSession, name: str) -> list[str]:
    spark.catalog.refreshTable(name)
    return sorted(repr(row.asDict(recursive=True)) for row in spark.sql(f"select * from {name}").collect())


def _type(field: Any) -> str:
    return str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING") or field.dataType.simpleString())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("form", "keys", "zone"),
    [
        ("stored as parquet", 1, "Asia/Kolkata"),
        pytest.param("using parquet", 1, "UTC", marks=pytest.mark.whole),
        ("using orc", 0, "Asia/Kolkata"),
    ],
)
def test_every_appended_row_is_in_the_hive_table(
    spark: SparkSession, warehouse: HiveWarehouse, form: str, keys: int, zone: str
) -> None:
    name = f"{warehouse.namespace}.t"
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        columns = [f"{field.name} {_type(field)}" for field in spark.sql(rows_of(form, 0, 5)).schema]
        by = ""
        if keys:
            by = "partitioned by (part)" if form.startswith("using") else f"partitioned by ({columns.pop()})"
        spark.sql(f"create table {name} ({', '.join(columns)}) {form} {by}")
        spark.sql(f"insert into {name} {rows_of(form, 0, 5)}")
        rewritten = "orc" if "orc" in form else "parquet"
        migrate(warehouse.catalog, name, MigrationOptions(properties={"write.format.default": rewritten}))
        spark.catalog.refreshTable(name)
        spark.sql(f"insert into {name} {rows_of(form, 5, 12)}")
        spark.sql(f"insert into {name} {rows_of(form, 0, 3)}")
        table = warehouse.catalog.load_table(name)
        table.append(table.scan("i32 = 4").to_arrow())
        expected = answer(spark, name)
        before = warehouse.rows("t_backup_")

        result = rollback(warehouse.catalog, name, as_hive=True)

        assert result.appended_files > 2 and len(expected) == 16
        assert answer(spark, name) == expected
        assert spark.table(name).count() == 16 and warehouse.names() == ["t"]
        assert warehouse.rows("t").table.tableType == "MANAGED_TABLE"
        assert len(warehouse.rows("t").partitions) == len(before.partitions) + (3 if keys else 0)
        migrate(warehouse.catalog, name)  # and there again
        assert answer(spark, name) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def rows(*ids: int, month: int | None = None) -> pa.Table:
    found = pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]})
    return found if month is None else found.append_column("month", pa.array([month] * len(ids), pa.int32()))


@pytest.fixture
def migrated(warehouse: HiveWarehouse) -> HiveWarehouse:
    """`flights` with a narrow column and two partitions, migrated."""
    warehouse.create("flights", "id smallint, name varchar(4)", "month int")
    warehouse.add_partition("flights", ["1"], rows(1, 2))
    warehouse.add_partition("flights", ["2"], rows(3))
    migrate(warehouse.catalog, f"{warehouse.namespace}.flights")
    return warehouse


def _compact(table: Table) -> None:
    table.append(rows(8, month=1))
    rewrite_data_files(table, options={"rewrite-all": "true"})


def _rename_for_a_while(table: Table) -> None:
    table.update_schema().rename_column("name", "called").commit()
    table.append(rows(8, month=1).rename_columns(["id", "called", "month"]))
    table.update_schema().rename_column("called", "name").commit()


def _branch(table: Table) -> None:
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "trial").commit()
    table.append(rows(8, month=1), branch="trial")


def _orc(table: Table) -> None:
    table.set_properties({"write.format.default": "orc"}).append(rows(8, month=1))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.delete("id = 1"), "files of the Hive table are not part of it any more"),
        pytest.param(_compact, "files of the Hive table are not part of it any more", marks=pytest.mark.whole),
        (lambda table: table.update_schema().add_column("late", "string").commit(), "columns were changed"),
        pytest.param(_rename_for_a_while, "columns were changed", marks=pytest.mark.whole),
        (lambda table: table.update_spec().add_identity("id").commit(), "partition spec was changed"),
        (_orc, "is ORC, and Hive's files there are PARQUET"),
        (lambda table: table.append(rows(40_000, month=7)), "'id' has values that Hive's smallint cannot hold"),
        (lambda table: table.append(rows(10_000, month=1)), r"'name' has values that Hive's varchar\(4\) cannot hold"),
        (_branch, "branch or tag 'trial'"),
    ],
)
def test_what_hive_would_read_otherwise_is_refused_before_anything_is_changed(
    catalog: Catalog, migrated: HiveWarehouse, change: Any, reason: str
) -> None:
    name = f"{migrated.namespace}.flights"
    change(catalog.load_table(name))
    location, backup = catalog.load_table(name).metadata_location, migrated.rows("flights_backup_")
    files = all_files(backup.location)

    with pytest.raises(UnsupportedError, match=rf"(?s){name}.*{reason}.*--discard-changes"):
        rollback(catalog, name, as_hive=True)

    assert catalog.load_table(name).metadata_location == location
    assert (migrated.rows("flights_backup_"), all_files(backup.location)) == (backup, files)


def test_the_command_hands_rows_back_and_hive_counts_anew(
    catalog: Catalog, warehouse: HiveWarehouse, metastore: EmbeddedMetastore, capsys: pytest.CaptureFixture[str]
) -> None:
    statistics = {"numRows": "2", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "team": "ops"}
    made = warehouse.create("plain", "id int, name string", parameters=statistics)
    write_files(made.table.sd.location, rows(1, 2))
    name = f"{warehouse.namespace}.plain"
    migrate(catalog, name)
    catalog.load_table(name).append(rows(3))
    with pytest.raises(InvalidInputError, match="Choose one"):
        rollback(catalog, name, as_hive=True, discard_changes=True)

    assert main(["rollback-migration", name, "--as-hive", "--uri", metastore.uri]) == 0

    assert "2 files, 1 of them appended since" in capsys.readouterr().out
    now = warehouse.rows("plain")
    assert now.table.parameters["team"] == "ops" and not statistics.keys() - {"team"} & now.table.parameters.keys()
    assert len([file for file in all_files(now.location) if not file.startswith("_iceberg/")]) == 2
    migrate(catalog, name)
    assert sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_values_of_partitions_get_the_names_that_hive_gives_them(catalog: Catalog, warehouse: HiveWarehouse) -> None:
    keys = "d date, s string, n decimal(5,2), b boolean"
    warehouse.create("t", "id int", keys)
    warehouse.add_partition("t", ["2020-01-01", "a", "1.50", "true"], pa.table({"id": pa.array([1], pa.int32())}))
    name = f"{warehouse.namespace}.t"
    migrate(catalog, name)
    table = catalog.load_table(name)
    schema = table.schema().as_arrow()
    more = [
        {"id": 2, "d": dt.date(1969, 12, 31), "s": "ü ?*:[x]", "n": 2, "b": False},
        {"id": 3, "d": None, "s": None, "n": None, "b": None},
    ]
    table.append(pa.Table.from_pylist(more, schema))

    rollback(catalog, name, as_hive=True)

    found = {tuple(row.values): row.sd.location.split("/t/", 1)[1] for row in warehouse.rows("t").partitions}
    null = "__HIVE_DEFAULT_PARTITION__"
    assert found[("1969-12-31", "ü ?*:[x]", "2.00", "false")] == "d=1969-12-31/s=ü %3F%2A%3A%5Bx%5D/n=2.00/b=false"
    assert (null,) * 4 in found and len(found) == 3
    migrate(catalog, name)
    assert catalog.load_table(name).scan().count() == 3
    catalog.load_table(name).append(pa.Table.from_pylist([{**more[0], "s": ""}], schema))
    with pytest.raises(UnsupportedError, match="Hive has no partition s=''"):
        rollback(catalog, name, as_hive=True)
