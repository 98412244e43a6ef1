"""What planning adds to a query in extended Spark: on a small table beside the same file as plain Parquet and as a Hive
table, and on a table of many files; and how long count(*) takes of each.

    python -m tests.benchmarks.spark_planning [--repeat 30] [--warm-up 20] [--files 100000] [--folder FOLDER]
        [--columns 20] [--memory 2g] [--only-memory]

The queries take turns, and are timed from their text to their last row. "new filter" was never planned before, and
"new version" follows a commit, so that nothing is remembered of either. Of the table of many files (made as by
planning.py, without data) a query is timed until Spark has its plan, and its partitions. Before that, what the first
plan holds is told: the JVM's live heap, and the peak of the Python process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.memory import MIB, peak_bytes
from tests.benchmarks.planning import COLUMNS, build
from tests.support.spark_session import extended_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog

ROWS = pa.table({"n": range(1000), "part": [number % 10 for number in range(1000)]})
QUERY = "select part, count(*), sum(n) from {} where n >= {} group by part"
FIRST, METRICS, NEXT = "first, all files", "first with a filter", "next, all files"


def spark_s_part(frame: DataFrame) -> int:
    """Milliseconds that Spark took to analyze, optimize and plan a query, with all that we do in that."""
    execution = frame._jdf.queryExecution()
    execution.executedPlan()
    found = execution.tracker().phases()
    return sum(found.apply(name).durationMs() for name in ("analysis", "optimization", "planning"))


def small(spark: SparkSession, catalog: Catalog, repeat: int, warm_up: int) -> None:
    """A table of one file of 1,000 rows."""
    for name in ("same", "changing"):
        catalog.create_table(f"bench.{name}", ROWS.schema).append(ROWS)
    changing = catalog.load_table("bench.changing")
    (path,) = (task.file.file_path for task in catalog.load_table("bench.same").scan().plan_files())
    spark.read.parquet(path).createOrReplaceTempView("raw")
    spark.sql("create table bench.hive stored as parquet as select * from raw")
    sides: dict[str, Callable[[int], str]] = {
        "plain Parquet": lambda _: QUERY.format("raw", 0),
        "plain, new filter": lambda turn: QUERY.format("raw", -turn),
        "Hive table": lambda _: QUERY.format("bench.hive", 0),
        "ours": lambda _: QUERY.format("bench.same", 0),
        "ours, new filter": lambda turn: QUERY.format("bench.same", -turn),
        "ours, new version": lambda _: QUERY.format("bench.changing", 0),
        "count(*)": lambda _: "select count(*) from bench.same",
    }
    whole: dict[str, list[float]] = {name: [] for name in sides}
    planned: dict[str, list[int]] = {name: [] for name in sides}
    for turn in range(repeat + warm_up):
        with changing.transaction() as transaction:
            transaction.set_properties({"turn": str(turn)})
        for name, text in sides.items():
            started = time.perf_counter()
            frame = spark.sql(text(turn))
            frame.collect()
            whole[name].append(time.perf_counter() - started)
            planned[name].append(spark_s_part(frame))
    base = statistics.median(whole["plain Parquet"][warm_up:])
    for name in sides:
        median = statistics.median(whole[name][warm_up:])
        part = statistics.median(planned[name][warm_up:])
        echo(f"1,000 rows: {name:<20} {median * 1000:6.1f} ms ({(median - base) * 1000:+6.1f}), planned in {part} ms")


def large(spark: SparkSession, location: str) -> None:
    """Until Spark has its plan, and until it has cut the files into partitions, which takes Spark itself about as long.

    The first plan is the first that Python makes of anything but small tables.
    """
    for name, condition in ((FIRST, "true"), (METRICS, "c1 > 5"), (NEXT, "true"), (NEXT, "c2 is not null")):
        started = time.perf_counter()
        frame = spark.read.format("iceberg").load(location).where(condition).select("c1")
        execution = frame._jdf.queryExecution()
        execution.executedPlan()
        planned = time.perf_counter() - started
        partitions = execution.toRdd().getNumPartitions()
        taken = time.perf_counter() - started
        echo(f"many files: {name:<20} {planned:.2f} s, with {partitions} partitions {taken:.2f} s")
    for _ in range(3):
        started = time.perf_counter()
        ((rows,),) = spark.read.format("iceberg").load(location).groupBy().count().collect()
        echo(f"many files: {'count(*)':<20} {time.perf_counter() - started:.3f} s, {rows:,} rows")


def memory(spark: SparkSession, location: str) -> None:
    """What the first plan of all files, and its partitions, hold in the driver."""
    before = heap(spark)
    execution = spark.read.format("iceberg").load(location).select("c1")._jdf.queryExecution()
    execution.executedPlan()
    planned = heap(spark) - before
    partitions = execution.toRdd().getNumPartitions()
    held = heap(spark) - before
    echo(
        f"many files: heap of the plan {planned / MIB:,.0f} MiB, with {partitions} partitions {held / MIB:,.0f} MiB, "
        f"peak of Python {peak_bytes() / MIB:,.0f} MiB"
    )


def heap(spark: SparkSession) -> int:
    """Bytes of the objects that are in use in the driver's JVM."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def main() -> None:
    """Builds the tables and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=COLUMNS, help="how many have metrics")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--memory", default="2g", help="of Spark's driver")
    parser.add_argument("--only-memory", action="store_true", help="only what the first plan holds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, EmbeddedMetastore() as metastore:
        folder = options.folder or Path(temporary)
        location = str(build(folder, options.files, 10, options.columns))
        spark = extended_session(metastore, spark_driver_memory=options.memory)
        spark.sql("select 1").collect()
        memory(spark, location)
        if options.only_memory:
            spark.stop()
            return
        large(spark, location)
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        small(spark, catalog, options.repeat, options.warm_up)
        spark.stop()


if __name__ == "__main__":
    main()
