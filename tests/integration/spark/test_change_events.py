"""Events of DataFrames and of streams, applied by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import ChangeEventError, InvalidInputError, SchemaMismatchError, UnsupportedError
from hms_iceberg.spark import apply_changes, changes_to
from tests.support.pyspark_home import spark_release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark]

COLUMNS = "id long, v string, at long, op string"
WAYS = [(2, "copy-on-write"), (3, "merge-on-read")]


def make(catalog: Catalog, name: str, version: int = 2, mode: str = "merge-on-read", timed: bool = False) -> Table:
    """Rows 0 to 9."""
    fields = [("id", pa.int64()), ("v", pa.string()), *([("at", pa.int64())] if timed else [])]
    schema = pa.schema(fields)
    table = catalog.create_table(name, schema, properties={"format-version": str(version), "write.merge.mode": mode})
    rows = {"id": range(10), "v": [f"old {n}" for n in range(10)], "at": [100] * 10}
    table.append(pa.table({key: list(values) for key, values in rows.items() if key in schema.names}, schema=schema))
    return table


def found(table: Table) -> dict[int, Any]:
    return {row["id"]: row["v"] for row in table.refresh().scan().to_arrow().to_pylist()}


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), COLUMNS)


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_of_each_key_the_newest_event_counts_and_offsets_are_in_its_snapshot(
    spark: SparkSession, catalog: Catalog, namespace: str, version: int, mode: str
) -> None:
    table = make(catalog, f"{namespace}.t", version, mode)
    events = frame(
        spark,
        (1, "a", 5, "u"),
        (1, "b", 4, "U"),
        (2, None, 1, "D"),
        (3, "x", 1, "u"),
        (3, None, 2, "delete"),
        (20, "n", 1, "c"),
        (21, "n", 1, "insert"),
        (21, None, 2, "d"),
        (99, None, 1, "d"),
    ).repartition(3)
    options = {"keys": ["id"], "operation": "op", "order": "at", "name": "cdc"}
    snapshots = len(table.snapshots())
    result = apply_changes(events, f"{namespace}.t", offsets={"t-0": 9}, **options)
    assert (result.events, result.events_superseded, result.offsets) == (9, 3, {"t-0": 9})
    expected = {n: f"old {n}" for n in range(10) if n not in (2, 3)} | {1: "a", 20: "n"}
    assert found(table) == expected
    assert table.applied_offsets("cdc") == {"t-0": 9}
    assert len(table.snapshots()) == snapshots + 1
    assert "hms_iceberg.offsets.cdc" in table.properties
    assert not any(key.startswith("hms_iceberg.known") for key in table.current_snapshot().summary)
    assert apply_changes(
        frame(spark, (4, "again", 1, "u")), f"{namespace}.t", offsets={"t-0": 9}, **options
    ).is_repeated
    nothing = apply_changes(frame(spark, (99, None, 1, "d")), f"{namespace}.t", offsets={"t-0": 10}, **options)
    assert (nothing.offsets, table.refresh().applied_offsets("cdc")) == ({"t-0": 10}, {"t-0": 10})
    empty = events.where("id < 0")
    apply_changes(empty, f"{namespace}.t", offsets={"t-1": 1}, **options)
    assert table.refresh().applied_offsets("cdc") == {"t-0": 10, "t-1": 1}
    assert found(table) == expected
    with pytest.raises(InvalidInputError, match="begin at 4"):
        apply_changes(events, f"{namespace}.t", offsets={"t-0": 20}, since={"t-0": 4}, **options)
    settings = {row[0] for row in spark.sql("set").collect()}
    assert not any("offsets" in name for name in settings), "the session is as it was"
    assert not [each for each in spark.catalog.listTables() if each.isTemporary and "change" in each.name]


def test_an_older_event_leaves_the_newer_row(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = make(catalog, f"{namespace}.t", timed=True)
    events = frame(spark, (1, "late", 99, "u"), (2, "same", 100, "u"), (3, None, 99, "d"), (4, None, 101, "d"))
    table.apply_changes(events, keys=["id"], operation="op", order="at")
    rows = found(table)
    assert (rows[1], rows[2], rows[3], 4 in rows) == ("old 1", "same", "old 3", False)


def test_a_table_loaded_in_python_is_found_in_the_session(ice: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = make(catalog, f"{namespace}.t")
    table.apply_changes(frame(ice, (1, "new", 1, "u")).drop("op", "at"), keys=["id"], name="x", offsets={"p": 1})
    assert found(table)[1] == "new"
    assert table.applied_offsets("x") == {"p": 1}
    table.manage_snapshots().create_branch(table.metadata.current_snapshot_id, "audit").commit()
    apply_changes(frame(ice, (2, "ice", 1, "u")).drop("op", "at"), f"ice.{namespace}.t", keys=["id"], branch="audit")
    assert found(table)[2] == "old 2"
    branch = {row["id"]: row["v"] for row in table.scan().use_ref("audit").to_arrow().to_pylist()}
    assert branch[2] == "ice"
    events = frame(ice, (1, "new", 1, "u")).drop("op", "at")
    with pytest.raises(UnsupportedError, match=r"write\.merge\.mode"):
        table.apply_changes(events, keys=["id"], mode="copy-on-write")
    with pytest.raises(UnsupportedError, match="transaction"), table.transaction() as transaction:
        transaction.apply_changes(events, keys=["id"])


def test_executors_keep_events_until_they_are_applied_or_refused(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    make(catalog, f"{namespace}.t")
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = set(kept())
    apply_changes(frame(spark, (1, "a", 5, "u")), f"{namespace}.t", keys=["id"], operation="op", order="at")
    with pytest.raises(ChangeEventError):
        apply_changes(frame(spark, (1, "a", 5, "no")), f"{namespace}.t", keys=["id"], operation="op", order="at")
    assert set(kept()) <= before


def test_events_that_cannot_be_applied_are_named(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = make(catalog, f"{namespace}.t")
    before = table.metadata_location
    options: dict[str, Any] = {"keys": ["id"], "operation": "op", "order": "at"}
    for bad, said in (
        ((None, "v", 1, "u"), r'"id":null.* has no key'),
        ((5, "v", 1, None), r'"id":5,"at":1.* has no operation'),
        ((5, "v", 1, "t"), "unknown operation 't'"),
        ((5, "v", None, "u"), "no order"),
    ):
        events = frame(spark, (5, "v", 9, "u"), bad)
        with pytest.raises(ChangeEventError, match=said):
            apply_changes(events, f"{namespace}.t", **options)
    with pytest.raises(SchemaMismatchError, match="extra"):
        apply_changes(events.selectExpr("*", "1 as extra"), f"{namespace}.t", **options)
    with pytest.raises(SchemaMismatchError, match="'op'"):
        apply_changes(events.drop("op"), f"{namespace}.t", **options)
    assert table.refresh().metadata_location == before


def test_the_schema_grows(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    table = make(catalog, f"{namespace}.t")
    events = frame(spark, (1, "a", 1, "u"), (30, "b", 1, "c")).selectExpr("*", "1.5d as extra")
    if spark_release() < (4, 2):
        with pytest.raises(UnsupportedError, match=r"from Spark 4\.2 on"):
            apply_changes(events, f"{namespace}.t", keys=["id"], operation="op", order="at", evolve=True)
        return
    apply_changes(events, f"{namespace}.t", keys=["id"], operation="op", order="at", evolve=True)
    rows = {row["id"]: row["extra"] for row in table.refresh().scan().to_arrow().to_pylist()}
    assert table.schema().column_names == ["id", "v", "extra"]
    assert (rows[1], rows[2], rows[30]) == (1.5, None, 1.5)


def test_a_stream_is_applied_exactly_once(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    """The stream is killed after a batch was committed and before Spark noted it, and begun anew at last."""
    from pyspark.errors import StreamingQueryException

    source = catalog.create_table(
        f"{namespace}.log",
        pa.schema([("id", pa.int64()), ("v", pa.string()), ("at", pa.int64()), ("op", pa.string())]),
    )
    table = make(catalog, f"{namespace}.t")
    apply = changes_to(f"{namespace}.t", keys=["id"], operation="op", order="at", name="log")
    at = 0

    def log(*events: tuple[int, str | None, str]) -> None:
        nonlocal at
        at += 1
        columns = list(zip(*events, strict=True))
        source.append(
            pa.table([columns[0], columns[1], [at] * len(events), columns[2]], schema=source.schema().as_arrow())
        )

    def run(function: Any, checkpoint: str = "checkpoint") -> None:
        stream = spark.readStream.table(f"{namespace}.log").writeStream.foreachBatch(function)
        query = stream.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    def killed(events: DataFrame, batch: int) -> None:
        apply(events, batch)
        raise RuntimeError("killed after the commit")

    log((1, "one", "u"), (20, "new", "c"))
    run(apply)
    log((1, None, "d"), (2, "two", "u"))
    with pytest.raises(StreamingQueryException, match="killed after the commit"):
        run(killed)
    committed = table.refresh().metadata_location
    run(apply)
    assert table.refresh().metadata_location == committed, "the batch is recognised"
    log((3, "three", "u"))
    run(apply)
    expected = {n: f"old {n}" for n in range(10) if n != 1} | {2: "two", 3: "three", 20: "new"}
    assert found(table) == expected
    (offset,) = table.applied_offsets("log").values()
    assert offset == 3
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[-2].snapshot_id).commit()
    log((4, "four", "u"))
    with pytest.raises(StreamingQueryException, match="Events would be missing"):
        run(apply)
    run(apply, "another")
    assert found(table) == {**expected, 4: "four"}
    assert sorted(table.applied_offsets("log").values()) == [1, 2]
