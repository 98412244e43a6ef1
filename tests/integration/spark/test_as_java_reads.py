"""Details of reads in which Spark with Iceberg's own JAR is followed."""

from __future__ import annotations

import datetime as dt
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spark import extend
from hms_iceberg.spec.data_types import LongType, NestedField, StringType, StructType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def test_a_table_partitioned_by_columns_with_dots_in_their_names_is_described(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    inner = StructType(NestedField(4, "deep.name", LongType()), NestedField(5, "plain", LongType()))
    schema = Schema(
        NestedField(1, "dot.field", LongType()), NestedField(2, "tick`s", StringType()), NestedField(3, "st", inner)
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "a"),
        PartitionField(2, 1001, BucketTransform(4), "b"),
        PartitionField(4, 1002, IdentityTransform(), "c"),
        PartitionField(5, 1003, IdentityTransform(), "d"),
    )
    catalog.create_table(f"{namespace}.dotted", schema, partition_spec=spec)
    described = [tuple(row)[:2] for row in spark.sql(f"describe {namespace}.dotted").collect()]
    assert ("dot.field", "bigint") in described
    assert any("`dot.field`" in text for row in described for text in row)
    assert any("st.`deep.name`" in text for row in described for text in row)
    spark.sql(f"describe extended {namespace}.dotted").collect()


def test_a_number_is_a_snapshot_before_it_is_a_branch(spark: SparkSession, orders: Table, namespace: str) -> None:
    first, second = (snapshot.snapshot_id for snapshot in orders.metadata.snapshots)
    orders.manage_snapshots().create_branch(second, str(first)).commit()
    assert spark.sql(f"select * from {namespace}.orders version as of {first}").count() == 3
    assert spark.sql(f"select * from {namespace}.orders version as of '{first}'").count() == 3
    assert spark.sql(f"select * from {namespace}.orders.`branch_{first}`").count() == 6


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_the_partition_of_a_table_without_partitions_is_null(
    spark: SparkSession, catalog: Catalog, namespace: str, file_format: str
) -> None:
    table = catalog.create_table(
        f"{namespace}.flat", pa.schema([("id", pa.int64())]), properties={"write.format.default": file_format}
    )
    table.append(pa.table({"id": [1]}))
    assert rows_of(spark, f"select id, _partition from {namespace}.flat") == [(1, None)]


def test_no_ids_are_in_the_columns_that_users_see(spark: SparkSession, events: Table, namespace: str) -> None:
    frame = spark.sql(f"select *, _partition, _file from {namespace}.events")
    assert "field.id" not in frame.schema.json()
    assert "iceberg." not in frame.schema.json()


def test_sparks_own_options_of_time_travel(spark: SparkSession, orders: Table, namespace: str) -> None:
    name = f"{namespace}.orders"
    first = orders.metadata.snapshots[0]

    def count(option: str, value: object) -> int:
        return spark.read.format("iceberg").option(option, str(value)).load(name).count()

    assert count("versionAsOf", first.snapshot_id) == 3
    assert count("versionAsOf", "main") == 6
    at = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.timezone.utc).replace(tzinfo=None)
    assert count("timestampAsOf", at) == 3
    assert count("timestampAsOf", "9999-01-01 00:00:00") == 6
    with pytest.raises(Exception, match="contradicts VERSION AS OF"):
        spark.read.format("iceberg").option("versionAsOf", "main").option("branch", "main").load(name)
    with pytest.raises(Exception, match="selects rows of one read"):
        spark.readStream.format("iceberg").option("versionAsOf", "main").load(name)


def test_the_formats_name_in_javas_code(spark: SparkSession, orders: Table, namespace: str) -> None:
    for name in ("iceberg", "org.apache.iceberg.spark.source.IcebergSource"):
        assert spark.read.format(name).load(f"{namespace}.orders").count() == 6


def test_options_that_nobody_knows_are_ignored_with_one_warning(
    spark: SparkSession, orders: Table, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hms_iceberg"):
        read = spark.read.format("iceberg").option("header", "true").option("recursiveFileLookup", "true")
        assert read.load(f"{namespace}.orders").count() == 6
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert "header" in messages[0] and "recursivefilelookup" in messages[0]


@pytest.fixture
def timed(spark: SparkSession, catalog: Catalog, namespace: str) -> str:
    """A table that Python workers read and write: Spark has no type for its nanoseconds."""
    spark.conf.set("spark.hms_iceberg.nanoseconds", "micros")
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))])
    table = catalog.create_table(f"{namespace}.timed", schema, properties={"format-version": "3"})
    table.append(pa.table({"id": [1, 2], "at": pa.array([None, None], pa.timestamp("ns"))}))
    return f"{namespace}.timed"


@pytest.fixture
def python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A session whose workers are the `python3` of a PATH on which there is none."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python3")
    yield monkeypatch
    monkeypatch.undo()
    extend(spark)


def test_workers_of_a_local_session_run_the_drivers_python(
    spark: SparkSession, timed: str, python: pytest.MonkeyPatch
) -> None:
    extended = extend(spark, {"io.other": "python"})
    extended.sql(f"insert into {timed} values (3, null)")
    assert rows_of(extended, f"select id from {timed}") == [(1,), (2,), (3,)]
    assert spark.sparkContext.pythonExec == sys.executable  # which functions of the user's own run, too


def test_a_process_that_wrote_for_a_task_writes_for_the_next_one_and_one_that_died_is_replaced(
    spark: SparkSession, timed: str
) -> None:
    handle: Any = spark.sparkContext._jvm.java.lang.ProcessHandle  # type: ignore[union-attr]
    jvm = str(handle.current().pid())

    def writers() -> set[int]:
        found = set()
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                command = (status.parent / "cmdline").read_bytes()
                if status.read_text().rpartition(")")[2].split()[1] == jvm and b"writing.worker" in command:
                    found.add(int(status.parent.name))
        return found

    statement = "insert into {} select /*+ coalesce(1) */ {}, null"
    spark.sql(statement.format(timed, 3))
    first = writers()
    spark.sql(statement.format(timed, 4))
    assert first and writers() == first
    for process in first:
        os.kill(process, signal.SIGKILL)
    spark.sql(statement.format(timed, 5))
    assert len(writers()) == 1 and not writers() & first
    assert rows_of(spark, f"select id from {timed}") == [(1,), (2,), (3,), (4,), (5,)]


def test_workers_run_the_python_that_the_user_says_and_errors_name_it(
    spark: SparkSession, catalog: Catalog, timed: str, python: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (bare := tmp_path / "bare-python").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    python.setenv("PYSPARK_PYTHON", str(bare))
    python.setattr(spark.sparkContext, "pythonExec", str(bare))  # as PySpark takes it from the environment
    extended = extend(spark, {"io.other": "bare"})
    with pytest.raises(Exception, match=r"MissingDependencyError: Python .*cannot import what it needs") as failed:
        extended.sql(f"insert into {timed} values (3, null)").collect()
    assert sys.executable in str(failed.value)
    assert sorted(catalog.load_table(timed).scan().to_arrow()["id"].to_pylist()) == [1, 2]
