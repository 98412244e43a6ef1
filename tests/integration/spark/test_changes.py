"""select * from db.t.changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.spark_tables import plan_text, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

INSERTED, DELETED = "INSERT", "DELETE"


def rows(*given: tuple[int, str | None, dict[str, Any] | None]) -> pa.Table:
    place = pa.struct([("x", pa.float64()), ("name", pa.string())])
    return pa.table(list(zip(*given, strict=True)), pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", place)]))


@pytest.fixture
def changed(catalog: Catalog, namespace: str) -> Table:
    """Two rows, two more, one deleted by a copy of its file."""
    table = catalog.create_table(f"{namespace}.changed", rows((0, None, None)).schema)
    table.append(rows((1, "a", {"x": 1.5, "name": None}), (2, None, None)))
    table.append(rows((3, "c", None), (4, "d", {"x": float("nan"), "name": "n"})))
    table.delete("id = 3")
    return table.refresh()


def test_they_are_all_rows_that_snapshots_inserted_and_deleted(
    spark: SparkSession, changed: Table, namespace: str
) -> None:
    first, second, third = (each.snapshot_id for each in changed.metadata.snapshots)
    name = f"{namespace}.changed.changes"
    assert spark.table(name).columns == ["id", "s", "p", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    everything = "id, s, p.name, _change_type, _change_ordinal, _commit_snapshot_id"
    assert rows_of(spark, f"select {everything} from {name}") == [
        (1, "a", None, INSERTED, 0, first),
        (2, None, None, INSERTED, 0, first),
        (3, "c", None, DELETED, 2, third),
        (3, "c", None, INSERTED, 1, second),
        (4, "d", "n", DELETED, 2, third),  # a row that was only copied, as Apache Iceberg shows it
        (4, "d", "n", INSERTED, 1, second),
        (4, "d", "n", INSERTED, 2, third),
    ]
    assert rows_of(spark, f"select count(*) from {name}") == [(7,)]
    assert rows_of(spark, f"select _change_type, count(*) from {name} where p.x > 2 group by 1") == [
        (DELETED, 1),
        (INSERTED, 2),
    ]
    joined = f"select t.id from {namespace}.changed t join {name} c on t.id = c.id where c._change_type = 'DELETE'"
    assert rows_of(spark, joined) == [(4,)]


def test_options_choose_snapshots(spark: SparkSession, changed: Table, namespace: str) -> None:
    first, second, third = changed.metadata.snapshots
    name = f"{namespace}.changed.changes"

    def ids(**options: object) -> list[int]:
        given = {key.replace("_", "-"): str(value) for key, value in options.items()}
        by_load = spark.read.format("iceberg").options(**given).load(name).select("id").collect()
        by_table = spark.read.options(**given).table(name).collect()
        found = sorted(row.id for row in by_load)
        assert found == sorted(row.id for row in by_table)
        return found

    assert ids(start_snapshot_id=second.snapshot_id) == [3, 4, 4]
    assert ids(start_snapshot_id=first.snapshot_id, end_snapshot_id=second.snapshot_id) == [3, 4]
    assert ids(end_snapshot_id=first.snapshot_id) == [1, 2]
    assert ids(start_timestamp=first.timestamp_ms, end_timestamp=second.timestamp_ms) == [3, 4]
    assert ids(start_timestamp=third.timestamp_ms + 1) == []
    assert ids(end_timestamp=first.timestamp_ms - 1) == []


def test_options_make_of_them_what_a_view_of_changes_has(spark: SparkSession, changed: Table, namespace: str) -> None:
    name = f"{namespace}.changed"
    forms = {
        "identifier_columns => array('id')": {"identifier-columns": "id"},
        "net_changes => true": {"net-changes": "true"},
        "compute_updates => false, identifier_columns => array('id')": {
            "identifier-columns": "id",
            "compute-updates": "false",
            "carryovers": "false",
        },
    }
    for arguments, options in forms.items():
        spark.sql(f"call system.create_changelog_view(table => '{name}', {arguments})").collect()
        of_view = sorted(map(str, spark.table("changed_changes").collect()))
        assert of_view == sorted(map(str, spark.read.options(**options).table(f"{name}.changes").collect())), arguments
        assert "BatchScan" in plan_text(spark.table("changed_changes"))
        assert of_view


@pytest.mark.since_spark("4.0", "options of reads in SQL")
def test_options_choose_snapshots_in_sql(spark: SparkSession, changed: Table, namespace: str) -> None:
    second = changed.metadata.snapshots[1]
    in_sql = f"select id from {namespace}.changed.changes with (`start-snapshot-id` = '{second.snapshot_id}')"
    assert rows_of(spark, in_sql) == [(3,), (4,), (4,)]


def test_they_are_found_as_other_metadata_tables_are(spark: SparkSession, changed: Table, namespace: str) -> None:
    spark.sql(f"use {namespace}")
    try:
        assert rows_of(spark, "select id from changed.CHANGES where id < 2") == [(1,)]
    finally:
        spark.sql("use default")
    path = f"{changed.metadata_location}#changes"
    assert spark.read.format("iceberg").load(path).count() == 7


def test_a_table_without_snapshots_has_none(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    catalog.create_table(f"{namespace}.none", rows((0, None, None)).schema)
    assert rows_of(spark, f"select * from {namespace}.none.changes") == []


def test_what_cannot_be_asked_is_refused(spark: SparkSession, changed: Table, namespace: str) -> None:
    first = changed.metadata.snapshots[0].snapshot_id
    name = f"{namespace}.changed"
    with pytest.raises(Exception, match="as of a version: it is what happened between two versions"):
        spark.sql(f"select * from {name}.changes version as of {first}")
    with pytest.raises(Exception, match="as of a version"):
        spark.read.option("snapshot-id", first).table(f"{name}.changes")
    with pytest.raises(Exception, match="did you mean 'start-snapshot-id'"):
        spark.read.format("iceberg").option("start-snapshotid", first).load(f"{name}.changes")
    with pytest.raises(Exception, match="net-changes is 'yes', not true or false"):
        spark.read.option("net-changes", "yes").table(f"{name}.changes")
    with pytest.raises(Exception, match="Cannot set both start-snapshot-id and start-timestamp"):
        spark.read.option("start-snapshot-id", first).option("start-timestamp", 1).table(f"{name}.changes")
    with pytest.raises(Exception, match=f"start-timestamp is an option of changelogs. Read {name}.changes"):
        spark.read.option("start-timestamp", 1).table(name)
    with pytest.raises(Exception, match="cannot stream"):
        spark.readStream.format("iceberg").load(f"{name}.changes")
    with pytest.raises(Exception, match=r"(?i)does not support"):
        spark.sql(f"insert into {name}.changes select * from {name}.changes")
