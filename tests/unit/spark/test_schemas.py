"""Iceberg schemas in Spark's JSON."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spark.nanoseconds import shown
from hms_iceberg.spark.schemas import key_schema, metadata_schema, spark_schema, spark_type, spark_value
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema

SCHEMA = Schema(
    NestedField(1, "id", LongType(), True, "the number"),
    NestedField(2, "at", TimestampType()),
    NestedField(3, "seen", TimestamptzType()),
    NestedField(4, "key", UUIDType()),
    NestedField(5, "tags", ListType(50, StringType(), True)),
    NestedField(6, "place", StructType(NestedField(60, "zip", IntegerType(), initial_default=7))),
    NestedField(7, "names", MapType(70, StringType(), 71, StructType(NestedField(72, "n", BinaryType())), False)),
)


def metadata_of(*schemas: Schema, version: int = 2) -> TableMetadata:
    return TableMetadata(
        format_version=version,
        table_uuid=None,
        location="/t",
        last_updated_ms=0,
        last_column_id=100,
        schemas=schemas,
        current_schema_id=schemas[-1].schema_id,
    )


def test_fields_carry_ids_and_what_the_reader_must_know() -> None:
    fields = {field["name"]: field for field in spark_schema(SCHEMA, "db.t")["fields"]}
    assert fields["id"] == {
        "name": "id",
        "type": "long",
        "nullable": False,
        "metadata": {"parquet.field.id": 1, "comment": "the number"},
    }
    assert fields["at"]["type"] == "timestamp_ntz"
    assert fields["seen"]["type"] == "timestamp"
    assert fields["key"]["type"] == "string" and fields["key"]["metadata"]["iceberg.type"] == "uuid"
    assert fields["tags"]["type"] == {"type": "array", "elementType": "string", "containsNull": False}
    (zip_field,) = fields["place"]["type"]["fields"]
    assert zip_field["metadata"] == {"parquet.field.id": 60, "iceberg.initial-default": "7"}
    assert fields["names"]["type"]["valueType"]["fields"][0]["type"] == "binary"


def test_a_type_that_spark_cannot_hold_stands_in_the_schema_under_its_own_name() -> None:
    nested = StructType(NestedField(2, "deep", TimestampNanoType()), NestedField(3, "other", VariantType()))
    (field,) = spark_schema(Schema(NestedField(1, "a", nested)), "db.t")["fields"]
    assert [each["type"] for each in field["type"]["fields"]] == ["iceberg:timestamp_ns", "variant"]
    with pytest.raises(UnsupportedError, match=r"db\.t from Spark: its column a\.deep has the type timestamp_ns"):
        spark_type(nested, "db.t", "a")


def test_row_lineage_can_be_asked_for_from_version_3_on() -> None:
    names = [field["name"] for field in metadata_schema(metadata_of(SCHEMA), SCHEMA)["fields"]]
    assert names == ["_file", "_pos", "_deleted", "_spec_id", "_partition"]
    fields = metadata_schema(metadata_of(SCHEMA, version=3), SCHEMA)["fields"]
    assert [field["name"] for field in fields[5:]] == ["_row_id", "_last_updated_sequence_number"]
    assert {field["metadata"]["iceberg.type"] for field in fields} == {"metadata"}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (LongType(), 5, 5),
        (DoubleType(), math.nan, "NaN"),
        (DoubleType(), -math.inf, "-Infinity"),
        (DoubleType(), -0.0, -0.0),
        (DecimalType(9, 2), Decimal("1E+2"), "100"),
        (FixedType(2), b"\x00\xff", "00ff"),
        (UUIDType(), bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (TimeType(), 5, 5000),
        (StringType(), None, None),
    ],
)
def test_values_in_spark_s_internal_form(kind: IcebergType, value: Any, expected: Any) -> None:
    assert spark_value(kind, value) == expected


def test_keys_of_dropped_and_nested_columns_are_found_in_older_schemas() -> None:
    old = Schema(NestedField(9, "gone", IntegerType()), *SCHEMA.fields, schema_id=0)
    new = Schema(*SCHEMA.fields, schema_id=1)
    keys = key_schema((1, 9, 60), new, metadata_of(old, new), "db.t")["fields"]
    assert [(field["name"], field["metadata"]["parquet.field.id"]) for field in keys] == [
        ("id", 1),
        ("gone", 9),
        ("place", 6),
    ]
    assert [field["name"] for field in keys[2]["type"]["fields"]] == ["zip"]


def test_the_types_of_keys_are_those_of_the_schema_that_is_read() -> None:
    old = Schema(NestedField(1, "id", IntegerType()), schema_id=0)
    new = Schema(NestedField(1, "id", LongType()), schema_id=1)
    metadata = metadata_of(old, new)
    assert key_schema((1,), old, metadata, "t")["fields"][0]["type"] == "integer"
    assert key_schema((1,), new, metadata, "t")["fields"][0]["type"] == "long"


def test_an_unknown_key_and_a_key_in_a_list_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="the column with id 99"):
        key_schema((99,), SCHEMA, metadata_of(SCHEMA), "db.t")
    with pytest.raises(UnsupportedError, match=r"names\.value\.n"):
        key_schema((72,), SCHEMA, metadata_of(SCHEMA), "db.t")


def test_unknown_columns_are_void() -> None:
    assert spark_type(UnknownType(), "t", "c") == "void"


def test_a_default_with_parts_of_a_microsecond_is_not_told_in_microseconds() -> None:
    def schema(default: int) -> Schema:
        return Schema(NestedField(1, "at", TimestampNanoType(), initial_default=1000, write_default=default))

    assert shown(schema(2000), "micros") == Schema(
        NestedField(1, "at", TimestampType(), initial_default=1, write_default=2)
    )
    assert shown(schema(2001), "bigint").fields[0].write_default == 2001
    assert shown(schema(2001), None) == schema(2001)
    with pytest.raises(UnsupportedError, match=r"the column at of the table db\.t in microseconds.*bigint"):
        shown(schema(2001), "micros", "db.t")
