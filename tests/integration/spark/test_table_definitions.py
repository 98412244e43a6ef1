"""CREATE, ALTER and DROP of Iceberg tables in SQL: what the Python catalog then finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.spark import extend
from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.hms.embedded import EmbeddedMetastore

pytestmark = pytest.mark.spark


def test_a_table_is_created_as_its_statement_says_and_its_own_text_creates_it_again(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"""create table {name} (
          id bigint not null comment 'the key', name string, ts timestamp, day date, amount decimal(9, 2),
          address struct<street: string not null comment 'of the house', tags: array<string>>,
          prices map<string, double>, code varchar(3)
        ) using iceberg
        partitioned by (name, bucket(4, id), hours(ts), months(day), truncate(address.street, 5))
        comment 'what was bought' location 'file:{tmp_path}/t'
        tblproperties ('format-version' = '2', 'k' = 'v', 'identifier-fields' = '[id]',
          'sort-order' = 'bucket(8, id) DESC NULLS LAST, truncate(name, 3) ASC NULLS FIRST')"""
    )
    table = catalog.load_table(name)
    assert [str(field) for field in table.spec().fields] == [
        "1000: name: identity(2)",
        "1001: id_bucket: bucket[4](1)",
        "1002: ts_hour: hour(3)",
        "1003: day_month: month(4)",
        "1004: address.street_trunc: truncate[5](9)",
    ]
    assert table.schema().find_field("id").required and table.schema().find_field("id").doc == "the key"
    assert table.schema().find_field("address.street").required
    assert table.schema().identifier_field_names() == {"id"}
    assert [str(each.transform) for each in table.sort_order().fields] == ["bucket[8]", "truncate[3]"]
    assert table.location() == f"file:{tmp_path}/t"
    assert {"k": "v", "comment": "what was bought"}.items() <= table.properties.items()
    assert not {"provider", "location", "format", "sort-order", "current-snapshot-id"} & table.properties.keys()

    shown = spark.sql(f"show create table {name}").first()[0]
    spark.sql(shown.replace(f"spark_catalog.{name}", f"{namespace}.again").replace("/t'", "/again'"))
    again = catalog.load_table(f"{namespace}.again")
    if spark_release() >= (4, 0):  # Spark 3.5 leaves out NOT NULL of nested fields, and says buckets last
        assert again.schema().same_as(table.schema()) or again.schema() == table.schema()
        assert again.spec() == table.spec()
    assert again.sort_order() == table.sort_order()
    assert again.properties == table.properties


def test_every_change_of_a_column_is_one_commit_that_keeps_ids(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"create table {name} (id int not null, s struct<a: int>, l array<struct<x: int>>, m map<string, int>, f float)"
        " using iceberg"
    )
    ids = {field: catalog.load_table(name).schema().find_id(field) for field in ("id", "s.a", "l.element.x", "m.value")}
    types = ("alter column id type bigint", "m.value type bigint", "f comment 'about'")
    # Spark 3.5 has one column a statement.
    several = [", ".join(types)] if spark_release() >= (4, 0) else [types[0], *map("alter column ".__add__, types[1:])]
    for change in (
        "add columns (first_one string first, s.b date after a, l.element.y string comment 'new')",
        *several,
        "alter column id drop not null",
        "rename column s.a to renamed",
        "alter column f first",
        "drop columns (first_one)",
    ):
        before = catalog.load_table(name)
        spark.sql(f"alter table {name} {change}")
        assert len(catalog.load_table(name).metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    schema = catalog.load_table(name).schema()
    assert [field.name for field in schema.fields] == ["f", "id", "s", "l", "m"]
    assert {key: schema.find_id(key.replace("s.a", "s.renamed")) for key in ids} == ids
    assert str(schema.find_type("m")) == "map<string, long>"
    assert schema.find_field("f").doc == "about"
    assert not schema.find_field("id").required
    spark.sql(f"alter table {name} replace columns (only double comment 'left')")
    assert [(field.name, field.doc) for field in catalog.load_table(name).schema().fields] == [("only", "left")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("add column s int not null", "add required column"),
        ("alter column id type string", "InvalidSchemaChangeError: Cannot change column 'id'"),
        ("add column i interval day to second", "UnsupportedError: Unsupported type interval"),
        ("drop column p", "partition"),
        ("set tblproperties ('sort-order' = 'id')", "WRITE ORDERED BY"),
        ("set tblproperties ('format-version' = '1')", "version"),
        ("set tblproperties ('current-snapshot-id' = '1')", "NoSuchSnapshotError"),
        ("add column d int default 1", "defaults need 3"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    change: str, reason: str, spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    from pyspark.errors import AnalysisException

    name = f"{namespace}.t"
    spark.sql(f"create table {name} (id int, p int) using iceberg partitioned by (p)")
    before = catalog.load_table(name).metadata_location
    with pytest.raises(AnalysisException, match=reason):
        spark.sql(f"alter table {name} {change}")
    assert catalog.load_table(name).metadata_location == before


def test_defaults_are_kept_in_format_version_3_and_are_constants(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    from pyspark.errors import AnalysisException

    name = f"{namespace}.t"
    spark.sql(
        f"create table {name} (id int, n bigint default 1 + 1, s string default 'x', d date default date'2020-02-03',"
        " m decimal(5, 2) default 1.5, f double default 1e300) using iceberg"
        " tblproperties ('format-version' = '3')"
    )
    spark.sql(f"alter table {name} add column later timestamp default timestamp'2024-01-01 00:00:00'")
    spark.sql(f"alter table {name} alter column s set default 'y'")
    schema = catalog.load_table(name).schema()
    defaults = {field.name: (str(field.initial_default), str(field.write_default)) for field in schema.fields}
    assert defaults == {
        "id": ("None", "None"),
        "n": ("2", "2"),
        "s": ("x", "y"),
        "d": ("18295", "18295"),
        "m": ("1.50", "1.50"),
        "f": ("1e+300", "1e+300"),
        "later": ("1704067200000000", "1704067200000000"),
    }
    spark.sql(f"alter table {name} alter column n drop default")
    assert catalog.load_table(name).schema().find_field("n").write_default is None
    with pytest.raises(AnalysisException, match="not a constant"):
        spark.sql(f"alter table {name} alter column later set default current_timestamp()")
    with pytest.raises(AnalysisException, match=r"(?i)default.*3"):
        spark.sql(f"create table {namespace}.old (id int default 1) using iceberg")


@pytest.mark.since_spark("4.1", "defaults in INSERT")
def test_columns_that_a_statement_leaves_out_get_their_defaults_as_in_a_plain_table(
    spark: SparkSession, namespace: str
) -> None:
    columns = (
        "id int, bo boolean default true, n bigint default -9223372036854775808, f float default 1.5, x double default "
        "1e300, m decimal(38, 10) default -1.5, s string default 'it\\'s \"q\" \\\\n', b binary default X'00ff', "
        "d date default date'0001-01-01', ts timestamp default timestamp'1900-01-01 00:00:00.000001', "
        "tn timestamp_ntz default timestamp_ntz'9999-12-31 23:59:59.999999', r int not null default 7"
    )
    ours, plain, again = (f"{namespace}.{name}" for name in ("ours", "plain", "again"))
    spark.sql(f"create table {ours} ({columns}) using iceberg tblproperties ('format-version' = '3')")
    shown = spark.sql(f"show create table {ours}").head()[0].split("LOCATION")[0].replace(ours, again)
    spark.sql(f"{shown} tblproperties ('format-version' = '3')")
    spark.sql(f"create table {plain} ({columns}) using parquet")
    text = "select * except (d, tn), cast(d as string), cast(tn as string) from"
    for table in (ours, plain, again):
        spark.sql(f"insert into {table} (id) values (1)")
        spark.sql(f"insert into {table} (n, s, id) values (default, null, 2), (5, default, 3)")
        spark.sql(f"insert into {table} by name select 4 as id, 'q' as s")
        spark.sql(f"insert into {table} select 5 as id, * except (id) from {table} where id = 1")
    expected = rows_of(spark, f"{text} {plain}")
    assert rows_of(spark, f"{text} {ours}") == expected
    assert rows_of(spark, f"{text} {again}") == expected

    spark.sql(f"merge into {ours} using (select 6 as k) on id = k when not matched then insert (id) values (k)")
    spark.sql(f"update {ours} set n = default, s = default where id = 3")
    seen = f"select n, s, r from {ours} where id ="
    assert rows_of(spark, f"{seen} 6") == rows_of(spark, f"{seen} 3") == rows_of(spark, f"{seen} 1")
    spark.sql("set time zone 'Asia/Tokyo'")
    spark.sql(f"insert into {ours} (id) values (7)")
    spark.sql("reset spark.sql.session.timeZone")
    assert spark.sql(f"select distinct ts from {ours}").count() == 1
    spark.sql(f"create table {namespace}.copied using iceberg as select * from {ours}")  # of format version 2
    assert "DEFAULT" not in spark.sql(f"show create table {namespace}.copied").head()[0]


def test_a_table_is_replaced_in_one_commit_that_keeps_its_history(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    from pyspark.errors import AnalysisException

    name = f"{namespace}.t"
    spark.sql(f"create or replace table {name} (id int, old string) using iceberg tblproperties ('keep' = 'me')")
    first = catalog.load_table(name)
    spark.sql(f"replace table {name} (id int, n double) using iceberg partitioned by (n) tblproperties ('new' = '1')")
    second = catalog.load_table(name)
    assert second.metadata.table_uuid == first.metadata.table_uuid
    assert len(second.metadata.metadata_log) == len(first.metadata.metadata_log) + 1
    assert [(field.field_id, field.name) for field in second.schema().fields] == [(1, "id"), (3, "n")]
    assert {"keep": "me", "new": "1"}.items() <= second.properties.items()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"replace table {name}_missing (a int) using iceberg")
    spark.sql(f"create table {namespace}.plain (a int) using parquet")
    with pytest.raises(AnalysisException, match="NotAnIcebergTableError"):
        spark.sql(f"create or replace table {namespace}.plain (a int) using iceberg")
    assert spark.table(f"{namespace}.plain").count() == 0


def test_drop_keeps_files_and_purge_deletes_them_where_gc_is_enabled(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    from pyspark.errors import AnalysisException

    kept, purged = f"{namespace}.kept", f"{namespace}.purged"
    for name in (kept, purged):
        spark.sql(f"create table {name} (id int) using iceberg tblproperties ('gc.enabled' = 'false')")
    metadata = {name: Path(catalog.load_table(name).metadata_location.removeprefix("file:")) for name in (kept, purged)}
    spark.sql(f"drop table {kept}")
    with pytest.raises(AnalysisException, match=r"gc\.enabled is false"):
        spark.sql(f"drop table {purged} purge")
    spark.sql(f"alter table {purged} set tblproperties ('gc.enabled' = 'true')")
    spark.sql(f"drop table {purged} purge")
    assert metadata[kept].exists()
    assert not metadata[purged].exists()
    for name in (kept, purged):
        with pytest.raises(NoSuchTableError):
            catalog.load_table(name)
        spark.sql(f"drop table if exists {name}")


def test_properties_of_a_table_are_shown_as_apache_iceberg_does_and_renaming_keeps_it(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    spark.sql(f"create table {namespace}.t (id int) using iceberg tblproperties ('write.format.default' = 'orc')")
    spark.sql(f"alter table {namespace}.t set tblproperties ('a' = '1', 'b' = '2')")
    spark.sql(f"alter table {namespace}.t unset tblproperties ('a')")
    spark.sql(f"comment on table {namespace}.t is 'words'")
    with pytest.raises(Exception, match="a table is renamed within its catalog"):
        spark.sql(f"alter table {namespace}.t rename to other.{namespace}.u")
    spark.sql(f"alter table {namespace}.t rename to {namespace}.u")
    shown = {row.key: row.value for row in spark.sql(f"show tblproperties {namespace}.u").collect()}
    assert shown == {
        "b": "2",
        "current-snapshot-id": "none",
        "format": "iceberg/orc",
        "format-version": "2",
        "write.format.default": "orc",
        "write.parquet.compression-codec": "zstd",
    }
    described = {row.col_name: row.data_type for row in spark.sql(f"describe extended {namespace}.u").collect()}
    assert described.get("Table_type", "EXTERNAL") == "EXTERNAL"  # Spark 4.0 has no such row
    assert described["Comment"] == "words"
    assert described["Location"] == catalog.load_table(f"{namespace}.u").location()
    shown_tables = spark.sql(f"show tables in {namespace}").where("not isTemporary").collect()
    assert [row.tableName for row in shown_tables] == ["u"]


def test_a_table_like_another_has_its_definition_and_none_of_its_rows(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    source, like = f"{namespace}.source", f"{namespace}.similar"
    spark.sql(
        f"create table {source} (id int not null comment 'key', `odd name` string, s struct<a: int>) using iceberg"
        " partitioned by (bucket(4, id), `odd name`) tblproperties ('format-version' = '3', 'own' = 'x')"
    )
    spark.sql(f"create table {like} like {source} location 'file:{tmp_path}/like' tblproperties ('k' = 'it\\'s')")
    first, second = catalog.load_table(source), catalog.load_table(like)
    assert str(second.schema()) == str(first.schema())
    assert second.spec() == first.spec()
    assert second.format_version == 3
    assert second.location() == f"file:{tmp_path}/like"
    assert second.properties["k"] == "it's"
    assert "own" not in second.properties
    spark.sql(f"create table if not exists {like} like {source}")
    spark.sql(f"create table {namespace}.plain (id int, p string) using parquet partitioned by (p)")
    spark.sql(f"create table {namespace}.from_plain like {namespace}.plain using iceberg")
    assert [str(field) for field in catalog.load_table(f"{namespace}.from_plain").spec().fields] == [
        "1000: p: identity(2)"
    ]


def test_a_named_catalog_has_namespaces_and_defaults_of_its_tables(
    spark: SparkSession, catalog: Catalog, metastore: EmbeddedMetastore, namespace: str, tmp_path: Path
) -> None:
    from pyspark.errors import AnalysisException

    defaults = {"table-default.k": "default", "table-override.o": "always", "table-default.format-version": "3"}
    extend(spark, catalogs={"defined": {"uri": metastore.uri, "warehouse": metastore.warehouse, **defaults}})
    own = f"{namespace}_own"
    spark.sql(
        f"create namespace defined.{own} comment 'words' location 'file:{tmp_path}/own' with dbproperties ('a'='b')"
    )
    spark.sql(f"create namespace if not exists defined.{own}")
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        spark.sql(f"create namespace defined.{own}")
    spark.sql(f"alter namespace defined.{own} set properties ('c' = 'd')")
    described = {
        row.info_name: row.info_value for row in spark.sql(f"describe namespace extended defined.{own}").collect()
    }
    assert described["Comment"] == "words"
    assert described["Location"] == f"file:{tmp_path}/own"
    assert "(a,b)" in described["Properties"] and "(c,d)" in described["Properties"]

    spark.sql(f"create table defined.{own}.t (id int) tblproperties ('o' = 'mine')")
    table = catalog.load_table(f"{own}.t")
    assert table.location() == f"file:{tmp_path}/own/t"
    assert table.format_version == 3
    assert {"k": "default", "o": "always"}.items() <= table.properties.items()
    spark.sql(f"alter table defined.{own}.t rename to defined.{own}.u")
    with pytest.raises(AnalysisException, match=r"NamespaceNotEmptyError|SCHEMA_NOT_EMPTY"):
        spark.sql(f"drop namespace defined.{own}")
    spark.sql(f"create table {own}.hive_table (a int) using parquet")
    with pytest.raises(AnalysisException, match=r"NamespaceNotEmptyError: .*hive_table"):
        spark.sql(f"drop namespace defined.{own} cascade")
    assert catalog.table_exists(f"{own}.u")
    spark.sql(f"drop table {own}.hive_table")
    spark.sql(f"drop namespace defined.{own} cascade")
    assert not catalog.namespace_exists(own)
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql(f"drop namespace defined.{own}")
