from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.arrow.columns.arrow_schema import from_arrow, to_arrow
from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.columns.nested import conform
from hms_iceberg.errors import NullValueError, SchemaMismatchError, TypeMismatchError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema

_LEAVES: list[tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), pa.int64(), st.integers(-100, 100)),
    (pa.large_string(), pa.string(), st.text(max_size=3)),
    (pa.float32(), pa.float64(), st.integers(-8, 8).map(float)),
    (pa.binary(2), pa.binary(), st.binary(min_size=2, max_size=2)),
]


@st.composite
def nested_types(draw: st.DrawFn, depth: int = 3) -> tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any]]:
    """An Arrow type, a wider one of the same shape, and values of both."""
    shape = draw(st.sampled_from(["leaf", "list", "large_list", "map", "struct"] if depth else ["leaf"]))
    if shape == "leaf":
        return draw(st.sampled_from(_LEAVES))
    narrow, wide, values = draw(nested_types(depth - 1))
    some = st.none() | values
    if shape == "map":
        pairs = st.dictionaries(st.text(max_size=2), some, max_size=3).map(lambda found: list(found.items()))
        return pa.map_(pa.string(), narrow), pa.map_(pa.string(), wide), pairs
    if shape == "struct":
        other_narrow, other_wide, other_values = draw(nested_types(depth - 1))
        return (
            pa.struct([("a", narrow), ("b", other_narrow)]),
            pa.struct([("b", other_wide), ("a", wide)]),
            st.fixed_dictionaries({"a": some, "b": st.none() | other_values}),
        )
    make = pa.list_ if shape == "list" else pa.large_list
    return make(narrow), pa.list_(wide), st.lists(some, max_size=3)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nested_data_of_any_slice_keeps_its_values(data: st.DataObject) -> None:
    narrow, wide, values = data.draw(nested_types())
    rows = data.draw(st.lists(st.none() | values, max_size=8))
    start, length = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 8))
    array = pa.array(rows, narrow).slice(start, length)
    schema = from_arrow(pa.schema([("c", wide)]))
    batch = pa.record_batch([array], names=["c"])
    fitted = SchemaFit(batch.schema, schema).fit(batch)
    fitted.validate(full=True)
    assert fitted.schema == to_arrow(schema, extensions=False)
    assert normalized(fitted.column(0).to_pylist()) == normalized(rows[start : start + length])
    renamed = conform(fitted.column(0), to_arrow(schema).field(0).type)
    assert normalized(renamed.to_pylist()) == normalized(rows[start : start + length])


def normalized(value: Any) -> Any:
    """Lists, tuples and dictionaries alike; the order of a struct's fields does not count."""
    if isinstance(value, dict):
        return {key: normalized(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [normalized(each) for each in value]
    return value


def fit(data: pa.Table, schema: Schema) -> pa.RecordBatch:
    (batch,) = data.combine_chunks().to_batches()
    return SchemaFit(data.schema, schema, "db.t").fit(batch)


def test_values_behind_null_lists_and_structs_are_not_looked_at() -> None:
    element = NestedField(3, "element", IntegerType(), True)
    schema = Schema(NestedField(1, "l", ListType(3, element.field_type, True)))
    values = pa.array([1, None, 2], pa.int32())
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([False, True, False]))
    assert fit(pa.table({"l": hidden}), schema).column(0).to_pylist() == [[1], None, [2]]


def test_a_required_map_value_that_is_null_is_refused_by_path() -> None:
    schema = Schema(NestedField(1, "m", MapType(2, StringType(), 3, IntegerType(), True)))
    column = pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32()))
    with pytest.raises(NullValueError, match=r"'m\.value' of table db\.t"):
        fit(pa.table({"m": column}), schema)


def test_fields_of_structs_are_matched_by_name_and_missing_ones_get_their_default() -> None:
    kind = StructType(NestedField(2, "x", LongType()), NestedField(3, "y", LongType(), True, None, None, 9))
    schema = Schema(NestedField(1, "s", kind))
    fitted = fit(pa.table({"s": [{"x": 1}, None]}), schema)
    assert fitted.column(0).to_pylist() == [{"x": 1, "y": 9}, None]
    with pytest.raises(SchemaMismatchError, match=r"'s\.z'.*'s\.x'"):
        fit(pa.table({"s": [{"x": 1, "z": 2}]}), schema)


PRIMITIVES = (
    *(BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), DecimalType(9, 2), DecimalType(38, 2)),
    *(DateType(), TimeType(), TimestampType(), TimestamptzType(), TimestampNanoType(), StringType(), BinaryType()),
    *(FixedType(3), UUIDType()),
)
REQUIRED = [
    *PRIMITIVES,
    StructType(NestedField(9, "x", StringType(), True)),
    ListType(9, StructType(NestedField(10, "x", LongType(), True)), True),
    MapType(9, StringType(), 10, LongType(), True),
]


@pytest.mark.parametrize("kind", REQUIRED, ids=str)
def test_a_struct_that_the_data_lacks_is_null_whatever_is_required_in_it(kind: IcebergType) -> None:
    inner = NestedField(2, "inner", StructType(NestedField(3, "value", kind, True)), True)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(4, "s", StructType(inner)))
    for data in (pa.table({"id": [1, 2]}), pa.table({"id": [1, 2], "s": pa.nulls(2)})):
        fitted = pa.Table.from_batches([fit(data, schema)])
        file = io.BytesIO()
        pq.write_table(fitted, file)
        assert pq.read_table(file).to_pylist() == [{"id": 1, "s": None}, {"id": 2, "s": None}]


def test_a_required_column_without_any_type_is_refused() -> None:
    with pytest.raises(NullValueError, match="'c'"):
        fit(pa.table({"c": pa.nulls(2)}), Schema(NestedField(1, "c", LongType(), True)))


def test_a_cast_that_would_lose_something_names_column_and_type() -> None:
    data = pa.table({"c": pa.array([1], pa.date64())}).set_column(0, "c", pa.array([1], pa.int64()).view(pa.date64()))
    with pytest.raises(TypeMismatchError, match=r"'c'.*date"):
        fit(data, Schema(NestedField(1, "c", DateType())))


@pytest.mark.parametrize("column", [pa.array([1]).dictionary_encode(), pa.RunEndEncodedArray.from_arrays([2], [1])])
def test_encoded_columns_are_decoded(column: pa.Array) -> None:
    assert fit(pa.table({"c": column}), Schema(NestedField(1, "c", LongType()))).column(0).type == pa.int64()
