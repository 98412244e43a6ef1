"""Hive type strings and Spark's schema JSON as Iceberg types."""

from __future__ import annotations

import json
from itertools import count

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration.hive.hive_types import TypeOptions, parse_hive_type
from hms_iceberg.migration.hive.source_columns import parse_spark_schema, spark_schema_json
from hms_iceberg.spec.data_types import ListType, MapType, StructType, TimestampType

OPTIONS = TypeOptions()


@pytest.mark.parametrize(
    ("hive", "iceberg"),
    [
        ("boolean", "boolean"),
        ("tinyint", "int"),
        ("smallint", "int"),
        ("int", "int"),
        ("INT", "int"),
        ("bigint", "long"),
        ("float", "float"),
        ("double", "double"),
        ("double precision", "double"),
        ("string", "string"),
        ("varchar(12)", "string"),
        ("binary", "binary"),
        ("date", "date"),
        ("decimal", "decimal(10,0)"),
        ("decimal(9)", "decimal(9,0)"),
        ("decimal( 38 , 10 )", "decimal(38,10)"),
        ("timestamp", "timestamptz"),
        ("timestamp with local time zone", "timestamptz"),
        ("timestamp_ntz", "timestamp"),
    ],
)
def test_a_primitive_hive_type_becomes_its_iceberg_type(hive: str, iceberg: str) -> None:
    assert str(parse_hive_type(hive, OPTIONS, count(1))).replace(" ", "") == iceberg


def test_a_hive_timestamp_can_be_read_as_one_without_zone() -> None:
    assert str(parse_hive_type("timestamp", TypeOptions(timestamp=TimestampType()), count(1))) == "timestamp"


def test_nested_types_keep_their_names_and_are_optional_throughout() -> None:
    kind = parse_hive_type("map<string,array<struct<`odd,name`:int,b:decimal(3,1)>>>", OPTIONS, count(1))

    assert isinstance(kind, MapType) and not kind.value_required
    assert isinstance(kind.value_type, ListType) and not kind.value_type.element_required
    struct = kind.value_type.element_type
    assert isinstance(struct, StructType)
    assert [(field.name, str(field.field_type).replace(" ", ""), field.required) for field in struct.fields] == [
        ("odd,name", "int", False),
        ("b", "decimal(3,1)", False),
    ]


@pytest.mark.parametrize(
    ("hive", "reason"),
    [
        ("uniontype<int,string>", "no union type"),
        ("interval_day_time", "no interval type"),
        ("void", "no type that could hold a value"),
        ("char(3)", "--char-as-string"),
        ("array<char(3)>", "--char-as-string"),
        ("geometry", "not a type that"),
        ("array<int", "expected '>'"),
        ("map<int>", "expected ','"),
        ("struct<a int>", "expected ':'"),
        ("int>", "nothing after the type"),
        ("", "expected more text"),
        ("decimal(a,b)", "a number"),
    ],
)
def test_a_type_that_iceberg_cannot_hold_is_refused_with_its_reason(hive: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match="Hive type") as caught:
        parse_hive_type(hive, OPTIONS, count(1))

    assert reason in str(caught.value)


def test_a_char_is_a_string_where_that_was_asked_for() -> None:
    assert str(parse_hive_type("char(3)", TypeOptions(char_as_string=True), count(1))) == "string"


SPARK_SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "Id", "type": "long", "nullable": False, "metadata": {"comment": "the key"}},
        {"name": "small", "type": "short", "nullable": True, "metadata": {}},
        {"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}},
        {
            "name": "code",
            "type": "string",
            "nullable": True,
            "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"},
        },
        {
            "name": "Tags",
            "type": {
                "type": "map",
                "keyType": "string",
                "valueType": {"type": "array", "elementType": "integer", "containsNull": True},
                "valueContainsNull": True,
            },
            "nullable": True,
            "metadata": {},
        },
    ],
}


def test_sparks_schema_keeps_case_comments_and_types_that_hive_lacks() -> None:
    fields = parse_spark_schema(SPARK_SCHEMA, OPTIONS, count(1))

    assert [(field.name, str(field.field_type).replace(" ", ""), field.doc) for field in fields] == [
        ("Id", "long", "the key"),
        ("small", "int", None),
        ("at", "timestamp", None),
        ("code", "string", None),
        ("Tags", "map<string,list<int>>", None),
    ]
    assert not any(field.required for field in fields)


def test_sparks_schema_is_found_whole_or_in_parts() -> None:
    text = json.dumps(SPARK_SCHEMA)
    parts = {"spark.sql.sources.schema.numParts": "3"}
    parts.update(
        {f"spark.sql.sources.schema.part.{i}": text[i * 200 : (i + 1) * 200 if i < 2 else None] for i in range(3)}
    )

    assert spark_schema_json({"spark.sql.sources.schema": text}) == SPARK_SCHEMA
    assert spark_schema_json(parts) == SPARK_SCHEMA
    assert spark_schema_json({"owner": "me"}) is None


def test_a_cut_off_schema_of_spark_is_no_schema() -> None:
    assert spark_schema_json({"spark.sql.sources.schema": json.dumps(SPARK_SCHEMA)[:-5]}) is None


def test_a_spark_type_that_iceberg_cannot_hold_names_its_column() -> None:
    schema = {"fields": [{"name": "p", "type": {"type": "udt", "class": "x"}, "metadata": {}}]}

    with pytest.raises(UnsupportedError, match="Column 'p'"):
        parse_spark_schema(schema, OPTIONS, count(1))
