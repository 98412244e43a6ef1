"""What Spark must not do to an Iceberg table is refused, and nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

STATEMENTS = [
    "alter table {} set serde 'x.y.Z'",
    "load data inpath 'file:/nowhere' into table {}",
    pytest.param(
        "alter table {} add constraint positive check (id > 0)",
        marks=pytest.mark.skipif("__import__('pyspark').__version__ < '4.1'", reason="Spark 4.0 has no constraints"),
    ),
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_would_change_the_table_is_refused(
    statement: str, spark: SparkSession, orders: Table, namespace: str, catalog: Catalog
) -> None:
    from pyspark.errors import AnalysisException, UnsupportedOperationException

    name = f"{namespace}.orders"
    before = files_of(orders)
    with pytest.raises(
        (AnalysisException, UnsupportedOperationException), match=r"not support|UnsupportedError|NOT_SUPPORTED"
    ):
        spark.sql(statement.replace("{}", name))
    assert files_of(orders) == before
    assert catalog.load_table(name).metadata_location == orders.metadata_location
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]


@pytest.mark.parametrize(
    ("column", "version"), [("_file", 2), ("_POS", 2), ("_spec_id", 2), ("_partition", 2), ("_row_id", 3)]
)
def test_rows_of_a_table_whose_column_has_the_name_of_a_metadata_column_are_read_and_added_but_not_changed(
    spark: SparkSession, namespace: str, column: str, version: int
) -> None:
    name = f"{namespace}.taken"
    spark.sql(
        f"create table {name} (k int, `{column}` string) using iceberg tblproperties('format-version'='{version}')"
    )
    spark.sql(f"insert into {name} values (1, 'a'), (2, null)")
    remedy = rf"UnsupportedError: Cannot \w+ rows of the table .*RENAME COLUMN {column} TO"
    for statement in (
        f"delete from {name} where k = 1 and `{column}` = 'a'",
        f"update {name} set `{column}` = 'b' where k = 1",
        f"merge into {name} t using {name} s on t.k = s.k when matched then delete",
    ):
        with pytest.raises(Exception, match=remedy):
            spark.sql(statement)
    assert rows_of(spark, f"select * from {name} where `{column}` is null or k = 1") == [(1, "a"), (2, None)]
    spark.sql(f"alter table {name} rename column `{column}` to renamed")
    spark.sql(f"update {name} set renamed = 'b' where k = 1")
    assert rows_of(spark, f"select * from {name}") == [(1, "b"), (2, None)]
    spark.sql(f"drop table {name} purge")


@pytest.mark.since_spark("4.0", "scripts in SQL")
def test_errors_of_scripts_are_those_of_spark(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.scripting.enabled", "true")  # as it is by default since 4.1
    with pytest.raises(Exception, match=r"^\s*\[LABELS_MISMATCH\]"):
        spark.sql("begin first: begin select 1; end second; end")
    with pytest.raises(Exception, match=r"^\s*\[UNBOUND_SQL_PARAMETER\]"):
        spark.sql("select :missing")


def test_no_hive_table_can_be_made_like_the_table(spark: SparkSession, orders: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="UnsupportedError: CREATE TABLE LIKE"):
        spark.sql(f"create table {namespace}.similar like {namespace}.orders using parquet")
    assert spark.sql(f"show tables in {namespace} like 'similar'").count() == 0


def files_of(table: Table) -> set[str]:
    return {str(path) for path in Path(table.location().removeprefix("file:")).rglob("*")}


def test_a_table_is_not_replaced_by_one_of_another_format(spark: SparkSession, orders: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    name, before = f"{namespace}.orders", files_of(orders)
    frame = spark.createDataFrame([(7, "bag", 1.0)], "id long, item string, price double")
    for write in (
        lambda: frame.write.mode("overwrite").saveAsTable(name),
        lambda: frame.write.format("hive").mode("overwrite").saveAsTable(name),
        lambda: frame.write.format("parquet").mode("overwrite").saveAsTable(name),
        lambda: frame.write.partitionBy("item").mode("append").saveAsTable(name),
    ):
        with pytest.raises(AnalysisException, match=f"(?s)Iceberg table {name}.*Nothing was changed.*insertInto"):
            write()
    assert spark.sql(f"show tables in {namespace}").where("not isTemporary").count() == 1
    assert files_of(orders) == before
    assert rows_of(spark, f"select count(*) from {name}") == [(6,)]


def test_save_as_table_of_any_format_appends_to_a_table_that_is_there(
    spark: SparkSession, orders: Table, namespace: str
) -> None:
    frame = spark.createDataFrame([(1.0, "bag", 7)], "price double, item string, id long")
    for writer in (frame.write, frame.write.format("parquet"), frame.write.option("snapshot-property.by", "me")):
        writer.mode("append").saveAsTable(f"{namespace}.orders")
    assert rows_of(spark, f"select * from {namespace}.orders where id = 7") == [(7, "bag", 1.0)] * 3
    assert orders.refresh().current_snapshot().summary["by"] == "me"


def test_a_row_without_its_metadata_location_is_refused(spark: SparkSession, namespace: str, catalog: Catalog) -> None:
    from pyspark.errors import AnalysisException

    from tests.support.hive_warehouse import HiveWarehouse

    warehouse = HiveWarehouse(catalog, namespace)
    warehouse.create("lost", "a int", parameters={"table_type": "ICEBERG"}, managed=False)
    with pytest.raises(AnalysisException, match=r"CorruptMetadataError: .* no metadata_location"):
        spark.sql(f"select * from {namespace}.lost")


def test_a_missing_metadata_file_is_named(spark: SparkSession, namespace: str, catalog: Catalog) -> None:
    from pyspark.errors import AnalysisException

    from tests.support.hive_warehouse import HiveWarehouse

    parameters = {"table_type": "ICEBERG", "metadata_location": "file:/nowhere/v1.metadata.json"}
    HiveWarehouse(catalog, namespace).create("gone", "a int", parameters=parameters, managed=False)
    with pytest.raises(AnalysisException, match=r"MissingFileError: .*/nowhere/v1.metadata.json"):
        spark.sql(f"select * from {namespace}.gone")


def test_a_missing_data_file_is_named(spark: SparkSession, orders: Table, namespace: str) -> None:
    lost = next(iter(orders.scan().plan_files())).file.file_path
    Path(lost.removeprefix("file:")).unlink()
    with pytest.raises(Exception, match=f"(?s){Path(lost).name}.*does not exist"):
        spark.sql(f"select * from {namespace}.orders").collect()


@pytest.mark.skipif(spark_release() != (4, 0), reason="only Spark 4.0 takes the words and forgets them")
def test_a_merge_whose_new_columns_spark_would_leave_out_is_refused(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    for name, kind in (("t", "iceberg"), ("h", "parquet")):
        spark.sql(f"create table {namespace}.{name} using {kind} as select 1 as k, 'a' as v")
    merge = (
        f"merge with schema evolution into {namespace}.t x using (select 1 as k, 'b' as v, 2 as new) s on x.k = s.k"
        " when matched then update set * when not matched then insert *"
    )
    with pytest.raises(Exception, match=r"Spark 4.0 takes the words .* table .*t lacks. Add them by ALTER TABLE first"):
        spark.sql(merge)
    assert rows_of(spark, f"select * from {namespace}.t") == [(1, "a")]

    spark.sql(merge.replace("with schema evolution ", ""))

    assert rows_of(spark, f"select * from {namespace}.t") == [(1, "b")]
    with pytest.raises(Exception, match=r"(?i)merge into table is not supported|UNSUPPORTED"):  # by Spark, as before
        spark.sql(merge.replace(".t x", ".h x"))
