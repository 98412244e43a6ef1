from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from hms_iceberg.errors import ExpressionParseError
from hms_iceberg.expressions.literals import Literal
from hms_iceberg.expressions.terms import Reference, Transformed
from hms_iceberg.expressions.text.parser import MAX_DEPTH, parse
from hms_iceberg.expressions.tree import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from hms_iceberg.spec.data_types import FloatType, LongType, TimestampNanoType, TimestamptzNanoType
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)


def transformed(transform, name="a"):
    return Transformed(Reference(name), transform)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1", EqualTo("a", 1)),
        ("a == 1", EqualTo("a", 1)),
        ("a <=> 1", And(NotNull("a"), EqualTo("a", 1))),
        ("1 <=> a", And(NotNull("a"), EqualTo("a", 1))),
        ("a != 1", NotEqualTo("a", 1)),
        ("a <> 1", NotEqualTo("a", 1)),
        ("a < 1", LessThan("a", 1)),
        ("a <= 1", LessThanOrEqual("a", 1)),
        ("a>1", GreaterThan("a", 1)),
        ("a >= 1", GreaterThanOrEqual("a", 1)),
        ("5 < a", GreaterThan("a", 5)),
        ("5 >= a", LessThanOrEqual("a", 5)),
        ("5 = a", EqualTo("a", 5)),
        ("(a) > (5)", GreaterThan("a", 5)),
        ("a is null", IsNull("a")),
        ("a IS NOT NULL", NotNull("a")),
        ("a <=> null", IsNull("a")),
        ("a is nan", IsNaN("a")),
        ("a is not nan", NotNaN("a")),
        ("isnull(a) and isnotnull(b)", And(IsNull("a"), NotNull("b"))),
        ("isnan(nan)", IsNaN("nan")),
        ("a in (1, 2)", In("a", [1, 2])),
        ("a not in (1, 2)", NotIn("a", [1, 2])),
        ("a in ('x')", EqualTo("a", "x")),
        ("a between 1 and 2", And(GreaterThanOrEqual("a", 1), LessThanOrEqual("a", 2))),
        ("a not between 1 and 2", Or(LessThan("a", 1), GreaterThan("a", 2))),
        (
            "a between 1 and 2 and b = 3",
            And(GreaterThanOrEqual("a", 1), LessThanOrEqual("a", 2), EqualTo("b", 3)),
        ),
        ("a is distinct from 1", Or(IsNull("a"), NotEqualTo("a", 1))),
        ("a is not distinct from 1", And(NotNull("a"), EqualTo("a", 1))),
        ("a is distinct from null", NotNull("a")),
        ("a", EqualTo("a", True)),
        ("not a", Not(EqualTo("a", True))),
        ("a is true", And(NotNull("a"), EqualTo("a", True))),
        ("a is not false", Or(IsNull("a"), NotEqualTo("a", False))),
        ("i is null and b", And(IsNull("i"), EqualTo("b", True))),
        ("true", AlwaysTrue()),
        ("not true or FALSE", AlwaysFalse()),
        ("1 = 1 and a = 1", EqualTo("a", 1)),
        ("'a' > 'b'", AlwaysFalse()),
        ("1 < 1.5", AlwaysTrue()),
        ("not not a = 1", EqualTo("a", 1)),
        ("not a = 1 and b = 2", And(Not(EqualTo("a", 1)), EqualTo("b", 2))),
        ("a = 1 or b = 2 and c = 3", Or(EqualTo("a", 1), And(EqualTo("b", 2), EqualTo("c", 3)))),
        ("(a = 1 or b = 2) and c = 3", And(Or(EqualTo("a", 1), EqualTo("b", 2)), EqualTo("c", 3))),
        ("((a = 1))", EqualTo("a", 1)),
        ("a\n=\t1", EqualTo("a", 1)),
    ],
)
def test_conditions(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a.b.c", "a.b.c"),
        ("`my col`", "my col"),
        ("`a-b`.`x y`", "a-b.x y"),
        ('"my col".x', "my col.x"),
        ("`a.b`", "a.b"),
        ("`a``b`", "a`b"),
        ("_a$1", "_a$1"),
        ("naïve.größe", "naïve.größe"),
        ("`9x`", "9x"),
        ("date", "date"),
        ("timestamp", "timestamp"),
        ("nan", "nan"),
        ("x", "x"),
        ("st.in", "st.in"),
        ("true.x", "true.x"),
    ],
)
def test_names(text, name):
    assert parse(f"{text} = 1") == EqualTo(name, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("6000000002", 6000000002),
        ("10L", 10),
        ("10s", 10),
        ("1.50", Decimal("1.50")),
        (".5", Decimal("0.5")),
        ("-5.", Decimal("-5")),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        ("1.5D", 1.5),
        ("-0.0D", -0.0),
        ("1BD", Decimal(1)),
        ("0.5f", Literal(0.5, FloatType())),
        ("0.1F", Literal(0.10000000149011612, FloatType())),
        ("double('NaN')", float("nan")),
        ("double('-inf')", float("-inf")),
        ("'it''s'", "it's"),
        ("''", ""),
        ("'a\\b'", "a\\b"),
        ("true", True),
        ("False", False),
        ("date'2024-02-29'", date(2024, 2, 29)),
        ("DATE '2024-2-9'", date(2024, 2, 9)),
        ("time'12:30'", time(12, 30)),
        ("timestamp'2024-01-02 03:04:05.678'", datetime(2024, 1, 2, 3, 4, 5, 678000)),
        ("timestamp'2024-01-02'", datetime(2024, 1, 2)),
        ("timestamp_ntz'2024-01-02T03:04:05'", datetime(2024, 1, 2, 3, 4, 5)),
        ("timestamp'2024-01-02 03:04:05+02:00'", datetime(2024, 1, 2, 1, 4, 5, tzinfo=timezone.utc)),
        ("timestamp'2024-01-02 03:04:05Z'", datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
        ("timestamp'2024-01-02 03:04:05 UTC'", datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)),
        ("timestamp_ltz'2024-01-02'", datetime(2024, 1, 2, tzinfo=timezone.utc)),
        ("timestamp'1970-01-01 00:00:00.000000001'", Literal(1, TimestampNanoType())),
        ("timestamp'1970-01-01 00:00:00.000001000Z'", Literal(1000, TimestamptzNanoType())),
        ("X'0aFF'", b"\x0a\xff"),
        ("x''", b""),
        ("uuid'00112233-4455-6677-8899-aabbccddeeff'", UUID("00112233-4455-6677-8899-aabbccddeeff")),
        ("cast('2024-02-29' as date)", date(2024, 2, 29)),
        ("cast('12' as bigint)", 12),
        ("cast(1.0 as int)", 1),
        ("cast('1.5' as decimal(10, 2))", Decimal("1.5")),
        ("cast(5 as double)", 5.0),
        ("date('2024-02-29')", date(2024, 2, 29)),
        ("timestamp('2024-01-02')", datetime(2024, 1, 2)),
        ("9223372036854775808", Literal(2**63, LongType())),
    ],
)
def test_literals(text, value):
    assert parse(f"a = {text}") == EqualTo("a", value)
    assert parse(f"{text} = a") == EqualTo("a", value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a like 'abc%'", StartsWith("a", "abc")),
        ("a not like 'abc%'", NotStartsWith("a", "abc")),
        ("not a like 'abc%'", Not(StartsWith("a", "abc"))),
        ("a like 'abc%%'", StartsWith("a", "abc")),
        ("a like '%'", StartsWith("a", "")),
        ("a like 'abc'", EqualTo("a", "abc")),
        ("a not like 'abc'", NotEqualTo("a", "abc")),
        ("a like '50\\%\\_%'", StartsWith("a", "50%_")),
        ("a like 'a\\\\b%'", StartsWith("a", "a\\b")),
        ("a like 'a!%b%' escape '!'", StartsWith("a", "a%b")),
        ("a like '😀%'", StartsWith("a", "😀")),
        ("startswith(a, 'abc')", StartsWith("a", "abc")),
    ],
)
def test_like_is_a_prefix_or_an_exact_comparison(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("bucket(16, a) = 3", EqualTo(transformed(BucketTransform(16)), 3)),
        ("system.bucket(16, a) in (3, 4)", In(transformed(BucketTransform(16)), [3, 4])),
        ("bucket(a, 16) = 3", EqualTo(transformed(BucketTransform(16)), 3)),
        ("truncate(4, a) = 'abcd'", EqualTo(transformed(TruncateTransform(4)), "abcd")),
        ("years(a) = 54", EqualTo(transformed(YearTransform()), 54)),
        ("months(a) < 5", LessThan(transformed(MonthTransform()), 5)),
        ("days(a) = date'2024-01-01'", EqualTo(transformed(DayTransform()), date(2024, 1, 1))),
        ("date(a) = '2024-01-01'", EqualTo(transformed(DayTransform()), "2024-01-01")),
        ("cast(a as date) > '2024-01-01'", GreaterThan(transformed(DayTransform()), "2024-01-01")),
        ("hours(a.b) = 1", EqualTo(transformed(HourTransform(), "a.b"), 1)),
        ("year(a) = 1969", EqualTo(transformed(YearTransform()), -1)),
        ("2024 <= year(a)", GreaterThanOrEqual(transformed(YearTransform()), 54)),
        ("year(a) in (1970, 1972)", In(transformed(YearTransform()), [0, 2])),
        (
            "year(a) between 1970 and 1972",
            And(
                GreaterThanOrEqual(transformed(YearTransform()), 0),
                LessThanOrEqual(transformed(YearTransform()), 2),
            ),
        ),
        ("year(a) is null", IsNull("a")),
    ],
)
def test_transforms(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 1, "it is empty"),
        ("   ", 4, "it is empty"),
        ("a >", 4, "expected a column or a literal, found the end"),
        ("a > 5 andd b", 7, "expected 'and', 'or' or the end, found 'andd'"),
        ("a = b", 5, "cannot compare two columns (a and b)"),
        ('a = "x"', 5, "strings are written in single quotes"),
        ("a = 'x", 5, "the quote ' is not closed"),
        ("`a = 1", 1, "the quote ` is not closed"),
        ("(a = 1", 7, "expected ')', found the end"),
        ("a = 1)", 6, "found ')'"),
        ("(a, b) = 1", 3, "a list of values is only possible after 'in'"),
        ("a = null", 3, "write 'is null'"),
        ("null < a", 6, "write 'is null'"),
        ("a in ()", 7, "expected a column or a literal"),
        ("a in (1, null)", 10, "null"),
        ("a in (1, b)", 10, "expected a literal"),
        ("a in 1", 6, "expected '('"),
        ("a in (1 2)", 9, "expected ',' or ')'"),
        ("in (1)", 1, "expected a column"),
        ("5 in (1)", 1, "expected a column"),
        ("5 is null", 1, "expected a column"),
        ("a between 1", 12, "expected 'and' and the upper limit"),
        ("a between 1 or 2", 13, "expected 'and' and the upper limit"),
        ("a is", 5, "expected 'null', 'nan'"),
        ("a is not b", 10, "expected 'null', 'nan'"),
        ("a like 5", 8, "like needs a column and a pattern"),
        ("a like '%x'", 8, "% may only stand at the end"),
        ("a like 'x%y%'", 8, "% may only stand at the end"),
        ("a like 'a_c'", 8, "_ stands for any character"),
        ("a like 'a\\x'", 8, "the escape"),
        ("a like 'a\\'", 8, "the escape"),
        ("a like 'a%' escape 'xx'", 20, "one character"),
        ("a ilike 'x'", 3, "'ilike' is not possible"),
        ("a rlike 'x'", 3, "'rlike' is not possible"),
        ("lower(a) = 'x'", 1, "the function lower() is not possible"),
        ("month(a) = 5", 1, "month() is not possible"),
        ("cast(a as int) = 1", 1, "cannot cast a column to int"),
        ("a = cast('x' as int)", 5, "is not a number"),
        ("a = cast(1.5 as int)", 5, "cannot cast 1.5 to int"),
        ("a = cast('x' as row)", 5, "known types are"),
        ("a = cast('x')", 5, "cast needs a value and a type"),
        ("isnan(1)", 1, "isnan needs one column"),
        ("startswith(a, 1)", 1, "startswith needs a string"),
        ("bucket(0, a) = 1", 1, "from 1 to"),
        ("bucket(a) = 1", 1, "needs a number and a column"),
        ("year(a) = '2024'", 11, "is an integer"),
        ("a + 1 = 2", 3, "arithmetic is not possible"),
        ("a = - b", 5, "arithmetic is not possible"),
        ("a * 2 = 4", 3, "arithmetic is not possible"),
        ("a && b", 3, "combine conditions with 'and'"),
        ("a || b", 3, "combine conditions with 'or'"),
        ("!a", 1, "negate with 'not'"),
        ("a = 1; drop table t", 6, "a filter is a single condition"),
        ("a = 5 = 6", 7, "expected 'and', 'or' or the end"),
        ("(a = 5) = true", 9, "a condition cannot be compared"),
        ("a.b. = 1", 6, "expected a name"),
        ("``", 1, "a name cannot be empty"),
        ("9x = 1", 1, "back quotes"),
        ("st.9x = 1", 3, "back quotes"),
        ("5", 1, "5 is not a condition"),
        ("'x'", 1, "'x' is not a condition"),
        ("null", 1, "null is not a condition"),
        ("a and 5", 7, "5 is not a condition"),
        ("a 5", 3, "expected a comparison after 'a'"),
        ("'a' < 5", 5, "cannot compare"),
        ("a = 1e400000", 5, "more than 400 digits"),
        ("a = 1x", 5, "is not a number"),
        ("a = 1.5L", 5, "is not an integer"),
        ("a = 1e300F", 5, "beyond the range of a float"),
        ("a = date'2023-02-29'", 9, "not a date of the calendar"),
        ("a = date'2023-02-28 01:00:00'", 9, "is not a date"),
        ("a = timestamp'2024-01-01 25:00:00'", 14, "no valid time of day"),
        ("a = timestamp_ntz'2024-01-01 00:00:00Z'", 18, "leave the zone out"),
        ("a = time'24:00'", 9, "no valid time of day"),
        ("a = uuid'x'", 9, "is not a UUID"),
        ("a = X'0G'", 6, "not hexadecimal"),
        ("a > interval '1' day", 5, "interval arithmetic is not possible"),
        ("a = 1 and", 10, "found the end"),
        ("not", 4, "found the end"),
        ("a not 5", 3, "expected 'and', 'or' or the end"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_position(text, position, problem):
    with pytest.raises(ExpressionParseError) as caught:
        parse(text)
    first, shown, marker = str(caught.value).split("\n")
    assert first.startswith(f"Cannot read the filter at position {position}: ")
    assert problem in first
    assert marker.index("^") == position + 1
    assert shown == "  " + text


def test_the_end_of_a_long_filter_is_shown_around_the_error():
    text = " and ".join(f"column_{number} = {number}" for number in range(100)) + " and oops >"
    with pytest.raises(ExpressionParseError) as caught:
        parse(text)
    _, shown, marker = str(caught.value).split("\n")
    assert shown.startswith("  …")
    assert shown[marker.index("^") - 6 :] == "oops >"


def test_parentheses_may_be_deep_but_not_endless():
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == EqualTo("a", True)
    with pytest.raises(ExpressionParseError, match="nested deeper than"):
        parse("(" * 5000 + "a" + ")" * 5000)


def test_half_a_surrogate_pair_is_refused_where_it_stands():
    for text, position in (("s = '\ud800'", 6), ("`a\udfff` = 1", 3), ("s like '\ud800%'", 9)):
        with pytest.raises(ExpressionParseError, match=f"position {position}: .*surrogate") as caught:
            parse(text)
        str(caught.value).encode()


def test_long_chains_are_read():
    assert len(parse(" or ".join(f"a = {number}" for number in range(5000))).operands) == 5000
    assert len(parse(f"a in ({', '.join(map(str, range(5000)))})").literals) == 5000
    assert parse("not " * 5001 + "a") == Not(EqualTo("a", True))


def test_only_strings_are_read():
    with pytest.raises(ExpressionParseError, match="expected a string, got 5"):
        parse(5)
