"""A second metastore under a name of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spark import extend
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def test_tables_of_another_metastore(
    spark: SparkSession, metastore: EmbeddedMetastore, orders: Table, namespace: str
) -> None:
    extend(spark, catalogs={"ice": {"uri": metastore.uri}})
    name = f"ice.{namespace}.orders"
    assert rows_of(spark, f"select count(*), max(id) from {name}") == [(6, 6)]
    assert rows_of(spark, f"select count(*) from {name} a join {namespace}.orders b using (id)") == [(6,)]
    assert spark.sql(f"select * from {name}.snapshots").count() == 2
    assert spark.sql(f"select * from {name} version as of 'main'").count() == 6
    assert spark.read.format("iceberg").option("branch", "main").load(name).count() == 6
    assert [row.tableName for row in spark.sql(f"show tables in ice.{namespace}").collect()] == ["orders"]
    assert namespace in {row[0] for row in spark.sql("show namespaces in ice").collect()}
    spark.sql(f"use ice.{namespace}")
    try:
        assert spark.table("orders").where("id > 4").count() == 2
    finally:
        spark.sql("use spark_catalog.default")
    orders.append(orders.scan().to_arrow().slice(0, 1))
    assert spark.table(name).count() == 7


def test_a_catalog_of_folders_with_settings_of_java(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    warehouse = str(tmp_path / "warehouse")
    folders = load_catalog("folders", type="hadoop", warehouse=warehouse)
    folders.create_namespace("db")
    folders.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    extend(spark, catalogs={"folders": {"type": "hadoop", "warehouse": warehouse, "cache-enabled": "false"}})
    assert rows_of(spark, "select id from folders.db.t") == [(1,), (2,)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("folders.db.other")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("show tables in folders.other")
    spark.sql("create namespace folders.more")
    with pytest.raises(AnalysisException, match=r"UnsupportedError: .* a folder has none"):
        spark.sql("create namespace folders.told comment 'of a test'")
    assert {row[0] for row in spark.sql("show namespaces in folders").collect()} == {"db", "more"}
    elsewhere = {"type": "hadoop", "warehouse": str(tmp_path / "elsewhere")}
    with pytest.raises(ConfigurationError, match="uses another catalog named folders already"):
        extend(spark, catalogs={"folders": elsewhere})
    assert rows_of(spark, "select id from folders.db.t") == [(1,), (2,)]
    other = extend(spark.newSession(), catalogs={"unset": {}, "folders": elsewhere})
    assert rows_of(other, "show namespaces in folders") == []
    with pytest.raises(AnalysisException, match=r"ConfigurationError: The catalog unset has no metastore"):
        other.table("unset.db.t")


def test_a_folder_in_which_another_client_made_a_new_table_is_read_and_written_as_that(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    extend(spark, catalogs={"again": {"type": "hadoop", "warehouse": str(tmp_path)}})
    folders, path = load_catalog("again", type="hadoop", warehouse=str(tmp_path)), str(tmp_path / "db" / "t")
    folders.create_namespace("db")

    def made_anew(rows: pa.Table) -> None:
        if folders.table_exists("db.t"):
            folders.drop_table("db.t", purge_requested=True)
        with folders.create_table_transaction("db.t", rows.schema) as transaction:
            transaction.append(rows)
        assert folders.load_table("db.t").metadata_location.endswith("/v1.metadata.json")
        if catalog.table_exists((namespace, "registered")):
            catalog.drop_table((namespace, "registered"))
        catalog.register_table((namespace, "registered"), folders.load_table("db.t").metadata_location)

    def seen() -> list[list[tuple[Any, ...]]]:
        loaded = [spark.read.format("iceberg").load(each) for each in (path, f"{path}/metadata/v1.metadata.json")]
        frames = [spark.table("again.db.t"), spark.table(f"{namespace}.registered"), *loaded]
        return [sorted(tuple(row) for row in frame.collect()) for frame in frames]

    made_anew(pa.table({"id": [1, 2]}))
    assert seen() == [[(1,), (2,)]] * 4
    made_anew(pa.table({"id": [3, 4]}))
    assert seen() == [[(3,), (4,)]] * 4
    spark.sql("insert into again.db.t values (5)")
    spark.sql("update again.db.t set id = 6 where id = 3")
    assert sorted(folders.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [4, 5, 6]
    assert rows_of(spark, "select * from again.db.t") == [(4,), (5,), (6,)]
    made_anew(pa.table({"id": [7], "name": ["x"]}))
    assert seen() == [[(7, "x")]] * 4
    made_anew(pa.table({"id": [8], "name": ["y"]}))
    frame = spark.createDataFrame([(9, "z")], "id long, name string")
    frame.writeTo("again.db.t").append()
    assert rows_of(spark, "select * from again.db.t") == [(8, "y"), (9, "z")]
    spark.sql("drop table again.db.t purge")
    spark.sql("create table again.db.t using iceberg as select 10 as id")
    assert rows_of(spark, "select * from again.db.t") == [(10,)]
    catalog.drop_table((namespace, "registered"))


def test_rows_of_its_tables_are_changed(spark: SparkSession, metastore: EmbeddedMetastore, orders: Table) -> None:
    extend(spark, catalogs={"ice": {"uri": metastore.uri}})
    name = f"ice.{'.'.join(orders.identifier)}"
    spark.sql(f"update {name} set price = 0 where id > 4").collect()
    spark.sql(f"delete from {name} where id = 2").collect()
    spark.sql(f"merge into {name} t using {name} s on t.id = s.id and s.id = 3 when matched then delete").collect()
    assert rows_of(spark, f"select id, price from {name}") == [(1, 1.5), (4, 2.0), (5, 0.0), (6, 0.0)]
