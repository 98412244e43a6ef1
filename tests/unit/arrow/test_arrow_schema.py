from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from hms_iceberg.arrow.columns.arrow_schema import FIELD_ID_KEY, from_arrow, to_arrow
from hms_iceberg.errors import InvalidSchemaError, TypeMismatchError
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
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
from tests.support.spec_strategies import schemas


def without_what_arrow_lacks(kind: IcebergType) -> bool:
    """Whether Arrow tells the type from all others."""
    if isinstance(kind, (VariantType, GeometryType, GeographyType)):
        return False
    if isinstance(kind, FixedType):
        return kind.length > 0
    return all(without_what_arrow_lacks(child.field_type) for child in getattr(kind, "children", tuple)())


@settings(max_examples=100, deadline=None)
@given(schemas())
def test_a_schema_survives_the_way_to_arrow_and_back(schema: Schema) -> None:
    kept = [field for field in schema.fields if without_what_arrow_lacks(field.field_type)]
    original = Schema(*kept)
    back = from_arrow(to_arrow(original), format_version=3)
    assert [str(field) for field in back.fields] == [str(field) for field in original.fields]


def test_fields_without_ids_are_numbered_level_by_level() -> None:
    kind = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int64()))])
    schema = from_arrow(pa.schema([("s", kind), ("m", pa.map_(pa.string(), pa.int32())), ("z", pa.bool_())]))
    assert schema.index_by_name["s"] == 1
    assert schema.index_by_name["z"] == 3
    assert {name: schema.index_by_name[name] for name in ("s.x", "s.y", "s.y.element", "m.key", "m.value")} == {
        "s.x": 4,
        "s.y": 5,
        "s.y.element": 6,
        "m.key": 7,
        "m.value": 8,
    }


def test_ids_are_kept_only_where_every_field_has_one() -> None:
    numbered = pa.field("a", pa.int32(), metadata={FIELD_ID_KEY: b"17"})
    assert from_arrow(pa.schema([numbered])).fields[0].field_id == 17
    assert from_arrow(pa.schema([numbered, pa.field("b", pa.int32())])).fields[0].field_id == 1


@pytest.mark.parametrize(
    ("arrow", "iceberg"),
    [
        (pa.int8(), IntegerType()),
        (pa.uint16(), IntegerType()),
        (pa.uint32(), LongType()),
        (pa.float16(), FloatType()),
        (pa.date64(), DateType()),
        (pa.time32("ms"), TimeType()),
        (pa.timestamp("s"), TimestampType()),
        (pa.timestamp("ms", "Asia/Tokyo"), TimestamptzType()),
        (pa.timestamp("ns"), TimestampType()),
        (pa.large_string(), StringType()),
        (pa.string_view(), StringType()),
        (pa.large_binary(), BinaryType()),
        (pa.binary(7), FixedType(7)),
        (pa.uuid(), UUIDType()),
        (pa.decimal256(38, 3), DecimalType(38, 3)),
        (pa.dictionary(pa.int32(), pa.string()), StringType()),
        (pa.run_end_encoded(pa.int32(), pa.int64()), LongType()),
        (pa.large_list(pa.int32()), ListType(2, IntegerType(), False)),
        (pa.list_(pa.int32(), 4), ListType(2, IntegerType(), False)),
    ],
)
def test_arrows_types_have_iceberg_types_that_hold_them(arrow: pa.DataType, iceberg: IcebergType) -> None:
    assert from_arrow(pa.schema([("c", arrow)])).fields[0].field_type == iceberg


def test_nanoseconds_and_nulls_have_types_of_their_own_from_version_3() -> None:
    arrow = pa.schema([("a", pa.timestamp("ns")), ("b", pa.timestamp("ns", "UTC")), ("c", pa.null())])
    kinds = [field.field_type for field in from_arrow(arrow, format_version=3).fields]
    assert kinds == [TimestampNanoType(), TimestamptzNanoType(), UnknownType()]


@pytest.mark.parametrize(
    ("arrow", "words"),
    [
        (pa.uint64(), ["'c'", "uint64", "decimal128"]),
        (pa.time64("ns"), ["'c'", "time64"]),
        (pa.duration("s"), ["'c'", "duration", "int64"]),
        (pa.null(), ["'c'", "version 3"]),
        (pa.decimal256(50, 2), ["'c'", "38"]),
        (pa.list_(pa.struct([("x", pa.uint64())])), ["'c.element.x'", "uint64"]),
    ],
)
def test_arrow_types_that_iceberg_lacks_are_refused_by_column(arrow: pa.DataType, words: list[str]) -> None:
    with pytest.raises(TypeMismatchError) as caught:
        from_arrow(pa.schema([("c", arrow)]))
    for word in words:
        assert word in str(caught.value)


def test_two_fields_of_one_name_are_refused() -> None:
    kind = pa.struct([pa.field("x", pa.int32()), pa.field("x", pa.int64())])
    with pytest.raises(InvalidSchemaError, match="'s'"):
        from_arrow(pa.schema([("s", kind)]))


def test_required_columns_are_not_nullable_at_any_depth() -> None:
    schema = Schema(
        NestedField(1, "a", StructType(NestedField(2, "b", LongType(), True)), True, "the doc"),
        NestedField(3, "m", MapType(4, StringType(), 5, LongType(), True)),
    )
    arrow = to_arrow(schema)
    assert not arrow.field("a").nullable
    assert not arrow.field("a").type.field(0).nullable
    assert not arrow.field("m").type.item_field.nullable
    assert arrow.field("a").metadata[b"doc"] == b"the doc"
    assert from_arrow(arrow) == schema
    assert to_arrow(schema, field_ids=False).field("a").metadata is None
