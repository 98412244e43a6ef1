from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_iceberg.arrow.columns.arrow_schema import from_stored, to_stored
from hms_iceberg.arrow.columns.column_transforms import transform_array
from hms_iceberg.errors import UnsupportedError
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
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    transform_of_sql,
)
from hms_iceberg.spec.values.decimals import decimal_value
from hms_iceberg.spec.values.single_values import from_python
from tests.support.transform_cases import CALLS, VALUES, of_pyiceberg

_INT32 = st.integers(-(2**31), 2**31 - 1)
_INT64 = st.integers(-(2**63), 2**63 - 1)
_MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)

_VALUES: list[tuple[IcebergType, st.SearchStrategy[Any]]] = [
    (BooleanType(), st.booleans()),
    (IntegerType(), _INT32),
    (LongType(), _INT64),
    (FloatType(), st.floats(width=32, allow_nan=False)),
    (DoubleType(), st.floats(allow_nan=False)),
    (DateType(), st.integers(-719_162, 2_932_896)),
    (TimeType(), st.integers(0, 86_399_999_999)),
    (TimestampType(), _MICROS),
    (TimestamptzType(), _MICROS),
    (TimestampNanoType(), _INT64),
    (TimestamptzNanoType(), _INT64),
    (StringType(), st.text()),
    (UUIDType(), st.uuids()),
    (FixedType(5), st.binary(min_size=5, max_size=5)),
    (BinaryType(), st.binary()),
    (DecimalType(9, 2), st.decimals(-9_999_999, 9_999_999, places=2)),
    (DecimalType(38, 10), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda v: decimal_value(v, 10))),
]
_TRANSFORMS: list[Transform] = [
    IdentityTransform(),
    BucketTransform(7),
    BucketTransform(2**31 - 1),
    TruncateTransform(1),
    TruncateTransform(10),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
]
KINDS: dict[str, IcebergType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "binary": BinaryType(),
    "decimal(9,2)": DecimalType(9, 2),
    "decimal(38,10)": DecimalType(38, 10),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
}
_CASES = [(t, kind, values) for t in _TRANSFORMS for kind, values in _VALUES if t.can_transform(kind)]


@pytest.mark.parametrize(("transform", "kind", "values"), _CASES, ids=[f"{t}-{kind}" for t, kind, _ in _CASES])
def test_a_column_is_transformed_like_its_values_one_by_one(
    transform: Transform, kind: IcebergType, values: st.SearchStrategy[Any]
) -> None:
    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.none() | values, max_size=12), st.integers(0, 3))
    def check(column: list[Any], start: int) -> None:
        array = from_stored(column, kind)[start:]
        result = transform_array(transform, kind, array)
        one_by_one = transform.bind(kind)
        assert to_stored(result, transform.result_type(kind)) == [one_by_one(value) for value in column[start:]]

    check()


@pytest.mark.parametrize(("name", "number", "type_name"), CALLS, ids=str)
def test_values_and_columns_are_transformed_as_by_pyiceberg_at_the_extremes(
    name: str, number: int, type_name: str
) -> None:
    transform, kind = transform_of_sql(name, number or None), KINDS[type_name]
    values = [from_python(kind, value) for value in VALUES[type_name]]
    expected = [of_pyiceberg(name, number, type_name, value) for value in VALUES[type_name]]
    stored = [from_python(transform.result_type(kind), value) for value in expected]

    assert [transform.bind(kind)(value) for value in values] == stored
    column = transform_array(transform, kind, from_stored([*values, None], kind))
    assert to_stored(column, transform.result_type(kind)) == [*stored, None]


def test_large_strings_hash_like_strings() -> None:
    texts = ["iceberg", None, "", "a" * 33]
    for kind in (pa.string(), pa.large_string()):
        result = transform_array(BucketTransform(100), StringType(), pa.array(texts, kind))
        assert result.to_pylist() == [BucketTransform(100).bind(StringType())(text) for text in texts]


def test_an_unknown_transform_cannot_be_computed() -> None:
    with pytest.raises(UnsupportedError, match="zorder"):
        transform_array(UnknownTransform("zorder"), StringType(), pa.array(["x"]))
