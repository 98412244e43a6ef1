"""TPC-H's 22 queries on Iceberg tables in extended Spark, against the same data files as plain Parquet, in turns.

    pip install tpchgen-cli
    python tests/benchmarks/tpch.py [--scale 1] [--repeat 2] [--folder FOLDER] [--queries 1,6]

The answers must be the same. Prints the seconds of each query (the least of its repeats), and the totals.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_worker import shown
from tests.benchmarks.tpch_queries import QUERIES, TABLES
from tests.support.spark_session import extended_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def generate(folder: Path, scale: str) -> None:
    """The data of the benchmark, where it is not there yet."""
    if not all((folder / f"{table}.parquet").exists() for table in TABLES):
        command = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([str(command), "parquet", "-s", scale, f"--output-dir={folder}"], check=True)


def load(metastore: EmbeddedMetastore, spark: SparkSession, folder: Path) -> None:
    """An Iceberg table of each, and a view of its data files."""
    catalog = load_catalog("tpch", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
    catalog.create_namespace("tpch")
    for name in TABLES:
        with pq.ParquetFile(folder / f"{name}.parquet") as source:
            table = catalog.create_table(f"tpch.{name}", source.schema_arrow)
            table.append(_reader(source))
        paths = [task.file.file_path for task in table.scan().plan_files()]
        spark.read.parquet(*paths).createOrReplaceTempView(f"raw_{name}")


def _reader(source: pq.ParquetFile) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(source.schema_arrow, source.iter_batches(131_072))


def timed(spark: SparkSession, query: str) -> tuple[float, list[str]]:
    """Seconds of a query, and its rows as texts."""
    started = time.perf_counter()
    rows = spark.sql(query).collect()
    return time.perf_counter() - started, sorted(shown(row) for row in rows)


def main() -> None:
    """Runs the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--queries", default=",".join(str(number + 1) for number in range(len(QUERIES))))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, EmbeddedMetastore() as metastore:
        folder = options.folder or Path(temporary)
        generate(folder, options.scale)
        spark = extended_session(metastore, spark_driver_memory="4g")
        load(metastore, spark, folder)
        names = {table: f"tpch.{table}" for table in TABLES}, {table: f"raw_{table}" for table in TABLES}
        totals = [0.0, 0.0]
        for number in map(int, options.queries.split(",")):
            best = [float("inf"), float("inf")]
            for turn in range(options.repeat):
                answers = []
                for side in (0, 1) if turn % 2 == 0 else (1, 0):
                    seconds, rows = timed(spark, QUERIES[number - 1].format(**names[side]))
                    best[side] = min(best[side], seconds)
                    answers.append(rows)
                if answers[0] != answers[1] or not answers[0]:
                    raise SystemExit(f"Query {number} answers differently:\n{answers[0][:5]}\n{answers[1][:5]}")
            totals = [total + least for total, least in zip(totals, best, strict=True)]
            sys.stdout.write(f"q{number:<3} {best[0]:7.3f} s  parquet {best[1]:7.3f} s  {best[0] / best[1]:5.2f}\n")
            sys.stdout.flush()
        sys.stdout.write(f"all  {totals[0]:7.3f} s  parquet {totals[1]:7.3f} s  {totals[0] / totals[1]:5.2f}\n")
        spark.stop()


if __name__ == "__main__":
    main()
