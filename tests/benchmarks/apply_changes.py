"""Changes of a stream: the processor seconds of 100,000 events into 1,000,000 rows, by Python and by Spark's MERGE.

    python -m tests.benchmarks.apply_changes [--target 1000000] [--source 100000] [--without-spark]

Half of the events change rows that are there, spread over the whole table; of the rest half is new, half deletes. The
tables are the same files on a metastore of this machine.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.table import Table
from tests.benchmarks.upsert import SCHEMA, fill, rows

MODES = ((2, "merge-on-read"), (3, "merge-on-read"), (2, "copy-on-write"))


def events_of(target: int, source: int) -> tuple[pa.Table, int]:
    """The events in random order, and how many rows the table has after them."""
    random = np.random.default_rng(7)
    half, quarter = source // 2, source // 4
    known = random.choice(target, half + quarter, replace=False)
    new = np.arange(target, target + source - half - quarter)
    table = rows(np.concatenate([known, new]), 1)
    operations = ["u"] * half + ["d"] * quarter + ["c"] * len(new)
    table = table.append_column("op", pa.array(operations)).append_column("lsn", pa.array(range(source)))
    return table.take(pa.array(random.permutation(source))), target + len(new) - quarter


def new_table(catalog: Catalog, name: str, version: int, mode: str, target: int) -> Table:
    """The table that the events are applied to."""
    properties = {"format-version": str(version), "write.merge.mode": mode}
    table = catalog.create_table(f"bench.{name}", SCHEMA, properties=properties)
    fill(table.append, target)
    return table


def measured(what: str, processor: Callable[[], float], run: Callable[[], Any]) -> None:
    """Runs something, and says how long it took."""
    began, used = time.perf_counter(), processor()
    run()
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{what}: {processor() - used:.2f} processor seconds, {seconds:.2f} s\n")
    sys.stdout.flush()


def java_seconds(pid: int) -> float:
    """Processor seconds of another process and of this one."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / 100 + time.process_time()


def by_spark(catalog: Catalog, metastore: EmbeddedMetastore, target: int, folder: Path, left: int) -> None:
    """The same events by plain MERGE in Spark, which needs no order as no key comes twice."""
    from pyspark.sql import SparkSession

    import hms_iceberg.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.hadoop.hive.metastore.uris", metastore.uri)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.warehouse.dir", str(metastore.warehouse))
    spark = hms_iceberg.spark.configure(builder.config("spark.sql.shuffle.partitions", "4")).getOrCreate()
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    spark.read.parquet(str(folder / "events.parquet")).createTempView("events")
    for name in ("warm", "merged"):
        for version, mode in MODES:
            table = new_table(catalog, f"{name}_{version}_{mode[:4]}", version, mode, target)
            columns = ", ".join(f"t.{each} = s.{each}" for each in SCHEMA.column_names)
            values = ", ".join(f"s.{each}" for each in SCHEMA.column_names)
            statement = (
                f"merge into bench.{table.name()[1]} t using events s on t.id = s.id when matched and s.op = 'd' then "
                f"delete when matched then update set {columns} when not matched and s.op <> 'd' then insert "
                f"({', '.join(SCHEMA.column_names)}) values ({values})"
            )
            what = f"Spark's MERGE ({name}), version {version}, {mode}"
            measured(what, lambda: java_seconds(java), lambda statement=statement: spark.sql(statement))
            assert table.refresh().scan().count() == left


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=int, default=1_000_000)
    parser.add_argument("--source", type=int, default=100_000)
    parser.add_argument("--without-spark", action="store_true")
    arguments = parser.parse_args()
    events, left = events_of(arguments.target, arguments.source)
    with tempfile.TemporaryDirectory(prefix="changes-") as name, EmbeddedMetastore() as metastore:
        folder = Path(name)
        pq.write_table(events, folder / "events.parquet")
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=str(metastore.warehouse))
        catalog.create_namespace("bench")
        options = {"keys": ["id"], "operation": "op", "order": "lsn"}
        for version, mode in MODES:
            table = new_table(catalog, f"ours_{version}_{mode[:4]}", version, mode, arguments.target)
            what = f"apply_changes, version {version}, {mode}"
            measured(what, time.process_time, lambda table=table: table.apply_changes(events, **options))
            assert table.scan().count() == left
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(f"peak memory: {peak:,.0f} MB\n")
        if not arguments.without_spark:
            by_spark(catalog, metastore, arguments.target, folder, left)


if __name__ == "__main__":
    main()
