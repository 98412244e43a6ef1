"""Iceberg columns as Hive columns."""

from __future__ import annotations

import logging

import pytest

from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.hms.rows.column_types import ColumnOptions, check_column_names, hive_columns, hive_type
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
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
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (BooleanType(), "boolean"),
        (IntegerType(), "int"),
        (LongType(), "bigint"),
        (FloatType(), "float"),
        (DoubleType(), "double"),
        (DecimalType(9, 2), "decimal(9,2)"),
        (DateType(), "date"),
        (TimeType(), "string"),
        (TimestampType(), "timestamp"),
        (TimestamptzType(), "timestamp"),
        (TimestampNanoType(), "timestamp"),
        (TimestamptzNanoType(), "timestamp"),
        (StringType(), "string"),
        (UUIDType(), "string"),
        (FixedType(16), "binary"),
        (BinaryType(), "binary"),
        (UnknownType(), "void"),
        (VariantType(), "binary"),
        (GeometryType(), "binary"),
        (GeographyType(), "binary"),
        (ListType(1, LongType(), True), "array<bigint>"),
        (MapType(1, StringType(), 2, ListType(3, DateType(), False), False), "map<string,array<date>>"),
        (
            StructType(
                NestedField(1, "a", IntegerType()),
                NestedField(2, "b c", StructType(NestedField(3, "`q`", UUIDType()))),
            ),
            "struct<a:int,`b c`:struct<```q```:string>>",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, IcebergType) else "",
)
def test_every_type_has_a_hive_type(kind: IcebergType, shown: str) -> None:
    assert hive_type(kind) == shown


def test_a_timestamp_with_zone_has_hive_3s_name_where_asked_for() -> None:
    nested = ListType(1, TimestamptzType(), True)
    assert hive_type(nested, local_time_zone=True) == "array<timestamp with local time zone>"
    assert hive_type(TimestampType(), local_time_zone=True) == "timestamp"


def test_names_that_differ_in_case_only_are_told_apart_by_their_id() -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "A", LongType()))
    assert [column.name for column in hive_columns(schema, ColumnOptions(), "db.t")] == ["a", "A_2"]


def test_new_names_that_differ_in_case_only_are_refused_at_the_top() -> None:
    def schema(*names: str) -> Schema:
        return Schema(*(NestedField(n, name, LongType()) for n, name in enumerate(names, 1)))

    nested = Schema(NestedField(1, "s", StructType(NestedField(2, "a", LongType()), NestedField(3, "A", LongType()))))
    for before, after in (
        (None, schema("a", "b")),
        (None, nested),
        (schema("a", "A"), schema("a", "A", "b")),  # it has them, and must be writable
        (schema("a", "A"), schema("A")),
        (schema("a"), schema("A")),
    ):
        check_column_names(before, after, "db.t")
    for before, after in (
        (None, schema("a", "b", "A")),
        (schema("a", "b"), schema("a", "B", "b")),
        (schema("a", "A"), schema("a", "A", "b", "B")),
        (schema("a", "b"), schema("a", "A")),
        (schema("ä"), schema("ä", "Ä")),
    ):
        with pytest.raises(InvalidSchemaError, match=r"db\.t cannot have both .* in case only"):
            check_column_names(before, after, "db.t")


def test_a_comment_is_cut_at_the_metastores_limit() -> None:
    schema = Schema(NestedField(1, "a", LongType(), doc="x" * 300), NestedField(2, "b", LongType(), doc=""))
    assert [column.comment for column in hive_columns(schema, ColumnOptions(), "db.t")] == ["x" * 256, None]


def test_a_type_that_is_too_long_for_the_metastore_is_shown_as_string(caplog: pytest.LogCaptureFixture) -> None:
    wide = StructType(*(NestedField(number, f"field_{number}", LongType()) for number in range(1, 40)))
    schema = Schema(NestedField(100, "wide", wide), NestedField(101, "id", LongType()))
    with caplog.at_level(logging.WARNING):
        columns = hive_columns(schema, ColumnOptions(max_type_length=200), "db.of_wide_types")
    assert [column.type for column in columns] == ["string", "bigint"]
    assert "'wide'" in caplog.text and "db.of_wide_types" in caplog.text
    caplog.clear()
    hive_columns(schema, ColumnOptions(max_type_length=200), "db.of_wide_types")
    assert caplog.text == "", "one warning is enough"
    unlimited = hive_columns(schema, ColumnOptions(max_type_length=0), "db.t")
    assert unlimited[0].type.startswith("struct<field_1:bigint,")


def test_a_column_with_a_field_name_that_hive_cannot_hold_is_shown_as_string(caplog: pytest.LogCaptureFixture) -> None:
    odd = StructType(NestedField(3, "x", DoubleType()), NestedField(4, "the label", StringType()))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "place", ListType(5, odd)))

    columns = hive_columns(schema, ColumnOptions(), "db.of_odd_names")

    assert [(column.name, column.type) for column in columns] == [("id", "bigint"), ("place", "string")]
    assert "'place' of table db.of_odd_names" in caplog.text and "name that Hive cannot hold" in caplog.text
