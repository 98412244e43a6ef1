"""INSERT … SELECT in our extended Spark, in Apache Iceberg's, and into plain Parquet, in one run on the same version of
Spark: into a table without partitions, by day of a timestamp (unsorted rows), and with a sort order; and of one row.

    python tests/benchmarks/spark_writes.py [--rows 8000000] [--repeat 5] [--warm-up 2] [--work day,one-row]

Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_peers import SparkProcess

SOURCE = """
create table bench.source using parquet as select /*+ repartition(8) */ id, hash(id) as a, id % 1000 as b,
  rand(1) as c, rand(2) * 1e6 as d, cast(id % 100000 as decimal(12, 2)) as price, concat('item ', id % 5000) as item,
  sha2(cast(id as string), 0) as note, date_add(date'2024-01-01', cast(id % 365 as int)) as day,
  timestamp_micros(1704067200000000 + pmod(cast(hash(id, 7) as bigint), 8640000) * 1000000) as ts from range({rows})"""
TABLES = {
    "unpartitioned": "using iceberg",
    "day": "using iceberg partitioned by (days(ts))",
    "sorted": "using iceberg",
    "one-row": "using iceberg",
    "parquet": "using parquet",
}


def statements(work: str, side: str) -> tuple[list[str], str]:
    """What makes a side's table, and what is timed."""
    table = f"bench.{work.replace('-', '_')}_{side}"
    kind = TABLES["parquet"] if side == "parquet" else TABLES[work]
    made = [f"drop table if exists {table}", f"create table {table} {kind} as select * from bench.source limit 0"]
    if work == "sorted":
        made.append(f"alter table {table} write ordered by item, id")
    rows = "select * from bench.source"
    return made, f"insert into {table} {rows} limit 1" if work == "one-row" else f"insert into {table} {rows}"


def compare(sides: Mapping[str, SparkProcess], work: str, warm_up: int, repeat: int) -> dict[str, float]:
    """Median seconds of each side, in turns; every full INSERT goes into an empty table."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(warm_up + repeat):
        for name, process in sides.items():
            made, timed = statements(work, name)
            if turn == 0 or work != "one-row":
                for statement in made:
                    process.ask(sql=statement)
            times[name].append(process.ask(sql=timed)["seconds"])
    return {name: statistics.median(seconds[warm_up:]) for name, seconds in times.items()}


def main() -> None:
    """Makes the source and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--work", default="unpartitioned,day,sorted,one-row")
    options = parser.parse_args()
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse) for kind in ("ours", "java"))
        ours.ask(sql=SOURCE.format(rows=options.rows))
        sys.stdout.write(f"Spark {ours.version}; Java's runtime on {java.version}; {options.rows:,} rows\n")
        for work in options.work.split(","):
            sides = {"ours": ours, "java": java}
            if work == "unpartitioned":
                sides["parquet"] = ours
            repeat = 20 if work == "one-row" else options.repeat
            seconds = compare(sides, work, options.warm_up, repeat)
            report = "  ".join(f"{side} {value:.3f} s" for side, value in seconds.items())
            ratios = "  ".join(f"{side}/ours {seconds[side] / seconds['ours']:.2f}" for side in list(seconds)[1:])
            sys.stdout.write(f"{work:<14} {report}  {ratios}\n")
            sys.stdout.flush()
        ours.close()
        java.close()


if __name__ == "__main__":
    main()
