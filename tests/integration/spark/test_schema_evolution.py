"""INSERT and MERGE `with schema evolution`: what becomes of a table's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.hdfs_path import local_path
from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(spark_release() < (4, 2), reason="Spark asks which changes a table can make since 4.2"),
]

INSERT = "insert with schema evolution into {t} by name select {rows}"
MERGE = (
    "merge with schema evolution into {t} t using (select {rows}) s on t.k = s.k"
    " when matched then update set * when not matched then insert *"
)
TYPES = [
    # the column, a value of the rows, the column afterwards, and how the value is read
    ("int", "5L", "int", "5"),
    ("bigint", "5", "bigint", "5"),
    ("bigint", "cast(5 as tinyint)", "bigint", "5"),
    ("double", "cast(1.5 as float)", "double", "1.5"),
    ("decimal(12,2)", "cast(1.5 as decimal(5,2))", "decimal(12,2)", "1.50"),
    ("string", "5", "string", "5"),
]
WIDER = [
    ("int", "5000000000", "bigint", "5000000000"),
    ("int", "5L", "bigint", "5"),
    ("float", "1.25D", "double", "1.25"),
    ("decimal(5,2)", "cast(12345.25 as decimal(9,2))", "decimal(9,2)", "12345.25"),
]


@pytest.mark.parametrize("statement", [INSERT, MERGE])
def test_columns_become_as_wide_as_the_rows_and_never_narrower(
    spark: SparkSession, catalog: Catalog, namespace: str, statement: str
) -> None:
    cases = [case for case in TYPES if case[1] != "5L"] + WIDER
    held = ", ".join(f"c{n} {case[0]}, s{n} struct<x: {case[0]}, a: array<{case[0]}>>" for n, case in enumerate(cases))
    given = ", ".join(
        f"{case[1]} as c{n}, named_struct('x', {case[1]}, 'a', array({case[1]})) as s{n}"
        for n, case in enumerate(cases)
    )
    spark.sql(f"create table {namespace}.t (k int, {held}) using iceberg")
    spark.sql(statement.format(t=f"{namespace}.t", rows=f"1 as k, {given}, 'n' as new"))
    for n, (_, _, kind, value) in enumerate(cases):
        shown = f"string(c{n}), typeof(c{n}), typeof(s{n}), string(s{n}.x), string(s{n}.a[0])"
        nested = f"struct<x:{kind},a:array<{kind}>>"
        assert rows_of(spark, f"select {shown} from {namespace}.t") == [(value, kind, nested, value, value)], n
    assert rows_of(spark, f"select new from {namespace}.t") == [("n",)]
    assert catalog.load_table(f"{namespace}.t").schema().column_names[-1] == "new"


@pytest.mark.parametrize("statement", [INSERT, MERGE])
def test_rows_that_do_not_fit_are_refused_and_leave_the_table_as_it_was(
    spark: SparkSession, catalog: Catalog, namespace: str, statement: str
) -> None:
    spark.sql(f"create table {namespace}.t (k int, v int, m map<int, int>) using iceberg")
    before = catalog.load_table(f"{namespace}.t").metadata_location
    for rows, reason in (
        ("1 as k, 'text' as v", "CANNOT_SAFELY_CAST|INCOMPATIBLE"),
        ("1 as k, array(1) as v", "CANNOT_SAFELY_CAST|INCOMPATIBLE|incompatible schemas"),
        ("1 as k, interval 1 day as span", "UnsupportedError"),
    ):
        with pytest.raises(Exception, match=reason):
            spark.sql(statement.format(t=f"{namespace}.t", rows=rows))
    spark.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(Exception, match=r"InvalidSchemaError.*in case only"):
        spark.sql(statement.format(t=f"{namespace}.t", rows="1 as k, 2 as V"))
    for ddl in ("add column K int", "rename column v to K", "add columns (x int, X int)"):
        with pytest.raises(Exception, match=r"InvalidSchemaError.*in case only|COLUMN_ALREADY_EXISTS|already exists"):
            spark.sql(f"alter table {namespace}.t {ddl}")
    for made in ("create table {n} using iceberg as", "create or replace table {n} using iceberg as"):
        with pytest.raises(Exception, match=r"InvalidSchemaError.*in case only"):
            spark.sql(f"{made.format(n=f'{namespace}.made')} select 1 as k, 2 as K")
    spark.sql(
        f"create table {namespace}.any (k int) using iceberg tblproperties ('write.spark.accept-any-schema'='true')"
    )
    with pytest.raises(Exception, match=r"InvalidSchemaError.*in case only"):
        spark.sql("select 1 as k, 2 as K").writeTo(f"{namespace}.any").option("merge-schema", "true").append()
    folder = local_path(catalog.load_table(f"{namespace}.any").location())
    assert not [file for file in folder.rglob("*") if file.suffix == ".parquet"]
    spark.conf.set("spark.sql.caseSensitive", "false")
    assert catalog.load_table(f"{namespace}.t").metadata_location == before
    assert not catalog.table_exists(f"{namespace}.made")
