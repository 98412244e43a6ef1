"""Children that are forked from a process that has planned, as loaders, servers and `multiprocessing` make them."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import threading
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import hms_iceberg
from hms_iceberg import lazy
from hms_iceberg.arrow.formats import parquet_frames
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.catalog.loading import load_catalog
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.table.table import Table

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks at the threads of a process"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_SECONDS = 60
_FORK = multiprocessing.get_context("fork")


def in_child(action: Callable[[], Any]) -> Any:
    """What a function gives in a forked process, or the text of its error; the process is killed if it hangs."""
    answers: SimpleQueue[Any] = _FORK.SimpleQueue()

    def run() -> None:
        try:
            answers.put(action())
        except BaseException as error:
            answers.put(f"{type(error).__name__}: {error}")

    child = _FORK.Process(target=run)
    child.start()
    child.join(_SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        pytest.fail(f"the child hung for {_SECONDS} seconds")
    assert not answers.empty(), f"the child ended with {child.exitcode}"
    return answers.get()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table that this process has planned, so that polars' threads run in it."""
    catalog = load_catalog("folder", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    properties = {"write.delete.mode": "merge-on-read", "format-version": "2"}
    table = catalog.create_table("n.t", pa.schema([("id", pa.int64()), ("s", pa.string())]), properties=properties)
    table.append(pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]}))
    table.append(pa.table({"id": [4], "s": ["d"]}))
    table.delete("id = 2")
    assert table.scan("id > 1").count() == 2
    frame = pl.DataFrame({"a": [1, 2]})
    frame.join(frame, on="a")
    assert lazy._has_threads()
    return table


@pytest.fixture(autouse=True)
def polars_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
    monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", 0)


def catalog_of(table: Table) -> Catalog:
    folder = table.location().removeprefix("file:").removesuffix("/n/t")
    return load_catalog("child", type="hadoop", warehouse=folder)


def rows(table: Table) -> list[tuple[int, str]]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


@pytest.mark.parametrize("inherited", [True, False])
def test_a_child_does_all_that_its_parent_does(table: Table, inherited: bool) -> None:
    def act() -> list[Any]:
        mine = table if inherited else catalog_of(table).load_table("n.t")
        found: list[Any] = [
            mine.scan().count(),
            mine.scan("id >= 3", limit=1).to_arrow().num_rows,
            mine.scan().to_polars().filter(lazy.pl.col("id") > 1).sort("id")["s"].to_list(),
            mine.to_polars().select("id").collect().height,
            len(mine.scan().to_pandas()),
            len(list(mine.scan().plan_files())),
            mine.inspect.files().num_rows,
            mine.inspect.entries().num_rows,
            mine.inspect.partitions().num_rows,
            mine.inspect.snapshots().num_rows,
        ]
        mine.append(pa.table({"id": [5, 6], "s": ["e", "f"]}))
        mine.append(lazy.pl.DataFrame({"id": [7], "s": ["g"]}))
        mine.delete("id = 4")
        mine.overwrite(pa.table({"id": [5], "s": ["E"]}), "id = 5")
        mine.update({"s": lazy.pl.col("s") + "!"}, "id = 6")
        changed = mine.upsert(pa.table({"id": [7, 8], "s": ["G", "h"]}), ["id"])
        return [*found, changed.rows_updated, changed.rows_inserted]

    assert in_child(act) == [3, 1, ["c", "d"], 3, 3, 2, 3, 3, 1, 3, 1, 1]
    assert rows(table) == [(1, "a"), (3, "c"), (5, "E"), (6, "f!"), (7, "G"), (8, "h")]


def test_children_of_children_and_many_at_once_read(table: Table) -> None:
    def count() -> int:
        return catalog_of(table).load_table("n.t").scan().count()

    assert in_child(lambda: (count(), in_child(count))) == (3, 3)
    assert in_child(lambda: in_child(count)) == 3  # the one between has not used polars
    children = [_FORK.Process(target=lambda: os._exit(count())) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(_SECONDS)
        child.kill()
    assert [child.exitcode for child in children] == [3, 3, 3]


def test_what_a_parent_has_planned_and_made_is_read_in_a_child(table: Table) -> None:
    scan = table.scan("id > 1")
    tasks = list(scan.plan_files())
    frame, reader = pl.DataFrame({"id": [9], "s": ["i"]}), scan.to_arrow_batch_reader()
    frame = pl.concat([frame, frame.with_columns(pl.col("id") + 1)], rechunk=False)

    def act() -> tuple[int, int, int]:
        read = sum(task.file.record_count for task in tasks)
        table.append(frame)
        return read, scan.to_arrow().num_rows, sum(batch.num_rows for batch in reader)

    assert in_child(act) == (4, 2, 2)
    assert rows(table)[-2:] == [(9, "i"), (10, "i")]


def test_a_child_of_a_parent_without_polars_keeps_the_polars_of_its_parent() -> None:
    program = (
        "import os, sys, polars as pl\n"
        "from hms_iceberg import lazy\n"
        "child = os.fork()\n"
        "if not child: os._exit(0 if lazy.pl.DataFrame is pl.DataFrame and lazy.pl.len().meta.output_name() else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-W", "ignore", "-c", program) == 0


def test_where_polars_cannot_be_loaded_anew_the_error_says_what_to_do(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Path) -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(lazy, "_copied", fails)
    answer = in_child(lambda: table.scan().count())
    assert "UnsupportedError" in answer
    assert "no space left" in answer
    assert "forkserver" in answer
    assert issubclass(UnsupportedError, Exception)


def test_a_child_computes_what_a_thread_was_computing_when_it_was_forked() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, of_thread: bool = False) -> None:
            self.of_thread = of_thread

        @cached_property
        def value(self) -> int:
            if self.of_thread:
                begun.set()
                go_on.wait(_SECONDS)
            return 7

    thread = threading.Thread(target=lambda: Slow(of_thread=True).value)
    thread.start()
    try:
        assert begun.wait(_SECONDS)
        assert in_child(lambda: Slow().value) == 7
    finally:
        go_on.set()
        thread.join()


def test_no_room_uses_the_cached_property_that_has_a_lock() -> None:
    root = Path(hms_iceberg.__file__).parent
    found = [path.name for path in root.rglob("*.py") if re.search(r"functools import .*cached_prop", path.read_text())]
    assert found == ["cached_properties.py"]
