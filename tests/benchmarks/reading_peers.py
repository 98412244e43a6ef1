"""Reads of whole tables by ours and by what a user would take instead, turn by turn in one run.

    python -m tests.benchmarks.reading_peers [--rows 2000000] [--repeats 5] [--only count_with_a_filter ...]
    python -m tests.benchmarks.reading_peers --page hms_iceberg/docs/READING.md

Peers get the same files: Polars raw (`scan_parquet`) and by `scan_iceberg` (planned by PyIceberg, and by its own
planner if `polars-iceberg` is installed), Daft if it is installed, DuckDB, `pyarrow.dataset`. Each line has the least
seconds of the processor and of the clock, and the most memory that it takes in a process of its own; rows that differ
in number end the run. The page of the guides has all that as tables and as a picture.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

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
FILES, SMALL_FILES = 2, 200
PLANNER = "POLARS_ICEBERG_PLANNER"  # what Polars asks the environment for
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


def written(
    catalog: Catalog,
    name: str,
    make: Callable[[], pa.Table],
    properties: dict[str, str] | None = None,
    gone: str = "",
    files: int = FILES,
) -> Table:
    """A table of some rows without those that are `gone`; as it is, if it was written before."""
    if catalog.table_exists(f"db.{name}"):
        return catalog.load_table(f"db.{name}")
    rows = make()
    table = catalog.create_table(f"db.{name}", rows.schema, properties=properties or {})
    part = -(-rows.num_rows // files)
    with table.transaction() as transaction:
        for start in range(0, rows.num_rows, part):
            transaction.append(rows.slice(start, part))
    if gone:
        table.delete(gone)
    return table


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Sets a variable of the environment for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


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
        return {
            "ours to_arrow": scan.to_arrow,
            "ours to_polars": scan.to_polars,
            "pyiceberg": lambda: self.foreign.scan(row_filter or "true", selected_fields=columns).to_arrow(),
        }

    def lazy(self, query: Query, deletes: bool = False) -> Calls:
        raw = {} if deletes else {"scan_parquet": lambda: query(pl.scan_parquet(self.paths, glob=False)).collect()}
        found: Calls = {
            "ours lazy": lambda: query(self.table.to_polars()).collect(),
            "scan_iceberg": lambda: self._scanned("pyiceberg", query),
        }
        if find_spec("polars_iceberg") is not None:
            found["polars-iceberg"] = lambda: self._scanned("plugin", query)
        return found | raw

    def _scanned(self, planner: str, query: Query) -> pl.DataFrame:
        with environment(PLANNER, planner):
            return query(pl.scan_iceberg(self.foreign)).collect()

    def daft(self, columns: str = "*", where: str = "") -> Calls:
        """Daft, if it is installed."""
        with suppress(ImportError):
            import daft

            def read() -> pa.Table:
                frame = daft.read_iceberg(self.foreign)
                frame = frame.where(where) if where else frame
                return (frame if columns == "*" else frame.select(*columns.split(", "))).to_arrow()

            return {"daft": read}
        return {}

    def others(self, columns: str, where: str = "true", test: Any = None) -> Calls:
        """DuckDB and pyarrow."""
        sql = f"select {columns} from read_parquet({self.paths}) where {where}"
        names = None if columns == "*" else columns.split(", ")
        return {
            "duckdb": lambda: self.duckdb.sql(sql).to_arrow_table(),
            "pyarrow": lambda: ds.dataset(self.paths).to_table(names, filter=test),
        }


class Lines:
    """What is read, each by a method of its name."""

    def __init__(self, catalog: Catalog, rows: int) -> None:
        self._catalog = catalog
        self._rows = rows

    @cached_property
    def _items(self) -> Peers:
        return Peers(written(self._catalog, "items", lambda: with_keys(self._rows)))

    @cached_property
    def _deleted(self) -> Peers:
        kinds = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        return Peers(written(self._catalog, "deleted", lambda: with_keys(self._rows), kinds, "hundred = 5"))

    def all_columns(self) -> Calls:
        return (
            self._items.whole() | self._items.lazy(lambda frame: frame) | self._items.others("*") | self._items.daft()
        )

    def one_percent(self) -> Calls:
        found = self._items.whole("hundred = 5") | self._items.lazy(lambda frame: frame.filter(pl.col("hundred") == 5))
        found |= self._items.others("*", "hundred = 5", ds.field("hundred") == 5)
        return found | self._items.daft(where="hundred = 5")

    def text_filter(self) -> Calls:
        value = "comment no 777"
        test, where = pl.col("l_comment") == value, f"l_comment = '{value}'"
        found = self._items.whole(where) | self._items.lazy(lambda frame: frame.filter(test))
        return found | self._items.others("*", where, ds.field("l_comment") == value) | self._items.daft(where=where)

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
        return self._deleted.whole() | self._deleted.lazy(lambda frame: frame, True) | self._deleted.daft()

    def count_with_position_deletes(self) -> Calls:
        found: Calls = {"ours count": lambda: self._deleted.table.scan("many < 300000").count()}
        return found | self._deleted.lazy(lambda frame: frame.filter(MANY).select(pl.len()), True)

    def five_of_500_columns(self) -> Calls:
        peers = Peers(written(self._catalog, "wide", lambda: wide(max(self._rows // 20, 1))))
        names = ("c1", "c100", "c200", "c300", "c499")
        found = peers.whole(columns=names) | peers.lazy(lambda frame: frame.select(names))
        return found | peers.others(", ".join(names)) | peers.daft(", ".join(names))

    def small_files(self) -> Calls:
        """All rows of many small files."""
        peers = Peers(written(self._catalog, "small", lambda: with_keys(self._rows // 10), files=SMALL_FILES))
        return peers.whole() | peers.lazy(lambda frame: frame) | peers.others("*") | peers.daft()

    def long_text(self) -> Calls:
        peers = Peers(written(self._catalog, "texts", lambda: texts(self._rows // 4)))
        return peers.whole() | peers.lazy(lambda frame: frame) | peers.others("*") | peers.daft()

    def nested(self) -> Calls:
        peers = Peers(written(self._catalog, "nested", lambda: nested(self._rows)))
        return peers.whole() | peers.lazy(lambda frame: frame) | peers.others("*") | peers.daft()


LINES = [name for name in vars(Lines) if not name.startswith("_")]


def rows_of(found: Any) -> int:
    """The number of rows, or the one that a count gives."""
    if isinstance(found, int):
        return found
    rows = int(found.num_rows if isinstance(found, pa.Table) else found.height)
    if rows != 1 or len(found.columns) != 1:
        return rows
    return int(found.columns[0][0].as_py() if isinstance(found, pa.Table) else found.item(0, 0))


class Figures(NamedTuple):
    """Least seconds of the processor and of the clock of several reads, and their rows."""

    processor: float
    wall: float
    rows: int


def measured(calls: Calls, repeats: int) -> dict[str, Figures]:
    """The figures of each call, which are made in turn."""
    found: dict[str, Figures] = {}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            wall, processor = time.perf_counter(), time.process_time()
            rows = rows_of(call())
            times = Figures(time.process_time() - processor, time.perf_counter() - wall, rows)
            known = found.get(name, times)
            found[name] = Figures(min(known.processor, times.processor), min(known.wall, times.wall), rows)
    counts = {each.rows for each in found.values()}
    assert len(counts) == 1, found
    return found


def most_memory(folder: str, rows: int, line: str, who: str) -> int:
    """MiB of memory that a read takes at the most, the first of a process."""
    options = ["--folder", folder, "--rows", str(rows), "--only", line, "--once", who]
    told = subprocess.run(
        [sys.executable, "-m", __spec__.name, *options], check=True, stdout=subprocess.PIPE, text=True
    )
    return int(told.stdout)


def read_once(calls: Calls, who: str) -> None:
    """Reads, and says how much memory that took at the most, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets what was the most until now
    before = _memory("VmRSS")
    rows = calls[who]()
    echo(_memory("VmHWM") - before)
    del rows


def _memory(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{name}:\s+(\d+)", status)[0]) // 1024


# ---------------------------------------------------------------------------------------------- as a page

TITLES = {
    "ours to_arrow": "`scan.to_arrow`",
    "ours to_polars": "`scan.to_polars`",
    "ours lazy": "`table.to_polars`",
    "ours count": "`scan.count`",
    "scan_iceberg": "`pl.scan_iceberg`",
    "polars-iceberg": "with `polars-iceberg`",
    "daft": "`daft.read_iceberg`",
    "pyiceberg": "PyIceberg",
    "scan_parquet": "`pl.scan_parquet`",
    "duckdb": "DuckDB",
    "pyarrow": "`pyarrow.dataset`",
}
PACKAGES = ("polars", "polars-iceberg", "daft", "duckdb", "pyiceberg", "pyarrow")
WIDTH = 40
ByLine = Mapping[str, Mapping[str, float]]

PAGE = """# Speed of reading

Reads of a table of {rows:,} rows and two files, by this package and by what one would take instead. The columns in
front are this package; behind them stand others that read Iceberg tables, and such as read the same Parquet files and
know nothing of the table: its deletes, its changes of schema, which files belong to it. This package also looks at the
checksums of all pages that it reads, which `pl.scan_iceberg` does not. Polars has PyIceberg plan its scans, or, where
the package `polars-iceberg` is installed too, a planner of its own: these are two columns. The line of small files has
a tenth of the rows in {small} files.

`python -m tests.benchmarks.reading_peers --page hms_iceberg/docs/READING.md` makes this page, in one run:
{versions};
{processors} processors, load {load:.1f}.

## Processor time

Seconds, the least of {repeats}. The read is warm: the files are in the system's cache, and the table is loaded.

{times}

## As a picture

The quickest of this package, and the others, as parts of the slowest of each line.

```text
{picture}
```

## Memory

MiB that a read takes at the most, beside those of a process that has imported all these packages and loaded the table.

{memory}
"""


def page(times: ByLine, memory: ByLine, rows: int, repeats: int, load: float) -> str:
    """A page of the guides."""
    return PAGE.format(
        rows=rows,
        small=SMALL_FILES,
        repeats=repeats,
        processors=os.cpu_count(),
        load=load,
        versions=", ".join(filter(None, map(_version, PACKAGES))),
        times=table_of(times, "{:.3f}"),
        picture=picture(times),
        memory=table_of(memory, "{:.0f}"),
    )


def _version(package: str) -> str:
    with suppress(PackageNotFoundError):
        return f"{package} {version(package)}"
    return ""


def table_of(figures: ByLine, form: str) -> str:
    """Figures as a table in Markdown, the least of each line in bold."""
    whos = [who for who in TITLES if any(who in line for line in figures.values())]
    lines = [f"| | {' | '.join(TITLES[who] for who in whos)} |", f"|---|{'---|' * len(whos)}"]
    for name, line in figures.items():
        told = {who: form.format(number) for who, number in line.items()}
        least = form.format(min(line.values()))
        cells = [f"**{told[who]}**" if told.get(who) == least else told.get(who, "–") for who in whos]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(figures: ByLine) -> str:
    """Figures as bars: the least of ours and the peers'."""
    lines = []
    for name, line in figures.items():
        ours = min(number for who, number in line.items() if who.startswith("ours"))
        shown = {"this package": ours} | {
            who: line[who] for who in TITLES if who in line and not who.startswith("ours")
        }
        lines += ["", name.replace("_", " ")]
        for who, number in shown.items():
            bar = "█" * max(round(WIDTH * number / max(shown.values())), 1)
            lines.append(f"  {TITLES.get(who, who).replace('`', ''):20} {bar} {number:.3f}")
    return "\n".join(lines[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=LINES, default=LINES)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or made
        catalog = load_catalog("bench", type="hadoop", warehouse=folder)
        lines = Lines(catalog, options.rows)
        if options.once:
            read_once(getattr(lines, options.only[0])(), options.once)
            return
        load = os.getloadavg()[0]
        echo(f"load of the machine: {load:.1f}, {os.cpu_count()} processors")
        catalog.create_namespace("db")
        times: dict[str, dict[str, float]] = {}
        memory: dict[str, dict[str, float]] = {}
        for name in options.only:
            found = measured(getattr(lines, name)(), options.repeats)
            least = min(each.processor for who, each in found.items() if not who.startswith("ours"))
            times[name] = {who: each.processor for who, each in found.items()}
            memory[name] = {who: most_memory(folder, options.rows, name, who) for who in found}
            echo(name.replace("_", " "))
            for who, each in found.items():
                told = f"{each.processor:7.3f} s cpu {each.wall:7.3f} s  {each.processor / least:5.2f}"
                echo(f"  {who:16} {told}  {memory[name][who]:6.0f} MiB  {each.rows:,} rows")
        if options.page:
            options.page.write_text(page(times, memory, options.rows, options.repeats + 1, load), encoding="utf-8")


if __name__ == "__main__":
    main()
