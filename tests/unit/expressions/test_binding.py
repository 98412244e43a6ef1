from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from hms_iceberg.errors import TypeMismatchError, UnknownColumnError
from hms_iceberg.expressions.binding import bind, rewrite_not
from hms_iceberg.expressions.bound import BoundLiteralPredicate, BoundSetPredicate
from hms_iceberg.expressions.literals import Operator
from hms_iceberg.expressions.terms import Reference, Transformed
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, And, EqualTo, IsNull, Not, Or
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import UnknownTransform, VoidTransform

INNER = StructType(NestedField(40, "x", IntegerType()), NestedField(41, "y.z", StringType(), True))
SCHEMA = Schema(
    NestedField(1, "b", BooleanType()),
    NestedField(2, "i", IntegerType()),
    NestedField(3, "l", LongType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d", DoubleType()),
    NestedField(6, "dec", DecimalType(5, 2)),
    NestedField(7, "dt", DateType()),
    NestedField(8, "tm", TimeType()),
    NestedField(9, "ts", TimestampType()),
    NestedField(10, "tz", TimestamptzType()),
    NestedField(11, "ns", TimestampNanoType()),
    NestedField(12, "nz", TimestamptzNanoType()),
    NestedField(13, "s", StringType()),
    NestedField(14, "u", UUIDType()),
    NestedField(15, "bin", BinaryType()),
    NestedField(16, "fx", FixedType(3)),
    NestedField(17, "unk", UnknownType()),
    NestedField(18, "st", INNER),
    NestedField(19, "rs", StructType(NestedField(42, "r", IntegerType(), True)), True),
    NestedField(20, "li", ListType(43, StructType(NestedField(44, "e", IntegerType())))),
    NestedField(21, "m", MapType(45, StringType(), 46, IntegerType())),
    NestedField(22, "r", IntegerType(), True),
    NestedField(23, "ID", IntegerType()),
    NestedField(24, "Twin", IntegerType()),
    NestedField(25, "twin", IntegerType()),
)


def bound_text(text: str) -> str:
    return str(bind(SCHEMA, parse(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # numbers that are no value of the column's type keep their place in its order
        ("i < 3000000000", "i is not null"),
        ("i > 3000000000", "false"),
        ("i = 3000000000", "false"),
        ("i != 3000000000", "i is not null"),
        ("i > -3000000000", "i is not null"),
        ("i <= -3000000000", "false"),
        ("r < 3000000000", "true"),
        ("not (i < 3000000000)", "false"),
        ("not (i > 3000000000)", "i is not null"),
        ("i > 2.5", "i > 2"),
        ("i >= 2.5", "i > 2"),
        ("i < -2.5", "i <= -3"),
        ("i = 2.5", "false"),
        ("i <> 2.5", "i is not null"),
        ("i = 2.0", "i = 2"),
        ("i = 2e0", "i = 2"),
        ("i = '7'", "i = 7"),
        ("i < double('inf')", "i is not null"),
        ("i < double('NaN')", "i is not null"),
        ("i = double('NaN')", "false"),
        ("i in (1, 2.5, 3000000000)", "i = 1"),
        ("i in (2.5, 3000000000)", "false"),
        ("i not in (2.5, 3)", "i != 3"),
        ("i not in (2.5, 3000000000)", "i is not null"),
        ("i in (3, 1, 2, 1.0)", "i in (1, 2, 3)"),
        # the ends of a range
        ("i > 2147483647", "false"),
        ("i <= 2147483647", "i is not null"),
        ("l < -9223372036854775808", "false"),
        ("l >= -9223372036854775808", "l is not null"),
        ("s < ''", "false"),
        ("s >= ''", "s is not null"),
        ("bin >= X''", "bin is not null"),
        ("b >= false", "b is not null"),
        ("b > true", "false"),
        ("fx <= X'FFFFFF'", "fx is not null"),
        # floating point rounds to the nearest value
        ("f = 0.1", "f = 0.10000000149011612F"),
        ("d = 0.1", "d = 0.1D"),
        ("f < 1e300", "f <= 3.4028234663852886e+38F"),
        ("f > 1e300", "f > 3.4028234663852886e+38F"),
        ("f = 1e300", "false"),
        ("f > -1e300", "f >= -3.4028234663852886e+38F"),
        ("f < double('inf')", "f < float('Infinity')"),
        ("d = -0.0D", "d = 0.0D"),
        ("d > 16777217", "d > 16777217.0D"),
        # NaN equals itself and is above all other numbers
        ("d = double('NaN')", "d is nan"),
        ("d != double('NaN')", "d is not null and d is not nan"),
        ("d < double('NaN')", "d is not null and d is not nan"),
        ("d <= double('NaN')", "d is not null"),
        ("d > double('NaN')", "false"),
        ("d >= double('NaN')", "d is nan"),
        ("d in (1.0, double('NaN'))", "d is nan or d = 1.0D"),
        ("d not in (1.0, double('NaN'))", "d is not null and d is not nan and d != 1.0D"),
        # decimals
        ("dec = 1", "dec = 1.00"),
        ("dec > 1.234", "dec > 1.23"),
        ("dec <= -1.234", "dec <= -1.24"),
        ("dec = 1.234", "false"),
        ("dec < 1000", "dec is not null"),
        ("dec > 999.991", "false"),
        ("dec = 0.1D", "dec = 0.10"),
        ("dec = '1.5'", "dec = 1.50"),
        # dates and times
        ("dt = '2020-01-01'", "dt = date'2020-01-01'"),
        ("dt < timestamp'2020-01-01 12:00:00'", "dt <= date'2020-01-01'"),
        ("dt < timestamp'2020-01-01 00:00:00'", "dt < date'2020-01-01'"),
        ("dt = '2020-01-01 12:00:00'", "false"),
        ("dt >= timestamp'1969-12-31 23:00:00'", "dt > date'1969-12-31'"),
        ("dt = 1", "dt = date'1970-01-02'"),
        ("ts >= '2024-01-01'", "ts >= timestamp'2024-01-01T00:00:00.000000'"),
        ("ts >= date'2024-01-01'", "ts >= timestamp'2024-01-01T00:00:00.000000'"),
        ("ts = 1", "ts = timestamp'1970-01-01T00:00:00.000001'"),
        ("ts > timestamp'1970-01-01 00:00:00.000000001'", "ts > timestamp'1970-01-01T00:00:00.000000'"),
        ("ts >= timestamp'1969-12-31 23:59:59.999999999'", "ts > timestamp'1969-12-31T23:59:59.999999'"),
        ("tz >= '2024-01-01'", "tz >= timestamp'2024-01-01T00:00:00.000000+00:00'"),
        ("tz >= '2024-01-01 00:00:00+02:00'", "tz >= timestamp'2023-12-31T22:00:00.000000+00:00'"),
        ("tz >= timestamp'2024-01-01 00:00:00'", "tz >= timestamp'2024-01-01T00:00:00.000000+00:00'"),
        ("ns = '1970-01-01 00:00:00.000000001'", "ns = timestamp'1970-01-01T00:00:00.000000001'"),
        ("ns > timestamp'1970-01-01 00:00:00.000001'", "ns > timestamp'1970-01-01T00:00:00.000001000'"),
        ("ns < '3000-01-01'", "ns is not null"),
        ("nz < 1", "nz < timestamp'1970-01-01T00:00:00.000001000+00:00'"),
        ("tm < '12:00'", "tm < time'12:00:00.000000'"),
        ("tm >= time'00:00:00'", "tm is not null"),
        # the rest
        ("b", "b = true"),
        ("not b", "b != true"),
        ("b = 'false'", "b = false"),
        ("u = X'00112233445566778899AABBCCDDEEFF'", "u = uuid'00112233-4455-6677-8899-aabbccddeeff'"),
        ("fx < X'FF'", "fx < X'FF0000'"),
        ("fx <= X'FF'", "fx < X'FF0000'"),
        ("fx > X'FF'", "fx >= X'FF0000'"),
        ("fx = X'FF'", "false"),
        ("fx < X'00000000'", "fx <= X'000000'"),
        ("s like '%'", "s is not null"),
        ("s not like '%'", "false"),
        ("unk is null", "true"),
        ("unk is not null", "false"),
        ("unk = 5", "false"),
        ("unk not in (1, 2)", "false"),
        ("unk like 'x%'", "false"),
        # nulls that cannot be
        ("r is null", "false"),
        ("r is not null", "true"),
        ("rs.r is null", "false"),
        ("st.`y.z` is null", "st.y.z is null"),
        ("st is null", "st is null"),
        ("li is not null and m is null", "li is not null and m is null"),
        ("r is not null or i = 1", "true"),
        # negation moves into the tests
        ("not (i = 1 and (s = 'x' or d is nan))", "i != 1 or (s != 'x' and d is not nan)"),
        ("not (i in (1, 2) or s like 'x%')", "i not in (1, 2) and s not like 'x%'"),
        # transforms become limits of the column
        ("years(dt) = -1", "dt >= date'1969-01-01' and dt < date'1970-01-01'"),
        ("year(ts) > 2023", "ts >= timestamp'2024-01-01T00:00:00.000000'"),
        ("months(dt) <= -1", "dt < date'1970-01-01'"),
        ("days(dt) = date'2024-01-01'", "dt >= date'2024-01-01' and dt < date'2024-01-02'"),
        (
            "date(ts) != '1970-01-01'",
            "ts < timestamp'1970-01-01T00:00:00.000000' or ts >= timestamp'1970-01-02T00:00:00.000000'",
        ),
        ("hours(ns) < -1", "ns < timestamp'1969-12-31T23:00:00.000000000'"),
        ("hours(tz) > 3000000000", "false"),
        ("years(dt) > 2000000000", "false"),
        ("years(dt) < 2000000000", "dt is not null"),
        ("truncate(10, i) = 20", "i >= 20 and i < 30"),
        ("truncate(10, i) = 25", "false"),
        ("truncate(10, i) != 25", "i < 30 or i >= 30"),
        ("truncate(10, i) > 25", "i >= 30"),
        ("truncate(10, i) <= -10", "i < 0"),
        ("truncate(10, dec) >= 1.05", "dec >= 1.10"),
        ("truncate(3, s) = 'ab'", "s = 'ab'"),
        ("truncate(3, s) = 'abc'", "s like 'abc%'"),
        ("truncate(3, s) = 'abcd'", "false"),
        ("truncate(3, s) != 'abcd'", "s is not null"),
        ("truncate(3, s) <= 'abc'", "s < 'abc' or s like 'abc%'"),
        ("truncate(3, s) > 'abc'", "s >= 'abc' and s not like 'abc%'"),
        ("truncate(3, s) like 'abcd%'", "false"),
        ("bucket(16, l) = 3", "bucket(16, l) = 3"),
        ("bucket(16, l) in (4, 3, 4)", "bucket(16, l) in (3, 4)"),
        ("bucket(16, l) is null", "l is null"),
        ("truncate(2, bin) = X'0A'", "truncate(2, bin) = X'0A'"),
    ],
)
def test_binding_keeps_the_meaning_in_terms_of_the_column(text, expected):
    assert bound_text(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("i = 'abc'", TypeMismatchError, "Cannot bind i = 'abc': column 'i' is int: 'abc' is not a number"),
        ("i = date'2024-01-01'", TypeMismatchError, "column 'i' is int: expected a value that compares with int"),
        ("i = true", TypeMismatchError, "got true (boolean)"),
        ("s = 5", TypeMismatchError, "expected a string, got 5 (long); write it in single quotes"),
        ("s in ('a', 5)", TypeMismatchError, "expected a string, got 5"),
        ("b = 1", TypeMismatchError, "column 'b' is boolean"),
        ("b = 'yes'", TypeMismatchError, "expected 'true' or 'false'"),
        ("dt = 1.5", TypeMismatchError, "column 'dt' is date"),
        ("dt = 'yesterday'", TypeMismatchError, "'yesterday' is not a date"),
        ("dt = '2024-02-30'", TypeMismatchError, "not a date of the calendar"),
        ("ts = '2024-01-01 00:00:00Z'", TypeMismatchError, "leave the zone out"),
        ("ts = timestamp'2024-01-01 00:00:00+01:00'", TypeMismatchError, "leave the zone out"),
        ("ts = time'12:00'", TypeMismatchError, "column 'ts' is timestamp"),
        ("tm = '12:00:00.1234567'", TypeMismatchError, "finer than microseconds"),
        ("u = 'x'", TypeMismatchError, "is not a UUID"),
        ("u = X'00'", TypeMismatchError, "column 'u' is uuid"),
        ("bin = 'abc'", TypeMismatchError, "write bytes as X'0AFF'"),
        ("bin like 'x%'", TypeMismatchError, "only a string column can start with a string"),
        ("i like '1%'", TypeMismatchError, "only a string column can start with a string"),
        ("i is nan", TypeMismatchError, "its type is int, and only float and double have NaN"),
        ("st = 1", TypeMismatchError, "which cannot be compared; only 'is null' and 'is not null' are possible"),
        ("li in (1, 2)", TypeMismatchError, "cannot be compared"),
        ("li.element.e = 1", TypeMismatchError, "it is inside of 'li'"),
        ("m.value = 1", TypeMismatchError, "a row may hold many of its values"),
        ("bucket(16, f) = 1", TypeMismatchError, "bucket[16] of column 'f': the transform does not take float"),
        ("hours(dt) = 1", TypeMismatchError, "the transform does not take date values"),
        ("days(ts) = 'x'", TypeMismatchError, "column 'ts' is date: 'x' is not a date"),
        ("idd = 1", UnknownColumnError, "Unknown column 'idd'; did you mean 'ID'"),
        ("st.xx = 1", UnknownColumnError, "did you mean 'st.x'"),
        ("id = 1", UnknownColumnError, "did you mean 'ID'"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(text, error, message):
    with pytest.raises(error) as caught:
        bind(SCHEMA, parse(text))
    assert message in str(caught.value)


def test_names_are_found_without_regard_to_case_where_asked():
    assert str(bind(SCHEMA, parse("id = 1 and ST.X = 2"), case_sensitive=False)) == "ID = 1 and st.x = 2"
    assert str(bind(SCHEMA, parse("twin = 1"), case_sensitive=False)) == "twin = 1"
    with pytest.raises(UnknownColumnError, match="ambiguous without regard to case"):
        bind(SCHEMA, parse("TWIN = 1"), case_sensitive=False)


def test_a_bound_reference_knows_the_way_to_its_field():
    bound = bind(SCHEMA, EqualTo("st.y.z", "v"))
    assert isinstance(bound, BoundLiteralPredicate)
    ref = bound.ref
    assert (ref.field_id, ref.names, ref.name) == (41, ("st", "y.z"), "st.y.z")
    assert [field.field_id for field in ref.path] == [18, 41]
    assert ref.nullable  # the field is required, but the struct is not
    assert ref.type == StringType()


def test_a_struct_type_is_bound_by_its_direct_fields():
    partition = StructType(NestedField(1000, "a.b", IntegerType()), NestedField(1001, "d", DateType()))
    assert str(bind(partition, parse("`a.b` = 1 and d > '2024-01-01'"))) == "a.b = 1 and d > date'2024-01-01'"
    with pytest.raises(UnknownColumnError, match="Unknown column 'x'"):
        bind(partition, EqualTo("x", 1))


def test_bound_parts_of_a_tree_stay_as_they_are():
    bound = bind(SCHEMA, EqualTo("i", 1))
    assert bind(SCHEMA, And(bound, EqualTo("s", "x"))).operands[0] is bound
    assert bind(SCHEMA, Not(bound)) == bound.negate()


def test_values_of_a_bound_set_are_ascending_and_distinct():
    bound = bind(SCHEMA, parse("dec in (2.5, -1, 2.50, 7)"))
    assert isinstance(bound, BoundSetPredicate)
    assert bound.values == (Decimal("-1.00"), Decimal("2.50"), Decimal("7.00"))
    assert bound.value_set == frozenset(bound.values)
    assert [str(each) for each in bound.literals] == ["-1.00", "2.50", "7.00"]
    assert bound.negate().operation is Operator.NOT_IN


def test_datetimes_with_a_zone_are_points_in_time():
    at = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert bind(SCHEMA, EqualTo("tz", at)).value == 1704067200_000_000
    assert bind(SCHEMA, EqualTo("nz", at)).value == 1704067200_000_000_000
    with pytest.raises(TypeMismatchError, match="leave the zone out"):
        bind(SCHEMA, EqualTo("ts", at))


def test_a_void_transform_is_null_everywhere():
    term = Transformed(Reference("i"), VoidTransform())
    assert bind(SCHEMA, IsNull(term)) == AlwaysTrue()
    for test in (EqualTo(term, 1), Not(EqualTo(term, 1)), Not(IsNull(term))):
        assert bind(SCHEMA, test) == AlwaysFalse()


def test_an_unknown_transform_is_refused():
    with pytest.raises(TypeMismatchError, match="the transform is not known"):
        bind(SCHEMA, EqualTo(Transformed(Reference("i"), UnknownTransform("zorder[3]")), 1))


def test_what_is_no_expression_is_refused():
    with pytest.raises(TypeMismatchError, match="makes one from a string"):
        bind(SCHEMA, "i = 1")


def test_rewriting_not_works_before_binding():
    assert rewrite_not(parse("not (a = 1 or not b is null)")) == parse("a != 1 and b is null")
    assert rewrite_not(Not(And(EqualTo("a", 1), AlwaysTrue()))) == parse("a != 1")
    assert rewrite_not(Or(EqualTo("a", 1), EqualTo("b", 1))) == parse("a = 1 or b = 1")
