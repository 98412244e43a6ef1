"""Encrypted tables and variants in our extended Spark and in Apache Iceberg's, in one run on the same version of Spark,
in turns: INSERT … SELECT into encrypted tables and scans of them (beside ours without encryption), INSERT of variants,
shredded and not, and `variant_get` over shredded ones.

    python -m tests.benchmarks.spark_version_3 [--rows 2000000] [--variants 1000000] [--repeat 5] [--warm-up 2]

Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_peers import SparkProcess
from tests.benchmarks.spark_writes import SOURCE

VARIANTS = """
    create table bench.variants using parquet as select /*+ repartition(4) */ id, parse_json(concat(
      '{{"n": ', id, ', "kind": "', element_at(array('view', 'click', 'buy', 'leave'), cast(id % 4 as int) + 1),
      '", "price": ', id % 977, '.5, "who": {{"name": "user ', hash(id) % 10000, '", "age": ', id % 90, '}}}}')) as v
    from range({rows})
"""
VARIANT_QUERIES = {
    "sum": "select sum(variant_get(v, '$.n', 'bigint')) from {table}",
    "group": "select variant_get(v, '$.kind', 'string') as kind, avg(variant_get(v, '$.who.age', 'int')), count(*)"
    " from {table} group by 1",
    "filter": "select count(*), max(id) from {table} where variant_get(v, '$.n', 'bigint') < 20000",
    "text": "select count(*), max(variant_get(v, '$.who.name', 'string')) from {table}"
    " where variant_get(v, '$.kind', 'string') = 'buy'",
}
SCANS = {
    "all columns": "select sum(id), sum(a), sum(b), sum(c), sum(d), sum(price), max(item), max(note), max(day), max(ts)"
    " from {table}",
    "two columns": "select sum(id), max(note) from {table}",
    "one row of 20": "select sum(a), max(note) from {table} where id < {few}",
}
KEY = "'format-version' = '3', 'encryption.key-id' = 'one'"
# Java's vectorized reader knows no shredded variants.
SHREDDED = (
    "'format-version' = '3', 'write.parquet.shred-variants' = 'true', 'read.parquet.vectorization.enabled' = 'false'"
)

Times = dict[str, list[tuple[float, float]]]


def timed(process: SparkProcess, sql: str) -> tuple[tuple[float, float], list[str]]:
    """Seconds of a statement with those of the processor, which others on the machine do not change, and its rows."""
    before = process.processor_seconds()
    answer = process.ask(sql=sql)
    return (answer["seconds"], process.processor_seconds() - before), answer["rows"]


def inserts(sides: Mapping[str, tuple[SparkProcess, str, str]], source: str, turns: int) -> Times:
    """Times of each side's INSERT into an empty table that stays; a side is a process, its table and properties."""
    times: Times = {name: [] for name in sides}
    for _ in range(turns):
        for name, (process, table, properties) in sides.items():
            process.ask(sql=f"drop table if exists {table} purge")
            process.ask(sql=f"create table {table} using iceberg tblproperties ({properties}) as {source} limit 0")
            times[name].append(timed(process, f"insert into {table} {source}")[0])
    return times


def scans(sides: Mapping[str, tuple[SparkProcess, str]], turns: int) -> Times:
    """Times of each side's query; ends the benchmark where their answers differ."""
    times: Times = {name: [] for name in sides}
    expected: list[str] | None = None
    for _ in range(turns):
        for name, (process, query) in sides.items():
            found, rows = timed(process, query)
            if expected not in (None, sorted(rows)):
                raise SystemExit(f"{name} answers otherwise to {query}:\n{rows[:5]}\n{expected}")
            expected = sorted(rows)
            times[name].append(found)
    return times


def told(work: str, times: Times, warm_up: int) -> None:
    """Prints the medians of a work, and the first side's beside each of the others'."""
    medians = {
        side: [statistics.median(each) for each in zip(*found[warm_up:], strict=True)] for side, found in times.items()
    }
    first, *others = medians
    report = "  ".join(f"{side} {seconds:.3f} s" for side, (seconds, _) in medians.items())
    for other in others:
        seconds, processor = (mine / its for mine, its in zip(medians[first], medians[other], strict=True))
        report += f"   {first}/{other} {seconds:.2f} (processor {processor:.2f})"
    echo(f"{work:<24} {report}   load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--variants", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--work", default="encrypted,variants")
    options = parser.parse_args()
    warm_up, turns = options.warm_up, options.warm_up + options.repeat
    with EmbeddedMetastore() as metastore, tempfile.TemporaryDirectory() as folder:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        keys = Path(folder) / "keys.json"
        keys.write_text(json.dumps({"one": base64.b64encode(bytes(16)).decode()}))
        keys.chmod(0o600)
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse, keys) for kind in ("ours", "java"))
        echo(f"Spark {ours.version} and {java.version}; {options.rows:,} rows, {options.variants:,} variants")
        if "encrypted" in options.work:
            ours.ask(sql=SOURCE.format(rows=options.rows))
            writes = {
                "ours": (ours, "keyed.bench.ours", KEY),
                "plain": (ours, "keyed.bench.plain", "'format-version' = '3'"),
                "java": (java, "keyed.bench.javas", KEY),
            }
            source = "select * from spark_catalog.bench.source"
            told("encrypted insert", inserts(writes, source, turns), warm_up)
            for name, query in SCANS.items():
                read = {"ours": (ours, "ours"), "plain": (ours, "plain"), "java": (java, "ours")}
                asked = {
                    side: (process, query.format(table=f"keyed.bench.{table}", few=options.rows // 20))
                    for side, (process, table) in read.items()
                }
                told(f"encrypted {name}", scans(asked, turns), warm_up)
        if "variants" in options.work:
            ours.ask(sql="create namespace if not exists files.bench")
            ours.ask(sql=VARIANTS.format(rows=options.variants))
            source = "select * from spark_catalog.bench.variants"
            for kind, properties in (("whole", "'format-version' = '3'"), ("shredded", SHREDDED)):
                writes = {
                    "ours": (ours, f"files.bench.{kind}_ours", properties),
                    "java": (java, f"files.bench.{kind}_java", properties),
                }
                told(f"variant insert, {kind}", inserts(writes, source, turns), warm_up)
            for kind in ("whole", "shredded"):
                for name, query in VARIANT_QUERIES.items():
                    text = query.format(table=f"files.bench.{kind}_java")
                    told(f"{kind} {name}", scans({"ours": (ours, text), "java": (java, text)}, turns), warm_up)
        ours.close()
        java.close()


if __name__ == "__main__":
    main()
