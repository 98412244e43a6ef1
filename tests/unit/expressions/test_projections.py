from __future__ import annotations

import pytest

from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.residuals import inclusive_projection, strict_projection
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import UnknownTransform, VoidTransform, parse_transform

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "d", DateType()),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "dec", DecimalType(9, 2)),
    NestedField(6, "bin", BinaryType()),
    NestedField(7, "f", DoubleType()),
    NestedField(8, "st", StructType(NestedField(9, "x", IntegerType()))),
    NestedField(10, "ns", TimestampNanoType()),
)


def projected(transform: str, text: str, source: str | None = None) -> tuple[str, str]:
    """The inclusive and the strict projection of a filter over its (first) column."""
    name = source or next(name for name in ("i", "st.x", "s", "ts", "dec", "bin", "d", "f", "ns") if name in text)
    field = PartitionField(SCHEMA.find_field(name).field_id, 1000, parse_transform(transform), "p")
    expression = parse(text)
    spec = PartitionSpec(field)
    return str(inclusive_projection(SCHEMA, spec)(expression)), str(strict_projection(SCHEMA, spec)(expression))


NOTHING = ("true", "false")


@pytest.mark.parametrize(
    ("transform", "source", "text", "inclusive", "strict"),
    [
        ("identity", "i", "i < 5", "p < 5", "p < 5"),
        ("identity", "i", "i in (1, 2)", "p in (1, 2)", "p in (1, 2)"),
        ("identity", "i", "i != 5", "p != 5", "p != 5"),
        ("identity", "i", "i is null", "p is null", "p is null"),
        ("identity", "f", "f is nan", "p is nan", "p is nan"),
        ("identity", "f", "f > 1.5", "p > 1.5D", "p > 1.5D"),
        ("identity", "s", "s like 'ab%'", "p like 'ab%'", "p like 'ab%'"),
        ("identity", "dec", "dec = 1", "p = 1.00", "p = 1.00"),
        ("identity", "st.x", "st.x > 5", "p > 5", "p > 5"),
        ("bucket[4]", "i", "i = 34", "p = 3", "false"),
        ("bucket[4]", "i", "i in (34, 35)", "p in (1, 3)", "false"),
        ("bucket[4]", "i", "i != 34", "true", "p != 3"),
        ("bucket[4]", "i", "i not in (34, 35)", "true", "p not in (1, 3)"),
        ("bucket[4]", "i", "i < 5", *NOTHING),
        ("bucket[4]", "i", "i is not null", "p is not null", "p is not null"),
        ("bucket[4]", "s", "s like 'a%'", *NOTHING),
        ("bucket[4]", "i", "bucket(4, i) > 2", "p > 2", "p > 2"),
        ("bucket[8]", "i", "bucket(4, i) = 2", *NOTHING),
        ("truncate[10]", "dec", "dec < 1.00", "p <= 0.90", "p < 1.00"),
        ("truncate[10]", "dec", "dec >= 1.05", "p >= 1.00", "p > 1.00"),
        ("truncate[10]", "dec", "dec = 1.05", "p = 1.00", "false"),
        ("truncate[10]", "dec", "dec != 1.05", "true", "p != 1.00"),
        ("truncate[10]", "dec", "dec in (1.05, 1.09, 2)", "p in (1.00, 2.00)", "false"),
        ("truncate[1]", "dec", "dec = 1.05", "p = 1.05", "p = 1.05"),
        ("truncate[1]", "dec", "dec not in (1.05, 2)", "p not in (1.05, 2.00)", "p not in (1.05, 2.00)"),
        # where the smallest int is rounded down, it wraps around to 2147483646
        ("truncate[10]", "i", "i < 5", "p <= 0 or p = 2147483646", "p < 0"),
        ("truncate[10]", "i", "i <= 9", "p <= 0 or p = 2147483646", "p < 10"),
        ("truncate[10]", "i", "i > 9", "p >= 10", "p > 0 and p != 2147483646"),
        ("truncate[10]", "i", "i >= 10", "p >= 10", "p > 0 and p != 2147483646"),
        ("truncate[10]", "i", "i >= -7", "p >= -10", "p > -10 and p != 2147483646"),
        ("truncate[10]", "i", "i = -2147483648", "p = 2147483646", "false"),
        ("truncate[10]", "i", "i < -2147483645", "p = 2147483646", "false"),
        ("truncate[10]", "i", "i > -2147483645", "p is not null", "p != 2147483646"),
        ("truncate[16]", "i", "i < 5", "p <= 0", "p < 0"),
        ("truncate[3]", "s", "s < 'ab'", "p < 'ab'", "p < 'ab'"),
        ("truncate[3]", "s", "s < 'abc'", "p < 'abc'", "p < 'abc'"),
        ("truncate[3]", "s", "s < 'abcd'", "p <= 'abc'", "p < 'abc'"),
        ("truncate[3]", "s", "s <= 'ab'", "p <= 'ab'", "p <= 'ab'"),
        ("truncate[3]", "s", "s <= 'abc'", "p <= 'abc'", "p < 'abc'"),
        ("truncate[3]", "s", "s > 'ab'", "p > 'ab'", "p > 'ab'"),
        ("truncate[3]", "s", "s > 'abc'", "p >= 'abc'", "p > 'abc'"),
        ("truncate[3]", "s", "s >= 'abc'", "p >= 'abc'", "p >= 'abc'"),
        ("truncate[3]", "s", "s >= 'abcd'", "p >= 'abc'", "p > 'abc'"),
        ("truncate[3]", "s", "s = 'ab'", "p = 'ab'", "p = 'ab'"),
        ("truncate[3]", "s", "s = 'abc'", "p = 'abc'", "false"),
        ("truncate[3]", "s", "s = 'abcd'", "p = 'abc'", "false"),
        ("truncate[3]", "s", "s != 'ab'", "p != 'ab'", "p != 'ab'"),
        ("truncate[3]", "s", "s != 'abcd'", "true", "p != 'abc'"),
        ("truncate[3]", "s", "s in ('ab', 'abcd', 'abce')", "p in ('ab', 'abc')", "p = 'ab'"),
        ("truncate[3]", "s", "s not in ('ab', 'abcd')", "p != 'ab'", "p not in ('ab', 'abc')"),
        ("truncate[3]", "s", "s like 'ab%'", "p like 'ab%'", "p like 'ab%'"),
        ("truncate[3]", "s", "s like 'abc%'", "p like 'abc%'", "p like 'abc%'"),
        ("truncate[3]", "s", "s like 'abcd%'", "p = 'abc'", "false"),
        ("truncate[3]", "s", "s not like 'ab%'", "p not like 'ab%'", "p not like 'ab%'"),
        ("truncate[3]", "s", "s not like 'abcd%'", "true", "p != 'abc'"),
        ("truncate[1]", "s", "s like '😀%'", "p like '😀%'", "p like '😀%'"),
        ("truncate[2]", "s", "s = '😀😀😀'", "p = '😀😀'", "false"),
        ("truncate[2]", "bin", "bin = X'0A0B0C'", "p = X'0A0B'", "false"),
        ("truncate[2]", "bin", "bin < X'0A0B0C'", "p <= X'0A0B'", "p < X'0A0B'"),
        ("day", "ts", "ts < timestamp'2024-01-02 00:00:00'", "p <= date'2024-01-01'", "p < date'2024-01-02'"),
        ("day", "ts", "ts <= timestamp'2024-01-02 00:00:00'", "p <= date'2024-01-02'", "p < date'2024-01-02'"),
        ("day", "ts", "ts <= timestamp'2024-01-02 23:59:59.999999'", "p <= date'2024-01-02'", "p < date'2024-01-03'"),
        ("day", "ts", "ts >= timestamp'2024-01-02 00:00:00'", "p >= date'2024-01-02'", "p > date'2024-01-01'"),
        ("day", "ts", "ts > timestamp'2024-01-01 23:59:59.999999'", "p >= date'2024-01-02'", "p > date'2024-01-01'"),
        ("day", "ts", "ts = timestamp'2024-01-02 05:00:00'", "p = date'2024-01-02'", "false"),
        ("day", "ts", "ts != timestamp'2024-01-02 05:00:00'", "true", "p != date'2024-01-02'"),
        ("day", "ts", "days(ts) = date'2024-01-02'", "p >= date'2024-01-02' and p <= date'2024-01-02'",
         "p > date'2024-01-01' and p < date'2024-01-03'"),
        ("month", "ts", "ts < timestamp'2024-01-01 00:00:00'", "p <= 647", "p < 648"),
        ("year", "ts", "ts >= timestamp'2024-06-01 00:00:00'", "p >= 54", "p > 54"),
        ("hour", "ts", "ts = timestamp'1970-01-01 05:30:00'", "p = 5", "false"),
        ("year", "d", "d = date'2024-06-01'", "p = 54", "false"),
        ("day", "d", "d = date'2024-06-01'", "p = date'2024-06-01'", "p = date'2024-06-01'"),
        ("day", "d", "d != date'1969-12-31'", "p != date'1969-12-31'", "p != date'1969-12-31'"),
        ("day", "d", "d < date'1969-12-31'", "p <= date'1969-12-30'", "p < date'1969-12-31'"),
        # before 1970, old writers stored the following period, and others the one before
        ("day", "ts", "ts = timestamp'1969-12-31 05:00:00'",
         "p in (date'1969-12-30', date'1969-12-31', date'1970-01-01')", "false"),
        ("day", "ts", "ts < timestamp'1969-12-31 05:00:00'", "p <= date'1970-01-01'", "p < date'1969-12-30'"),
        ("day", "ts", "ts > timestamp'1969-12-30 05:00:00'", "p >= date'1969-12-29'", "p > date'1969-12-31'"),
        ("day", "ts", "ts >= timestamp'1970-01-01 00:00:00'", "p >= date'1970-01-01'", "p > date'1970-01-01'"),
        ("day", "ts", "ts > timestamp'1970-01-01 00:00:00'", "p >= date'1970-01-01'", "p > date'1970-01-01'"),
        ("day", "ts", "ts != timestamp'1969-12-31 05:00:00'", "true",
         "p not in (date'1969-12-30', date'1969-12-31', date'1970-01-01')"),
        ("month", "d", "d = date'1969-12-31'", "p in (-1, 0)", "false"),
        ("hour", "ts", "ts in (timestamp'1969-12-31 23:30:00', timestamp'1970-01-01 01:00:00')", "p in (-2, -1, 0, 1)",
         "false"),
        # nanoseconds are younger than the older fault
        ("day", "ns", "ns = timestamp'1969-12-31 05:00:00'", "p in (date'1969-12-30', date'1969-12-31')", "false"),
        ("void", "i", "i = 5", *NOTHING),
        ("void", "i", "i is null", *NOTHING),
        ("zorder[2]", "i", "i = 5", *NOTHING),
        ("identity", "i", "i = 5 and s = 'x'", "p = 5", "false"),
        ("identity", "i", "i = 5 or s = 'x'", "true", "p = 5"),
        ("identity", "i", "not (i = 5 and s = 'x')", "true", "p != 5"),
        ("identity", "i", "i > 3000000000", "false", "false"),
        ("identity", "i", "true", "true", "true"),
    ],
)  # fmt: skip
def test_projection_through_each_transform(transform, source, text, inclusive, strict):
    assert projected(transform, text, source) == (inclusive, strict)


def test_all_fields_of_one_column_take_part():
    spec = PartitionSpec(
        PartitionField(1, 1000, "bucket[4]", "b"),
        PartitionField(1, 1001, "truncate[16]", "t"),
        PartitionField(2, 1002, "identity", "s_part"),
    )
    expression = parse("i = 34 and s > 'x'")
    assert str(inclusive_projection(SCHEMA, spec)(expression)) == "b = 3 and t = 32 and s_part > 'x'"
    assert str(strict_projection(SCHEMA, spec)(parse("i != 34"))) == "b != 3 or t != 32"


def test_a_spec_of_the_past_says_nothing_about_dropped_columns_and_unknown_transforms():
    spec = PartitionSpec(
        PartitionField(99, 1000, "identity", "gone"),
        PartitionField(1, 1001, UnknownTransform("geo[3]"), "odd"),
        PartitionField(1, 1002, VoidTransform(), "dropped"),
        PartitionField(1, 1003, "bucket[4]", "multi", source_ids=(1, 2)),
    )
    assert inclusive_projection(SCHEMA, spec)(parse("i = 5")) == AlwaysTrue()
    assert strict_projection(SCHEMA, spec)(parse("i = 5")) == AlwaysFalse()


def test_an_unpartitioned_spec_keeps_everything_that_may_match():
    assert inclusive_projection(SCHEMA, PartitionSpec())(parse("i = 5")) == AlwaysTrue()
    assert inclusive_projection(SCHEMA, PartitionSpec())(parse("false")) == AlwaysFalse()
    assert strict_projection(SCHEMA, PartitionSpec())(parse("i = 5")) == AlwaysFalse()


def test_a_partition_field_may_have_any_name():
    spec = PartitionSpec(PartitionField(1, 1000, "identity", "a.b `c`"))
    expression = inclusive_projection(SCHEMA, spec)(parse("i = 5"))
    assert evaluator(spec.partition_type(SCHEMA), expression)((5,))
    assert not evaluator(spec.partition_type(SCHEMA), expression)((6,))
