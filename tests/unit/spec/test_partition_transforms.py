from __future__ import annotations

import datetime as dt
import math
import pickle
import struct
import uuid
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_iceberg.errors import InvalidInputError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
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
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)
from hms_iceberg.spec.values.single_values import from_python, hash_function, human_string
from tests.support.spec_strategies import (
    CLASSIC_PRIMITIVES,
    INTS,
    LONGS,
    NEW_TYPES,
    TEXT,
    VALUED_PRIMITIVES,
    decimals,
    same_value,
    values,
)

ALL = (
    IdentityTransform(),
    BucketTransform(16),
    TruncateTransform(10),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
)

# ------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("transform", ALL, ids=str)
def test_every_transform_is_read_back_from_its_text(transform):
    assert parse_transform(str(transform)) == transform
    assert parse_transform(str(transform).upper()) == transform
    assert hash(parse_transform(str(transform))) == hash(transform)
    assert pickle.loads(pickle.dumps(transform)) == transform


def test_spaces_around_a_parameter_do_not_matter():
    assert parse_transform("bucket[ 16 ]") == BucketTransform(16)


@pytest.mark.parametrize("text", ["zorder(a,b)", "bucket", "bucket[x]", "truncate[-1]", "years", ""])
def test_text_that_is_no_transform_gives_an_unknown_one(text):
    transform = parse_transform(text)
    assert transform == UnknownTransform(text)
    assert str(transform) == text


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[9999999999]"])
def test_a_parameter_out_of_range_is_refused(text):
    with pytest.raises(InvalidInputError, match="must be an integer above 0"):
        parse_transform(text)


def test_an_unknown_transform_can_be_read_but_not_applied():
    transform = UnknownTransform("zorder(a,b)")
    assert transform.can_transform(LongType())
    assert transform.result_type(LongType()) == StringType()
    assert not transform.preserves_order
    assert transform.to_human_string(LongType(), "x") == "x"
    with pytest.raises(UnsupportedError, match=r"zorder\(a,b\).*can be read, but not written"):
        transform.bind(LongType())


# ------------------------------------------------------------------------------------------------- hash


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (DecimalType(9, 2), "14.20", -500754589),
        (DecimalType(38, 2), "14.20", -500754589),
        (DateType(), "2017-11-16", -653330422),
        (TimeType(), "22:31:08", -662762989),
        (TimestampType(), "2017-11-16T22:31:08", -2047944441),
        (TimestampType(), "2017-11-16T22:31:08.000001", -1207196810),
        (TimestamptzType(), "2017-11-16T14:31:08-08:00", -2047944441),
        (TimestamptzType(), "2017-11-16T14:31:08.000001-08:00", -1207196810),
        (TimestampNanoType(), "2017-11-16T22:31:08", -2047944441),
        (TimestampNanoType(), "2017-11-16T22:31:08.000001001", -1207196810),
        (TimestamptzNanoType(), "2017-11-16T14:31:08-08:00", -2047944441),
        (TimestamptzNanoType(), "2017-11-16T14:31:08.000001001-08:00", -1207196810),
        (StringType(), "iceberg", 1210000089),
        (UUIDType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7", 1488055340),
        (FixedType(4), b"\x00\x01\x02\x03", -188683207),
        (BinaryType(), b"\x00\x01\x02\x03", -188683207),
        (BooleanType(), True, 1392991556),
        (FloatType(), 1.0, -142385009),
        (FloatType(), 0.0, 1669671676),
        (FloatType(), -0.0, 1669671676),
        (DoubleType(), 1.0, -142385009),
        (DoubleType(), 0.0, 1669671676),
        (DoubleType(), -0.0, 1669671676),
    ],
)
def test_hashes_are_those_of_appendix_b(kind, value, expected):
    assert hash_function(kind)(from_python(kind, value)) == expected


def test_every_nan_has_the_same_hash():
    assert hash_function(DoubleType())(math.nan) == hash_function(DoubleType())(-math.nan)


@pytest.mark.parametrize("kind", [VariantType(), UnknownType(), StructType(), GeometryType()], ids=str)
def test_types_without_a_hash_are_refused(kind):
    with pytest.raises(TypeMismatchError):
        hash_function(kind)


@pytest.mark.parametrize(
    ("buckets", "kind", "value", "expected"),
    [
        (16, IntegerType(), 34, (2017239379 & 0x7FFFFFFF) % 16),
        (100, LongType(), 34, 79),
        (1, StringType(), "x", 0),
        (7, StringType(), "iceberg", 1210000089 % 7),
        (10, DateType(), 17486, (-653330422 & 0x7FFFFFFF) % 10),
    ],
)
def test_a_bucket_is_the_hash_without_sign_modulo_their_number(buckets, kind, value, expected):
    assert BucketTransform(buckets).bind(kind)(value) == expected


@given(st.sampled_from([kind for kind in VALUED_PRIMITIVES if BucketTransform(16).can_transform(kind)]), st.data())
def test_buckets_lie_between_zero_and_their_number(kind, data):
    assert 0 <= BucketTransform(16).bind(kind)(data.draw(values(kind))) < 16


@given(INTS)
def test_a_promotion_from_int_to_long_keeps_the_bucket(number):
    assert BucketTransform(31).bind(IntegerType())(number) == BucketTransform(31).bind(LongType())(number)


# --------------------------------------------------------------------------------------------- truncate


@pytest.mark.parametrize(
    ("width", "kind", "value", "expected"),
    [
        (10, IntegerType(), 1, 0),
        (10, IntegerType(), -1, -10),
        (10, IntegerType(), -10, -10),
        (10, LongType(), -1, -10),
        (50, DecimalType(9, 2), Decimal("10.65"), Decimal("10.50")),
        (10, DecimalType(9, 2), Decimal("-0.05"), Decimal("-0.10")),
        (3, StringType(), "iceberg", "ice"),
        (2, StringType(), "a😀b", "a😀"),
        (3, StringType(), "ab", "ab"),
        (3, BinaryType(), b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"),
        (10, IntegerType(), -(2**31), 2147483646),  # wraps around, as in Java
    ],
)
def test_truncation_gives_the_values_of_the_specification(width, kind, value, expected):
    result = TruncateTransform(width).bind(kind)(value)
    assert same_value(result, expected)


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**31 - 1))
def test_truncated_numbers_are_the_multiple_below(number, width):
    result = TruncateTransform(width).bind(LongType())(number)
    assert result % width == 0
    assert result <= number < result + width


@given(decimals(DecimalType(38, 10)), st.integers(1, 1000))
def test_truncated_decimals_keep_the_scale(number, width):
    result = TruncateTransform(width).bind(DecimalType(38, 10))(number)
    assert result <= number
    assert result.as_tuple().exponent == -10


# ------------------------------------------------------------------------------------------------- time


@given(st.datetimes())
def test_units_of_time_agree_with_python(moment):
    micros = from_python(TimestampType(), moment)
    days = (moment.date() - dt.date(1970, 1, 1)).days
    for kind, value in (
        (TimestampType(), micros),
        (TimestamptzType(), micros),
        (TimestampNanoType(), micros * 1000 + 999),
        (TimestamptzNanoType(), micros * 1000),
    ):
        assert YearTransform().bind(kind)(value) == moment.year - 1970
        assert MonthTransform().bind(kind)(value) == (moment.year - 1970) * 12 + moment.month - 1
        assert DayTransform().bind(kind)(value) == days
        assert HourTransform().bind(kind)(value) == days * 24 + moment.hour
    assert YearTransform().bind(DateType())(days) == moment.year - 1970
    assert MonthTransform().bind(DateType())(days) == (moment.year - 1970) * 12 + moment.month - 1
    assert DayTransform().bind(DateType())(days) == days


def test_times_before_1970_are_rounded_down():
    assert YearTransform().bind(TimestampType())(-1) == -1
    assert MonthTransform().bind(TimestampType())(-1) == -1
    assert DayTransform().bind(TimestampType())(-1) == -1
    assert HourTransform().bind(TimestampType())(-1) == -1


# ------------------------------------------------------------------------------------- types and orders


SUPPORTED = {
    "identity": set(CLASSIC_PRIMITIVES) | {TimestampNanoType(), TimestamptzNanoType(), UnknownType()},
    "bucket[16]": set(VALUED_PRIMITIVES) - {BooleanType(), FloatType(), DoubleType()},
    "truncate[10]": {
        IntegerType(),
        LongType(),
        StringType(),
        BinaryType(),
        *(kind for kind in CLASSIC_PRIMITIVES if isinstance(kind, DecimalType)),
    },
    "year": {DateType(), TimestampType(), TimestamptzType(), TimestampNanoType(), TimestamptzNanoType()},
    "hour": {TimestampType(), TimestamptzType(), TimestampNanoType(), TimestamptzNanoType()},
}
SUPPORTED["month"] = SUPPORTED["day"] = SUPPORTED["year"]


@pytest.mark.parametrize("text", SUPPORTED)
def test_transforms_take_the_types_of_the_specification(text):
    transform = parse_transform(text)
    everything = {*CLASSIC_PRIMITIVES, *NEW_TYPES, StructType(), ListType(1, LongType())}
    assert {kind for kind in everything if transform.can_transform(kind)} == SUPPORTED[text]


def test_results_have_the_types_of_the_specification():
    assert IdentityTransform().result_type(UUIDType()) == UUIDType()
    assert BucketTransform(4).result_type(UUIDType()) == IntegerType()
    assert TruncateTransform(4).result_type(DecimalType(9, 2)) == DecimalType(9, 2)
    assert YearTransform().result_type(DateType()) == IntegerType()
    assert DayTransform().result_type(TimestampType()) == DateType()
    assert VoidTransform().result_type(GeographyType()) == GeographyType()


def test_a_transform_of_a_type_that_it_does_not_take_is_refused():
    with pytest.raises(TypeMismatchError, match="hour cannot be applied to values of type date"):
        HourTransform().bind(DateType())


@pytest.mark.parametrize("transform", ALL, ids=str)
def test_null_gives_null(transform):
    kind = TimestampType() if transform.can_transform(TimestampType()) else LongType()
    assert transform.bind(kind)(None) is None
    assert transform.to_human_string(kind, None) == "null"


def test_void_gives_null_for_everything():
    assert VoidTransform().bind(StructType())({1: 2}) is None
    assert VoidTransform().is_void
    assert not IdentityTransform().is_void


@given(st.sampled_from([each for each in ALL if each.preserves_order]), st.data())
def test_transforms_that_say_so_preserve_order(transform, data):
    kinds = [k for k in VALUED_PRIMITIVES if transform.can_transform(k) and not isinstance(k, (UUIDType, BooleanType))]
    kind = data.draw(st.sampled_from(kinds))
    # Truncation wraps around below the smallest number, as it does in Java.
    low, high = sorted((data.draw(values(kind, finite=True)), data.draw(values(kind, finite=True))))
    if isinstance(kind, (IntegerType, LongType)) and low < -(2**31) + 10:
        return
    function = transform.bind(kind)
    assert function(low) <= function(high)


def test_an_order_satisfies_coarser_ones():
    assert HourTransform().satisfies_order_of(DayTransform())
    assert DayTransform().satisfies_order_of(YearTransform())
    assert not YearTransform().satisfies_order_of(DayTransform())
    assert IdentityTransform().satisfies_order_of(TruncateTransform(3))
    assert not IdentityTransform().satisfies_order_of(BucketTransform(3))
    assert TruncateTransform(4).satisfies_order_of(TruncateTransform(2))
    assert not TruncateTransform(2).satisfies_order_of(TruncateTransform(4))
    assert BucketTransform(3).satisfies_order_of(BucketTransform(3))
    assert not BucketTransform(3).satisfies_order_of(BucketTransform(4))
    assert VoidTransform().satisfies_order_of(VoidTransform())


# ------------------------------------------------------------------------------------------- human text


@pytest.mark.parametrize(
    ("transform", "kind", "value", "text"),
    [
        (YearTransform(), DateType(), 47, "2017"),
        (YearTransform(), DateType(), -1, "1969"),
        (MonthTransform(), DateType(), 574, "2017-11"),
        (MonthTransform(), DateType(), -1, "1969-12"),
        (DayTransform(), TimestampType(), 17486, "2017-11-16"),
        (HourTransform(), TimestampType(), 17486 * 24 + 22, "2017-11-16-22"),
        (HourTransform(), TimestampType(), -1, "1969-12-31-23"),
        (IdentityTransform(), DateType(), 17486, "2017-11-16"),
        (IdentityTransform(), TimestampType(), 1512151975038194, "2017-12-01T18:12:55.038194"),
        (IdentityTransform(), TimestampType(), 1512151975038000, "2017-12-01T18:12:55.038"),
        (IdentityTransform(), TimestampType(), 1512151975000000, "2017-12-01T18:12:55"),
        (IdentityTransform(), TimestamptzType(), 1512151975038194, "2017-12-01T18:12:55.038194+00:00"),
        (IdentityTransform(), TimestampNanoType(), 1512151975038194001, "2017-12-01T18:12:55.038194001"),
        (IdentityTransform(), TimeType(), 0, "00:00"),
        (IdentityTransform(), TimeType(), 36775038194, "10:12:55.038194"),
        (IdentityTransform(), TimeType(), 36775038000, "10:12:55.038"),
        (IdentityTransform(), TimeType(), 36720000000, "10:12"),
        (IdentityTransform(), BooleanType(), True, "true"),
        (IdentityTransform(), StringType(), "a/b", "a/b"),
        (IdentityTransform(), BinaryType(), b"\x01\x02\x03", "AQID"),
        (IdentityTransform(), FixedType(2), b"\xff\xff", "//8="),
        (IdentityTransform(), DecimalType(9, 2), Decimal("-0.10"), "-0.10"),
        (IdentityTransform(), UUIDType(), uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (IdentityTransform(), LongType(), -5, "-5"),
        (TruncateTransform(3), StringType(), "ice", "ice"),
        (BucketTransform(3), StringType(), 2, "2"),
        (VoidTransform(), StringType(), None, "null"),
    ],
)
def test_results_are_written_for_people_as_java_writes_them(transform, kind, value, text):
    assert transform.to_human_string(kind, value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (100.0, "100.0"),
        (1234567.0, "1234567.0"),
        (1e7, "1.0E7"),
        (1.25e-5, "1.25E-5"),
        (0.001, "0.001"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_floating_point_numbers_are_written_as_java_writes_them(value, text):
    assert human_string(DoubleType(), value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back(number):
    assert same_value(float(human_string(DoubleType(), number)), number)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(3.4028234663852886e38)
@example(-3.4028234663852886e38)
@example(1.401298464324817e-45)
def test_the_text_of_a_float_reads_back(number):
    text = human_string(FloatType(), number)
    assert struct.pack("<f", float(text)) == struct.pack("<f", number)


def test_the_largest_float_is_written_as_java_writes_it():
    assert human_string(FloatType(), 3.4028234663852886e38) == "3.4028235E38"


@given(TEXT, LONGS)
def test_text_of_simple_values_is_the_value(text, number):
    assert human_string(StringType(), text) == text
    assert human_string(LongType(), number) == str(number)
    assert human_string(FloatType(), 0.10000000149011612) == "0.1"
