from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import struct
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_iceberg.arrow.columns.arrow_types import primitive_to_arrow
from hms_iceberg.errors import CorruptFileError, NullValueError, TypeMismatchError, UnsupportedError
from hms_iceberg.hms.rows.column_types import hive_type
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
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
    parse_primitive,
)
from hms_iceberg.spec.values.decimals import unscaled_value
from hms_iceberg.spec.values.single_values import (
    FORMS,
    from_bytes,
    from_json,
    from_python,
    point_from_bytes,
    point_to_bytes,
    to_bytes,
    to_json,
    truncate_lower,
    truncate_upper,
)
from tests.support.python_values import to_python
from tests.support.spec_strategies import TEXT, VALUED_PRIMITIVES, decimals, same_value, typed_values, values

DAY = 86_400_000_000
UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"

# ------------------------------------------------------------------------------------------------ bytes


@given(typed_values())
def test_a_value_is_read_back_from_its_bytes(typed):
    kind, value = typed
    assert same_value(from_bytes(kind, to_bytes(kind, value)), value)


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (BooleanType(), False, "00"),
        (BooleanType(), True, "01"),
        (IntegerType(), 34, "22000000"),
        (IntegerType(), -1, "ffffffff"),
        (LongType(), 34, "2200000000000000"),
        (FloatType(), 1.0, "0000803f"),
        (DoubleType(), 1.0, "000000000000f03f"),
        (DateType(), 17486, "4e440000"),
        (TimeType(), 81068123456, "406509e012000000"),
        (StringType(), "ü", "c3bc"),
        (UUIDType(), uuid.UUID(UUID_TEXT), "f79c3e09677c4bbda4793f349cb785e7"),
        (FixedType(3), b"\0\1\2", "000102"),
        (BinaryType(), b"", ""),
        (DecimalType(9, 2), Decimal("14.20"), "058c"),
        (DecimalType(9, 2), Decimal("0.00"), "00"),
        (DecimalType(9, 2), Decimal("1.27"), "7f"),
        (DecimalType(9, 2), Decimal("1.28"), "0080"),
        (DecimalType(9, 2), Decimal("-1.28"), "80"),
        (DecimalType(9, 2), Decimal("-1.29"), "ff7f"),
    ],
)
def test_values_have_the_bytes_of_the_specification(kind, value, data):
    assert to_bytes(kind, value).hex() == data
    assert same_value(from_bytes(kind, bytes.fromhex(data)), value)


def test_any_byte_but_zero_is_true():
    assert from_bytes(BooleanType(), b"\x07") is True


@given(st.integers(-(2**31), 2**31 - 1))
def test_bounds_of_before_a_promotion_are_read_at_the_new_type(number):
    assert from_bytes(LongType(), to_bytes(IntegerType(), number)) == number
    assert from_bytes(TimestampType(), to_bytes(DateType(), number)) == number * DAY
    assert from_bytes(TimestampNanoType(), to_bytes(DateType(), number)) == number * DAY * 1000


@given(values(FloatType()))
def test_float_bounds_are_read_as_double(number):
    assert same_value(from_bytes(DoubleType(), to_bytes(FloatType(), number)), number)


@given(decimals(DecimalType(9, 2)))
def test_decimal_bounds_are_read_at_a_wider_precision(number):
    assert from_bytes(DecimalType(38, 2), to_bytes(DecimalType(9, 2), number)) == number


def test_truncated_bounds_of_fixed_columns_are_read():
    assert from_bytes(FixedType(32), b"\1" * 16) == b"\1" * 16


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (IntegerType(), b""),
        (IntegerType(), b"12345678"),
        (LongType(), b"123"),
        (TimestamptzType(), b"1234"),
        (DoubleType(), b"12345"),
        (BooleanType(), b""),
        (UUIDType(), b"123"),
        (StringType(), b"\xff"),
        (FixedType(2), b"123"),
        (DecimalType(9, 2), b""),
        (DecimalType(9, 2), b"1" * 40),
    ],
)
def test_bytes_that_hold_no_value_are_refused(kind, data):
    with pytest.raises(CorruptFileError, match=f"Cannot read a .* from {len(data)} bytes"):
        from_bytes(kind, data)


@given(st.sampled_from(VALUED_PRIMITIVES), st.binary(max_size=20))
def test_random_bytes_give_a_value_or_a_typed_error(kind, data):
    with contextlib.suppress(CorruptFileError):
        from_bytes(kind, data)


@pytest.mark.parametrize("kind", [VariantType(), UnknownType(), StructType(), ListType(1, LongType())], ids=str)
def test_types_without_a_binary_form_are_refused(kind):
    with pytest.raises(UnsupportedError):
        to_bytes(kind, 1)
    with pytest.raises(UnsupportedError):
        from_bytes(kind, b"1")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IntegerType(), 2**31),
        (IntegerType(), "1"),
        (LongType(), 1.5),
        (StringType(), b"x"),
        (FixedType(2), b"123"),
        (BinaryType(), "x"),
        (DecimalType(9, 2), 5),
        (DecimalType(9, 2), Decimal("1.234")),
        (DecimalType(9, 2), Decimal("NaN")),
        (UUIDType(), UUID_TEXT),
        (FloatType(), 1e300),
    ],
)
def test_values_of_another_type_are_not_stored(kind, value):
    with pytest.raises(TypeMismatchError):
        to_bytes(kind, value)


@pytest.mark.parametrize(
    "point", [(1.0, 2.0, None, None), (1.0, 2.0, 3.0, None), (1.0, 2.0, 3.0, 4.0), (1.0, 2.0, None, 4.0)]
)
def test_bounding_box_corners_are_read_back(point):
    data = point_to_bytes(*point)
    assert point_from_bytes(data) == point
    assert to_bytes(GeometryType(), data) == data == from_bytes(GeometryType(), data)


def test_a_missing_z_beside_an_m_is_written_as_nan():
    assert math.isnan(struct.unpack("<4d", point_to_bytes(1, 2, None, 4))[2])
    with pytest.raises(CorruptFileError):
        point_from_bytes(b"1" * 20)


def test_decimals_of_38_digits_lose_nothing():
    widest = Decimal("9" * 28 + "." + "9" * 10)
    assert unscaled_value(widest, 10) == 10**38 - 1
    assert from_bytes(DecimalType(38, 10), to_bytes(DecimalType(38, 10), widest)) == widest


# ------------------------------------------------------------------------------------------------- JSON


@given(typed_values(finite=True))
def test_a_value_is_read_back_from_its_json(typed):
    kind, value = typed
    text = json.dumps(to_json(kind, value), allow_nan=False)
    assert same_value(from_json(kind, json.loads(text)), value)


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (BooleanType(), True, True),
        (IntegerType(), 34, 34),
        (DoubleType(), 1.0, 1.0),
        (FloatType(), struct.unpack("<f", struct.pack("<f", 1.1))[0], 1.1),
        (DecimalType(9, 2), Decimal("14.20"), "14.20"),
        (DecimalType(38, 0), Decimal(10) ** 20, "100000000000000000000"),
        (DateType(), 17486, "2017-11-16"),
        (TimeType(), 81068123456, "22:31:08.123456"),
        (TimestampType(), 1510871468123456, "2017-11-16T22:31:08.123456"),
        (TimestamptzType(), 1510871468123456, "2017-11-16T22:31:08.123456+00:00"),
        (TimestampNanoType(), 1510871468123456789, "2017-11-16T22:31:08.123456789"),
        (TimestamptzNanoType(), 1510871468123456789, "2017-11-16T22:31:08.123456789+00:00"),
        (StringType(), "iceberg", "iceberg"),
        (UUIDType(), uuid.UUID(UUID_TEXT), UUID_TEXT),
        (FloatType(), 3.4028234663852886e38, 3.4028235e38),
        (FloatType(), -3.4028234663852886e38, -3.4028235e38),
        (FixedType(4), b"\x00\x01\x02\xff", "000102FF"),
        (BinaryType(), b"\x00\x01\x02\xff", "000102FF"),
        (
            StructType(NestedField(1, "a", IntegerType()), NestedField(2, "b", StringType())),
            {1: 1, 2: "bar"},
            {"1": 1, "2": "bar"},
        ),
        (StructType(NestedField(1, "a", IntegerType())), {}, {}),
        (ListType(1, IntegerType()), [1, 2, 3], [1, 2, 3]),
        (
            MapType(1, StringType(), 2, IntegerType()),
            [("a", 1), ("b", 2)],
            {"keys": ["a", "b"], "values": [1, 2]},
        ),
        (LongType(), None, None),
    ],
)
def test_values_have_the_json_of_the_specification(kind, value, data):
    assert to_json(kind, value) == data
    assert from_json(kind, data) == value


def test_hexadecimal_digits_are_read_in_either_case():
    assert from_json(BinaryType(), "00FF") == from_json(BinaryType(), "00ff") == b"\x00\xff"


@pytest.mark.parametrize(
    ("kind", "value", "short", "long"),
    [
        (TimestampType(), 1510871468000000, "2017-11-16T22:31:08", "2017-11-16T22:31:08.000000"),
        (TimestamptzType(), 1510871468500000, "2017-11-16T22:31:08.5+00:00", "2017-11-16T22:31:08.500000+00:00"),
        (TimestampNanoType(), 10, "1970-01-01T00:00:00.00000001", "1970-01-01T00:00:00.000000010"),
        (TimeType(), 60_000_000, "00:01:00", "00:01:00.000000"),
    ],
)
def test_times_are_read_with_any_digits_of_fraction_and_written_with_the_fewest_as_in_java(kind, value, short, long):
    assert from_json(kind, short) == from_json(kind, long) == value
    assert to_json(kind, value) == short


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (BooleanType(), 1),
        (IntegerType(), True),
        (IntegerType(), 2**31),
        (IntegerType(), 1.5),
        (LongType(), "1"),
        (DoubleType(), "NaN"),
        (DoubleType(), math.inf),
        (DecimalType(9, 2), "14.2"),
        (DecimalType(3, 2), "14.20"),
        (DecimalType(9, 2), 14.2),
        (DecimalType(9, 2), "x"),
        (DateType(), "2017-02-30"),
        (TimeType(), "25:00:00"),
        (TimestampType(), "2017-11-16T22:31:08Z"),
        (TimestamptzType(), "2017-11-16T22:31:08"),
        (TimestamptzType(), "2017-11-16T22:31:08+01:00"),
        (TimestampType(), "2017-11-16T22:31:08.123456789"),
        (TimestampNanoType(), "9999-11-16T22:31:08"),
        (UUIDType(), "f79c3e09"),
        (FixedType(2), "00"),
        (BinaryType(), "0x"),
        (StringType(), 5),
        (ListType(1, LongType()), {}),
        (MapType(1, LongType(), 2, LongType()), {"keys": [1], "values": []}),
        (MapType(1, LongType(), 2, LongType()), []),
        (StructType(), []),
    ],
)
def test_json_of_another_type_is_refused(kind, data):
    with pytest.raises(TypeMismatchError, match="Cannot read"):
        from_json(kind, data)


@pytest.mark.parametrize("kind", [VariantType(), UnknownType(), GeometryType()], ids=str)
def test_types_that_can_only_be_null_have_no_json(kind):
    assert to_json(kind, None) is None
    assert from_json(kind, None) is None
    with pytest.raises(UnsupportedError, match="can only be null"):
        to_json(kind, b"x")
    with pytest.raises(UnsupportedError, match="can only be null"):
        from_json(kind, "x")


def test_json_has_no_nan():
    with pytest.raises(TypeMismatchError, match="NaN"):
        to_json(DoubleType(), math.nan)


# ----------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (BooleanType(), "True", True),
        (IntegerType(), "42", 42),
        (LongType(), 42, 42),
        (FloatType(), 0.1, 0.10000000149011612),
        (DoubleType(), 1, 1.0),
        (DoubleType(), "nan", math.nan),
        (DoubleType(), Decimal("1.5"), 1.5),
        (DecimalType(9, 2), "1.5", Decimal("1.50")),
        (DecimalType(9, 2), 3, Decimal("3.00")),
        (DecimalType(9, 2), 0.1, Decimal("0.10")),
        (DateType(), "2017-11-16", 17486),
        (DateType(), dt.date(2017, 11, 16), 17486),
        (DateType(), dt.datetime(2017, 11, 16), 17486),
        (DateType(), 17486, 17486),
        (TimeType(), dt.time(22, 31, 8, 5), 81068000005),
        (TimestampType(), dt.datetime(2017, 11, 16, 22, 31, 8, 1), 1510871468000001),
        (TimestampType(), dt.date(2017, 11, 16), 17486 * DAY),
        (TimestampType(), "2017-11-16", 17486 * DAY),
        (TimestamptzType(), "2017-11-16T14:31:08-08:00", 1510871468000000),
        (TimestamptzType(), "2017-11-16T22:31:08", 1510871468000000),
        (
            TimestamptzType(),
            dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=dt.timezone(dt.timedelta(hours=-8))),
            1510871468000000,
        ),
        (TimestampNanoType(), "1970-01-01T00:00:00.000000001", 1),
        (TimestampNanoType(), dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000_000),
        (UUIDType(), UUID_TEXT, uuid.UUID(UUID_TEXT)),
        (UUIDType(), uuid.UUID(UUID_TEXT).bytes, uuid.UUID(UUID_TEXT)),
        (FixedType(2), bytearray(b"12"), b"12"),
        (StringType(), "x", "x"),
        (LongType(), None, None),
        (StructType(NestedField(7, "a", DateType())), {"a": "1970-01-02"}, {7: 1}),
        (ListType(1, DateType()), ("1970-01-02",), [1]),
        (MapType(1, StringType(), 2, DateType()), {"k": "1970-01-02"}, [("k", 1)]),
    ],
)
def test_python_values_become_stored_values(kind, value, stored):
    converted = from_python(kind, value)
    assert same_value(converted, stored) or converted == stored


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (BooleanType(), 1),
        (BooleanType(), "yes"),
        (IntegerType(), 2**31),
        (IntegerType(), 1.0),
        (IntegerType(), True),
        (IntegerType(), "1.0"),
        (FloatType(), 1e300),
        (DoubleType(), True),
        (DecimalType(9, 2), Decimal("1.234")),
        (DecimalType(3, 2), 12),
        (DecimalType(9, 2), "abc"),
        (DateType(), dt.datetime(2017, 11, 16, 1)),
        (DateType(), "2017-11-16T00:00:00"),
        (TimestampType(), "2017-11-16T22:31:08+00:00"),
        (TimestampType(), dt.datetime(2017, 11, 16, tzinfo=dt.timezone.utc)),
        (TimestampType(), "2017-11-16T22:31:08.123456789"),
        (TimeType(), dt.time(1, tzinfo=dt.timezone.utc)),
        (StringType(), 5),
        (StringType(), b"x"),
        (BinaryType(), "x"),
        (FixedType(2), b"x"),
        (UUIDType(), "x"),
        (UUIDType(), 5),
        (StructType(), 5),
        (StructType(NestedField(1, "a", LongType())), {"b": 1}),
        (ListType(1, LongType()), 5),
    ],
)
def test_python_values_that_do_not_fit_are_refused(kind, value):
    with pytest.raises(TypeMismatchError):
        from_python(kind, value)


def test_the_error_of_a_value_that_does_not_fit_says_what_was_expected():
    with pytest.raises(TypeMismatchError, match=r"'x' \(str\) is no value of type date: .*'2017-11-16'"):
        from_python(DateType(), "x")


def test_nulls_in_required_nested_fields_are_refused():
    with pytest.raises(NullValueError, match="'a' is required"):
        from_python(StructType(NestedField(1, "a", LongType(), True)), {})
    with pytest.raises(NullValueError, match="'element' is required"):
        from_python(ListType(1, LongType(), True), [None])
    assert from_python(ListType(1, LongType(), False), [None]) == [None]


def test_numpy_and_pandas_values_are_understood():
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    assert from_python(LongType(), np.int64(5)) == 5
    assert from_python(BooleanType(), np.bool_(True)) is True
    assert from_python(FloatType(), np.float32(0.1)) == float(np.float32(0.1))
    assert from_python(TimestampType(), np.datetime64("2017-11-16T22:31:08.000001")) == 1510871468000001
    assert from_python(DateType(), np.datetime64("2017-11-16")) == 17486
    assert from_python(TimestampNanoType(), pd.Timestamp("1970-01-01T00:00:00.000000001")) == 1
    for not_a_time in (np.datetime64("NaT"), np.timedelta64("NaT"), pd.NaT):
        assert from_python(ListType(1, StringType(), False), [not_a_time]) == [None]
        with pytest.raises(NullValueError, match="'element' is required"):
            from_python(ListType(1, StringType(), True), [not_a_time])


_ROUND = tuple(each for each in VALUED_PRIMITIVES if not isinstance(each, (TimestampType, TimestamptzType, DateType)))


@given(typed_values(_ROUND))
def test_a_value_is_read_back_from_python(typed):
    kind, value = typed
    assert same_value(from_python(kind, to_python(kind, value)), value)


@given(st.datetimes())
def test_dates_times_and_timestamps_are_those_of_datetime(moment):
    epoch, micro = dt.datetime(1970, 1, 1), dt.timedelta(microseconds=1)
    micros = (moment - epoch) // micro
    assert from_python(TimestampType(), moment) == micros
    assert from_python(TimestamptzType(), moment.replace(tzinfo=dt.timezone.utc)) == micros
    assert from_python(DateType(), moment.date()) == (moment.date() - epoch.date()).days
    assert from_python(TimeType(), moment.time()) == (moment - dt.datetime.combine(moment.date(), dt.time())) // micro


def test_dicts_and_lists_become_nested_values():
    kind = StructType(
        NestedField(1, "when", DateType()),
        NestedField(2, "tags", ListType(3, StringType())),
        NestedField(4, "counts", MapType(5, StringType(), 6, LongType())),
        NestedField(7, "odd", MapType(8, ListType(9, LongType()), 10, LongType())),
    )
    stored = {1: 0, 2: ["a"], 4: [("k", 1)], 7: [([1], 2)]}
    value = {"when": dt.date(1970, 1, 1), "tags": ["a"], "counts": {"k": 1}, "odd": [([1], 2)]}
    assert from_python(kind, value) == stored
    assert from_python(kind, None) is None


# ------------------------------------------------------------------------------------------- truncation


@given(st.one_of(TEXT, st.text("\x00a\ud7ff\U0010ffff", max_size=12)), st.integers(1, 6))
def test_truncated_bounds_of_text_bound_the_value(text, width):
    lower, upper = truncate_lower(StringType(), text, width), truncate_upper(StringType(), text, width)
    assert lower <= text
    assert len(lower) <= width
    if upper is None:
        assert set(text[:width]) == {"\U0010ffff"}
    else:
        assert upper >= text
        assert len(upper) <= width
        upper.encode("utf-8")


@given(st.one_of(st.binary(max_size=12), st.binary(max_size=3).map(lambda tail: b"\xff" * 8 + tail)), st.integers(1, 6))
def test_truncated_bounds_of_bytes_bound_the_value(data, width):
    lower, upper = truncate_lower(BinaryType(), data, width), truncate_upper(BinaryType(), data, width)
    assert lower <= data
    if upper is None:
        assert data[:width] == b"\xff" * width
    else:
        assert upper >= data
        assert len(upper) <= width


@pytest.mark.parametrize(
    ("kind", "value", "width", "upper"),
    [
        (StringType(), "abc", 3, "abc"),
        (StringType(), "abcd", 3, "abd"),
        (StringType(), "ab\U0010ffffd", 3, "ac"),
        (StringType(), "\ud7ffx", 1, "\ue000"),
        (StringType(), "\U0010ffffx", 1, None),
        (BinaryType(), b"\x01\xff\xff", 2, b"\x02"),
        (BinaryType(), b"\xff\xff\xff", 2, None),
        (FixedType(3), b"\x01\x02\x03", 2, b"\x01\x03"),
        (LongType(), 123456789, 2, 123456789),
    ],
)
def test_upper_bounds_are_the_next_short_value(kind, value, width, upper):
    assert truncate_upper(kind, value, width) == upper


def test_every_primitive_type_has_its_record_in_each_room():
    primitives = {*PrimitiveType.__subclasses__()}
    assert set(FORMS) == primitives
    examples = {FixedType: FixedType(3), DecimalType: DecimalType(9, 2)}
    for each in primitives:
        kind = examples.get(each) or each()
        assert kind.is_primitive and parse_primitive(str(kind)) == kind
        assert primitive_to_arrow(kind) is not None
        assert hive_type(kind)
        if kind.integer_bits:
            least = to_bytes(kind, 0)
            assert len(least) * 8 == kind.integer_bits
