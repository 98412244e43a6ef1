"""How long the care of tables takes, beside Apache Iceberg's actions on Spark `local[2]`, on equal tables.

    python -m tests.benchmarks.maintenance --only bin-pack [--scale 0.1]
    python -m tests.benchmarks.maintenance --memory 640

Items, at scale 1: `bin-pack` of 2,000 files of 5,000 rows x 10 columns; `sort` and `z-order` of 8,000,000 rows;
`convert` 100,000 equality deletes over as many rows; `expire` 5,000 of 5,100 snapshots with 100,000 files; `orphans`,
1,000 of them among 100,000 files; `manifests`, 1,000 with 100,000 files. Every side does each once in small, so that
what it needs is loaded, and then in full on the same table. Java has no conversion of equality deletes: it is compared
with one read of the key columns. Times are of the clock, and of the processors, which tell more on a busy machine.

Needs what tests/interop has downloaded: run that first.
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
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click import echo

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.maintenance import (
    convert_equality_deletes,
    expire_snapshots,
    remove_orphan_files,
    rewrite_data_files,
)
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from tests.benchmarks.maintenance_tables import (
    LARGEST,
    NAMES,
    NUMBERS,
    Original,
    table_of_manifests,
    table_of_rows,
    table_of_snapshots,
    table_with_orphans,
)
from tests.benchmarks.spark_peers import ROOT, SparkProcess
from tests.support.parquet_pages import bytes_to_read

TOGETHER = {"rewrite-all": "true", "max-concurrent-file-group-rewrites": "2"}
ORDERS: dict[str, dict[str, str]] = {
    "bin-pack": {},
    "sort": {"strategy": "sort", "sort_order": "c1 asc nulls last, c2 asc nulls last"},
    "z-order": {"strategy": "sort", "sort_order": "zorder(c1,c2)"},
}
_SMALL = 0.02  # of the full size, before it counts


def count(number: int, scale: float) -> int:
    return max(10, int(number * scale))


@dataclass(frozen=True)
class Cost:
    """What a piece of work takes."""

    seconds: float
    processor: float

    def __str__(self) -> str:
        return f"{self.seconds:8.2f} s, {self.processor:8.2f} s of processors"


def timed(work: Callable[[], Any], processor: Callable[[], float] = time.process_time) -> Cost:
    """What it takes here, or in the process whose time is told."""
    started, computed = time.perf_counter(), processor()
    work()
    return Cost(time.perf_counter() - started, processor() - computed)


@dataclass(frozen=True)
class Item:
    """A work that both sides do.

    Attributes:
        build: makes the table, at a scale.
        ours: what we do with it.
        call: Java's procedure with its arguments.
        left: what the work leaves, which must be the same for all sides.
    """

    build: Callable[[Catalog, str, float], Table]
    ours: Callable[[Table], Any]
    call: Callable[[Table], str]
    left: Callable[[Original, Table], Any]


class Bench:
    """One item after the other, each side in turn."""

    def __init__(self, metastore: EmbeddedMetastore, catalog: Catalog, scale: float) -> None:
        self._metastore = metastore
        self._catalog = catalog
        self._scale = scale

    def run(self, name: str, sides: list[str]) -> None:
        """An item at its small size and at its full size, by each side."""
        item, label = ITEMS[name], name.replace("-", "_")
        small = Original(self._catalog, item.build(self._catalog, f"{label}_small", self._scale * _SMALL))
        full = Original(self._catalog, item.build(self._catalog, label, self._scale))
        costs, left = {}, {}
        for side in sides:
            kind = {"java": "java", "spark": "ours"}.get(side)
            done = self._in_spark(kind, item, small, full) if kind else self._here(item, small, full)
            costs[side], left[side] = done
            echo(f"{name:<10} {side:<6} {costs[side]}")
        assert all(each == left[sides[0]] for each in left.values()), f"{name}: what is left differs"
        for side in (each for each in sides if each != "java" and "java" in costs):
            clock = costs["java"].seconds / costs[side].seconds
            computed = costs["java"].processor / costs[side].processor
            echo(f"{name:<10} Java takes {clock:.2f} times as long as {side}, {computed:.2f} times the processor time")

    def _here(self, item: Item, small: Original, full: Original) -> tuple[Cost, Any]:
        item.ours(small.restored())
        table = full.restored()
        cost = timed(lambda: item.ours(table))
        return cost, item.left(full, table)

    def _in_spark(self, kind: str, item: Item, small: Original, full: Original) -> tuple[Cost, Any]:
        process = SparkProcess(kind, self._metastore.uri, self._metastore.warehouse)
        try:
            process.ask(sql=f"call spark_catalog.system.{item.call(small.restored())}")
            table = full.restored()
            text = f"call spark_catalog.system.{item.call(table)}"
            cost = timed(lambda: process.ask(sql=text), process.processor_seconds)
        finally:
            process.close()
        return cost, item.left(full, table)


# ------------------------------------------------------------------------------------------------ rewriting


def _rows_left(original: Original, table: Table) -> tuple[int, ...]:
    """How many rows, and the sums of their columns; says what filters on the first two columns would read."""
    table.refresh()
    rows = table.scan().to_arrow()
    files = [task.file for task in table.scan().plan_files()]
    size = sum(file.file_size_in_bytes for file in files)
    echo(f"           left {len(files)} files of {size / 2**20:.1f} MiB")
    for number in (0, 1):
        groups, pages = _bytes_read(files, number)
        read = f"{groups / 2**20:.1f} MiB of row groups, {pages / 2**20:.1f} MiB of pages"
        echo(f"           a filter on c{number + 1} reads {read}")
    return (rows.num_rows, *(int(np.sum(rows[name].to_numpy())) for name in NAMES))


def _bytes_read(files: list[Any], column: int) -> tuple[float, float]:
    """Bytes of row groups and of pages that hold values of a hundredth of a range, on average of ten places."""
    read, pages = [], 0
    for place in range(10):
        low = LARGEST * (2 * place + 1) // 20
        high = low + LARGEST // 100
        for file in files:
            path = parse_location(file.file_path).path
            groups = pq.read_metadata(path)
            pages += bytes_to_read(path, column, low, high)
            for number in range(groups.num_row_groups):
                group = groups.row_group(number)
                bounds = group.column(column).statistics
                if bounds.min <= high and bounds.max >= low:
                    read.append(sum(group.column(each).total_compressed_size for each in range(group.num_columns)))
    return sum(read) / 10, pages / 10


def _rewriting(order: str, files: Callable[[float], tuple[int, int]], target: int) -> Item:
    options = TOGETHER | {"target-file-size-bytes": str(target)}

    def call(table: Table) -> str:
        given = "".join(f", {key} => '{value}'" for key, value in ORDERS[order].items())
        texts = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        return f"rewrite_data_files(table => '{'.'.join(table.identifier)}'{given}, options => map({texts}))"

    return Item(
        build=lambda catalog, name, scale: table_of_rows(catalog, name, *files(scale)),
        ours=lambda table: rewrite_data_files(table, options=options, **ORDERS[order]),
        call=call,
        left=_rows_left,
    )


# ------------------------------------------------------------------------------------------------ metadata


def _named(call: str, arguments: str = "") -> Callable[[Table], str]:
    return lambda table: f"{call}(table => '{'.'.join(table.identifier)}'{arguments})"


def _kept(table: Table) -> int:
    return max(1, len(table.snapshots()) // 51)


ITEMS = {
    "bin-pack": _rewriting("bin-pack", lambda scale: (count(2000, scale), 5000), 512 << 20),
    "sort": _rewriting("sort", lambda scale: (8, count(1_000_000, scale)), 32 << 20),
    "z-order": _rewriting("z-order", lambda scale: (8, count(1_000_000, scale)), 32 << 20),
    "expire": Item(
        build=lambda catalog, name, scale: table_of_snapshots(catalog, name, count(5100, scale)),
        ours=lambda table: expire_snapshots(table, older_than=2**62, retain_last=_kept(table)),
        call=lambda table: _named(
            "expire_snapshots", f", older_than => timestamp '2999-01-01', retain_last => {_kept(table)}"
        )(table),
        left=lambda original, table: (len(original.files("data")), len(table.refresh().snapshots())),
    ),
    "orphans": Item(
        build=lambda catalog, name, scale: table_with_orphans(catalog, name, count(100_000, scale), count(1000, scale)),
        ours=lambda table: remove_orphan_files(table),
        call=_named("remove_orphan_files"),
        left=lambda original, table: original.files("data"),
    ),
    "manifests": Item(
        build=lambda catalog, name, scale: table_of_manifests(
            catalog, name, count(1000, scale), max(5, round(100 * scale**0.5))
        ),
        ours=lambda table: table.rewrite_manifests().commit(),
        call=_named("rewrite_manifests"),
        left=lambda original, table: table.refresh().current_snapshot().summary["total-data-files"],
    ),
}


# ------------------------------------------------------------------------------------------------ conversion


def convert(catalog: Catalog, scale: float, version: str) -> None:
    """Equality deletes converted, beside one read of the key columns; what reads take, beside raw `pyarrow`."""
    convert_equality_deletes(_with_equality_deletes(catalog, f"convert_{version}_small", scale * _SMALL, version))
    table = _with_equality_deletes(catalog, f"convert_{version}", scale, version)
    files = [parse_location(task.file.file_path).path for task in table.scan().plan_files()]
    keys_read = _least(lambda: pq.read_table(files, columns=["c1"]))
    raw = _least(lambda: pq.read_table(files))
    before = _least(lambda: table.scan().to_arrow())
    rows = table.scan().to_arrow().num_rows
    done = timed(lambda: convert_equality_deletes(table))
    assert table.refresh().scan().to_arrow().num_rows == rows
    after = _least(lambda: table.scan().to_arrow())
    ratio = f"{done.seconds / keys_read.seconds:.1f} and {done.processor / keys_read.processor:.1f}"
    echo(f"convert v{version} {done}, {ratio} reads of the keys ({keys_read})")
    for when, cost in (("before", before), ("after", after)):
        ratio = f"{cost.seconds / raw.seconds:.2f} and {cost.processor / raw.processor:.2f}"
        echo(f"           a read {when} {cost}, {ratio} of raw pyarrow ({raw})")


def _with_equality_deletes(catalog: Catalog, name: str, scale: float, version: str) -> Table:
    table = table_of_rows(catalog, name, 8, count(1_000_000, scale), **{"format-version": version})
    keys = np.random.default_rng(2).choice(LARGEST, count(100_000, scale), replace=False)
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"c1": pa.array(keys)}), columns=["c1"])
    return table.refresh()


def _least(work: Callable[[], Any]) -> Cost:
    """The least of five times: others use the machine as well."""
    costs = [timed(work) for _ in range(5)]
    return Cost(min(each.seconds for each in costs), min(each.processor for each in costs))


# ------------------------------------------------------------------------------------------------ memory


def rewrite_and_tell_the_peak(location: str, name: str) -> None:
    """Rewrites all files of a table in this process, or converts its deletes, and prints its peak memory in MiB."""
    table = FileSystemTables().load(location)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == "convert":
        cost = timed(lambda: convert_equality_deletes(table))
    else:
        cost = timed(lambda: rewrite_data_files(table, options={"rewrite-all": "true"}, **ORDERS[name]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    echo(f"{name:<10} peak {peak >> 10} MiB, of which {before >> 10} MiB before it began; {cost}")


def memory(mebibytes: int, names: list[str]) -> None:
    """A process of its own for each rewriting of a table of this size, in files of 32 MiB."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        location = f"{folder}/table"
        table = FileSystemTables().create(NUMBERS, location, properties={"write.parquet.compression-codec": "none"})
        for _ in range(max(1, mebibytes // 32)):
            table.append(pa.table([pa.array(rng.integers(0, 2**62, 419_430)) for _ in NAMES], NAMES))
        for name in names:
            if name == "convert":
                keys = next(table.refresh().scan().to_arrow_batch_reader())["c1"][:100_000]
                with table.new_row_delta() as delta:
                    delta.delete_equal(pa.table({"c1": keys}), columns=["c1"])
            command = [sys.executable, "-m", "tests.benchmarks.maintenance", "--rewrite", location, name]
            subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"TMPDIR": folder})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--only", action="append", choices=[*ITEMS, "convert"], help="items; all unless given")
    parser.add_argument("--sides", default="here,java", help="of here, spark and java")
    parser.add_argument("--memory", type=int, metavar="MIB", help="measure memory only")
    parser.add_argument("--rewrite", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only or [*ITEMS, "convert"]
    if options.rewrite:
        rewrite_and_tell_the_peak(*options.rewrite)
        return
    if options.memory:
        memory(options.memory, [name for name in names if name in (*ORDERS, "convert")])
        return
    with EmbeddedMetastore() as metastore:
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        for name in names:
            if name == "convert":
                convert(catalog, options.scale, "2")
                convert(catalog, options.scale, "3")
            else:
                Bench(metastore, catalog, options.scale).run(name, options.sides.split(","))


if __name__ == "__main__":
    main()
