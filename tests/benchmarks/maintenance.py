"""How long the care of tables takes, beside Apache Iceberg's actions on Spark `local[2]`, on equal tables.

    python tests/benchmarks/maintenance.py [--scale 0.1] [--works binpack,sort,zorder,convert,expire,orphans,manifests]

At scale 1: 2,000 files of 5,000 rows x 10 columns are packed; 8,000,000 rows sorted, and along a z-order curve; 100,000
equality deletes over as many rows converted; 5,000 of 5,100 snapshots with 100,000 files expired; 1,000 orphans found
among 100,000 files; 1,000 manifests with 100,000 files put together. Each side has a table of its own, made in the same
way; what both leave is compared. Java has no conversion of equality deletes: it is compared with one read of the key
columns. Prints seconds and how many times as long Java takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from spark_peers import SparkProcess

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance import (
    convert_equality_deletes,
    expire_snapshots,
    remove_orphan_files,
    rewrite_data_files,
)
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms import IdentityTransform
from hms_iceberg.spec.types import LongType, NestedField
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables

NUMBERS = Schema(*(NestedField(number, f"c{number}", LongType()) for number in range(1, 11)))
BY_FIRST = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "c1"))
QUIET = {"commit.manifest-merge.enabled": "false"}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Bench:
    """Pairs of tables and what is done to them."""

    def __init__(self, catalog: Catalog, java: SparkProcess, scale: float) -> None:
        self._catalog = catalog
        self._java = java
        self._scale = scale

    # ------------------------------------------------------------------------------------------ tables

    def _table(self, name: str, spec: PartitionSpec = UNPARTITIONED, **properties: str) -> Table:
        return self._catalog.create_table(f"bench.{name}", NUMBERS, partition_spec=spec, properties=QUIET | properties)

    def _count(self, number: int) -> int:
        return max(10, int(number * self._scale))

    def _of_rows(self, name: str, files: int, rows: int, **properties: str) -> Table:
        """A table of so many files with so many random rows each, in few snapshots."""
        table = self._table(name, **properties)
        rng = np.random.default_rng(1)
        names = [field.name for field in NUMBERS.fields]
        change = table.new_fast_append()
        for _ in range(files):
            columns = [pa.array(rng.integers(0, 10**6, rows)) for _ in names]
            for file in write_data_files(table.metadata, table.storage, pa.table(columns, names)):
                change.append_file(file)
        change.commit()
        return table.refresh()

    def _fake(self, table: Table, number: int, made: bool = True) -> DataFile:
        """A file that nobody reads, in a partition of its number by hundreds."""
        location = f"{table.location()}/data/{number:07}.parquet"
        if made:
            table.storage.create(location, b"x")
        bound = {field.field_id: to_bytes(LongType(), number) for field in NUMBERS.fields}
        counts = dict.fromkeys(bound, 1000)
        return DataFile(
            file_path=location,
            file_format="PARQUET",
            record_count=1000,
            file_size_in_bytes=1,
            partition=(number % 100,) if not table.spec().is_unpartitioned() else (),
            value_counts=counts,
            null_value_counts=dict.fromkeys(bound, 0),
            column_sizes=counts,
            lower_bounds=bound,
            upper_bounds=bound,
        )

    # ------------------------------------------------------------------------------------------ works

    def _call(self, text: str) -> float:
        return float(self._java.ask(sql=f"call spark_catalog.system.{text}")["seconds"])

    def _compare(self, name: str, ours: float, java: float) -> None:
        say(f"{name:<10} ours {ours:8.2f} s   Java {java:8.2f} s   Java / ours {java / ours:5.1f}")

    def _rewriting(self, name: str, files: int, rows: int, arguments: dict[str, str]) -> None:
        sides = [self._of_rows(f"{name}_{side}", files, rows) for side in ("ours", "java")]
        options = {"rewrite-all": "true", "max-concurrent-file-group-rewrites": "2"}
        ours = timed(lambda: rewrite_data_files(sides[0], options=options, **arguments))
        given = "".join(f", {key} => '{value}'" for key, value in arguments.items())
        texts = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        java = self._call(f"rewrite_data_files(table => 'bench.{name}_java'{given}, options => map({texts}))")
        assert len({each.refresh().scan().count() for each in sides}) == 1
        self._compare(name, ours, java)

    def binpack(self) -> None:
        """Many small files."""
        self._rewriting("binpack", self._count(2000), 5000, {})

    def sort(self) -> None:
        """Rows by two columns."""
        order = {"strategy": "sort", "sort_order": "c1 asc nulls last, c2 asc nulls last"}
        self._rewriting("sort", 8, self._count(1_000_000), order)

    def zorder(self) -> None:
        """Rows along a curve through two columns."""
        self._rewriting("zorder", 8, self._count(1_000_000), {"strategy": "sort", "sort_order": "zorder(c1,c2)"})

    def convert(self) -> None:
        """Equality deletes, beside one read of the key columns."""
        table = self._of_rows("convert", 8, self._count(1_000_000), **{"format-version": "3"})
        keys = np.random.default_rng(2).choice(10**6, self._count(100_000), replace=False)
        with table.new_row_delta() as delta:
            delta.delete_equal(pa.table({"c1": pa.array(keys)}), columns=["c1"])
        old = table.scan(snapshot_id=table.snapshots()[0].snapshot_id, selected_fields=("c1",))
        read = timed(lambda: old.to_arrow())
        before = timed(lambda: table.scan().to_arrow())
        seconds = timed(lambda: convert_equality_deletes(table))
        after = timed(lambda: table.scan().to_arrow())
        times = f"{seconds / read:.1f} reads of the keys; a scan {before:.2f} s before, {after:.2f} s after"
        say(f"convert    ours {seconds:8.2f} s   {times}")

    def expire(self) -> None:
        """Snapshots that each take the files of the one before away."""
        snapshots, files = self._count(5100), 20
        sides = []
        for side in ("ours", "java"):
            table = self._table(f"expire_{side}", **{"write.metadata.previous-versions-max": "1"})
            last: list[DataFile] = []
            for number in range(snapshots):
                new = [self._fake(table, number * files + each) for each in range(files)]
                change = table.new_overwrite()
                for file in last:
                    change.delete_file(file)
                for file in new:
                    change.add_file(file)
                change.commit()
                last = new
            sides.append(table)
        kept = max(1, snapshots // 51)
        ours = timed(lambda: expire_snapshots(sides[0], older_than=2**62, retain_last=kept))
        future = "older_than => timestamp '2999-01-01'"
        java = self._call(f"expire_snapshots(table => 'bench.expire_java', {future}, retain_last => {kept})")
        left = [sum(1 for _ in each.storage.list(f"{each.location()}/data")) for each in sides]
        assert left[0] == left[1], left
        self._compare("expire", ours, java)

    def orphans(self) -> None:
        """Few files that nothing names among many that are named."""
        sides = []
        for side in ("ours", "java"):
            table = self._table(f"orphans_{side}")
            change = table.new_fast_append()
            for number in range(self._count(100_000)):
                change.append_file(self._fake(table, number))
            change.commit()
            for number in range(self._count(1000)):
                table.storage.create(f"{table.location()}/data/lost-{number}.parquet", b"x")
            sides.append(table)
            for info in table.storage.list(f"{table.location()}/data"):
                path = parse_location(info.location).path
                os.utime(path, (0, 0))
        found: list[int] = []
        ours = timed(lambda: found.append(remove_orphan_files(sides[0]).deleted))
        java = self._call("remove_orphan_files(table => 'bench.orphans_java')")
        left = [sum(1 for _ in each.storage.list(f"{each.location()}/data")) for each in sides]
        assert found == [self._count(1000)] and left[0] == left[1], (found, left)
        self._compare("orphans", ours, java)

    def manifests(self) -> None:
        """Many manifests that each hold files of every partition."""
        files = self._count(100_000) // self._count(1000)
        sides = []
        for side in ("ours", "java"):
            table = self._table(f"manifests_{side}", BY_FIRST)
            for number in range(self._count(1000)):
                change = table.new_fast_append()
                for each in range(files):
                    change.append_file(self._fake(table, number * files + each, made=False))
                change.commit()
            sides.append(table)
        ours = timed(lambda: sides[0].rewrite_manifests().commit())
        java = self._call("rewrite_manifests(table => 'bench.manifests_java')")
        assert len({each.refresh().current_snapshot().summary["total-data-files"] for each in sides}) == 1
        self._compare("manifests", ours, java)


REWRITES: dict[str, dict[str, str]] = {
    "binpack": {},
    "sort": {"strategy": "sort", "sort_order": "c1 asc nulls last"},
    "zorder": {"strategy": "sort", "sort_order": "zorder(c1,c2)"},
}


def rewrite_and_tell_the_peak(location: str, name: str) -> None:
    """Rewrites all files of a table in this process, and prints its peak memory in MiB."""
    table = FileSystemTables().load(location)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rewrite_data_files(table, options={"rewrite-all": "true"}, **REWRITES[name])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    say(f"{name:<10} peak {peak >> 10} MiB, of which {before >> 10} MiB before it began")


def memory(mebibytes: int) -> None:
    """A process of its own for each rewriting of a table of this size, in files of 32 MiB."""
    rng = np.random.default_rng(1)
    names = [field.name for field in NUMBERS.fields]
    with tempfile.TemporaryDirectory() as folder:
        location = f"{folder}/table"
        table = FileSystemTables().create(NUMBERS, location, properties={"write.parquet.compression-codec": "none"})
        for _ in range(max(1, mebibytes // 32)):
            table.append(pa.table([pa.array(rng.integers(0, 2**62, 419_430)) for _ in names], names))
        for name in REWRITES:
            subprocess.run([sys.executable, __file__, "--rewrite", location, name], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--works", default="binpack,sort,zorder,convert,expire,orphans,manifests")
    parser.add_argument("--memory", type=int, metavar="MIB", help="measure memory only")
    parser.add_argument("--rewrite", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rewrite:
        rewrite_and_tell_the_peak(*options.rewrite)
        return
    if options.memory:
        memory(options.memory)
        return
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        java = SparkProcess("java", metastore.uri, metastore.warehouse)
        java.ask(sql="create table bench.warm (id bigint) using iceberg")
        java.ask(sql="insert into bench.warm values (1)")
        java.ask(sql="call spark_catalog.system.rewrite_manifests(table => 'bench.warm')")
        bench = Bench(catalog, java, options.scale)
        for work in options.works.split(","):
            getattr(bench, work)()
        java.close()


if __name__ == "__main__":
    main()
