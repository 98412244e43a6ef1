"""Streams that go from one of the two to the other, and what each has cached after a change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spark import extend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from tests.interop.conftest import JavaIceberg

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.spark]

IDS = pa.schema([("id", pa.int32())])


@pytest.fixture
def ice(spark: SparkSession, metastore: EmbeddedMetastore) -> SparkSession:
    """Our session, with the catalog that Java's has."""
    return extend(spark, catalogs={"ice": {"uri": metastore.uri}})


def stream(spark: Any, name: str, checkpoint: str, kill: bool) -> list[Any]:
    """What a stream delivers, or how it ends."""
    found: list[Any] = []

    def batch(frame: Any, _: int) -> None:
        if kill:
            raise RuntimeError("killed")
        found.extend(row[0] for row in frame.collect())

    rows = spark.readStream.format("iceberg").load(name)
    query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    try:
        query.start().awaitTermination(120)
    except Exception as error:
        return ["killed" if "killed" in str(error) else "expired" if "expired" in str(error) else str(error)]
    return sorted(found)


@pytest.mark.parametrize("expires", [False, True])
@pytest.mark.parametrize("ours_begins", [True, False])
def test_either_goes_on_with_the_other_s_checkpoint(
    ice: SparkSession,
    iceberg_java: JavaIceberg,
    catalog: Catalog,
    namespace: str,
    tmp_path: Path,
    ours_begins: bool,
    expires: bool,
) -> None:
    name = f"ice.{namespace}.t"
    table = catalog.create_table(f"{namespace}.t", IDS)

    def run(ours: bool, kill: bool = False) -> list[Any]:
        given = (name, str(tmp_path), kill)
        found: list[Any] = stream(ice, *given) if ours else iceberg_java.ask(stream, *given)
        return found

    for number in (1, 2):
        table.append(pa.table([[number]], schema=IDS))
    assert run(ours_begins, kill=True) == ["killed"]
    if expires:
        first = table.metadata.snapshots[0].snapshot_id
        ice.sql(f"call ice.system.expire_snapshots(table => '{namespace}.t', snapshot_ids => array({first}))")
        assert run(not ours_begins) == ["expired"]
        assert run(ours_begins) == ["expired"]
        return
    assert run(not ours_begins) == [1, 2]
    table.append(pa.table([[3]], schema=IDS))
    assert run(ours_begins) == [3]
    assert run(not ours_begins) == []


def cached(spark: Any, namespace: str) -> dict[str, list[int]]:
    """What a session reads of a cached table, of what is cached over it, and of its past, after each change."""

    def ids(query: str) -> list[int]:
        return sorted(row[0] for row in spark.sql(query).collect())

    read = {}
    for change in (
        "call ice.system.rollback_to_snapshot('{0}', {1})",
        "call ice.system.set_current_snapshot('{0}', {1})",
        "call ice.system.fast_forward('{0}', 'main', 'b')",
        "call ice.system.cherrypick_snapshot('{0}', {2})",
        "call ice.system.rewrite_data_files('{0}')",
        "insert into ice.{0} values (9)",
    ):
        name = f"{namespace}.t{len(read)}"
        spark.sql(f"create table ice.{name} (id int) using iceberg tblproperties ('format-version' = '2')")
        spark.sql(f"insert into ice.{name} values (1)")
        first = ids(f"select snapshot_id from ice.{name}.snapshots")[0]
        spark.sql(f"insert into ice.{name} values (2)")
        spark.sql(f"alter table ice.{name} create branch b")
        spark.sql(f"insert into ice.{name}.branch_b values (3)")
        branch = ids(f"select snapshot_id from ice.{name}.refs where name = 'b'")[0]
        queries = [
            f"select id from ice.{name}",
            f"select id * 10 from ice.{name}",
            f"select id from ice.{name} version as of {first}",
        ]
        spark.sql(f"cache table ice.{name}")
        for query in queries:
            spark.sql(query).cache().count()
        spark.sql(change.format(name, first, branch)).collect()
        read[change.split("(")[0]] = [number for query in queries for number in [*ids(query), 0]]
        spark.catalog.clearCache()
    return read


def test_cached_tables_follow_a_change_as_java_s_do(
    ice: SparkSession, iceberg_java: JavaIceberg, catalog: Catalog, namespace: str
) -> None:
    theirs = f"{namespace}_java"
    catalog.create_namespace(theirs)
    assert cached(ice, namespace) == iceberg_java.ask(cached, theirs)
