"""Changes of tables in our extended Spark and in Apache Iceberg's, in one run on the same version of Spark, in turns.

CREATE TABLE AS SELECT, INSERT … SELECT (and into plain Parquet beside it), by day of a timestamp (unsorted rows), with
a sort order, of one row by its values and of one of many rows; DELETE, UPDATE and MERGE, copy-on-write and
merge-on-read; a stream of small epochs; compaction by procedure.

    python tests/benchmarks/spark_writes.py [--rows 8000000] [--repeat 5] [--warm-up 2] [--work day,merge-v3,stream]
        [--format orc]

Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_peers import SparkProcess

SOURCE = """
create table bench.source using parquet as select /*+ repartition(8) */ id, hash(id) as a, id % 1000 as b,
  rand(1) as c, rand(2) * 1e6 as d, cast(id % 100000 as decimal(12, 2)) as price, concat('item ', id % 5000) as item,
  sha2(cast(id as string), 0) as note, date_add(date'2024-01-01', cast(id % 365 as int)) as day,
  timestamp_micros(1704067200000000 + pmod(cast(hash(id, 7) as bigint), 8640000) * 1000000) as ts from range({rows})"""
# Every second row is one that the table has.
CHANGES = """
create table bench.changes using parquet as select /*+ repartition(2) */
  case when id % 2 = 0 then id * 16 else {rows} + id end as id, id as b, concat('merged ', id) as item
  from range({changes})"""
EPOCHS = (
    "create table bench.epochs using parquet as select /*+ repartition({epochs}) */ id, id % 7 as b from range({rows})"
)
INSERTS = {
    "ctas": "",
    "unpartitioned": "",
    "day": "partitioned by (days(ts))",
    "sorted": "",
    "one-row": "",
    "one-row-of-many": "",
}
ROW = (
    "values (1L, 2, 3L, 0.5D, 0.25D, cast(12.5 as decimal(12, 2)), 'item', 'note', date'2024-01-01', "
    "timestamp'2024-01-01 00:00:00')"
)
MODES = {"cow": (2, "copy-on-write"), "v2": (2, "merge-on-read"), "v3": (3, "merge-on-read")}
CHANGED = {
    "delete": "delete from {table} where b % 100 = 7",
    "update": "update {table} set c = -1, item = 'changed' where b % 100 = 11",
    "merge": "merge into {table} t using bench.changes s on t.id = s.id when matched then update set b = s.b, "
    "item = s.item when not matched then insert (id, b, item) values (s.id, s.b, s.item)",
}
SEEN = "select count(*), sum(id), sum(b), sum(hash(item)) from {table}"
COMPACT = "call spark_catalog.system.rewrite_data_files(table => '{table}')"

Sides = Mapping[str, SparkProcess]


def inserts(sides: Sides, work: str, warm_up: int, repeat: int, form: str) -> dict[str, float]:
    """Median seconds of each side's INSERT, in turns; every full INSERT goes into an empty or a new table."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    into_one = work.startswith("one-row")
    selected = {"one-row": ROW, "one-row-of-many": "select * from bench.source limit 1"}
    rows = selected.get(work, "select * from bench.source")
    for turn in range(warm_up + repeat):
        for name, process in sides.items():
            table = f"bench.{work.replace('-', '_')}_{name}"
            written = f"tblproperties ('write.format.default' = '{form}')"
            kind = "using parquet" if name == "parquet" else f"using iceberg {INSERTS[work]} {written}"
            statement = f"insert into {table} {rows}"
            if turn == 0 or not into_one:
                process.ask(sql=f"drop table if exists {table}")
                if work == "ctas":
                    statement = f"create table {table} {kind} as {rows}"
                else:
                    process.ask(sql=f"create table {table} {kind} as select * from bench.source limit 0")
                if work == "sorted":
                    process.ask(sql=f"alter table {table} write ordered by item, id")
            times[name].append(process.ask(sql=statement)["seconds"])
    return _medians(times, warm_up)


def changes(sides: Sides, work: str, warm_up: int, repeat: int, files: int, form: str) -> dict[str, float]:
    """Median seconds of a statement that changes rows, each time on the same version of the table."""
    statement, mode = work.split("-")
    version, way = MODES.get(mode, (2, ""))
    properties = f"'format-version'='{version}', 'write.format.default'='{form}'"
    if way:
        properties += "".join(f", 'write.{each}.mode'='{way}'" for each in CHANGED)
    times: dict[str, list[float]] = {name: [] for name in sides}
    first: dict[str, str] = {}
    seen: dict[str, Any] = {}
    for turn in range(warm_up + repeat):
        for name, process in sides.items():
            table = f"bench.{statement}_{mode}_{name}"
            if turn == 0:
                process.ask(sql=f"drop table if exists {table}")
                process.ask(
                    sql=f"create table {table} using iceberg tblproperties ({properties}) "
                    f"as select /*+ repartition({files}) */ * from bench.source"
                )
                (first[name],) = process.ask(sql=f"select snapshot_id from {table}.snapshots")["rows"]
            else:
                back = f"call spark_catalog.system.set_current_snapshot('{table}', {first[name]})"
                process.ask(sql=back)
            timed = COMPACT if statement == "compact" else CHANGED[statement]
            times[name].append(process.ask(sql=timed.format(table=table))["seconds"])
            if turn == 0:
                seen[name] = process.ask(sql=SEEN.format(table=table))["rows"]
    if len({str(rows) for rows in seen.values()}) != 1:
        raise SystemExit(f"After {work} the rows differ: {seen}")
    return _medians(times, warm_up)


def streams(sides: Sides, warm_up: int, repeat: int) -> dict[str, float]:
    """Median seconds of a stream into an empty table, an epoch for each file of the source."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(warm_up + repeat):
        for name, process in sides.items():
            table = f"bench.stream_{name}"
            process.ask(sql=f"drop table if exists {table}")
            process.ask(sql=f"create table {table} (id bigint, b bigint) using iceberg")
            with tempfile.TemporaryDirectory() as checkpoint:
                answer = process.ask(stream={"source": "bench.epochs", "table": table, "checkpoint": checkpoint})
            times[name].append(answer["seconds"])
    return _medians(times, warm_up)


def _medians(times: Mapping[str, Sequence[float]], warm_up: int) -> dict[str, float]:
    return {name: statistics.median(seconds[warm_up:]) for name, seconds in times.items()}


def main() -> None:
    """Makes the sources and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--files", type=int, default=2000, help="files of the table that is compacted")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--format", default="parquet", help="format of the tables, but for the stream's")
    rows_changed = [f"{statement}-{mode}" for mode in MODES for statement in CHANGED]
    parser.add_argument("--work", default=",".join([*INSERTS, *rows_changed, "stream", "compact-files"]))
    options = parser.parse_args()
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse) for kind in ("ours", "java"))
        ours.ask(sql=SOURCE.format(rows=options.rows))
        ours.ask(sql=CHANGES.format(rows=options.rows, changes=options.rows // 16))
        ours.ask(sql=EPOCHS.format(epochs=options.epochs, rows=options.epochs * 1000))
        sys.stdout.write(f"Spark {ours.version}; Java's runtime on {java.version}; {options.rows:,} rows\n")
        sides = {"ours": ours, "java": java}
        for work in options.work.split(","):
            computed = {name: process.processor_seconds() for name, process in sides.items()}
            if work in INSERTS:
                beside = {**sides, "parquet": ours} if work == "unpartitioned" else sides
                repeat = 20 if work.startswith("one-row") else options.repeat
                seconds = inserts(beside, work, options.warm_up, repeat, options.format)
            elif work == "stream":
                seconds = streams(sides, min(options.warm_up, 1), min(options.repeat, 3))
            else:
                files = options.files if work == "compact-files" else 8
                seconds = changes(sides, work, options.warm_up, options.repeat, files, options.format)
            report = "  ".join(f"{side} {value:.3f} s" for side, value in seconds.items())
            ratios = "  ".join(f"{side}/ours {seconds[side] / seconds['ours']:.2f}" for side in list(seconds)[1:])
            spent = {name: process.processor_seconds() - computed[name] for name, process in sides.items()}
            processor = f"processor {spent['java'] / spent['ours']:.2f}"
            sys.stdout.write(f"{work:<14} {report}  {ratios}  {processor}  load {os.getloadavg()[0]:.1f}\n")
            sys.stdout.flush()
        ours.close()
        java.close()


if __name__ == "__main__":
    main()
