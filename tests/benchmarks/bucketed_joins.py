"""Joins of two large tables that are bucketed by the key, and a MERGE of one into the other: without a shuffle in our
extended Spark and in Apache Iceberg's, and with one in ours, in turns on one version of Spark.

    python -m tests.benchmarks.bucketed_joins [--rows 20000000] [--buckets 16] [--repeat 3]

Java writes the tables. Both sides have the same settings. Prints the median seconds and processor seconds of each, and
how many exchanges their plans have besides that of the total. Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping

from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_peers import SparkProcess

SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
}
GROUPED = ("spark.sql.sources.v2.bucketing.enabled", "spark.sql.iceberg.planning.preserve-data-grouping")
JOIN = "select count(*), sum(a.v), max(b.w) from bench.a a join bench.b b on a.k = b.k"
MERGE = (
    "merge into {table} a using bench.changes b on a.k = b.k"
    " when matched then update set v = b.w when not matched then insert (k, v) values (b.k, b.w)"
)


def make(java: SparkProcess, table: str, column: str, rows: str, buckets: int) -> None:
    """A table of keys and a column, in buckets of the key."""
    java.ask(
        sql=f"create table {table} using iceberg partitioned by (bucket({buckets}, k)) tblproperties"
        " ('write.merge.mode' = 'merge-on-read', 'write.merge.distribution-mode' = 'none')"
        f" as select k, {column} from ({rows})"
    )


def exchanges(process: SparkProcess, statement: str) -> int:
    """How many times rows are sent to where their keys are."""
    plan = process.ask(sql=f"explain {statement}")["rows"][0]
    return plan.count("Exchange hashpartitioning")


def compare(what: str, sides: Mapping[str, tuple[SparkProcess, bool]], statements: Mapping[str, list[str]]) -> None:
    """Runs a side's statements, the sides in turns, and prints what they took; answers must be equal."""
    wall: dict[str, list[float]] = {name: [] for name in sides}
    processor: dict[str, list[float]] = {name: [] for name in sides}
    sent: dict[str, int] = {}
    for turn in range(len(next(iter(statements.values())))):
        answers = {}
        for name, (process, grouped) in sides.items():
            for setting in GROUPED:
                process.ask(sql=f"set `{setting}` = {str(grouped).lower()}")
            statement = statements[name][turn]
            sent[name] = exchanges(process, statement)
            before = process.processor_seconds()
            answer = process.ask(sql=statement)
            processor[name].append(process.processor_seconds() - before)
            wall[name].append(answer["seconds"])
            answers[name] = answer["rows"]
        if len({str(answer) for answer in answers.values()}) != 1:
            raise SystemExit(f"{what} answers differently: {answers}")
    for name in sides:
        seconds, computed = statistics.median(wall[name]), statistics.median(processor[name])
        echo(f"{what:<6} {name:<13} {seconds:7.2f} s  processor {computed:7.2f} s  exchanges by key {sent[name]}")


def main() -> None:
    """Makes the tables, and runs the joins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse) for kind in ("ours", "java"))
        for process in (ours, java):
            for name, value in SETTINGS.items():
                process.ask(sql=f"set {name} = {value}")
        keys = f"select id * 7919 % {options.rows} as k, id as v, id % 1000 as w from range({options.rows})"
        make(java, "bench.a", "v", keys, options.buckets)
        make(java, "bench.b", "w", keys, options.buckets)
        make(java, "bench.changes", "w", f"{keys} where id % 10 = 0", options.buckets)
        sides = {"ours": (ours, True), "ours shuffled": (ours, False), "java": (java, True)}
        for process in (ours, java):  # Java has written the tables, so that its classes are compiled already
            process.ask(sql=JOIN)
        compare("join", sides, dict.fromkeys(sides, [JOIN] * options.repeat))
        merged = {name: [f"bench.{name.replace(' ', '_')}_{n}" for n in range(options.repeat)] for name in sides}
        for table in (table for tables in merged.values() for table in tables):
            make(java, table, "v", keys, options.buckets)
        compare("merge", sides, {name: [MERGE.format(table=each) for each in merged[name]] for name in sides})
        tables = [table for each in merged.values() for table in each]
        left = {table: ours.ask(sql=f"select count(*), sum(v) from {table}")["rows"] for table in tables}
        if len({str(rows) for rows in left.values()}) != 1:
            raise SystemExit(f"The merged tables differ: {left}")
        ours.close()
        java.close()


if __name__ == "__main__":
    main()
