"""Which Hive tables can be migrated, and the columns and partition values they get."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HiveColumn, HivePartition, HiveStorage, HiveTable
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source import SourceTable, carried_parameters, inspect_source, source_or_refusal
from hms_iceberg.migration.hive.source_reasons import Refusal, Remedy
from hms_iceberg.spec.data_types import TimestampType

PARQUET = HiveStorage(
    location="file:/wh/db.db/t",
    input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    serde="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
ORC = replace(PARQUET, serde="org.apache.hadoop.hive.ql.io.orc.OrcSerde")
TEXT = replace(PARQUET, serde="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")


def hive_table(
    columns: str = "a int, b string", keys: str = "", parameters: dict[str, str] | None = None, **changes: Any
) -> HiveTable:
    """A managed Parquet table; columns and keys as `name type, name type`."""

    def parse(text: str) -> tuple[HiveColumn, ...]:
        pairs = (part.strip().split(" ", 1) for part in text.split(", ") if part.strip())
        return tuple(HiveColumn(name, kind) for name, kind in pairs)

    table = HiveTable("db", "t", "MANAGED_TABLE", parse(columns), parse(keys), PARQUET, parameters or {})
    return replace(table, **changes)


def partition(*values: str, storage: HiveStorage = PARQUET) -> HivePartition:
    return HivePartition(values, replace(storage, location="file:/wh/db.db/t/" + "/".join(values)))


def inspect(table: HiveTable, *partitions: HivePartition, **options: Any) -> SourceTable:
    return inspect_source(table, partitions, TypeOptions(**options))


def columns_of(source: SourceTable) -> list[tuple[int, str, str]]:
    return [(field.field_id, field.name, str(field.field_type)) for field in source.schema.fields]


def test_partition_keys_become_the_last_columns_and_all_are_optional() -> None:
    source = inspect(hive_table("a int, s struct<x:int,y:string>", keys="month int"), partition("1"))

    struct = "struct<4: x: optional int, 5: y: optional string>"
    assert columns_of(source) == [(1, "a", "int"), (2, "s", struct), (3, "month", "int")]
    assert source.partition_columns == ("month",)
    assert not any(field.required for field in source.schema.fields)


def test_a_table_without_partition_keys_is_one_unit_at_its_own_location() -> None:
    source = inspect(hive_table())

    assert [row.storage.location for row in source.partitions] == ["file:/wh/db.db/t"]
    assert source.partition_values == ((),)


@pytest.mark.parametrize(
    ("kind", "text", "stored"),
    [
        ("int", "7", 7),
        ("bigint", "-3", -3),
        ("string", "7", "7"),
        ("string", " a/b%2F=c ", " a/b%2F=c "),
        ("varchar(9)", "x", "x"),
        ("date", "2013-02-01", (dt.date(2013, 2, 1) - dt.date(1970, 1, 1)).days),
        ("boolean", "true", True),
        ("double", "1.5", 1.5),
        ("int", "__HIVE_DEFAULT_PARTITION__", None),
        ("string", "__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_a_partition_value_is_read_as_its_columns_type(kind: str, text: str, stored: Any) -> None:
    source = inspect(hive_table(keys=f"k {kind}"), partition(text))

    assert source.partition_values == ((stored,),)


def test_a_timestamp_partition_is_read_where_it_has_no_zone() -> None:
    source = inspect(hive_table(keys="k timestamp"), partition("2013-01-01 05:00:00.5"), timestamp=TimestampType())

    moment = dt.datetime(2013, 1, 1, 5, 0, 0, 500_000) - dt.datetime(1970, 1, 1)
    assert source.partition_values == ((moment // dt.timedelta(microseconds=1),),)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (hive_table(table_type="VIRTUAL_VIEW"), "it is a view"),
        (hive_table(parameters={"table_type": "ICEBERG", "metadata_location": "x"}), "an Iceberg table already"),
        (hive_table(parameters={"transactional": "TRUE"}), "transactional"),
        (hive_table(parameters={"storage_handler": "org.x.HBase"}), "kept by org.x.HBase"),
        (hive_table(storage=replace(PARQUET, bucket_columns=("a",), bucket_count=4)), "bucketed"),
        (hive_table(parameters={"spark.sql.sources.schema.numBuckets": "4"}), "bucketed"),
        (hive_table(storage=replace(PARQUET, stored_as_sub_directories=True)), "list bucketing"),
        (hive_table(storage=TEXT), "stored as LazySimpleSerDe"),
        (hive_table(parameters={"spark.sql.sources.provider": "csv"}), "stored as csv"),
        (hive_table(storage=replace(PARQUET, serde_parameters={"parquet.column.index.access": "true"})), "by position"),
        (hive_table(parameters={"orc.force.positional.evolution": "TRUE"}), "by position"),
        (hive_table(parameters={"skip.header.line.count": "1"}), "skip.header.line.count=1"),
        (hive_table(storage=replace(PARQUET, serde_parameters={"skip.footer.line.count": " 2 "})), "line.count=2"),
        (hive_table(parameters={"textinputformat.record.delimiter": "|"}), "record.delimiter"),
        (hive_table(parameters={"avro.schema.literal": "{}"}), "avro.schema.literal is not the schema of a record"),
        (hive_table(storage=replace(PARQUET, location="")), "no location"),
        (hive_table("a uniontype<int,string>"), "Column 'a'"),
        (hive_table("a char(3)"), "--char-as-string"),
        (hive_table(keys="k timestamp"), "--timestamp-type timestamp"),
        (hive_table(keys="k array<int>"), "cannot be partitioned by"),
        (hive_table(""), "no columns"),
    ],
)
def test_a_table_that_iceberg_cannot_take_in_is_refused_with_the_reason(table: HiveTable, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^Table db\.t cannot be migrated") as caught:
        inspect(table)

    assert reason in str(caught.value)
    assert str(caught.value).endswith("Nothing was changed.")


def test_every_reason_is_given_at_once() -> None:
    table = hive_table("a void", parameters={"transactional": "true"}, storage=TEXT)

    with pytest.raises(UnsupportedError) as caught:
        inspect(table)

    assert all(reason in str(caught.value) for reason in ("transactional", "LazySimpleSerDe", "Column 'a'"))


def test_each_partition_has_the_format_of_its_own_descriptor() -> None:
    table = hive_table(keys="k int", storage=TEXT)

    assert inspect(table, partition("1"), partition("2", storage=ORC)).formats == ("PARQUET", "ORC")
    with pytest.raises(UnsupportedError, match="partition k=2 is stored as LazySimpleSerDe"):
        inspect(hive_table(keys="k int"), partition("1"), partition("2", storage=TEXT))


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        (hive_table("a char(3)"), Remedy.OPTION),
        (hive_table("a char(3)", storage=TEXT), Remedy.REWRITE),
        (hive_table("a uniontype<int,string>", storage=TEXT), Remedy.NOTHING),
    ],
)
def test_a_refusal_tells_what_helps_against_all_reasons(table: HiveTable, remedy: Remedy) -> None:
    found = source_or_refusal(table, [], TypeOptions())

    assert isinstance(found, Refusal) and found.remedy is remedy
    assert ("With --rewrite" in str(found.error())) is (remedy is Remedy.REWRITE)


def test_a_partition_value_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="partition k=x is not a int"):
        inspect(hive_table(keys="k int"), partition("x"))


def test_partitions_that_share_a_location_are_refused() -> None:
    shared = partition("1")

    with pytest.raises(UnsupportedError, match="share the location"):
        inspect(hive_table(keys="k int"), shared, replace(shared, values=("2",)))


def spark_schema(*columns: tuple[str, str]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields})


def test_names_are_written_as_in_sparks_schema_where_that_is_still_true() -> None:
    parameters = {"spark.sql.sources.schema": spark_schema(("FlightId", "integer"), ("b", "string"))}

    assert columns_of(inspect(hive_table("flightid int, b string", parameters=parameters)))[0] == (1, "FlightId", "int")


def test_hives_columns_count_where_sparks_schema_is_out_of_date() -> None:
    parameters = {"spark.sql.sources.schema": spark_schema(("FlightId", "integer"))}

    assert columns_of(inspect(hive_table("flightid bigint", parameters=parameters))) == [(1, "flightid", "long")]


def test_a_table_of_a_spark_source_has_sparks_types_and_path() -> None:
    parameters = {
        "spark.sql.sources.provider": "parquet",
        "spark.sql.sources.schema": spark_schema(("at", "timestamp_ntz"), ("K", "integer")),
        "spark.sql.sources.schema.numPartCols": "1",
    }
    storage = HiveStorage(
        "file:/wh/db.db/t-__PLACEHOLDER__", "", "", "Lazy", serde_parameters={"path": "file:/data/t/"}
    )
    table = hive_table("col array<string>", keys="K int", parameters=parameters, storage=storage)

    source = inspect(table, partition("1"))

    assert columns_of(source) == [(1, "at", "timestamp"), (2, "K", "int")]
    assert source.location == "file:/data/t"


def test_a_spark_table_whose_partitions_are_not_in_the_metastore_is_refused() -> None:
    parameters = {
        "spark.sql.sources.provider": "parquet",
        "spark.sql.sources.schema": spark_schema(("a", "integer"), ("k", "integer")),
        "spark.sql.sources.schema.numPartCols": "1",
    }

    with pytest.raises(UnsupportedError, match="MSCK REPAIR"):
        inspect(hive_table("a int", parameters=parameters))


def test_parameters_of_the_user_are_kept_and_those_of_hive_are_not() -> None:
    parameters = {
        "comment": "flights",
        "team": "ops",
        "EXTERNAL": "TRUE",
        "numRows": "5",
        "spark.sql.create.version": "4",
    }

    assert carried_parameters(parameters) == {"comment": "flights", "team": "ops"}
