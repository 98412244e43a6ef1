"""The hidden column _deleted: a query that uses it gets deleted rows too, as in Apache Iceberg (Java)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.spark_tables import data_files, delete_keys, delete_positions, delete_vector, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def numbers(*ids: int | None) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [None if each is None else f"s{each}" for each in ids]})


@pytest.fixture(params=["2", "3"])
def holey(catalog: Catalog, namespace: str, commit: Any, request: pytest.FixtureRequest) -> Table:
    """Three files: one with positions 1 and 2 deleted, one with all deleted, one with none; the key null is deleted."""
    version = {"format-version": request.param}
    table = catalog.create_table(f"{namespace}.holey", numbers(1).schema, properties=version)
    table.append(numbers(1, 2, 3, None))
    table.append(numbers(4, 5))
    first, second = data_files(table)
    if request.param == "2":
        commit(table, delete_positions(table, (first, [1, 2]), (second, [0, 1])))
    else:
        commit(table, delete_vector(table, first, [1, 2]), delete_vector(table, second, [0, 1]))
    commit(table, delete_keys(table, pa.table({"id": pa.array([None], pa.int64())})))
    table.append(numbers(6, None))
    return table


ALL = [(1, False), (2, True), (3, True), (4, True), (5, True), (6, False), (None, False), (None, True)]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_deleted_rows_are_read_and_marked(spark: SparkSession, holey: Table, namespace: str, vectorized: str) -> None:
    name = f"{namespace}.holey"
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        assert rows_of(spark, f"select id, _deleted from {name}") == ALL
        assert rows_of(spark, f"select id, _pos from {name} where _deleted and s is not null") == [
            (2, 1),
            (3, 2),
            (4, 0),
            (5, 1),
        ]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_only_queries_that_use_the_column_see_deleted_rows(spark: SparkSession, holey: Table, namespace: str) -> None:
    name = f"{namespace}.holey"
    live = [(1,), (6,), (None,)]
    assert rows_of(spark, f"select id from {name}") == live
    assert rows_of(spark, f"select id from {name} where not _deleted") == live
    assert rows_of(spark, f"select id from (select id, _deleted from {name})") == live
    assert len(rows_of(spark, f"select * from {name}")) == 3
    assert rows_of(spark, f"select _file is null from {name}") == [(False,)] * 3
    assert rows_of(spark, f"select count(*), max(id) from {name}") == [(3, 6)]
    assert rows_of(spark, f"select count(*) from {name} where _deleted is not null") == [(8,)]
    assert rows_of(spark, f"select _deleted, count(*), max(id) from {name} group by 1") == [(False, 3, 6), (True, 5, 5)]
    both = f"select (select count(id) from {name}), (select count(_deleted) from {name}), (select sum(id) from {name})"
    assert rows_of(spark, both) == [(2, 8, 7)]
    joined = f"select a.id from {name} a join {name} b on a.id = b.id where b._deleted"
    assert rows_of(spark, joined) == []


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_not_changed_by_a_condition_on_it(
    spark: SparkSession, holey: Table, namespace: str, mode: str
) -> None:
    name = f"{namespace}.holey"
    spark.sql(f"alter table {name} set tblproperties ('write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}')")
    before, rows = holey.refresh().metadata_location, rows_of(spark, f"select id, s from {name}")
    told = "_deleted" if spark.version >= "4.1" else "_deleted|metadata columns"
    for statement in (f"delete from {name} where _deleted", f"update {name} set s = 'x' where _deleted"):
        if (spark.version[:3], mode, statement[:6]) == ("4.0", "merge-on-read", "delete"):
            spark.sql(statement)  # there it is a condition that no row meets
            assert rows_of(spark, f"select id, s from {name}") == rows
            before = holey.refresh().metadata_location
            continue
        with pytest.raises(Exception, match=told):
            spark.sql(statement)
    assert holey.refresh().metadata_location == before
    spark.sql(f"delete from {name} where id in (select id from {name} where id = 3 or id = 6)")
    assert rows_of(spark, f"select id from {name}") == [(1,), (None,)]


def test_files_that_python_reads_have_their_deleted_rows_marked_too(
    spark: SparkSession, catalog: Catalog, namespace: str, commit: Any
) -> None:
    properties = {"format-version": "2", "write.format.default": "orc"}
    table = catalog.create_table(f"{namespace}.mixed", numbers(1).schema, properties=properties)
    table.append(numbers(1, 2, 3))
    table.append(numbers(4))
    with table.transaction() as transaction:
        transaction.set_properties({"write.format.default": "avro"})
    table.append(numbers(5, None))
    orc, gone, avro = data_files(table)
    commit(table, delete_positions(table, (orc, [1]), (gone, [0])), delete_positions(table, (avro, [0])))
    commit(table, delete_keys(table, pa.table({"id": pa.array([None, 3], pa.int64())})))
    name = f"{namespace}.mixed"
    assert rows_of(spark, f"select id from {name}") == [(1,)]
    marked = [(1, False), (2, True), (3, True), (4, True), (5, True), (None, True)]
    assert rows_of(spark, f"select id, _deleted from {name}") == marked
    assert rows_of(spark, f"select count(*), max(s) from {name} where _deleted and id < 5") == [(3, "s4")]
    assert rows_of(spark, f"select count(*) from {name} where _deleted is not null") == [(6,)]


def test_a_column_of_the_table_hides_it(spark: SparkSession, catalog: Catalog, namespace: str, commit: Any) -> None:
    rows = pa.table({"id": [1, 2], "_deleted": ["x", None]})
    table = catalog.create_table(f"{namespace}.own", rows.schema, properties={"format-version": "2"})
    table.append(rows)
    commit(table, delete_positions(table, (data_files(table)[0], [0])))
    assert rows_of(spark, f"select id, _deleted from {namespace}.own") == [(2, None)]
    assert rows_of(spark, f"select id from {namespace}.own where _deleted = 'x'") == []
