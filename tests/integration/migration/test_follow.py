"""Iceberg tables that keep up with Hive tables in which Hive and Spark go on writing."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.errors import CorruptDataFileError, MigrationError, NoSuchTableError, UnsupportedError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import Follower, FollowRound, follow, migrate, rollback
from hms_iceberg.reports import Event, MetastoreCall, MigrationReport, listen_to_events
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, all_files, write_files, write_orc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]})


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    """`flights` with two partitions, one of them null; and `plain` without partitions."""
    made = HiveWarehouse(catalog, namespace)
    made.create("flights", "id int, name string", "month int")
    made.add_partition("flights", ["1"], rows(1, 2), rows(3))
    made.add_partition("flights", ["__HIVE_DEFAULT_PARTITION__"], rows(5))
    write_files(made.create("plain", "id int, name string").table.sd.location, rows(1, 2))
    return made


def follower(warehouse: HiveWarehouse, source: str = "flights") -> Follower:
    return Follower(warehouse.catalog, f"{warehouse.namespace}.{source}", f"{warehouse.namespace}.copy")


def copied(warehouse: HiveWarehouse) -> list[tuple[int, Any]]:
    found = warehouse.catalog.load_table((warehouse.namespace, "copy")).scan().to_arrow().to_pylist()
    return sorted((row["id"], row.get("month")) for row in found)


def changes(found: FollowRound) -> tuple[int, int]:
    return found.added, found.removed


def emptied(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def test_a_round_takes_in_what_came_went_and_was_replaced_and_the_next_has_nothing_to_do(
    warehouse: HiveWarehouse,
) -> None:
    follower_ = follower(warehouse)
    place = warehouse.rows("flights").location
    assert changes(follower_.round()) == (3, 0)
    before = warehouse.catalog.load_table((warehouse.namespace, "copy")).metadata_location
    assert changes(follower_.round()) == changes(follower(warehouse).round()) == (0, 0)
    assert warehouse.catalog.load_table((warehouse.namespace, "copy")).metadata_location == before

    warehouse.add_partition("flights", ["7"], rows(7))
    write_files(str(place / "month=1"), rows(4))
    assert changes(follower_.round()) == (2, 0)
    assert copied(warehouse) == [(1, 1), (2, 1), (3, 1), (4, 1), (5, None), (7, 7)]

    emptied(place / "month=1")
    write_files(str(place / "month=1"), rows(10, 20))  # under a name that it had before
    warehouse.client._call("drop_partition", warehouse.namespace, "flights", ["7"], True, subject="t", repeatable=False)
    assert changes(follower_.round()) == (1, 4)
    assert copied(warehouse) == [(5, None), (10, 1), (20, 1)] and not (place / "month=7").exists()
    assert changes(follower(warehouse).round()) == (0, 0)


def test_snapshots_go_as_the_followers_history_settings_say_and_no_file_of_hive_does(warehouse: HiveWarehouse) -> None:
    follower_ = follower(warehouse)
    follower_.round()
    table = warehouse.catalog.load_table((warehouse.namespace, "copy"))
    table.set_properties({"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "2"})
    place = warehouse.rows("flights").location
    for number in range(4):
        write_files(str(place / "month=1"), rows(10 + number))
        follower_.round()
    emptied(place / "month=1")
    write_files(str(place / "month=1"), rows(20))
    files = all_files(place)
    follower_.round()

    table.refresh()
    assert len(table.snapshots()) == 2 and all_files(place) == files
    lists = [name for name in all_files(local_path(table.location())) if "snap-" in name]
    assert len(lists) == 2 and copied(warehouse) == [(5, None), (20, 1)]


def test_columns_that_come_go_and_change_are_followed(warehouse: HiveWarehouse) -> None:
    follower_ = follower(warehouse, "plain")
    made = warehouse.rows("plain").table
    follower_.round()
    location = made.sd.location
    columns = {column.name: column for column in made.sd.cols}

    def alter(*wanted: tuple[str, str]) -> None:
        made.sd.cols = [type(columns["id"])(name, kind, "") for name, kind in wanted]
        warehouse.client.alter_table(warehouse.namespace, "plain", made)

    def seen() -> list[dict[str, Any]]:
        found = warehouse.catalog.load_table((warehouse.namespace, "copy")).scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: int(row["id"]))

    alter(("id", "int"), ("name", "string"), ("late", "bigint"))
    write_files(location, rows(3).append_column("late", pa.array([33], pa.int64())))
    assert changes(follower_.round()) == (1, 0)
    assert seen()[-1] == {"id": 3, "name": "n3", "late": 33} and seen()[0]["late"] is None

    alter(("id", "bigint"), ("late", "bigint"))
    follower_.round()
    assert seen() == [{"id": 1, "late": None}, {"id": 2, "late": None}, {"id": 3, "late": 33}]
    assert changes(follower(warehouse, "plain").round()) == (0, 0)

    alter(("id", "string"))
    with pytest.raises(UnsupportedError, match="holds int32 in the column 'id'"):
        follower_.round()
    assert len(seen()) == 3


def test_timestamps_of_a_table_that_was_empty_become_what_its_files_hold(warehouse: HiveWarehouse) -> None:
    orc_format = "org.apache.hadoop.hive.ql.io.orc.Orc"
    serde = type(warehouse.rows("plain").table.sd.serdeInfo)(serializationLib=f"{orc_format}Serde")
    made = warehouse.create("clocks", "id int, at timestamp", serdeInfo=serde)
    follower_ = follower(warehouse, "clocks")
    follower_.round()
    place = local_path(made.table.sd.location)
    at = pa.array([0], pa.timestamp("us"))
    write_orc(place / "000000_0", pa.table({"id": pa.array([1], pa.int32()), "at": at}))

    assert changes(follower_.round()) == (1, 0)
    table = warehouse.catalog.load_table((warehouse.namespace, "copy"))
    assert str(table.schema().find_type("at")) == "timestamp" and table.scan("at = '1970-01-01T00:00:00'").count() == 1
    assert changes(follower_.round()) == (0, 0)


def test_a_follower_that_somebody_wrote_to_is_refused(catalog: Catalog, warehouse: HiveWarehouse) -> None:
    follower(warehouse).round()
    catalog.load_table((warehouse.namespace, "copy")).delete("id = 1")
    for wrong in ("copy", "other"):
        catalog.create_table((warehouse.namespace, "other"), pa.schema([("id", pa.int32())])) if wrong == "other" else 0
        with pytest.raises(MigrationError, match=rf"{wrong} cannot follow .*flights"):
            Follower(catalog, f"{warehouse.namespace}.flights", f"{warehouse.namespace}.{wrong}").round()
    with pytest.raises(NoSuchTableError, match="nowhere"):
        Follower(catalog, f"{warehouse.namespace}.nowhere", f"{warehouse.namespace}.x").round()


def test_a_round_that_fails_changes_nothing_and_the_next_is_tried(warehouse: HiveWarehouse) -> None:
    place = warehouse.rows("plain").location
    rounds = follow(warehouse.catalog, (warehouse.namespace, "plain"), (warehouse.namespace, "copy"), interval=0)
    assert changes(next(rounds)) == (1, 0)
    (place / "000001_0").write_bytes(b"half of a file")
    assert "000001_0" in next(rounds).failure and copied(warehouse) == [(1, None), (2, None)]
    (place / "000001_0").unlink()
    assert next(rounds).failure == ""
    write_files(str(place), rows(3))
    assert changes(next(rounds)) == (1, 0) and len(copied(warehouse)) == 3


def test_the_command_follows_until_the_switch_of_the_usual_migration(
    catalog: Catalog, metastore: EmbeddedMetastore, warehouse: HiveWarehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = f"{warehouse.namespace}.flights", f"{warehouse.namespace}.copy"
    command = ["migrate", source, "--follow", target, "--uri", metastore.uri, "--output", "json"]
    assert main([*command, "--once"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 3
    assert main([*command, "--once", "--rewrite"]) == 2
    endless = threading.Thread(target=main, args=([*command, "--interval", "1s"],))
    endless.start()
    warehouse.add_partition("flights", ["9"], rows(9))
    while len(copied(warehouse)) < 5:
        assert endless.is_alive()
    migrate(catalog, source)
    endless.join(30)

    assert not endless.is_alive()
    told = [json.loads(line) for line in capsys.readouterr().out.replace("}\n{", "}\x00{").split("\x00")]
    assert [(each["added"], each["ended"]) for each in told] == [(1, False), (0, True)]
    files = all_files(warehouse.rows("flights_backup_").location)
    catalog.drop_table(target)
    assert catalog.load_table(source).scan().count() == 5
    assert files <= all_files(warehouse.rows("flights_backup_").location)
    rollback(catalog, source)
    assert changes(follower(warehouse).round()) == (4, 0)


def test_rounds_and_migrations_are_told_with_what_they_took_over(catalog: Catalog, warehouse: HiveWarehouse) -> None:
    told: list[Event] = []
    with listen_to_events(told.append):
        follower(warehouse).round()
        follower(warehouse).round()
        migrate(catalog, f"{warehouse.namespace}.flights", dry_run=True)
        made = migrate(catalog, f"{warehouse.namespace}.flights")
        migrate(catalog, f"{warehouse.namespace}.flights")
        with pytest.raises(MigrationError):
            follower(warehouse, "plain").round()
    found = [each for each in told if isinstance(each, MigrationReport)]
    name = f"{warehouse.namespace}.flights"
    assert [(each.table, each.method, each.outcome, each.files) for each in found] == [
        (name, "follow", "made", 3),
        (name, "follow", "made", 0),
        (name, "in place", "made", 3),
        (f"{warehouse.namespace}.plain", "follow", "failed", 0),
    ]
    assert (found[2].records, found[2].bytes) == (made.records, made.bytes) and found[2].records == 4
    assert found[3].error.startswith("MigrationError: Table ") and all(each.seconds > 0 for each in found)
    calls = {(each.method, each.outcome) for each in told if isinstance(each, MetastoreCall)}
    assert {("get_table_req", "answered"), ("get_table_req", "refused"), ("create_table", "answered")} <= calls


@pytest.mark.spark
@pytest.mark.parametrize("form", ["stored as parquet", "using orc"])
def test_a_follower_holds_what_spark_wrote_meanwhile(spark: SparkSession, warehouse: HiveWarehouse, form: str) -> None:
    name, copy = f"{warehouse.namespace}.t", f"{warehouse.namespace}.copy"
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    spark.sql(f"create table {name} {_columns(form)}")
    follower_ = Follower(warehouse.catalog, name, copy)
    follower_.round()
    failures: list[str] = []
    done = threading.Event()

    def rounds() -> None:
        while not done.is_set():
            try:
                follower_.round()
            except (CorruptDataFileError, UnsupportedError) as error:
                failures.append(str(error))

    beside = threading.Thread(target=rounds)
    beside.start()
    values = "id, concat('s', id), timestamp'2020-01-01 00:00:00' + make_interval(0, 0, 0, 0, id)"
    try:
        for number in range(3):
            spark.sql(f"insert into {name} select {values}, id % 4 from range({number * 10}, {number * 10 + 10})")
        spark.sql(f"insert overwrite {name} partition (k = 1) select {values} from range(100, 103)")
        spark.sql(f"alter table {name} drop partition (k = 2)")
        spark.sql(f"insert into {name} select {values}, 9 from range(2)")
    finally:
        done.set()
        beside.join()
    follower_.round()

    assert failures == []
    expected = sorted(map(repr, spark.table(name).collect()))
    spark.catalog.refreshTable(copy)
    assert sorted(map(repr, spark.table(copy).select("id", "s", "at", "k").collect())) == expected
    assert warehouse.catalog.load_table(copy).scan().count() == len(expected) > 10


def _columns(form: str) -> str:
    columns = "id bigint, s string, at timestamp"
    if form.startswith("using"):
        return f"({columns}, k int) {form} partitioned by (k)"
    return f"({columns}) partitioned by (k int) {form}"
