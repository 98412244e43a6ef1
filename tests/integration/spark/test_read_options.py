"""spark.read.format("iceberg"), and the options of a read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.table.file_system import FileSystemTables
from tests.support.pyspark_home import spark_release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def load(spark: SparkSession, name: str, options: dict[str, Any]) -> DataFrame:
    return spark.read.format("iceberg").options(**options).load(name)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


def test_options_choose_what_is_read(spark: SparkSession, orders: Table, namespace: str) -> None:
    first, second = orders.metadata.snapshots
    orders.manage_snapshots().create_tag(first.snapshot_id, "opening").create_branch(first.snapshot_id, "work").commit()
    name = f"{namespace}.orders"
    old, new = [1, 2, 3], [4, 5, 6]
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({}, old + new),
        ({"snapshot-id": first.snapshot_id}, old),
        ({"as-of-timestamp": first.timestamp_ms}, old),
        ({"branch": "work"}, old),
        ({"tag": "opening"}, old),
        ({"start-snapshot-id": first.snapshot_id}, new),
        ({"start-snapshot-id": first.snapshot_id, "end-snapshot-id": second.snapshot_id}, new),
        ({"start-snapshot-id": first.snapshot_id, "end-snapshot-id": first.snapshot_id}, []),
    ]
    for options, expected in cases:
        assert ids(load(spark, name, options)) == expected, options
        assert ids(spark.read.options(**options).table(name)) == expected, options
    appended = load(spark, name, {"start-snapshot-id": first.snapshot_id})
    assert appended.where("id < 5").count() == 1
    assert appended.count() == 3
    if spark_release() >= (4, 0):
        assert ids(spark.sql(f"select id from {name} with (`tag` = 'opening') where id > 1")) == [2, 3]
    assert load(spark, f"{name}.files", {"tag": "opening"}).count() == 1


def test_names_and_paths(spark: SparkSession, orders: Table, namespace: str, tmp_path: Path) -> None:
    spark.sql(f"use {namespace}")
    try:
        assert load(spark, "orders", {}).count() == 6
    finally:
        spark.sql("use default")
    assert load(spark, f"spark_catalog.{namespace}.orders", {}).count() == 6
    assert load(spark, orders.metadata_location, {}).count() == 6
    folder = str(tmp_path / "events")
    table = FileSystemTables().create(pa.schema([("id", pa.int64())]), folder)
    table.append(pa.table({"id": [1, 2]}))
    assert ids(load(spark, folder, {})) == [1, 2]
    assert load(spark, f"file:{folder}", {}).join(spark.table(f"{namespace}.orders"), "id").count() == 2
    assert [row.operation for row in load(spark, f"{folder}#snapshots", {}).collect()] == ["append"]
    table.refresh()
    table.append(pa.table({"id": [3]}))
    assert ids(load(spark, folder, {})) == [1, 2, 3]


def test_split_size_splits_files(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    pieces = load(spark, name, {"split-size": 200})
    assert pieces.rdd.getNumPartitions() > 2
    assert ids(pieces) == [1, 2, 3, 4, 5, 6]
    assert spark.table(name).rdd.getNumPartitions() <= 2


def test_bad_options_and_names_are_refused(spark: SparkSession, orders: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    name, snapshot = f"{namespace}.orders", orders.metadata.snapshots[0].snapshot_id
    cases: list[tuple[str, dict[str, Any], str]] = [
        (name, {"snapshot-ids": 1}, r"InvalidInputError: .*unknown option 'snapshot-ids'; did you mean 'snapshot-id'"),
        (name, {"snapshot-id": "first"}, r"InvalidInputError: .*snapshot-id is 'first', expected a number"),
        (name, {"snapshot-id": snapshot, "branch": "main"}, r"InvalidInputError: .*snapshot-id and branch contradict"),
        (name, {"end-snapshot-id": snapshot}, r"InvalidInputError: .*end-snapshot-id needs start-snapshot-id"),
        (name, {"tag": "main"}, r"NoSuchRefError: .*'main' is a branch"),
        (name, {"snapshot-id": 77}, r"NoSuchSnapshotError: .* has no snapshot 77"),
        (name, {"split-size": 0}, r"InvalidInputError: .*split-size is '0', expected a number from 1"),
        (f"{name}.snapshots", {"snapshot-id": snapshot}, r"UnsupportedError: .*as of a version"),
        (f"{namespace}.nothing", {}, r"NoSuchTableError: there is no Iceberg table"),
        ("/no/where", {}, r"NoSuchTableError: There is no table at /no/where"),
        ("a b", {}, r"InvalidInputError: cannot read a b as an Iceberg table"),
    ]
    for table, options, message in cases:
        with pytest.raises(AnalysisException, match=message):
            load(spark, table, options)
    with pytest.raises(AnalysisException, match=r"InvalidInputError: .*needs a table"):
        spark.read.format("iceberg").load()


def test_options_of_other_tables_stay_theirs(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"create table {namespace}.plain stored as parquet as select 1 id")
    assert spark.read.option("branch", "work").table(f"{namespace}.plain").count() == 1
    spark.range(3).createOrReplaceTempView("branchless")
    assert spark.read.option("branch", "work").table("branchless").count() == 3
