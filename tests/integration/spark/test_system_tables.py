"""`select * from system.tables` and its like, beside the same from Python and each table's own metadata tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from hms_iceberg.maintenance import system_table
from hms_iceberg.maintenance.system import SYSTEM_TABLES
from tests.support.guides import block
from tests.support.operations import SCHEMA, rows
from tests.support.spark_tables import arrow_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

AGES = {"age_seconds", "silence_seconds"}


@pytest.fixture
def tables(catalog: Catalog, namespace: str) -> dict[str, Table]:
    """One with files and deletes, an empty one, and one whose manifest list is gone."""
    made = {name: catalog.create_table(f"{namespace}.{name}", SCHEMA) for name in ("visits", "empty", "broken")}
    for name in ("visits", "broken"):
        for number in range(6):
            made[name].append(rows(number))
    made["visits"].delete("id = 1")
    snapshot = made["broken"].current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    made["broken"].storage.delete(snapshot.manifest_list)
    return {name: table.refresh() for name, table in made.items()}


@pytest.fixture
def database_system(spark: SparkSession, namespace: str) -> Iterator[None]:
    """A database of the user's own that is named `system`, with tables of a name that a system table has."""
    spark.sql("create database system")
    yield
    spark.sql("drop database system cascade")


@pytest.mark.parametrize("catalog_name", ["spark_catalog", "ice"])
def test_they_are_those_of_the_python_api(
    ice: SparkSession, catalog: Catalog, namespace: str, tables: dict[str, Table], catalog_name: str
) -> None:
    ice.sql(f"create or replace view {namespace}.seen as select 1 id")
    ice.sql(f"create table {namespace}.plain (id bigint) using parquet")
    for name in SYSTEM_TABLES:
        expected = system_table(catalog, name, (f"{namespace}.*",))
        found = ice.table(f"{catalog_name}.system.{name}").where(f"namespace = '{namespace}'")
        assert found.columns == expected.column_names
        kept = [each for each in found.columns if each not in AGES]
        if expected.num_rows:  # of no rows, PySpark 3.5 makes Arrow with a module that Python deprecates
            assert arrow_of(found.select(kept)).to_pylist() == expected.select(kept).to_pylist(), name
        assert found.count() == expected.num_rows == len(found.select("table").collect()), name
    kinds = rows_of(
        ice, f"select kind, count(*) from {catalog_name}.system.tables where namespace = '{namespace}' group by 1"
    )
    assert Counter(dict(kinds)) == {"iceberg": 3, "hive": 1, "hive view": 1}
    described = rows_of(ice, f"describe {catalog_name}.system.tables")
    assert ("rows", "bigint", "rows of its data files, deleted ones included") in described


def test_rows_are_those_of_each_table_s_own_metadata(
    spark: SparkSession, namespace: str, tables: dict[str, Table]
) -> None:
    one = f"where namespace = '{namespace}' and table = 'visits'"
    of_table = f"{namespace}.visits"
    columns = "committed_at, snapshot_id, parent_id, operation, manifest_list, summary"
    assert rows_of(spark, f"select {columns} from system.snapshots {one} order by 1") == rows_of(
        spark, f"select {columns} from {of_table}.snapshots order by 1"
    )
    counts = "data_files, data_bytes, rows"
    assert rows_of(spark, f"select {counts} from system.files_health {one}") == rows_of(
        spark, f"select count(*), sum(file_size_in_bytes), sum(record_count) from {of_table}.data_files"
    )
    last = f"select snapshot_id from {of_table}.refs where name = 'main'"
    assert rows_of(spark, f"select t.snapshot_id from system.tables t {one}") == rows_of(spark, last)
    joined = (
        "select t.table, action, small_files from system.tables t join system.maintenance using (namespace, table) "
        f"join system.files_health h using (namespace, table) where namespace = '{namespace}' and h.error is null"
    )
    assert ("visits", "rewrite_data_files", 5) in rows_of(spark, joined)
    (broken,) = rows_of(
        spark, f"select error from system.files_health where namespace = '{namespace}' and error is not null"
    )
    assert broken[0].startswith("MissingFileError: ")


@pytest.mark.parametrize(
    ("condition", "loaded"),
    [
        ("namespace = '{0}'", {"visits", "empty", "broken"}),
        ("namespace = '{0}' and table in ('visits', 'nosuch')", {"visits"}),
        ("namespace = '{0}' and not table like 'vis%' and data_files >= 0", {"empty", "broken"}),
        ("(namespace = '{0}' and table = 'empty') or (namespace = 'nosuch' and error is null)", {"empty"}),
        ("namespace = '{0}' and upper(table) = 'EMPTY'", {"visits", "empty", "broken"}),
        ("namespace = 'nosuch'", set()),
        ("namespace is null", set()),
    ],
)
def test_conditions_on_names_choose_which_tables_are_looked_at(
    spark: SparkSession,
    namespace: str,
    tables: dict[str, Table],
    condition: str,
    loaded: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hms_iceberg.catalog import Catalog

    seen, load = set(), Catalog.load_table
    monkeypatch.setattr(Catalog, "load_table", lambda self, name: (seen.add(name[-1]), load(self, name))[1])
    wanted = condition.format(namespace)
    found = rows_of(spark, f"select table from system.files_health where {wanted}")
    assert seen == loaded
    spark.table("system.files_health").where(f"namespace = '{namespace}'").createOrReplaceTempView("every")
    assert sorted(found) == sorted(rows_of(spark, f"select table from (select * from every limit 99) where {wanted}"))


def test_a_database_of_the_user_s_own_goes_first(
    ice: SparkSession, catalog: Catalog, namespace: str, database_system: None
) -> None:
    ice.sql("create table system.tables (mine int) using parquet")
    ice.sql("create view system.locks as select 'mine' as whose")
    catalog.create_table("system.snapshots", SCHEMA).append(rows(7))
    assert ice.table("system.tables").columns == ["mine"]
    assert rows_of(ice, "select * from system.locks") == [("mine",)]
    for name in ("system.snapshots", "ice.system.snapshots"):
        assert rows_of(ice, f"select id from {name}") == [(7,)]
    assert ice.table("system.snapshots.files").count() == 1
    assert "small_files" in ice.table("system.files_health").columns, "not theirs, so it is a system table"
    for name, kind in (("tables", "hive"), ("locks", "hive view")):
        with pytest.raises(Exception, match=f"NotAnIcebergTableError: .* something of that name .of kind '{kind}'"):
            ice.table(f"ice.system.{name}").collect()


def test_a_table_of_the_current_database_that_is_named_system_goes_first(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    catalog.create_table(f"{namespace}.system", SCHEMA).append(rows(7))
    spark.sql(f"use {namespace}")
    try:
        assert (
            spark.table("system.snapshots").count() == 1 and "namespace" not in spark.table("system.snapshots").columns
        )
        assert spark.table("system.tables").where(f"namespace = '{namespace}'").count() == 1
    finally:
        spark.sql("use default")


def test_the_guides_queries_run(spark: SparkSession, namespace: str, tables: dict[str, Table]) -> None:
    queries = block("maintenance", "All tables at a glance", "sql").code.replace("'web'", f"'{namespace}'")
    for query in filter(str.strip, queries.split(";")):
        assert rows_of(spark, query), query


def test_the_guides_policy_is_set_and_told_of(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"create table {namespace}.visits (id bigint, ts timestamp) using iceberg")
    spark.sql(f"insert into {namespace}.visits values (1, timestamp'2020-01-01 00:00:00'), (2, null)")
    statement = block("maintenance", "Keep rows, tags and branches for so long", "sql").code
    spark.sql(statement.replace("web.", f"{namespace}.").strip().rstrip(";"))
    needs = rows_of(
        spark, f"select action from system.maintenance where namespace = '{namespace}' and table = 'visits'"
    )
    assert ("delete_old_rows",) in needs


def test_they_are_only_read(ice: SparkSession, namespace: str) -> None:
    for name in ("system", "ice.system"):
        for statement, error in (
            (f"select * from {name}.tabels", "TABLE_OR_VIEW_NOT_FOUND"),
            (f"insert into {name}.tables select * from {name}.tables", "append|batch write"),
            (f"delete from {name}.tables where namespace = 'a'", "DELETE|delete"),
            (f"select * from {name}.tables version as of 1", "TABLE_OR_VIEW_NOT_FOUND|time travel"),
        ):
            with pytest.raises(Exception, match=error):
                ice.sql(statement).collect()


def test_locks_and_views_over_system_tables(spark: SparkSession, namespace: str) -> None:
    assert rows_of(spark, f"select lock_id from system.locks where namespace = '{namespace}'") == []
    spark.sql(f"create view {namespace}.mine as select table from system.tables where namespace = '{namespace}'")
    assert rows_of(spark, f"select * from {namespace}.mine") == [("mine",)]
