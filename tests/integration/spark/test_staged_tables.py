"""CREATE TABLE AS SELECT and REPLACE TABLE AS SELECT: definition and rows are one commit, or nothing is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def files_below(folder: str) -> set[str]:
    return {str(path) for path in Path(folder.removeprefix("file:")).rglob("*") if path.is_file()}


def test_a_table_made_of_a_query_is_one_version_with_one_snapshot(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"create table {name} using iceberg partitioned by (bucket(2, id)) tblproperties ('k' = 'v')"
        " as select id, cast(id as string) s from range(10)"
    )
    table = catalog.load_table(name)
    assert len(table.metadata.metadata_log) == 0
    assert [snapshot.summary["total-records"] for snapshot in table.metadata.snapshots] == ["10"]
    assert table.properties["k"] == "v"
    assert rows_of(spark, f"select count(*), max(s) from {name}") == [(10, "9")]


def test_a_replaced_table_keeps_identity_history_and_rows_of_before(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    spark.sql(f"create table {name} using iceberg as select 1 as id, 'a' as s")
    before = catalog.load_table(name)
    first = before.current_snapshot().snapshot_id
    spark.sql(f"create or replace table {name} using iceberg as select id + 1 as id, 2.5D as n from {name}")
    after = catalog.load_table(name)
    assert after.metadata.table_uuid == before.metadata.table_uuid
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    assert rows_of(spark, f"select * from {name}") == [(2, 2.5)]
    assert rows_of(spark, f"select * from {name} version as of {first}") == [(1, "a")]


def test_data_frames_make_and_replace_tables_with_partitions_and_properties(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col

    name = f"{namespace}.t"
    frame = spark.range(6).withColumn("p", col("id") % 2)
    frame.writeTo(name).using("iceberg").partitionedBy(col("p")).tableProperty("format-version", "3").create()
    table = catalog.load_table(name)
    assert table.format_version == 3
    assert [field.name for field in table.spec().fields] == ["p"]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        frame.writeTo(name).using("iceberg").create()
    frame.where("id < 2").writeTo(name).using("iceberg").tableProperty("a", "b").createOrReplace()
    table.refresh()
    assert table.properties["a"] == "b"
    assert table.spec().is_unpartitioned
    frame.where("id > 3").writeTo(name).using("iceberg").replace()
    assert rows_of(spark, f"select id from {name}") == [(4,), (5,)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        frame.writeTo(f"{name}_missing").using("iceberg").replace()


@pytest.mark.parametrize("kind", ["create table {}_new", "create or replace table {}", "replace table {}"])
def test_a_query_that_fails_leaves_no_table_no_version_and_no_file(
    kind: str, spark: SparkSession, orders: Table, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.orders"
    folder = orders.location().rsplit("/", 1)[0]
    before = files_below(folder)
    failing = "select id, if(id = 90000, raise_error('boom'), id) n from range(0, 100000, 1, 4)"
    with pytest.raises(Exception, match="boom"):
        spark.sql(f"{kind.format(name)} using iceberg partitioned by (bucket(2, id)) as {failing}")
    assert files_below(folder) == before
    assert not catalog.table_exists(f"{name}_new")
    assert catalog.load_table(name).metadata_location == orders.metadata_location
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]


def test_a_table_of_another_format_is_made_of_a_query_as_ever(spark: SparkSession, namespace: str) -> None:
    for number, using in enumerate(("using parquet", "", "using orc")):
        spark.sql(f"create table {namespace}.plain{number} {using} as select 1 a")
        assert rows_of(spark, f"select * from {namespace}.plain{number}") == [(1,)]
