from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from hms_iceberg.errors import InvalidSchemaError
from hms_iceberg.spec.data_types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    VariantType,
    parse_primitive,
)
from hms_iceberg.spec.schema import Schema
from tests.support.spec_strategies import CLASSIC_PRIMITIVES, NEW_TYPES, schemas


@pytest.mark.parametrize("kind", CLASSIC_PRIMITIVES + NEW_TYPES, ids=str)
def test_every_type_is_read_back_from_its_text(kind):
    assert parse_primitive(str(kind)) == kind
    assert hash(parse_primitive(str(kind))) == hash(kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("decimal( 9 , 2 )", DecimalType(9, 2)),
        ("DECIMAL(9,2)", DecimalType(9, 2)),
        ("fixed[ 16 ]", FixedType(16)),
        ("Long", LongType()),
        ("geometry", GeometryType("OGC:CRS84")),
        ("geometry( srid:4326 )", GeometryType("srid:4326")),
        ("geography", GeographyType("OGC:CRS84", "spherical")),
        ("geography(srid:4326)", GeographyType("srid:4326", "spherical")),
        ("geography(srid:4326,  Vincenty )", GeographyType("srid:4326", "vincenty")),
        ("variant", VariantType()),
        ("timestamp_ns", TimestampNanoType()),
    ],
)
def test_spaces_and_case_in_the_text_of_a_type_do_not_matter(text, kind):
    assert parse_primitive(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "integer",
        "decimal(39,2)",
        "decimal(0,0)",
        "decimal(9)",
        "fixed[]",
        "fixed[-1]",
        f"fixed[{2**31}]",
        "geography(a, flat)",
        "geometry()",
        "struct",
        None,
        7,
    ],
)
def test_text_that_is_no_type_is_refused(text):
    with pytest.raises(InvalidSchemaError):
        parse_primitive(text)


def test_the_error_of_an_unknown_type_says_what_is_expected():
    with pytest.raises(InvalidSchemaError, match=r"Unknown type 'varchar'.*expected one of boolean.*decimal\(P,S\)"):
        parse_primitive("varchar")


def test_types_differ_by_their_parameters():
    assert DecimalType(9, 2) != DecimalType(10, 2)
    assert FixedType(1) != FixedType(2)
    assert IntegerType() != LongType()
    assert len({IntegerType(), LongType(), IntegerType()}) == 2


def test_coordinate_reference_systems_are_compared_without_regard_to_case():
    assert GeometryType("ogc:crs84") == GeometryType("OGC:CRS84")
    assert hash(GeometryType("ogc:crs84")) == hash(GeometryType())
    assert GeographyType("a") != GeographyType("b")


def test_nested_types_are_written_with_their_fields():
    struct = StructType(NestedField(1, "a", IntegerType(), True, "the a"), NestedField(2, "b", StringType()))
    assert str(struct) == "struct<1: a: required int (the a), 2: b: optional string>"
    assert str(ListType(3, struct)) == f"list<{struct}>"
    assert str(MapType(1, StringType(), 2, LongType())) == "map<string, long>"


def test_the_children_of_every_nested_type_are_fields():
    assert ListType(3, LongType(), False).children() == (NestedField(3, "element", LongType(), False),)
    assert MapType(1, StringType(), 2, LongType(), False).children() == (
        NestedField(1, "key", StringType(), True),
        NestedField(2, "value", LongType(), False),
    )
    struct = StructType(NestedField(1, "A", IntegerType()))
    assert struct.children() == struct.fields
    assert struct.field(1) is struct.field_by_name("A")
    assert struct.field_by_name("a") is None
    assert struct.field_by_name("a", case_sensitive=False) is struct.fields[0]


def test_only_types_of_version_3_need_version_3():
    assert {kind.min_format_version for kind in CLASSIC_PRIMITIVES} == {1}
    assert {kind.min_format_version for kind in NEW_TYPES} == {3}


def test_a_variant_is_neither_primitive_nor_nested():
    assert not VariantType().is_primitive
    assert not VariantType().is_nested


@given(schemas())
def test_types_and_schemas_survive_pickling(schema: Schema):
    assert pickle.loads(pickle.dumps(schema)) == schema
