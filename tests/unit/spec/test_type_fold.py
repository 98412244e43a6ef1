from __future__ import annotations

from hypothesis import given

from hms_iceberg.spec.data_types import (
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    VariantType,
    fold_type,
    leaves,
)
from tests.support.spec_strategies import schemas

NESTED = StructType(
    NestedField(1, "a", MapType(2, StringType(), 3, ListType(4, IntegerType()))),
    NestedField(5, "b", VariantType()),
    NestedField(6, "c", StructType()),
)


def test_a_fold_goes_from_the_leaves_up_and_from_the_first_field_to_the_last():
    seen = []

    def note(kind, *below):
        seen.append(type(kind))
        return len(seen), *below

    result = fold_type(NESTED, leaf=note, struct=note, list=note, map=note)

    assert seen == [StringType, IntegerType, ListType, MapType, VariantType, StructType, StructType]
    assert result == (7, [(4, (1,), (3, (2,))), (5,), (6, [])])


def test_a_type_that_is_not_nested_is_a_leaf():
    def nested(*_):
        raise AssertionError

    assert fold_type(VariantType(), leaf=str, struct=nested, list=nested, map=nested) == "variant"


@given(schemas())
def test_a_fold_that_makes_each_type_anew_gives_the_same_type(schema):
    kind = schema.as_struct()

    def of_struct(struct, types):
        fields = zip(struct.fields, types, strict=True)
        return StructType(*(NestedField(f.field_id, f.name, t, f.required, f.doc) for f, t in fields))

    made = fold_type(
        kind,
        leaf=lambda each: each,
        struct=of_struct,
        list=lambda each, element: ListType(each.element_id, element, each.element_required),
        map=lambda each, key, value: MapType(each.key_id, key, each.value_id, value, each.value_required),
    )

    assert str(made) == str(kind)
    assert list(leaves(made)) == list(leaves(kind))
