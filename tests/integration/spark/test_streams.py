"""spark.readStream of Iceberg tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spec.partition_transforms import IdentityTransform
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
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
