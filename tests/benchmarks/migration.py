"""How long the migration of many Parquet files takes, beside Apache Iceberg's procedure on Spark local[2].

    python tests/benchmarks/migration.py [--files 10000] [--partitions 100] [--rows 100] [--alone]

Makes two Hive tables of the same files on a metastore of its own, migrates one with this package, in a process of its
own whose memory is told, and the other, unless --alone, with `call system.migrate`. Needs what tests/interop has
downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.migration import migrate
from tests.benchmarks.spark_peers import ROOT, SparkProcess
from tests.support.hive_warehouse import HiveWarehouse

_LONGS = [f"c{number}" for number in range(8)]
_COLUMNS = ", ".join([*(f"{name} bigint" for name in _LONGS), "name string", "share double"])


def build(catalog: Catalog, name: str, folder: Path, files: int, partitions: int, seed: Path) -> None:
    """A table of hard links to one file."""
    warehouse = HiveWarehouse(catalog, "bench")
    made = warehouse.create(name, _COLUMNS, "k int", managed=False, location=f"file:{folder}/{name}")
    rows = []
    for number in range(partitions):
        place = folder / name / f"k={number}"
        place.mkdir(parents=True)
        for file in range(files // partitions):
            (place / f"{file:06d}_0").write_bytes(seed.read_bytes())
        descriptor = ttypes.StorageDescriptor(**{**vars(made.table.sd), "location": f"file:{place}"})
        rows.append(
            ttypes.Partition([str(number)], "bench", name, 0, 0, descriptor, parameters={"transient_lastDdlTime": "0"})
        )
    for start in range(0, partitions, 500):
        warehouse.client._call("add_partitions", rows[start : start + 500], subject="the table", repeatable=False)


def ours(uri: str) -> None:
    """Migrates the table `bench.ours` and prints what it took."""
    catalog = load_catalog("bench", uri=uri)
    started = time.perf_counter()
    result = migrate(catalog, "bench.ours")
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"seconds": seconds, "mib": peak, "files": result.files}) + "\n")


def java_seconds(server: EmbeddedMetastore) -> float:
    """How long Apache Iceberg's procedure takes for the table `bench.java`."""
    java = SparkProcess("java", server.uri, server.warehouse)
    try:
        return float(java.ask(sql="call spark_catalog.system.migrate('bench.java')")["seconds"])
    finally:
        java.close()


def main() -> None:
    """Builds the tables and migrates them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--ours", metavar="URI", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ours:
        ours(given.ours)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder, server = Path(temporary), EmbeddedMetastore()
        numbers = pa.array(range(given.rows), pa.int64())
        rows = {
            **dict.fromkeys(_LONGS, numbers),
            "name": numbers.cast(pa.string()),
            "share": numbers.cast(pa.float64()),
        }
        pq.write_table(pa.table(rows), folder / "seed")
        server.start()
        try:
            catalog = load_catalog("bench", uri=server.uri, warehouse=server.warehouse)
            catalog.create_namespace("bench")
            for name in ("ours",) if given.alone else ("ours", "java"):
                build(catalog, name, folder, given.files, given.partitions, folder / "seed")
            command = [sys.executable, __file__, "--ours", server.uri]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            found = json.loads(told)
            theirs = None if given.alone else java_seconds(server)
        finally:
            server.stop()
    there = "" if theirs is None else f", {theirs:.1f} s there, {theirs / found['seconds']:.1f} times as long"
    sys.stdout.write(
        f"{found['files']:,} files in {given.partitions:,} partitions: {found['seconds']:.1f} s here "
        f"({found['mib']:.0f} MiB){there}\n"
    )


if __name__ == "__main__":
    main()
