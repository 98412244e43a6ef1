from __future__ import annotations

import json

import pytest
from hypothesis import given

from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.spec.data_types import DateType, DecimalType, LongType, NestedField
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json, type_from_json, type_to_json
from tests.support.spec_strategies import schemas


@given(schemas())
def test_a_schema_is_read_back_from_its_json(schema):
    text = json.dumps(schema_to_json(schema))
    assert schema_from_json(json.loads(text)) == schema


def test_identifier_fields_and_defaults_are_written():
    schema = Schema(NestedField(1, "d", DateType(), True, "day", 17486, 0), schema_id=3, identifier_field_ids=[1])
    assert schema_to_json(schema) == {
        "type": "struct",
        "schema-id": 3,
        "identifier-field-ids": [1],
        "fields": [
            {
                "id": 1,
                "name": "d",
                "required": True,
                "type": "date",
                "doc": "day",
                "initial-default": "2017-11-16",
                "write-default": "1970-01-01",
            }
        ],
    }


def test_decimals_are_written_as_java_writes_them():
    assert type_to_json(DecimalType(9, 2)) == "decimal(9, 2)"
    assert type_from_json("decimal(9,2)") == DecimalType(9, 2)


def test_a_schema_of_version_1_without_id_has_id_0():
    schema = schema_from_json({"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]})
    assert schema == Schema(NestedField(1, "a", LongType()))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object"),
        ({"type": "list"}, "expected an object with 'type' struct"),
        ({"type": "struct"}, "'fields' is missing"),
        ({"type": "struct", "fields": {}}, "expected a list"),
        ({"type": "struct", "fields": [1]}, "expected an object"),
        ({"type": "struct", "fields": [{"id": 1}]}, "'name' is missing"),
        ({"type": "struct", "fields": [{"id": "1", "name": "a"}]}, "expected a 32-bit integer"),
        ({"type": "struct", "fields": [{"id": 2**40, "name": "a"}]}, "expected a 32-bit integer"),
        ({"type": "struct", "fields": [{"id": 1, "name": 5}]}, "must be text"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long"}]}, "'required' is missing"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": 1}]}, "true or false"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": "text", "required": True}]}, "Unknown type"),
        (
            {"type": "struct", "fields": [{"id": 1, "name": "a", "type": {"type": "set"}, "required": True}]},
            "list or map",
        ),
        ({"type": "struct", "fields": [], "identifier-field-ids": ["a"]}, "list of numbers"),
        ({"type": "struct", "fields": [], "schema-id": True}, "expected a 32-bit integer"),
        (
            {
                "type": "struct",
                "fields": [{"id": 1, "name": "a", "type": "int", "required": True, "write-default": "x"}],
            },
            "default of field 'a'",
        ),
        (
            {
                "type": "struct",
                "fields": [{"id": 1, "name": "v", "type": "variant", "required": False, "write-default": 1}],
            },
            "can only be null",
        ),
    ],
)
def test_json_that_is_no_schema_is_refused_with_the_reason(data, message):
    with pytest.raises(InvalidSchemaError, match=message):
        schema_from_json(data)
