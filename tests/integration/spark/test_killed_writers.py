"""Drivers that are killed in the middle of a commit: a table is as it was or whole, and nobody waits for a lock.

A test run kills a driver at one point of its commits, another one for every commit; HMS_ICEBERG_FAULTS=all takes all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from tests.integration.hms.test_fault_matrix import ALL, SEED
from tests.support.spark_statements import Driver
from tests.support.thrift_proxy import Fault, ThriftProxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS, NEW = 4000, 1000
OLD, LATER = range(ROWS), range(ROWS, 2 * ROWS)
SELECT = f"select id, id as v from range({ROWS}, {2 * ROWS}, 1, 2)"
MERGE = (
    f"merge into {{t}} t using (select id from range(0, {ROWS + NEW}, 1, 2)) s on t.id = s.id"
    " when matched then update set v = s.id + 1 when not matched then insert (id, v) values (s.id, s.id)"
)
MERGED = {**{n: n + 1 for n in OLD}, **{n: n for n in range(ROWS, ROWS + NEW)}}
STATEMENTS = {
    "inserted": (f"insert into {{t}} {SELECT}", {n: n for n in range(2 * ROWS)}),
    "overwritten": (f"insert overwrite {{t}} {SELECT}", {n: n for n in LATER}),
    "updated_cow": ("update {t} set v = id + 1 where id >= 0", {n: n + 1 for n in OLD}),
    "updated_mor": ("update {t} set v = id + 1 where id >= 0", {n: n + 1 for n in OLD}),
    "merged_cow": (MERGE, MERGED),
    "merged_mor": (MERGE, MERGED),
    "deleted_cow": ("delete from {t} where id % 2 = 0", {n: n for n in OLD if n % 2}),
    "deleted_mor": ("delete from {t} where id % 2 = 0", {n: n for n in OLD if n % 2}),
    "emptied": ("delete from {t} where id >= 0", {}),
    "created": (f"create table {{t}} using iceberg as {SELECT}", {n: n for n in LATER}),
}
"""By the names of tables: statements, and the rows after them."""
POINTS = ("commits are sent", "commits are made")


def make(catalog: Catalog, name: str) -> Table:
    mode = "merge-on-read" if name.endswith("_mor") else "copy-on-write"
    properties = {"format-version": "2", **{f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}}
    table = catalog.create_table(name, pa.schema([("id", pa.int64()), ("v", pa.int64())]), properties=properties)
    table.append(pa.table({"id": OLD, "v": OLD}))
    return table


def data_files(table: Table) -> set[str]:
    """All files in the folder of the data, but for checksums."""
    folder = Path(table.location().removeprefix("file:")) / "data"
    return {str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")}


def needed_files(table: Table) -> set[str]:
    """The files of data and deletes that a snapshot of the table names; none is in a snapshot twice."""
    paths = table.refresh().inspect.files().column("file_path").to_pylist()
    assert not [path for path, times in Counter(paths).items() if times > 1]
    return {path.removeprefix("file:") for path in table.inspect.all_files().column("file_path").to_pylist()}


def content(table: Table) -> dict[int, int]:
    rows = table.refresh().scan().to_arrow().to_pydict()
    assert len(set(rows["id"])) == len(rows["id"])
    return dict(zip(rows["id"], rows["v"], strict=True))


@pytest.mark.parametrize("point", POINTS if ALL else [POINTS[SEED % len(POINTS)]])
def test_a_driver_killed_in_every_kind_of_write_leaves_tables_as_they_were_or_whole_and_no_lock(
    spark: SparkSession, metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, point: str
) -> None:
    tables = {name: make(catalog, f"{namespace}.{name}") for name in STATEMENTS if name != "created"}
    before = {name: (table.metadata_location, data_files(table)) for name, table in tables.items()}
    statements = [text.replace("{t}", f"{namespace}.{name}") for name, (text, _) in STATEMENTS.items()]
    make(catalog, f"{namespace}.first")
    first = f"insert into {namespace}.first values (1, 1)"
    held, end = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        held.release()
        end.wait()

    with ThriftProxy(urlsplit(metastore.uri).port or 0) as proxy:
        with Driver(uri=proxy.uri, warehouse=metastore.warehouse, statements=statements, first=first) as driver:
            driver.wait()
            for method in ("alter_table_with_environment_context", "create_table"):
                if point == "commits are sent":
                    proxy.on(method, Fault.DROP_REQUEST, times=-1, before=hold)
                else:
                    proxy.on(method, Fault.DROP_ANSWER, times=-1, after=hold)
            driver.begin()
            for _ in statements:
                until = time.monotonic() + 240
                while not held.acquire(timeout=0.1):
                    driver.check()
                    assert time.monotonic() < until
        end.set()

    names = {name for _, name in catalog.list_tables(namespace)} - {"first"}
    if point == "commits are sent":
        assert names == set(tables)
        for name, table in tables.items():
            assert table.refresh().metadata_location == before[name][0], name
            assert needed_files(table) == before[name][1], name
    else:
        assert names == set(STATEMENTS)
        tables["created"] = catalog.load_table(f"{namespace}.created")
        for name, table in tables.items():
            assert content(table) == STATEMENTS[name][1], name
            assert needed_files(table) <= data_files(table), name
    started = time.monotonic()
    for name, table in tables.items():
        rows = len(content(table))
        spark.sql(f"insert into {namespace}.{name} values (-1, -1)")
        assert len(content(table)) == rows + 1, name
    assert time.monotonic() - started < 60  # no lock is waited for
