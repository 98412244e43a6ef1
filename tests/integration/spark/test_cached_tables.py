"""What CACHE TABLE and `DataFrame.cache()` keep, when the table changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.spark.test_streams import batches
from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import rows_of
from tests.support.spread import ALL, SEED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

IDS = pa.schema([("id", pa.int64())])
PAST = {"past", "option"}
EVERY = 1 if ALL else 3
"""Of so many changes, one is followed through every kind of read, others for every commit; the rest through a few."""
FEW = {"table", "branch", "past"}
CALL = "call spark_catalog.system."


@dataclass
class Cached:
    """A table with the rows 1 and 2, whose branch `b` has 3 too and a staged snapshot 4; everything of it is cached.

    Attributes:
        is_whole: whether it is read in every way, or in a few.
        first: the snapshot of row 1 alone.
        staged: that of row 4.
    """

    spark: SparkSession
    table: Table
    folder: Path
    is_whole: bool

    def __post_init__(self) -> None:
        self.name = ".".join(self.table.identifier)
        self.first = self.add(1)
        at = self.table.metadata.last_updated_ms + 1
        time.sleep(0.002)
        self.add(2)
        self.table.manage_snapshots().create_branch(self.table.metadata.current_snapshot_id, "b").commit()
        self.spark.sql(f"insert into {self.name}.branch_b values (3)")
        self.spark.conf.set("spark.wap.id", "staged")
        self.spark.sql(f"insert into {self.name} values (4)")
        self.spark.conf.unset("spark.wap.id")
        self.staged = self.table.refresh().metadata.snapshots[-1].snapshot_id
        self.time = f"timestamp_millis({at})"
        self.spark.sql(f"cache table {self.name}")
        self.spark.sql(f"create or replace temporary view seen as select id * 10 as id from {self.name}")
        self.spark.sql("cache table seen")
        self.cached = {name: read.cache() for name, read in self.reads().items()}

    def add(self, number: int) -> int:
        self.table.append(pa.table([[number]], schema=IDS))
        assert self.table.metadata.current_snapshot_id is not None
        return self.table.metadata.current_snapshot_id

    def reads(self) -> dict[str, DataFrame]:
        queries = {
            "table": f"select id from {self.name}",
            "view": "select * from seen",
            "query": f"select id + 100 from {self.name}",
            "branch": f"select * from {self.name}.branch_b",
            "main": f"select * from {self.name}.branch_main",
            "alias": f"select * from ice.{self.name}",
            "past": f"select * from {self.name} version as of {self.first}",
        }
        if not self.is_whole:
            return {name: self.spark.sql(queries[name]) for name in FEW}
        option = self.spark.read.option("snapshot-id", self.first).table(self.name)
        return {"option": option} | {name: self.spark.sql(query) for name, query in queries.items()}

    def found(self) -> dict[str, list[int]]:
        return {name: sorted(row[0] for row in read.collect()) for name, read in self.reads().items()}

    def uncached(self) -> set[str]:
        """What is read from files."""
        plans = {name: read._jdf.queryExecution().executedPlan().toString() for name, read in self.reads().items()}
        return {name for name, plan in plans.items() if "InMemoryRelation" not in plan}

    def expected(self, main: list[int], branch: list[int]) -> dict[str, list[int]]:
        every = {
            "query": [each + 100 for each in main],
            "branch": branch,
            "main": main,
            "alias": main,
            "past": [1],
            "option": [1],
            "table": main,
            "view": [each * 10 for each in main],
        }
        return {name: rows for name, rows in every.items() if self.is_whole or name in FEW}

    def call(self, procedure: str, arguments: str) -> None:
        self.spark.sql(f"{CALL}{procedure}('{self.name}', {arguments})")

    def files(self) -> None:
        pq.write_table(pa.table([[9]], schema=IDS), self.folder / "nine.parquet")
        self.call("add_files", f"'`parquet`.`{self.folder}`'")

    def stream(self) -> None:
        source = self.spark.readStream.schema("id bigint").parquet(str(self.folder))
        pq.write_table(pa.table([[9]], schema=IDS), self.folder / "nine.parquet")
        write = source.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
        assert write.trigger(availableNow=True).toTable(self.name).awaitTermination(120)


CHANGES: dict[str, tuple[Callable[[Cached], object], list[int], list[int]]] = {
    "rollback_to_snapshot": (lambda it: it.call("rollback_to_snapshot", f"{it.first}"), [1], [1, 2, 3]),
    "rollback_to_timestamp": (lambda it: it.call("rollback_to_timestamp", it.time), [1], [1, 2, 3]),
    "set_current_snapshot": (lambda it: it.call("set_current_snapshot", f"{it.first}"), [1], [1, 2, 3]),
    "fast_forward": (lambda it: it.call("fast_forward", "'main', 'b'"), [1, 2, 3], [1, 2, 3]),
    "cherrypick_snapshot": (lambda it: it.call("cherrypick_snapshot", f"{it.staged}"), [1, 2, 4], [1, 2, 3]),
    "publish_changes": (lambda it: it.call("publish_changes", "'staged'"), [1, 2, 4], [1, 2, 3]),
    "add_files": (Cached.files, [1, 2, 9], [1, 2, 3]),
    "a procedure of the other catalog": (
        lambda it: it.spark.sql(f"call ice.system.rollback_to_snapshot('{it.name}', {it.first})"), [1], [1, 2, 3]
    ),
    "replace branch": (
        lambda it: it.spark.sql(f"alter table {it.name} replace branch b as of version {it.first}"), [1, 2], [1]
    ),
    "replace main": (
        lambda it: it.spark.sql(f"alter table {it.name} replace branch main as of version {it.first}"), [1], [1, 2, 3]
    ),
    "insert": (lambda it: it.spark.sql(f"insert into {it.name} values (9)"), [1, 2, 9], [1, 2, 3]),
    "insert by the other catalog": (
        lambda it: it.spark.sql(f"insert into ice.{it.name} values (9)"), [1, 2, 9], [1, 2, 3]
    ),
    "insert into main": (
        lambda it: it.spark.sql(f"insert into {it.name}.branch_main values (9)"), [1, 2, 9], [1, 2, 3]
    ),
    "delete in main": (lambda it: it.spark.sql(f"delete from {it.name}.branch_main where id = 1"), [2], [1, 2, 3]),
    "update in a branch": (
        lambda it: it.spark.sql(f"update {it.name}.branch_b set id = 9 where id = 1"), [1, 2], [2, 3, 9]
    ),
    "overwrite by a writer": (
        lambda it: it.spark.range(9, 10).write.format("iceberg").mode("overwrite").save(it.name), [9], [1, 2, 3]
    ),
    "a stream": (Cached.stream, [1, 2, 9], [1, 2, 3]),
}  # fmt: skip


def test_what_is_cached_of_a_table_follows_every_change_but_for_versions_of_the_past(
    ice: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    properties = {"write.wap.enabled": "true", "write.update.mode": "merge-on-read"}
    wrong = {}
    for number, (what, (change, main, branch)) in enumerate(CHANGES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = catalog.create_table(f"{namespace}.t{number}", IDS, properties=properties)
        cached = Cached(ice, table, folder, number == 0 or number % EVERY == SEED % EVERY)
        assert number > 0 or cached.found() == cached.expected([1, 2], [1, 2, 3])
        change(cached)
        found, expected = cached.found(), cached.expected(main, branch)
        if number == 0 and spark_release() >= (4, 1):  # before, it is another plan
            assert cached.uncached() <= PAST
        assert all(cached.cached[name].storageLevel.useMemory for name in PAST & cached.cached.keys())
        if found != expected:
            wrong[what] = {name: rows for name, rows in found.items() if rows != expected[name]}
        ice.catalog.clearCache()
    assert wrong == {}


@pytest.mark.since_spark("4.1", "before, a cached version is not given for a newer one")
def test_what_only_reads_leaves_what_is_cached(
    ice: SparkSession, orders: Table, namespace: str, tmp_path: Path
) -> None:
    name = f"{namespace}.orders"
    ice.sql(f"cache table {name}")
    assert rows_of(ice, f"select count(*) from {name}") == [(6,)]
    orders.append(orders.scan("id = 4").to_arrow())
    ice.sql(f"{CALL}ancestors_of('{name}')").collect()
    ice.sql(f"{CALL}create_changelog_view('{name}')").collect()
    assert len(batches(ice.readStream.table(name), tmp_path)[0]) == 7
    assert rows_of(ice, f"select count(*) from {name}") == [(6,)]
    ice.sql(f"{CALL}expire_snapshots('{name}')").collect()
    assert rows_of(ice, f"select count(*) from {name}") == [(7,)]
