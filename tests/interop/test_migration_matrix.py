"""Hive tables of every make, migrated: Spark, Python, Apache Iceberg and PyIceberg read the rows that Spark had read,
and Spark reads them again in the Hive table that comes back.

Hive's own writers are those of its jars, which Spark uses where it is told not to use its own: Parquet with INT96 and
Hive's lists and maps, ORC with places for names, Avro. A spread is taken; HMS_ICEBERG_MATRIX=all takes all.
"""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.migration import migrate, rollback
from tests.support.hive_rows import every_type
from tests.support.hive_warehouse import HiveWarehouse, data_files
from tests.support.java_peer import encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.spark]

ALL = os.environ.get("HMS_ICEBERG_MATRIX") == "all"
HIVE, SPARK, SOURCE = "hive", "spark", "source"
EVERY = [
    case
    for case in product(
        (HIVE, SPARK, SOURCE),
        ("parquet", "orc", "avro"),
        ("partitioned", "flat"),
        ("managed", "external"),
        ("plain", "added", "renamed", "places"),
    )
    if not (case[1] == "avro" and case[0] != HIVE)  # Spark writes Avro with Hive's classes only
    and not (case[0] == SOURCE and case[4] in ("renamed", "places"))
    and not (case[4] == "places" and case[1] != "orc")
]
SPREAD = [
    (HIVE, "parquet", "partitioned", "managed", "renamed"),
    (HIVE, "orc", "flat", "external", "places"),
    (HIVE, "avro", "partitioned", "external", "added"),
    (SOURCE, "parquet", "flat", "managed", "added"),
]
ROWS = every_type(part="if(id = 3, null, concat('p', id % 2))").replace("as i32", "as Id")


@pytest.mark.parametrize("case", EVERY if ALL else SPREAD, ids="-".join)
def test_every_reader_returns_what_spark_returned_of_the_hive_table(
    spark: SparkSession,
    catalog: Catalog,
    namespace: str,
    iceberg_java: Any,
    pyiceberg_catalog: Any,
    case: tuple[str, str, str, str, str],
    tmp_path: Any,
) -> None:
    form, history = case[1], case[4]
    name, warehouse = f"{namespace}.t", HiveWarehouse(catalog, namespace)
    _make(spark, warehouse, case, f"file:{tmp_path}/t")
    expected = spark_rows(spark, name)
    assert len(expected) == (10 if history in ("added", "places") else 5)
    before = warehouse.rows("t")
    files = data_files(before.location)

    migrate(catalog, name)

    assert data_files(before.location) == files
    assert spark_rows(spark, name) == expected
    assert arrow_rows(catalog.load_table(name).scan().to_arrow()) == expected
    assert sorted(map(text, iceberg_java.sql(f"select * from ice.{name}"))) == expected
    if (
        form in ("parquet", "orc") and history != "renamed"
    ):  # PyIceberg refuses files with columns that the table has not
        assert arrow_rows(pyiceberg_catalog.load_table(name).scan().to_arrow()) == expected
    rollback(catalog, name)
    assert warehouse.rows("t") == before and spark_rows(spark, name) == expected


def _make(spark: SparkSession, warehouse: HiveWarehouse, case: tuple[str, ...], place: str) -> None:
    writer, form, layout, kind, history = case
    name = f"{warehouse.namespace}.t"
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    for each in ("Parquet", "Orc"):
        spark.conf.set(f"spark.sql.hive.convertMetastore{each}", str(writer != HIVE).lower())
    try:
        columns = [f"{field.name} {_type(field)}" for field in spark.sql(ROWS).schema]
        stored = f"using {form}" if writer == SOURCE else f"stored as {form}"
        by = ""
        if layout == "partitioned":
            by = "partitioned by (part)" if writer == SOURCE else f"partitioned by ({columns.pop()})"
        external = "external " if kind == "external" and writer != SOURCE else ""
        location = f"location '{place}'" if kind == "external" else ""
        body = f"{stored} {by}" if writer == SOURCE else f"{by} {stored}"
        spark.sql(f"create {external}table {name} ({', '.join(columns)}) {body} {location}")
        spark.sql(f"insert into {name} {ROWS}")
        if history == "added":
            spark.sql(f"alter table {name} add columns (later string)")
            names = [f"`{field.name}`" for field in spark.sql(ROWS).schema]  # Spark 3.5 has no `* except (part)`
            values = [*names[:-1], "'new'", names[-1]] if by else [*names, "'new'"]
            spark.sql(f"insert into {name} select {', '.join(values)} from ({ROWS})")
        elif history == "renamed":
            row = warehouse.client.get_table(warehouse.namespace, "t")
            next(column for column in row.sd.cols if column.name == "s").name = "called"
            warehouse.client.alter_table(warehouse.namespace, "t", row)
        elif history == "places":
            _add_places(spark, warehouse, layout == "partitioned")
    finally:
        for each in ("Parquet", "Orc"):
            spark.conf.unset(f"spark.sql.hive.convertMetastore{each}")


def _add_places(spark: SparkSession, warehouse: HiveWarehouse, partitioned: bool) -> None:
    """A file, or a partition, whose columns Hive's writer calls by their places."""
    old = f"{warehouse.namespace}.old"
    rows = spark.sql(ROWS)
    fields = rows.schema.fields[:-1] if partitioned else rows.schema.fields
    columns = ", ".join(f"_col{n} {_type(field)}" for n, field in enumerate(fields))
    wanted = ", ".join(f"`{field.name}`" for field in fields)
    spark.sql(f"create table {old} ({columns}) stored as orc")
    spark.sql(f"insert into {old} select /*+ coalesce(1) */ {wanted} from ({ROWS})")
    if partitioned:
        warehouse.attach_partition("t", ["old"], "old")
        return
    for number, path in enumerate(warehouse.rows("old").location.glob("part-*")):
        path.rename(warehouse.rows("t").location / f"00000{number}_0")
    spark.sql(f"drop table {old}")


def _type(field: Any) -> str:
    return str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING") or field.dataType.simpleString())


def text(row: Any) -> str:
    """A row as one text that is the same whoever read it."""
    return repr([_plain(encode(value)) for value in row])


def _plain(value: Any) -> Any:
    if value == "__HIVE_DEFAULT_PARTITION__":  # through Hive's SerDe, Spark shows the name of a null's folder
        return None
    if isinstance(value, str) and value.endswith("+00:00"):
        return value.removesuffix("+00:00")
    return value


def spark_rows(spark: SparkSession, name: str) -> list[str]:
    spark.catalog.refreshTable(name)
    return sorted(map(text, spark.table(name).collect()))


def arrow_rows(table: pa.Table) -> list[str]:
    columns = [_values(table[index].to_pylist(), field.type) for index, field in enumerate(table.schema)]
    return sorted(map(text, zip(*columns, strict=True)))


def _values(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Structs as lists and maps as dictionaries, as Spark has them."""
    if pa.types.is_struct(kind):
        parts = [_values([None if v is None else v[f.name] for v in values], f.type) for f in kind]
        rows = zip(*parts, strict=True)
        return [None if value is None else list(row) for value, row in zip(values, rows, strict=True)]
    if pa.types.is_map(kind):
        return [None if value is None else dict(value) for value in values]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [None if value is None else _values(value, kind.value_type) for value in values]
    return values
