"""Reads of whole tables by ours and by what a user would take instead, turn by turn in one run.

    python -m tests.benchmarks.reading_peers [--rows 2000000] [--repeats 5] [--only count_with_a_filter ...]

Peers get the same files: Polars raw (`scan_parquet`) and by `scan_iceberg`, DuckDB, `pyarrow.dataset`. Each line has
the least seconds of the processor and of the clock, and says where rows differ in number.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from click import echo

from hms_iceberg import Table, load_catalog
from hms_iceberg.catalog import Catalog
from tests.benchmarks.reading import line_items

Calls = dict[str, Callable[[], Any]]
Query = Callable[[pl.LazyFrame], pl.LazyFrame]
FILES = 2
MANY = pl.col("many") < 300_000


def with_keys(rows: int) -> pa.Table:
    """Line items with a random column of a hundred values and one of many."""
    random = np.random.default_rng(9)
    items = line_items(rows, 1)
    items = items.append_column("hundred", pa.array(random.integers(0, 100, rows), pa.int32()))
    return items.append_column("many", pa.array(random.integers(0, 1_000_000, rows), pa.int64()))


def texts(rows: int) -> pa.Table:
    random = np.random.default_rng(3)
    words = random.integers(0, 1 << 60, (rows, 8)).astype(str)
    long = [" ".join(each) for each in words]
    return pa.table({"id": np.arange(rows), "long": long})


def nested(rows: int) -> pa.Table:
    random = np.random.default_rng(4)
    point = pa.StructArray.from_arrays([pa.array(random.random(rows)), pa.array(random.random(rows))], names=["x", "y"])
    offsets = pa.array(np.arange(0, rows * 3 + 1, 3), pa.int32())
    tags = pa.ListArray.from_arrays(offsets, pa.array(random.integers(0, 1000, rows * 3), pa.int64()))
    return pa.table({"id": np.arange(rows), "point": point, "tags": tags})


def wide(rows: int) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table({f"c{number}": random.integers(0, 1000, rows) for number in range(500)})


def written(catalog: Catalog, name: str, rows: pa.Table, properties: dict[str, str] | None = None) -> Table:
    table = catalog.create_table(f"db.{name}", rows.schema, properties=properties or {})
    part = -(-rows.num_rows // FILES)
    for start in range(0, rows.num_rows, part):
        table.append(rows.slice(start, part))
    return table


class Peers:
    """A table, and how each peer reads it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
        self.foreign = table.to_pyiceberg()
        self.duckdb = duckdb.connect()

    def whole(self, row_filter: str | None = None, columns: tuple[str, ...] = ("*",)) -> Calls:
        scan = self.table.scan(selected_fields=columns)
        scan = scan.filter(row_filter) if row_filter else scan
        return {"ours to_arrow": scan.to_arrow, "ours to_polars": scan.to_polars}

    def lazy(self, query: Query, deletes: bool = False) -> Calls:
        raw = {} if deletes else {"scan_parquet": lambda: query(pl.scan_parquet(self.paths, glob=False)).collect()}
        return {
            "ours lazy": lambda: query(self.table.to_polars()).collect(),
            "scan_iceberg": lambda: query(pl.scan_iceberg(self.foreign)).collect(),
            **raw,
        }

    def others(self, columns: str, where: str = "true", test: Any = None) -> Calls:
        """DuckDB and pyarrow."""
        sql = f"select {columns} from read_parquet({self.paths}) where {where}"
        names = None if columns == "*" else columns.split(", ")
        return {
            "duckdb": lambda: self.duckdb.execute(sql).to_arrow_table(),
            "pyarrow": lambda: ds.dataset(self.paths).to_table(names, filter=test),
        }


class Lines:
    """What is read, each by a method of its name."""

    def __init__(self, catalog: Catalog, rows: int) -> None:
        self._catalog = catalog
        self._rows = rows

    @cached_property
    def _items(self) -> Peers:
        return Peers(written(self._catalog, "items", with_keys(self._rows)))

    @cached_property
    def _deleted(self) -> Peers:
        kinds = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        table = written(self._catalog, "deleted", with_keys(self._rows), kinds)
        table.delete("hundred = 5")
        return Peers(table)

    def all_columns(self) -> Calls:
        return self._items.whole() | self._items.lazy(lambda frame: frame) | self._items.others("*")

    def one_percent(self) -> Calls:
        found = self._items.whole("hundred = 5") | self._items.lazy(lambda frame: frame.filter(pl.col("hundred") == 5))
        return found | self._items.others("*", "hundred = 5", ds.field("hundred") == 5)

    def text_filter(self) -> Calls:
        value = "comment no 777"
        test, where = pl.col("l_comment") == value, f"l_comment = '{value}'"
        found = self._items.whole(where) | self._items.lazy(lambda frame: frame.filter(test))
        return found | self._items.others("*", where, ds.field("l_comment") == value)

    def two_columns_and_a_filter(self) -> Calls:
        names = ("l_partkey", "l_extendedprice")
        test = (pl.col("l_quantity") < 24) & (pl.col("l_discount") >= 0.05)
        found = self._items.whole("l_quantity < 24 and l_discount >= 0.05", names)
        return found | self._items.lazy(lambda frame: frame.filter(test).select(names))

    def count_with_a_filter(self) -> Calls:
        found: Calls = {"ours count": lambda: self._items.table.scan("many < 300000").count()}
        found |= self._items.lazy(lambda frame: frame.filter(MANY).select(pl.len()))
        others = self._items.others("count(*)", "many < 300000")
        return found | {"duckdb": others["duckdb"]}

    def group_by(self) -> Calls:
        sums = pl.col("l_quantity").sum(), pl.col("l_tax").mean()
        return self._items.lazy(lambda frame: frame.group_by("l_shipmode").agg(*sums))

    def first_ten_rows(self) -> Calls:
        return self._items.lazy(lambda frame: frame.select("l_orderkey", "l_comment").head(10))

    def position_deletes(self) -> Calls:
        return self._deleted.whole() | self._deleted.lazy(lambda frame: frame, True)

    def count_with_position_deletes(self) -> Calls:
        found: Calls = {"ours count": lambda: self._deleted.table.scan("many < 300000").count()}
        return found | self._deleted.lazy(lambda frame: frame.filter(MANY).select(pl.len()), True)

    def five_of_500_columns(self) -> Calls:
        peers = Peers(written(self._catalog, "wide", wide(max(self._rows // 20, 1))))
        names = ("c1", "c100", "c200", "c300", "c499")
        found = peers.whole(columns=names) | peers.lazy(lambda frame: frame.select(names))
        return found | peers.others(", ".join(names))

    def long_text(self) -> Calls:
        peers = Peers(written(self._catalog, "texts", texts(self._rows // 4)))
        return peers.whole() | peers.lazy(lambda frame: frame) | peers.others("*")

    def nested(self) -> Calls:
        peers = Peers(written(self._catalog, "nested", nested(self._rows)))
        return peers.whole() | peers.lazy(lambda frame: frame) | peers.others("*")


LINES = [name for name in vars(Lines) if not name.startswith("_")]


def rows_of(found: Any) -> int:
    """The number of rows, or the one that a count gives."""
    if isinstance(found, int):
        return found
    rows = int(found.num_rows if isinstance(found, pa.Table) else found.height)
    if rows != 1 or len(found.columns) != 1:
        return rows
    return int(found.columns[0][0].as_py() if isinstance(found, pa.Table) else found.item(0, 0))


def measured(calls: Calls, repeats: int) -> dict[str, tuple[float, float, int]]:
    """Processor and wall seconds of each call, the least of several in turn, and its rows."""
    found: dict[str, tuple[float, float, int]] = {}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            wall, processor = time.perf_counter(), time.process_time()
            rows = rows_of(call())
            times = time.process_time() - processor, time.perf_counter() - wall
            known = found.get(name, (*times, rows))
            found[name] = min(known[0], times[0]), min(known[1], times[1]), rows
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=LINES, default=LINES)
    options = parser.parse_args()
    echo(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        catalog = load_catalog("bench", type="hadoop", warehouse=folder)
        catalog.create_namespace("db")
        lines = Lines(catalog, options.rows)
        for name in options.only:
            found = measured(getattr(lines, name)(), options.repeats)
            least = min(times[0] for who, times in found.items() if not who.startswith("ours"))
            echo(name.replace("_", " "))
            for who, (processor, wall, rows) in found.items():
                echo(f"  {who:16} {processor:7.3f} s cpu {wall:7.3f} s  {processor / least:5.2f}  {rows:,} rows")


if __name__ == "__main__":
    main()
