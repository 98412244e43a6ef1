"""The migrated flights in extended Spark against plain Spark on the same Parquet files; start-up times of the package.

Both answers must be equal; the ratio is of medians in one run, the two queries taking turns.

python tests/benchmarks/flights.py [--repeat 15] [--warm-up 10]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hms_iceberg.catalog import load_catalog
from hms_iceberg.cli.demo import build_warehouse, spark_session
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import migrate
from hms_iceberg.spark import extend

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

QUERY = "select month, count(*), avg(dep_delay) from {} group by month order by month"


def timed(spark: SparkSession, table: str) -> tuple[float, list[Row]]:
    """Seconds of the query, and its rows."""
    started = time.perf_counter()
    rows = spark.sql(QUERY.format(table)).collect()
    return time.perf_counter() - started, rows


def start_up(*command: str) -> float:
    """Median seconds of a command."""
    times = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def query_times(
    metastore: EmbeddedMetastore, folder: Path, repeat: int, warm_up: int
) -> tuple[list[float], list[float]]:
    """Seconds of the query on the Iceberg table and on its files, in turns, those that warm up left out."""
    with spark_session(metastore, folder / "spark.log") as plain:
        build_warehouse(plain, folder, lambda _: None)
        location = plain.sql("describe formatted nyc.flights").where("col_name = 'Location'").collect()[0][1]
        with load_catalog("bench", uri=metastore.uri) as catalog:
            migrate(catalog, "nyc.flights")
        spark = extend(plain)
        # The metadata folder beside the partitions is none of the files to read.
        spark.read.option("basePath", location).parquet(f"{location}/month=*").createOrReplaceTempView("raw_flights")
        ours, theirs = [], []
        for _ in range(repeat + warm_up):
            mine, rows = timed(spark, "nyc.flights")
            raw, expected = timed(spark, "raw_flights")
            if rows != expected or len(rows) != 12:
                raise SystemExit(f"The answers differ:\n{rows}\n{expected}")
            ours.append(mine)
            theirs.append(raw)
        return ours[warm_up:], theirs[warm_up:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedMetastore(Path(folder) / "metastore") as metastore:
        ours, theirs = query_times(metastore, Path(folder), options.repeat, options.warm_up)
    mine, raw = statistics.median(ours), statistics.median(theirs)
    bare = start_up("-c", "pass")
    sys.stdout.write(
        f"flights by month: {mine:.3f} s, plain Parquet {raw:.3f} s, ratio {mine / raw:.2f}\n"
        f"import hms_iceberg: {start_up('-c', 'import hms_iceberg'):.3f} s (Python alone {bare:.3f} s)\n"
        f"hms-iceberg --help: {start_up('-m', 'hms_iceberg.cli.main', '--help'):.3f} s\n"
    )


if __name__ == "__main__":
    main()
