"""spark.readStream of Iceberg tables."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table.file_system import FileSystemTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def batches(stream: DataFrame, checkpoint: Path) -> list[list[tuple[Any, ...]]]:
    """The rows of each batch, until there are no more."""
    found = []
    query = (
        stream.writeStream.foreachBatch(lambda frame, _: found.append(sorted(tuple(row) for row in frame.collect())))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return found


def test_appended_rows_come_once(spark: SparkSession, orders: Table, namespace: str, tmp_path: Path) -> None:
    stream = spark.readStream.table(f"{namespace}.orders").where("id > 1").select("id", "item")
    first = [(2, "ink"), (3, None), (4, "pad"), (5, "cap"), (6, "pen")]
    assert batches(stream, tmp_path / "first") == [first]
    orders.append(orders.scan("id = 4").to_arrow())
    again = spark.readStream.format("iceberg").load(f"{namespace}.orders").where("id > 1").select("id", "item")
    assert batches(again, tmp_path / "first") == [[(4, "pad")]]
    limited = spark.readStream.format("iceberg").option("streaming-max-files-per-micro-batch", 1)
    ids = batches(limited.load(f"{namespace}.orders").select("id"), tmp_path / "limited")
    assert ids == [[(1,), (2,), (3,)], [(4,), (5,), (6,)], [(4,)]]


def test_a_table_by_path_with_partitions_is_aggregated(spark: SparkSession, tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    schema = pa.schema([("part", pa.int32()), ("id", pa.int64())])
    table = FileSystemTables().create(schema, str(tmp_path / "t"), spec)
    table.append(pa.table([[1, 1, 2], [1, 2, 3]], schema=schema))
    stream = spark.readStream.format("iceberg").load(str(tmp_path / "t"))
    query = (
        stream.groupBy("part")
        .sum("id")
        .writeStream.format("memory")
        .queryName("sums")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert sorted(tuple(row) for row in spark.table("sums").collect()) == [(1, 3), (2, 3)]
    assert query.lastProgress["sources"][0]["description"] == f"Iceberg {tmp_path / 't'}"


def test_files_of_all_formats_are_streamed(spark: SparkSession, orders: Table, namespace: str, tmp_path: Path) -> None:
    rows = orders.scan("id = 4").to_arrow()
    for name in ("orc", "avro"):
        with orders.transaction() as transaction:
            transaction.set_properties({"write.format.default": name})
        orders.append(rows)
    stream = spark.readStream.option("streaming-max-files-per-micro-batch", 2).table(f"{namespace}.orders")
    found = batches(stream.where("id > 2").select("id", "item"), tmp_path / "formats")
    assert found == [[(3, None), (4, "pad"), (5, "cap"), (6, "pen")], [(4, "pad"), (4, "pad")]]
    counted = batches(spark.readStream.table(f"{namespace}.orders").select("id"), tmp_path / "all")
    assert [len(batch) for batch in counted] == [8]
    assert totals(spark, stream, tmp_path / "totals") == [(8, 1, 6)]
    orders.append(rows)
    assert totals(spark, stream, tmp_path / "totals") == [(9, 1, 6)]


def totals(spark: SparkSession, stream: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Counted from the beginning of the stream on: what metadata says of a batch is not the answer."""
    counted = stream.selectExpr("count(*)", "min(id)", "max(id)").writeStream.format("memory").queryName("totals")
    query = counted.outputMode("complete").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    running = query.start()
    assert running.awaitTermination(120)
    assert sum(each["sources"][0]["numInputRows"] for each in running.recentProgress)
    return [tuple(row) for row in spark.table("totals").collect()]


BEGIN = Path("sources/0/offsets/0")


def killed(stream: DataFrame, checkpoint: Path) -> None:
    """Its first batch was planned and has run, and Spark did not hear of that."""
    from pyspark.errors import StreamingQueryException

    def kill(frame: DataFrame, _: int) -> None:
        raise RuntimeError(f"killed after {frame.count()} rows")

    query = stream.writeStream.foreachBatch(kill).option("checkpointLocation", str(checkpoint))
    with pytest.raises(StreamingQueryException, match="killed after 6 rows"):
        query.trigger(availableNow=True).start().awaitTermination(120)


def test_a_stream_whose_beginning_has_expired_goes_on_if_that_was_delivered(
    spark: SparkSession, orders: Table, namespace: str, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    name = f"{namespace}.orders"
    stream = spark.readStream.table(name).select("id")
    unfinished, finished, planned, unplanned = (tmp_path / each for each in ("unfinished", "finished", "old", "new"))
    killed(stream, unfinished)
    killed(stream, planned)
    assert batches(stream, finished) == [[(1,), (2,), (3,), (4,), (5,), (6,)]]
    first = orders.metadata.snapshots[0].snapshot_id
    for checkpoint in (unfinished, finished, planned):
        assert json.loads((checkpoint / BEGIN).read_text()) == {
            "version": 1,
            "snapshot_id": first,
            "position": 0,
            "scan_all_files": False,
        }
        assert not list((checkpoint / BEGIN).parent.glob("*tmp*"))
    (unplanned / BEGIN).parent.mkdir(parents=True)
    (unplanned / BEGIN).write_text((unfinished / BEGIN).read_text())
    shutil.rmtree(planned / "sources")  # as earlier versions left it
    assert batches(stream, planned) == [[(1,), (2,), (3,), (4,), (5,), (6,)]]
    spark.sql(f"call spark_catalog.system.expire_snapshots(table => '{name}', snapshot_ids => array({first}))")
    orders.refresh().append(orders.scan("id = 4").to_arrow())
    for checkpoint in (unfinished, unplanned):
        with pytest.raises(StreamingQueryException, match=f"NoSuchSnapshotError: .*{first}, which the checkpoint"):
            batches(stream, checkpoint)
    for checkpoint in (finished, planned):
        assert batches(stream, checkpoint) == [[(4,)]]
    (unplanned / BEGIN).write_text("")
    (unplanned / BEGIN).with_name(".0.crc").unlink(missing_ok=True)
    with pytest.raises(StreamingQueryException, match=r"StorageError: .*offsets/0 .*it holds no offset"):
        batches(stream, unplanned)


def test_a_stream_from_a_time_that_comes_waits_for_it(
    spark: SparkSession, orders: Table, namespace: str, tmp_path: Path
) -> None:
    since = orders.metadata.last_updated_ms + 1
    stream = spark.readStream.option("stream-from-timestamp", since).table(f"{namespace}.orders").select("id")
    for _ in range(2):
        assert batches(stream, tmp_path / "checkpoint") == []
    time.sleep(0.01)
    orders.append(orders.scan("id = 4").to_arrow())
    later = spark.readStream.option("stream-from-timestamp", since + 10**9).table(f"{namespace}.orders").select("id")
    assert batches(later, tmp_path / "later") == []
    assert batches(stream, tmp_path / "checkpoint") == [[(4,)]]
    assert batches(later, tmp_path / "checkpoint") == []


def test_what_cannot_be_streamed_is_refused(spark: SparkSession, orders: Table, namespace: str, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException, StreamingQueryException

    name = f"{namespace}.orders"
    with pytest.raises(AnalysisException, match=r"UnsupportedError: cannot stream .*orders\.files"):
        spark.readStream.format("iceberg").load(f"{name}.files")
    with pytest.raises(AnalysisException, match=r"InvalidInputError: .*the option branch selects"):
        spark.readStream.option("branch", "main").table(name)
    orders.delete("id = 1")
    with pytest.raises(StreamingQueryException, match=r"streaming-skip-(delete|overwrite)-snapshots"):
        batches(spark.readStream.table(name), tmp_path / "deleted")
