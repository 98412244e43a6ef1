"""The same DDL by our Spark extension and by Apache Iceberg's Spark runtime makes the same tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.spark]

ALL_TYPES = (
    "id bigint not null comment 'key', b boolean, i int, y tinyint, h smallint, f float, d double, dc decimal(10,3), "
    "s string, c char(3), v varchar(5), bn binary, dt date, ts timestamp, tn timestamp_ntz, "
    "st struct<a: int not null, b: struct<x: string comment 'inner'>>, ar array<struct<q: int>>, "
    "mp map<string, array<bigint>>"
)
TABLES = {
    "types": [f"create table {{t}} ({ALL_TYPES}) using iceberg comment 'words' tblproperties ('k' = 'v')"],
    "transforms": [
        "create table {t} (id bigint, s string, ts timestamp, dt date, st struct<n: int>) using iceberg partitioned by"
        " (s, bucket(4, id), truncate(s, 3), years(dt), hours(ts), st.n) tblproperties ('format-version' = '3')",
    ],
    "columns": [
        "create table {t} (id int not null, s struct<a: int>, l array<struct<x: int>>, m map<string, struct<v: int>>,"
        " f float, gone string) using iceberg",
        "alter table {t} add columns (first_one string first, n struct<p: int, q: array<int>> after id)",
        "alter table {t} add columns (s.b date comment 'later', l.element.y string, m.value.w double, s.z int first)",
        "alter table {t} alter column id type bigint",
        "alter table {t} alter column l.element.x type bigint",
        "alter table {t} alter column id drop not null",
        "alter table {t} rename column s.a to renamed",
        "alter table {t} alter column f comment 'about'",
        "alter table {t} alter column f after id",
        "alter table {t} drop columns (gone, n.p)",
        "alter table {t} add column gone int",
    ],
    "properties": [
        "create table {t} (id int) using iceberg tblproperties ('a' = '1', 'b' = '2')",
        "alter table {t} set tblproperties ('c' = '3', 'a' = '4')",
        "alter table {t} unset tblproperties ('b')",
        "comment on table {t} is 'about it'",
        "alter table {t} set tblproperties ('format-version' = '3')",
    ],
    "replaced": [
        "create table {t} (id int, s string, n double) using iceberg partitioned by (s) tblproperties ('keep' = '1')",
        "create or replace table {t} (s string, id bigint, other date) using iceberg partitioned by (days(other))"
        " tblproperties ('new' = '2')",
        "replace table {t} (only_one int) using iceberg",
    ],
    "columns replaced": [
        "create table {t} (a int, b string) using iceberg",
        "alter table {t} replace columns (b string, c double comment 'new')",
    ],
}


def definition(catalog: Catalog, name: str) -> dict[str, Any]:
    """What the table's metadata says, but for what differs from table to table."""
    metadata = catalog.load_table(name).metadata
    return {
        "version": metadata.format_version,
        "schemas": [str(schema) for schema in metadata.schemas],
        "current": metadata.current_schema_id,
        "last column": metadata.last_column_id,
        "specs": [(spec.spec_id, [str(field) for field in spec.fields]) for spec in metadata.partition_specs],
        "default spec": metadata.default_spec_id,
        "last partition field": metadata.last_partition_id,
        "orders": [str(order) for order in metadata.sort_orders],
        "properties": metadata.properties,
    }


@pytest.mark.parametrize("statements", TABLES.values(), ids=TABLES.keys())
def test_the_same_statements_make_the_same_metadata(
    spark: SparkSession, iceberg_java: Any, catalog: Catalog, namespace: str, statements: list[str]
) -> None:
    for statement in statements:
        spark.sql(statement.format(t=f"{namespace}.ours"))
        iceberg_java.sql(statement.format(t=f"ice.{namespace}.java"))
    assert definition(catalog, f"{namespace}.ours") == definition(catalog, f"{namespace}.java")


def test_both_show_the_same_of_a_table(
    spark: SparkSession, iceberg_java: Any, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"create table {name} (id bigint not null, s string) using iceberg partitioned by (bucket(4, id))"
        " comment 'words' tblproperties ('k' = 'v')"
    )
    with catalog.load_table(name).transaction() as transaction:
        order = transaction.update_sort_order()
        order.asc("s").desc("id", "bucket[2]").asc("s", "truncate[3]")
        order.commit()
        schema = transaction.update_schema()
        schema.set_identifier_fields("id")
        schema.commit()
    for statement in (f"show tblproperties {{catalog}}{name}", f"describe {{catalog}}{name}"):
        ours = [list(row) for row in spark.sql(statement.format(catalog="")).collect()]
        java = iceberg_java.sql(statement.format(catalog="ice."))
        wanted = [row for row in ours if not str(row[0]).startswith(("_", "# Metadata"))]
        assert wanted == [row for row in java if not str(row[0]).startswith(("_", "# Metadata"))], statement
