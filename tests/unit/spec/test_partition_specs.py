from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.errors import InvalidPartitionSpecError
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UnknownType,
)
from hms_iceberg.spec.partitions.partition_fields import carry_field_ids
from hms_iceberg.spec.partitions.partition_specs import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    assign_fresh_spec_ids,
    check_spec,
    spec_fields_to_json,
    spec_from_fields_json,
    spec_from_json,
    spec_to_json,
    unified_partition_type,
)
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    VoidTransform,
    parse_transform,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "name", StringType()),
    NestedField(4, "place", StructType(NestedField(5, "country", StringType()))),
    NestedField(6, "tags", ListType(7, StringType())),
    NestedField(8, "raw", BinaryType()),
)


def field(source_id, transform, name, field_id=1000):
    return PartitionField(source_id, field_id, transform, name)


SPEC = PartitionSpec(
    field(3, "identity", "name", 1000), field(2, "day", "ts_day", 1001), field(1, "bucket[4]", "id_bucket", 1002)
)


def test_a_transform_may_be_given_as_text():
    assert field(1, "bucket[4]", "b") == field(1, BucketTransform(4), "b")


def test_the_partition_type_has_the_ids_names_and_result_types_of_the_fields():
    assert SPEC.partition_type(SCHEMA) == StructType(
        NestedField(1000, "name", StringType()),
        NestedField(1001, "ts_day", DateType()),
        NestedField(1002, "id_bucket", IntegerType()),
    )


def test_fields_of_dropped_columns_have_an_unknown_type():
    spec = PartitionSpec(field(99, "identity", "gone"), field(99, "day", "gone_day", 1001))
    assert spec.partition_type(SCHEMA) == StructType(
        NestedField(1000, "gone", UnknownType()), NestedField(1001, "gone_day", DateType())
    )


@pytest.mark.parametrize(
    ("values", "path"),
    [
        (("x", 17486, 3), "name=x/ts_day=2017-11-16/id_bucket=3"),
        ((None, None, None), "name=null/ts_day=null/id_bucket=null"),
        (("a/b c=d%", 0, 0), "name=a%2Fb+c%3Dd%25/ts_day=1970-01-01/id_bucket=0"),
        (("ü~*-._", 0, 0), "name=%C3%BC%7E*-._/ts_day=1970-01-01/id_bucket=0"),
        (("", 0, 0), "name=/ts_day=1970-01-01/id_bucket=0"),
    ],
)
def test_partition_paths_are_escaped_as_java_escapes_them(values, path):
    assert SPEC.partition_to_path(values, SCHEMA) == path


def test_names_are_escaped_in_partition_paths():
    spec = PartitionSpec(field(3, "truncate[2]", "a b/c"))
    assert spec.partition_to_path(("x",), SCHEMA) == "a+b%2Fc=x"


def test_a_spec_of_void_fields_is_unpartitioned():
    assert UNPARTITIONED.is_unpartitioned()
    assert PartitionSpec(field(1, "void", "a")).is_unpartitioned()
    assert not SPEC.is_unpartitioned()
    assert UNPARTITIONED.last_assigned_field_id == 999
    assert SPEC.last_assigned_field_id == 1002


def test_specs_are_compatible_whatever_their_ids():
    other = PartitionSpec(
        *(PartitionField(f.source_id, f.field_id + 7, f.transform, f.name) for f in SPEC.fields), spec_id=9
    )
    assert other.compatible_with(SPEC)
    assert other != SPEC
    assert not PartitionSpec(*SPEC.fields[:2]).compatible_with(SPEC)
    assert not PartitionSpec(*reversed(SPEC.fields)).compatible_with(SPEC)


# ------------------------------------------------------------------------------------------- validation


def test_a_good_spec_is_accepted():
    check_spec(SPEC, SCHEMA)
    check_spec(PartitionSpec(field(5, "identity", "place.country")), SCHEMA)
    check_spec(PartitionSpec(field(99, "void", "gone")), SCHEMA)
    check_spec(PartitionSpec(field(1, "bucket[4]", "a"), field(1, "bucket[8]", "b", 1001)), SCHEMA)
    check_spec(PartitionSpec(field(99, "identity", "gone")), SCHEMA, allow_missing_source=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([field(99, "identity", "x")], "no column with id 99"),
        ([field(4, "identity", "x")], "'place' is a struct<.*only primitive"),
        ([field(7, "identity", "x")], r"'tags.element' is inside of the list<string> 'tags'"),
        ([field(1, "day", "x")], "day cannot be applied to column 'id' of type long"),
        ([field(8, "day", "x")], "day cannot be applied"),
        ([field(1, "identity", "")], "needs a name"),
        ([field(1, "bucket[4]", "x"), field(3, "bucket[4]", "x", 1001)], "'x' is used twice"),
        ([field(1, "bucket[4]", "x"), field(3, "bucket[4]", "y")], "field id 1000 is used twice"),
        ([field(1, "bucket[4]", "x"), field(1, "bucket[4]", "y", 1001)], "redundant beside 'x'"),
        ([field(2, "day", "x"), field(2, "hour", "y", 1001)], "hour is redundant beside 'x'"),
        ([field(1, "bucket[4]", "name")], "a column of the table has this name"),
        ([field(1, "identity", "name")], "only an identity partition of that very column"),
    ],
)
def test_a_spec_that_cannot_be_used_is_refused(fields, message):
    with pytest.raises(InvalidPartitionSpecError, match=message):
        check_spec(PartitionSpec(*fields), SCHEMA)


# -------------------------------------------------------------------------------------------------- ids


def test_fresh_ids_follow_the_renumbered_columns():
    fresh = assign_fresh_ids(SCHEMA)
    spec = PartitionSpec(field(5, "identity", "country", 1005), field(8, "truncate[4]", "raw_t", 1009))
    assigned = assign_fresh_spec_ids(spec, SCHEMA, fresh)
    assert [(each.field_id, fresh.find_column_name(each.source_id)) for each in assigned.fields] == [
        (1000, "place.country"),
        (1001, "raw"),
    ]
    with pytest.raises(InvalidPartitionSpecError, match="no column with id 99"):
        assign_fresh_spec_ids(PartitionSpec(field(99, "identity", "x")), SCHEMA, fresh)


def test_an_equivalent_field_keeps_its_id_over_specs():
    old = PartitionSpec(field(1, "bucket[4]", "b", 1000), spec_id=0)
    current = PartitionSpec(field(2, "day", "d", 1001), spec_id=1)
    wanted = PartitionSpec(field(3, "identity", "name"), field(1, "bucket[4]", "again"), field(2, "day", "d2"))
    carried = carry_field_ids(2, current, [old, current], wanted, 1004)
    assert [(each.name, each.field_id) for each in carried.fields] == [("name", 1005), ("again", 1000), ("d2", 1001)]


def test_fields_of_a_v1_table_keep_their_place():
    current = PartitionSpec(field(1, "bucket[4]", "b", 1000), field(2, "day", "d", 1001))
    wanted = PartitionSpec(field(3, "identity", "b"), field(2, "day", "day"))
    carried = carry_field_ids(1, current, [current], wanted, 1001)
    assert carried.fields == (
        PartitionField(1, 1000, VoidTransform(), "b_1000"),
        PartitionField(2, 1001, DayTransform(), "day"),
        PartitionField(3, 1002, IdentityTransform(), "b"),
    )


def test_the_unified_partition_type_has_the_fields_of_all_specs():
    first = PartitionSpec(field(1, "bucket[4]", "b", 1000), field(2, "day", "d", 1001), spec_id=0)
    second = PartitionSpec(field(1, "void", "b_old", 1000), field(3, "identity", "name", 1002), spec_id=1)
    assert unified_partition_type([first, second], SCHEMA) == StructType(
        NestedField(1000, "b_old", IntegerType()),
        NestedField(1001, "d", DateType()),
        NestedField(1002, "name", StringType()),
    )


def test_of_two_partition_fields_of_one_name_the_unified_type_names_the_older_one_with_its_id():
    replaced = PartitionSpec(field(1, "bucket[4]", "b", 1000), field(2, "day", "d", 1001), spec_id=0)
    newer = PartitionSpec(field(1, "bucket[2]", "b", 1002), spec_id=1)
    assert [(each.field_id, each.name) for each in unified_partition_type([replaced, newer], SCHEMA).fields] == [
        (1000, "b_1000"),
        (1001, "d"),
        (1002, "b"),
    ]


# ------------------------------------------------------------------------------------------------- JSON


_TRANSFORMS = ("identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void", "zorder")


@given(
    st.lists(st.tuples(st.integers(1, 99), st.sampled_from(_TRANSFORMS), st.text("abc", min_size=1)), max_size=4),
    st.integers(0, 50),
)
def test_a_spec_is_read_back_from_its_json(fields, spec_id):
    read = (PartitionField(s, 1000 + i, parse_transform(t), n) for i, (s, t, n) in enumerate(fields))
    spec = PartitionSpec(*read, spec_id=spec_id)
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec)))) == spec
    assert spec_from_fields_json(spec_fields_to_json(spec), spec_id) == spec


def test_several_source_columns_are_written_as_a_list():
    spec = PartitionSpec(PartitionField(1, 1000, parse_transform("zorder"), "z", (1, 2)))
    data = spec_to_json(spec)["fields"][0]
    assert data["source-ids"] == [1, 2]
    assert "source-id" not in data
    assert spec_from_json(spec_to_json(spec)) == spec
    single = dict(data, **{"source-ids": [1]})
    assert spec_from_fields_json([single]).fields[0].source_ids is None


def test_field_ids_of_version_1_are_counted_from_1000():
    spec = spec_from_fields_json([{"source-id": 1, "name": n, "transform": "identity"} for n in "ab"])
    assert [each.field_id for each in spec.fields] == [1000, 1001]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected 'spec-id' and 'fields'"),
        ({"spec-id": 0}, "expected 'spec-id' and 'fields'"),
        ({"spec-id": 0, "fields": {}}, "expected a list"),
        ({"spec-id": 0, "fields": [7]}, "expected an object"),
        ({"spec-id": 0, "fields": [{"name": "a", "source-id": 1}]}, "'transform' as text"),
        ({"spec-id": 0, "fields": [{"name": "a", "transform": "day"}]}, "'source-id'"),
        ({"spec-id": 0, "fields": [{"name": "a", "transform": "day", "source-ids": []}]}, "'source-ids'"),
        (
            {"spec-id": 0, "fields": [{"name": "a", "transform": "day", "source-id": 1, "field-id": 2**40}]},
            "as a number",
        ),
        (
            {
                "spec-id": 0,
                "fields": [
                    {"name": "a", "transform": "day", "source-id": 1, "field-id": 1000},
                    {"name": "b", "transform": "day", "source-id": 1},
                ],
            },
            "1 of 2 fields have a 'field-id'",
        ),
    ],
)
def test_json_that_is_no_spec_is_refused_with_the_reason(data, message):
    with pytest.raises(InvalidPartitionSpecError, match=message):
        spec_from_json(data)
