"""Writers of DataFrames and of streams: modes, options, branches, and every epoch once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hms_iceberg.table.file_system import FileSystemTables
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(7, "bag", 1.0)], "id long, item string, price double")


@pytest.fixture
def parted(spark: SparkSession, namespace: str) -> str:
    """Rows by bucket and by kind, two files."""
    name = f"{namespace}.parted"
    spark.sql(f"create table {name} (id bigint, kind string) using iceberg partitioned by (bucket(4, id), kind)")
    spark.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    return name


def test_save_in_every_mode(spark: SparkSession, frame: DataFrame, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    writer = frame.write.format("iceberg")
    writer.mode("append").save(name)
    assert rows_of(spark, f"select count(*), sum(id) from {name}") == [(7, 28)]
    writer.mode("overwrite").save(name)
    writer.mode("ignore").save(name)
    assert rows_of(spark, f"select * from {name}") == [(7, "bag", 1.0)]
    with pytest.raises(Exception, match="exists"):
        writer.mode("errorifexists").save(name)
    writer.mode("errorifexists").save(f"{namespace}.fresh")
    assert rows_of(spark, f"select * from {namespace}.fresh") == [(7, "bag", 1.0)]


def test_options_of_a_write_reach_its_files_and_its_snapshot(
    spark: SparkSession, frame: DataFrame, orders: Table, namespace: str
) -> None:
    name = f"{namespace}.orders"
    options = {"write-format": "avro", "snapshot-property.Who": "me", "compression-codec": "snappy"}
    frame.write.format("iceberg").options(**options).mode("append").save(name)
    assert rows_of(spark, f"select file_format, sum(record_count) from {name}.files group by 1") == [
        ("AVRO", 1),
        ("PARQUET", 6),
    ]
    summary = orders.refresh().current_snapshot().summary
    assert summary["Who"] == "me" and summary["spark.app.id"] == spark.sparkContext.applicationId
    assert (summary["engine-name"], summary["engine-version"]) == ("spark", spark.version)
    with pytest.raises(Exception, match="csv"):
        frame.write.format("iceberg").option("write-format", "csv").mode("append").save(name)


def test_small_files_by_target_size(spark: SparkSession, catalog: Catalog, orders: Table, namespace: str) -> None:
    from pyspark.sql.functions import lit

    rows = spark.range(0, 50_000, 1, 1).selectExpr("id", "cast(uuid() as string) item", "rand() price")
    rows.writeTo(f"{namespace}.orders").option("target-file-size-bytes", "200000").overwrite(lit(True))
    files = [task.file for task in orders.refresh().scan().plan_files()]
    assert len(files) > 3 and sum(file.record_count for file in files) == 50_000
    assert all(file.file_size_in_bytes < 700_000 for file in files)


def test_a_branch_is_written_by_its_name_and_by_option(
    spark: SparkSession, frame: DataFrame, orders: Table, namespace: str
) -> None:
    orders.manage_snapshots().create_branch(orders.current_snapshot().snapshot_id, "audit").commit()
    name = f"{namespace}.orders"
    spark.sql(f"insert into {name}.branch_audit values (8, 'net', 2.0)")
    frame.write.format("iceberg").option("branch", "audit").mode("append").save(name)
    assert rows_of(spark, f"select count(*) from {name}.branch_audit") == [(8,)]
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]
    snapshot = orders.refresh().current_snapshot().snapshot_id
    with pytest.raises(Exception, match="version of the past"):
        spark.sql(f"insert into {name}.snapshot_id_{snapshot} values (8, 'net', 2.0)")


def test_a_branch_that_is_not_there_is_refused_by_name_and_made_by_the_option_of_a_write(
    spark: SparkSession, frame: DataFrame, orders: Table, namespace: str
) -> None:
    name = f"{namespace}.orders"
    with pytest.raises(Exception, match="NoSuchRefError"):
        frame.writeTo(f"{name}.branch_new").append()
    with pytest.raises(Exception, match="NoSuchRefError"):
        frame.write.format("iceberg").option("branch", "new").mode("append").save(name)
    frame.writeTo(name).option("branch", "new").append()
    assert set(orders.refresh().refs()) == {"main", "new"}
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]
    assert rows_of(spark, f"select count(*) from {name}.branch_new") == [(7,)]


def test_an_overwrite_conflicts_with_what_came_after_the_snapshot_that_it_names(
    spark: SparkSession, orders: Table, namespace: str
) -> None:
    from pyspark.sql.functions import col

    first, second = (each.snapshot_id for each in orders.metadata.snapshots)
    frame = spark.createDataFrame([(9, "net", 2.0)], "id long, item string, price double")

    def overwrite(start: int) -> None:
        writer = frame.writeTo(f"{namespace}.orders").option("isolation-level", "serializable")
        writer.option("validate-from-snapshot-id", str(start)).overwrite(col("id") >= 4)

    with pytest.raises(Exception, match="CommitConflictError"):
        overwrite(first)
    assert orders.refresh().current_snapshot().snapshot_id == second
    overwrite(second)
    assert rows_of(spark, f"select id from {namespace}.orders") == [(1,), (2,), (3,), (9,)]


def test_wap_stages_by_id_and_redirects_to_a_branch(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    orders.set_properties({"write.wap.enabled": "true"})
    for setting, value in (("spark.wap.id", "one"), ("spark.wap.branch", "staging")):
        spark.conf.set(setting, value)
        try:
            spark.sql(f"insert into {name} values (8, 'net', 2.0)")
            assert rows_of(spark, f"select count(*) from {name}") == [(6 if value == "one" else 7,)]
            assert rows_of(spark, f"select count(*) from {name} version as of 'main'") == [(6,)]
        finally:
            spark.conf.unset(setting)
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]
    assert rows_of(spark, f"select count(*) from {name}.branch_staging") == [(7,)]
    staged = [each.summary.get("wap.id") for each in orders.refresh().metadata.snapshots]
    assert Counter(staged)["one"] == 1


def test_rows_with_more_columns_extend_a_table_that_says_so(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    orders.set_properties({"write.spark.accept-any-schema": "true"})
    rows = spark.createDataFrame([(7, 1.0, "note")], "id int, price double, note string")
    with pytest.raises(Exception, match="note is not found"):
        rows.writeTo(name).append()
    versions = len(orders.refresh().metadata.metadata_log)
    merging = rows.writeTo(name).option("mergeSchema", "true").option("check-ordering", "false")
    merging.append()
    assert rows_of(spark, f"select id, item, price, note from {name}") == [
        (1, "pen", 1.5, None), (2, "ink", 3.0, None), (3, None, None, None), (4, "pad", 2.0, None),
        (5, "cap", 8.0, None), (6, "pen", 1.0, None), (7, None, 1.0, "note"),
    ]  # fmt: skip
    assert len(orders.refresh().metadata.metadata_log) == versions + 1
    merging.append()
    assert len(orders.refresh().schema().fields) == 4


def test_rows_that_are_refused_bring_no_column(
    spark: SparkSession, orders: Table, namespace: str, metastore: EmbeddedMetastore
) -> None:
    name = f"{namespace}.orders"
    orders.set_properties({"write.spark.accept-any-schema": "true"})

    def merging(columns: str) -> None:
        rows = spark.range(3).selectExpr(*columns.split("; "))
        rows.writeTo(name).option("merge-schema", "true").append()

    location = orders.refresh().metadata_location
    refused = {
        "price; id; 'x' as note": "out of order",
        "id; true as item; 'x' as note": "is string in the table and boolean",
        "id; if(id = 2, raise_error('no'), 'x') as note": "no",
    }
    for columns, message in refused.items():
        with pytest.raises(Exception, match=message):
            merging(columns.replace("price", "2.0D as price"))
        assert orders.refresh().metadata_location == location

    def beside(column: str) -> Callable[[int], str]:
        """Texts of rows; another writer adds a column to the table while they are made."""
        uri, warehouse = metastore.uri, metastore.warehouse

        def note(number: int) -> str:
            from hms_iceberg.catalog import load_catalog
            from hms_iceberg.spec.data_types import StringType

            table = load_catalog("other", type="hive", uri=uri, warehouse=warehouse).load_table(name)
            if number == 0 and column not in table.schema().index_by_name:
                with table.update_schema() as update:
                    update.add_column(column, StringType())
            return f"note {number}"

        return note

    spark.udf.register("beside_another", beside("other"))
    with pytest.raises(Exception, match=r"CommitConflictError.*concurrent commit took the id"):
        merging("id; beside_another(id) as note")
    assert [field.name for field in orders.refresh().schema().fields] == ["id", "item", "price", "other"]
    spark.udf.register("beside_the_same", beside("note"))
    merging("id; beside_the_same(id) as note")
    assert rows_of(spark, f"select id, other, note from {name} where note is not null") == [
        (0, None, "note 0"), (1, None, "note 1"), (2, None, "note 2"),
    ]  # fmt: skip
    assert rows_of(spark, f"select count(*) from {name}") == [(9,)]


def test_partitions_are_replaced_that_receive_rows(spark: SparkSession, parted: str) -> None:
    rows = spark.createDataFrame([(2, "b"), (9, "c")], "id long, kind string")
    rows.writeTo(parted).overwritePartitions()
    assert rows_of(spark, f"select * from {parted}") == [(1, "a"), (2, "b"), (9, "c")]
    spark.sql(f"insert into {parted} replace where kind = 'c' select 5, 'd'")
    assert rows_of(spark, f"select * from {parted}") == [(1, "a"), (2, "b"), (5, "d")]


def test_without_fan_out_rows_must_come_by_partition(spark: SparkSession, parted: str) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "b"), (1, "a")], "id long, kind string").coalesce(1)
    options = {"use-table-distribution-and-ordering": "false", "fanout-enabled": "false"}
    with pytest.raises(Exception, match="do not follow one another"):
        rows.writeTo(parted).options(**options).append()
    rows.writeTo(parted).options(**{**options, "fanout-enabled": "true"}).append()
    assert rows_of(spark, f"select count(*) from {parted}") == [(5,)]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody tells here which files a process has open")
@pytest.mark.parametrize("fanout", [False, True])
def test_a_task_has_one_file_open_unless_it_fans_out(spark: SparkSession, namespace: str, fanout: bool) -> None:
    name, partitions = f"{namespace}.t", 200
    spark.sql(f"create table {name} (id bigint) using iceberg partitioned by (id)")
    driver = spark.sparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    at_once, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.002):
            paths = []
            for entry in os.scandir(f"/proc/{driver}/fd"):
                with suppress(FileNotFoundError):
                    paths.append(os.readlink(entry.path))
            at_once.append(sum(f"{namespace}.db/t/data/" in path and path.endswith(".parquet") for path in paths))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        rows = spark.range(0, 2 * partitions, 1, 1).selectExpr(f"id % {partitions} as id")
        rows.writeTo(name).option("fanout-enabled", str(fanout)).append()
    finally:
        ended.set()
        watching.join()
    assert rows_of(spark, f"select count(*), count(distinct id) from {name}") == [(2 * partitions, partitions)]
    tasks = 2  # as many partitions has a shuffle in these tests
    assert max(at_once) > partitions / 4 if fanout else 0 < max(at_once) <= tasks


def test_a_sort_order_is_asked_of_spark_and_told_of_files(spark: SparkSession, orders: Table, namespace: str) -> None:
    orders.update_sort_order().desc("price").commit()
    spark.sql(f"insert overwrite {namespace}.orders select id, 'x', cast(id * 7919 % 1000 as double) from range(1000)")
    (file,) = [task.file for task in orders.refresh().scan().plan_files()]
    assert file.sort_order_id == orders.sort_order().order_id != 0
    prices = orders.scan(selected_fields=("price",)).to_arrow()["price"].to_pylist()
    assert prices == sorted(prices, reverse=True)


@pytest.mark.parametrize("by_path", [False, True])
def test_a_stream_writes_every_epoch_once_over_restarts(
    by_path: bool, spark: SparkSession, parted: str, tmp_path: Path, catalog: Catalog
) -> None:
    table = catalog.load_table(parted)
    if by_path:
        table = FileSystemTables().create(table.schema(), f"file:{tmp_path}/table", table.spec())
    source, checkpoint = str(tmp_path / "in"), tmp_path / "checkpoint"

    def run() -> None:
        writer = (
            spark.readStream.schema("id long, kind string").json(source).writeStream.format("iceberg")
            .outputMode("append").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        )  # fmt: skip
        query = writer.start(table.location()) if by_path else writer.toTable(parted)
        query.awaitTermination()

    def ids() -> list[int]:
        return sorted(table.refresh().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())

    for number in (10, 11):
        spark.createDataFrame([(number, "s")], "id long, kind string").write.mode("append").json(source)
        run()
    written = ids()
    assert written == [*([] if by_path else [1, 2]), 10, 11]
    # the driver died after the commit of an epoch, and before Spark noted it
    for log in ("1", ".1.crc"):
        (checkpoint / "commits" / log).unlink()
    before = table.refresh().metadata_location
    run()
    assert ids() == written
    assert table.refresh().metadata_location == before
    summary = table.current_snapshot().summary
    assert summary["spark.sql.streaming.epochId"] == "1" and summary["operation"] == "append"


def test_a_complete_stream_replaces_the_table(spark: SparkSession, namespace: str, tmp_path: Path) -> None:
    spark.sql(f"create table {namespace}.counts (kind string, n bigint) using iceberg")
    for kinds in (["a", "b"], ["a"]):
        spark.createDataFrame([(kind,) for kind in kinds], "kind string").write.mode("append").json(f"{tmp_path}/in")
        counted = spark.readStream.schema("kind string").json(f"{tmp_path}/in").groupBy("kind").count()
        query = (
            counted.withColumnRenamed("count", "n").writeStream.outputMode("complete").trigger(availableNow=True)
            .option("checkpointLocation", f"{tmp_path}/checkpoint").toTable(f"{namespace}.counts")
        )  # fmt: skip
        query.awaitTermination()
    assert rows_of(spark, f"select * from {namespace}.counts") == [("a", 2), ("b", 1)]
