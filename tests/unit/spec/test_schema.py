from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.errors import InvalidSchemaError, UnknownColumnError
from hms_iceberg.spec.data_types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)
from hms_iceberg.spec.schema import Schema, assign_fresh_ids, check_field_ids
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from tests.support.spec_strategies import schemas

POINT = StructType(NestedField(10, "x", IntegerType()), NestedField(11, "y", IntegerType()))
NESTED = Schema(
    NestedField(1, "id", LongType(), True),
    NestedField(2, "address", StructType(NestedField(3, "City", StringType(), True)), True),
    NestedField(4, "points", ListType(5, POINT)),
    NestedField(
        6,
        "by_name",
        MapType(7, StructType(NestedField(12, "k", StringType())), 8, StructType(NestedField(9, "v", LongType()))),
    ),
    identifier_field_ids=[1, 3],
)


def test_fields_are_found_by_id_and_by_dotted_name():
    assert NESTED.find_field(10).name == "x"
    assert NESTED.find_field("points.element.x").field_id == 10
    assert NESTED.find_field("by_name.key.k").field_id == 12
    assert NESTED.find_column_name(9) == "by_name.value.v"
    assert NESTED.find_column_name(99) is None
    assert NESTED.find_type("id") == LongType()


def test_fields_in_lists_and_maps_have_short_names_too():
    assert NESTED.find_field("points.x").field_id == 10
    assert NESTED.find_field("by_name.v").field_id == 9
    with pytest.raises(UnknownColumnError):
        NESTED.find_field("by_name.k")


def test_a_lookup_without_regard_to_case_finds_one_column():
    assert NESTED.find_field("ADDRESS.city", case_sensitive=False).field_id == 3
    with pytest.raises(UnknownColumnError):
        NESTED.find_field("address.city")


def test_a_lookup_without_regard_to_case_refuses_two_columns():
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "A", LongType()))
    assert schema.find_field("A", case_sensitive=False).field_id == 2
    both = Schema(NestedField(1, "aB", LongType()), NestedField(2, "Ab", LongType()))
    with pytest.raises(UnknownColumnError, match="ambiguous without regard to case"):
        both.find_field("ab", case_sensitive=False)


def test_the_error_of_an_unknown_column_names_near_ones():
    with pytest.raises(UnknownColumnError, match=r"Unknown column 'adress.city'; did you mean 'address.City'"):
        NESTED.find_field("adress.city")
    with pytest.raises(UnknownColumnError, match=r"columns: 'id', 'address'"):
        NESTED.find_field("zzzzzzz")
    with pytest.raises(UnknownColumnError, match="no field with id 99"):
        NESTED.find_field(99)


def test_parents_and_the_highest_id_are_known():
    assert NESTED.parent_ids == {3: 2, 5: 4, 10: 5, 11: 5, 7: 6, 8: 6, 12: 7, 9: 8}
    assert list(NESTED.ancestor_ids(10)) == [5, 4]
    assert NESTED.highest_field_id == 12
    assert Schema().highest_field_id == 0


def test_fields_that_share_an_id_cannot_be_looked_up_by_it_until_they_are_numbered_anew():
    shared = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()), NestedField(1, "c", LongType()))
    look_ups = (
        lambda: shared.index_by_id,
        lambda: shared.parent_ids,
        lambda: shared.field_ids,
        lambda: shared.find_field(1),
        lambda: shared.find_column_name(1),
        lambda: shared.select("a"),
        lambda: shared.highest_field_id,
        lambda: schema_from_json(schema_to_json(shared)),
        lambda: Schema(*shared.fields, identifier_field_ids=[1]),
    )
    for look_up in look_ups:
        with pytest.raises(InvalidSchemaError, match="field id 1 is used by both 'a' and 'c'"):
            look_up()
    assert shared.find_column_name(2) == "b"
    assert assign_fresh_ids(shared).index_by_name == {"a": 1, "b": 2, "c": 3}


def test_two_fields_of_a_struct_cannot_share_a_name():
    with pytest.raises(InvalidSchemaError, match="the name 'a' stands for both field 1 and field 2"):
        Schema(NestedField(1, "a", LongType()), NestedField(2, "a", LongType()))


def test_a_dotted_name_that_stands_for_two_fields_is_ambiguous():
    inner = StructType(NestedField(2, "b", LongType()))
    schema = Schema(NestedField(1, "a", inner), NestedField(3, "a.b", LongType()))
    assert schema.find_column_name(2) == schema.find_column_name(3) == "a.b"
    with pytest.raises(UnknownColumnError, match=r"ambiguous.*ids \[2, 3\]"):
        schema.find_field("a.b")
    assert schema.find_field(3).name == "a.b"


def test_an_unknown_column_cannot_be_required():
    with pytest.raises(InvalidSchemaError, match="cannot be required"):
        Schema(NestedField(1, "a", UnknownType(), True))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (NestedField(1, "a", LongType()), "optional"),
        (NestedField(1, "a", DoubleType(), True), "cannot identify rows"),
        (NestedField(1, "a", POINT, True), "not a primitive"),
    ],
)
def test_an_identifier_must_be_a_required_column_that_can_identify(field, message):
    with pytest.raises(InvalidSchemaError, match=message):
        Schema(field, identifier_field_ids=[1])


def test_an_identifier_cannot_be_inside_of_a_list_a_map_or_an_optional_struct():
    inner = StructType(NestedField(3, "x", LongType(), True))
    with pytest.raises(InvalidSchemaError, match="only structs may enclose"):
        Schema(NestedField(1, "a", ListType(2, inner), True), identifier_field_ids=[3])
    with pytest.raises(InvalidSchemaError, match="optional struct 'a'"):
        Schema(NestedField(1, "a", inner), identifier_field_ids=[3])
    with pytest.raises(InvalidSchemaError, match="no field with this id"):
        Schema(NestedField(1, "a", inner), identifier_field_ids=[9])
    assert NESTED.identifier_field_names() == {"id", "address.City"}


def test_a_selection_keeps_the_order_of_the_schema_and_the_parents():
    selected = NESTED.select("points.x", "id")
    assert [field.name for field in selected.fields] == ["id", "points"]
    assert selected.column_names == ["id", "points", "points.element", "points.element.x"]
    assert selected.identifier_field_ids == (1,)
    assert selected.schema_id == NESTED.schema_id


def test_a_selection_of_a_parent_keeps_it_whole():
    assert NESTED.select("points").fields == (NESTED.fields[2],)
    assert NESTED.select("*") is NESTED
    assert NESTED.select("by_name.v").select("by_name.key.k").fields == (NESTED.select("by_name.key.k").fields)


def test_the_keys_of_a_map_are_kept_whole():
    selected = NESTED.select("by_name.v")
    assert selected.find_type("by_name.key") == NESTED.find_type("by_name.key")
    assert NESTED.select("by_name.key").fields == (NESTED.fields[3],)


def test_a_selection_of_an_unknown_column_is_refused():
    with pytest.raises(UnknownColumnError):
        NESTED.select("id", "nope")


def test_ids_that_the_schema_lacks_are_not_selected():
    assert NESTED.select_ids([1, 999]).column_names == ["id"]
    assert NESTED.select_ids([]).fields == ()


@given(schemas(), st.data())
def test_a_selection_holds_just_the_chosen_fields_their_parents_and_their_children(schema, data):
    chosen = set(data.draw(st.lists(st.sampled_from(sorted(schema.index_by_id)), max_size=3)))
    selected = schema.select_ids(chosen)
    kept = set(selected.index_by_id)
    for field_id in kept:
        assert schema.find_column_name(field_id) == selected.find_column_name(field_id)
    expected = set(chosen)
    for field_id in schema.index_by_id:
        ancestors = set(schema.ancestor_ids(field_id))
        if ancestors & chosen:
            expected.add(field_id)
        if field_id in chosen:
            expected |= ancestors
    assert expected <= kept
    extra = kept - expected
    in_keys = {each for each in extra if any(_is_key(schema, above) for above in (each, *schema.ancestor_ids(each)))}
    # Besides, a map comes with its keys, and a field of a key with the whole map.
    assert extra == in_keys or any(_is_in_key(schema, each) for each in chosen)


def _is_key(schema, field_id):
    return (schema.find_column_name(field_id) or "").endswith("key") and schema.index_by_id[field_id].name == "key"


def _is_in_key(schema, field_id):
    return any(_is_key(schema, each) for each in (field_id, *schema.ancestor_ids(field_id)))


def test_fresh_ids_go_level_by_level_as_java_gives_them():
    fresh = assign_fresh_ids(NESTED)
    assert {fresh.find_column_name(field_id): field_id for field_id in fresh.index_by_id} == {
        "id": 1,
        "address": 2,
        "points": 3,
        "by_name": 4,
        "address.City": 5,
        "points.element": 6,
        "points.element.x": 7,
        "points.element.y": 8,
        "by_name.key": 9,
        "by_name.value": 10,
        "by_name.key.k": 11,
        "by_name.value.v": 12,
    }
    assert fresh.identifier_field_names() == NESTED.identifier_field_names()


def test_fresh_ids_keep_those_of_the_base_by_name():
    fresh = assign_fresh_ids(
        Schema(NestedField(1, "new", LongType()), NestedField(2, "id", StringType())), count(100).__next__, NESTED
    )
    assert [(field.field_id, field.name) for field in fresh.fields] == [(100, "new"), (1, "id")]


@given(schemas())
def test_fresh_ids_count_from_one_and_change_nothing_else(schema):
    fresh = assign_fresh_ids(schema)
    assert sorted(fresh.index_by_id) == list(range(1, len(schema.index_by_id) + 1))
    assert sorted(fresh.column_names) == sorted(schema.column_names)
    assert assign_fresh_ids(fresh) == fresh


def test_ids_of_metadata_columns_are_refused():
    check_field_ids(Schema(NestedField(2147483447, "a", LongType())))
    with pytest.raises(InvalidSchemaError, match="reserved for metadata columns"):
        check_field_ids(Schema(NestedField(2147483448, "a", LongType())))


def test_schemas_are_the_same_whatever_their_ids():
    other = NESTED.with_schema_id(7)
    assert (other, hash(other)) == (NESTED, hash(NESTED))
    assert other.same_as(NESTED)
    assert other.with_schema_id(7) is other
    assert not NESTED.select("id").same_as(NESTED)
