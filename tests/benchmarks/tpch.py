"""TPC-H's 22 queries in our extended Spark, in Apache Iceberg's on the same tables, which Java wrote, and in ours on
the same data files as plain Parquet, in turns on one version of Spark.

    pip install tpchgen-cli
    python -m tests.benchmarks.tpch [--scale 1] [--repeat 3] [--folder FOLDER] [--queries 1,6]

The answers must be the same. Prints the seconds of each query (the least of its repeats), the totals, and the
processor seconds of ours and Java's over all repeats. Needs what tests/interop has downloaded: run that first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from click import echo

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.benchmarks.spark_peers import SparkProcess
from tests.benchmarks.tpch_queries import QUERIES, TABLES


def generate(folder: Path, scale: str) -> None:
    """The data of the benchmark, where it is not there yet."""
    if not all((folder / f"{table}.parquet").exists() for table in TABLES):
        command = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([str(command), "parquet", "-s", scale, f"--output-dir={folder}"], check=True)


def load(metastore: EmbeddedMetastore, ours: SparkProcess, java: SparkProcess, folder: Path) -> None:
    """An Iceberg table of each by Java, and a view of its data files."""
    catalog = load_catalog("tpch", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
    catalog.create_namespace("tpch")
    for name in TABLES:
        java.ask(sql=f"create table tpch.{name} using iceberg as select * from parquet.`{folder / name}.parquet`")
        files = [task.file.file_path for task in catalog.load_table(f"tpch.{name}").scan().plan_files()]
        ours.ask(views={f"raw_{name}": files})


def main() -> None:
    """Runs the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--queries", default=",".join(str(number + 1) for number in range(len(QUERIES))))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, EmbeddedMetastore() as metastore:
        folder = options.folder or Path(temporary)
        generate(folder, options.scale)
        ours, java = (SparkProcess(kind, metastore.uri, metastore.warehouse) for kind in ("ours", "java"))
        load(metastore, ours, java, folder)
        tables, views = ({table: f"{prefix}{table}" for table in TABLES} for prefix in ("tpch.", "raw_"))
        sides = {"ours": (ours, tables), "java": (java, tables), "parquet": (ours, views)}
        totals, processor = dict.fromkeys(sides, 0.0), dict.fromkeys(sides, 0.0)
        for number in map(int, options.queries.split(",")):
            least = dict.fromkeys(sides, float("inf"))
            answers: dict[str, list[str]] = {}
            for _ in range(options.repeat):
                for name, (process, names) in sides.items():
                    before = process.processor_seconds()
                    answer = process.ask(sql=QUERIES[number - 1].format(**names))
                    processor[name] += process.processor_seconds() - before
                    least[name] = min(least[name], answer["seconds"])
                    answers[name] = sorted(answer["rows"])
            if not answers["ours"] == answers["java"] == answers["parquet"] or not answers["ours"]:
                raise SystemExit(f"Query {number} answers differently:\n{ {k: v[:5] for k, v in answers.items()} }")
            totals = {name: total + least[name] for name, total in totals.items()}
            report(f"q{number}", least)
        report("all", totals)
        report("processor", processor)
        ours.close()
        java.close()


def report(what: str, seconds: dict[str, float]) -> None:
    shown = "  ".join(f"{name} {each:7.3f} s" for name, each in seconds.items())
    ratios = "  ".join(f"/{name} {seconds['ours'] / each:.2f}" for name, each in seconds.items() if name != "ours")
    echo(f"{what:<10} {shown}  ours{ratios}")


if __name__ == "__main__":
    main()
