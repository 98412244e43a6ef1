from __future__ import annotations

import json

import pytest
from hypothesis import given

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.data_types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType
from hms_iceberg.spec.field_mapping import (
    MappedField,
    NameMapping,
    create_name_mapping,
    name_mapping_from_json,
    update_name_mapping,
)
from hms_iceberg.spec.schema import Schema
from tests.support.spec_strategies import schemas

POINT = StructType(NestedField(3, "x", IntegerType()))
OLD = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", POINT))


def test_a_new_mapping_has_the_present_names():
    schema = Schema(
        NestedField(1, "a.b", LongType()),
        NestedField(2, "l", ListType(3, POINT.fields[0].field_type)),
        NestedField(4, "m", MapType(5, StringType(), 6, StringType())),
    )
    assert create_name_mapping(schema) == NameMapping(
        (
            MappedField(1, ("a.b",)),
            MappedField(2, ("l",), (MappedField(3, ("element",)),)),
            MappedField(4, ("m",), (MappedField(5, ("key",)), MappedField(6, ("value",)))),
        )
    )


@given(schemas())
def test_a_mapping_is_read_back_from_its_json(schema):
    mapping = create_name_mapping(schema)
    assert name_mapping_from_json(mapping.to_json()) == mapping
    for field_id, field in schema.index_by_id.items():
        found = mapping.find_by_id(field_id)
        assert found is not None
        assert found.names == (field.name,)


def test_the_example_of_the_specification_is_read():
    mapping = name_mapping_from_json(
        """[ { "field-id": 1, "names": ["id", "record_id"] },
             { "field-id": 2, "names": ["data"] },
             { "field-id": 3, "names": ["location"], "fields": [
                 { "field-id": 4, "names": ["latitude", "lat"] },
                 { "field-id": 5, "names": ["longitude", "long"] } ] },
             { "names": ["ignored"] }, { "field-id": 9, "names": [] } ]"""
    )
    assert mapping.find("record_id").field_id == 1
    assert mapping.find("location", "lat").field_id == 4
    assert mapping.find("location").find("long").field_id == 5
    assert mapping.find("ignored").field_id is None
    assert mapping.find("lat") is None
    assert mapping.find_by_id(5).names == ("longitude", "long")
    assert json.loads(mapping.to_json())[3:] == [{"names": ["ignored"]}, {"field-id": 9, "names": []}]


def test_a_renamed_field_gets_its_new_name_beside_the_old_one():
    renamed = Schema(
        NestedField(1, "key", LongType()), NestedField(2, "p", StructType(NestedField(3, "y", LongType())))
    )
    mapping = update_name_mapping(create_name_mapping(OLD), OLD, renamed)
    assert mapping.find_by_id(1).names == ("id", "key")
    assert mapping.find("p", "x") == mapping.find("p", "y") == mapping.find_by_id(3)


def test_an_added_field_takes_its_name_away_from_others():
    renamed = Schema(NestedField(1, "key", LongType()), OLD.fields[1])
    mapping = update_name_mapping(create_name_mapping(OLD), OLD, renamed)
    added = Schema(*renamed.fields, NestedField(4, "id", StringType()))
    mapping = update_name_mapping(mapping, renamed, added)
    assert mapping.find("id").field_id == 4
    assert mapping.find_by_id(1).names == ("key",)


def test_a_dropped_field_keeps_its_names_until_they_are_taken():
    dropped = Schema(OLD.fields[0])
    mapping = update_name_mapping(create_name_mapping(OLD), OLD, dropped)
    assert mapping.find("p", "x").field_id == 3
    again = Schema(OLD.fields[0], NestedField(5, "p", LongType()))
    mapping = update_name_mapping(mapping, dropped, again)
    assert mapping.find("p").field_id == 5
    assert mapping.find_by_id(2) is None or mapping.find_by_id(2).names == ()


def test_names_in_one_struct_do_not_touch_those_of_another():
    added = Schema(OLD.fields[0], NestedField(2, "p", StructType(*POINT.fields, NestedField(4, "id", LongType()))))
    mapping = update_name_mapping(create_name_mapping(OLD), OLD, added)
    assert mapping.find("id").field_id == 1
    assert mapping.find("p", "id").field_id == 4


def test_a_mapping_without_names_for_a_field_is_left_so():
    mapping = NameMapping((MappedField(1, ()),))
    added = Schema(*OLD.fields, NestedField(4, "new", LongType()))
    assert update_name_mapping(mapping, OLD, added) == NameMapping((MappedField(1, ()), MappedField(4, ("new",))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[1]",
        '[{"names": "a"}]',
        '[{"field-id": "1", "names": []}]',
        '[{"field-id": 1, "names": ["a"], "fields": 5}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]',
        "[" * 100_000,
    ],
)
def test_text_that_is_no_mapping_is_refused(text):
    with pytest.raises(InvalidInputError, match="Cannot read the name mapping"):
        name_mapping_from_json(text)
