from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.errors import InvalidSortOrderError
from hms_iceberg.spec.data_types import LongType, NestedField, StructType, TimestampType
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.spec.sort_orders import (
    UNSORTED,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    assign_fresh_sort_order_ids,
    check_sort_order,
    sort_order_from_json,
    sort_order_to_json,
)
from hms_iceberg.spec.transforms.partition_transforms import parse_transform

SCHEMA = Schema(
    NestedField(7, "id", LongType()),
    NestedField(8, "ts", TimestampType()),
    NestedField(9, "s", StructType(NestedField(10, "x", LongType()))),
)


def test_nulls_go_first_when_ascending_and_last_when_descending_by_default():
    assert SortField(1).null_order is NullOrder.NULLS_FIRST
    assert SortField(1, "identity", "desc").null_order is NullOrder.NULLS_LAST
    assert SortField(1, "identity", "asc", "nulls-last").null_order is NullOrder.NULLS_LAST


def test_orders_with_fields_have_id_1_by_default():
    assert SortOrder(SortField(1)).order_id == 1
    assert SortOrder() == UNSORTED
    assert UNSORTED.is_unsorted


@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.sampled_from(("identity", "day", "bucket[3]", "custom")),
            st.sampled_from(SortDirection),
            st.sampled_from(NullOrder),
        ),
        max_size=3,
    )
)
def test_an_order_is_read_back_from_its_json(keys):
    order = SortOrder(*(SortField(s, parse_transform(t), d, n) for s, t, d, n in keys))
    assert sort_order_from_json(json.loads(json.dumps(sort_order_to_json(order)))) == order


def test_several_source_columns_are_written_as_a_list():
    order = SortOrder(SortField(1, parse_transform("zorder"), source_ids=(1, 2)))
    assert sort_order_to_json(order)["fields"][0]["source-ids"] == [1, 2]
    assert sort_order_from_json(sort_order_to_json(order)) == order


def test_an_order_satisfies_its_prefixes_and_coarser_keys():
    order = SortOrder(SortField(8, "hour"), SortField(7))
    assert order.satisfies(SortOrder(SortField(8, "day")))
    assert order.satisfies(UNSORTED)
    assert not SortOrder(SortField(8, "day")).satisfies(order)
    assert not order.satisfies(SortOrder(SortField(8, "hour", "desc")))
    assert not order.satisfies(SortOrder(SortField(7)))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (SortOrder(SortField(7), order_id=0), "id 0 is the order without fields"),
        (SortOrder(order_id=3), "id 0 is the order without fields"),
        (SortOrder(SortField(99)), "no column with id 99"),
        (SortOrder(SortField(9)), "cannot be sorted by identity"),
        (SortOrder(SortField(7, "day")), "column 'id' of type long cannot be sorted by day"),
        (SortOrder(SortField(7, "custom")), "not known"),
    ],
)
def test_an_order_that_cannot_be_used_is_refused(order, message):
    with pytest.raises(InvalidSortOrderError, match=message):
        check_sort_order(order, SCHEMA)


def test_fresh_ids_follow_the_renumbered_columns():
    fresh = assign_fresh_ids(SCHEMA)
    order = assign_fresh_sort_order_ids(SortOrder(SortField(10), order_id=4), SCHEMA, fresh)
    assert fresh.find_column_name(order.fields[0].source_id) == "s.x"
    assert order.order_id == 1
    assert assign_fresh_sort_order_ids(UNSORTED, SCHEMA, fresh) is UNSORTED
    with pytest.raises(InvalidSortOrderError, match="no column with id 99"):
        assign_fresh_sort_order_ids(SortOrder(SortField(99)), SCHEMA, fresh)


FIELD = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected 'order-id' and 'fields'"),
        ({"order-id": "1", "fields": []}, "expected 'order-id' and 'fields'"),
        ({"order-id": 1, "fields": [1]}, "expected an object with a 'transform'"),
        ({"order-id": 1, "fields": [{**FIELD, "source-id": None}]}, "'source-id'"),
        ({"order-id": 1, "fields": [{**FIELD, "direction": "up"}]}, "must be asc or desc"),
        ({"order-id": 1, "fields": [{**FIELD, "null-order": None}]}, "nulls-first or nulls-last"),
    ],
)
def test_json_that_is_no_order_is_refused_with_the_reason(data, message):
    with pytest.raises(InvalidSortOrderError, match=message):
        sort_order_from_json(data)
