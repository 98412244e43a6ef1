from __future__ import annotations

import pytest

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.residuals import residual_by_constants, residual_evaluator
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.spec.data_types import IntegerType, NestedField, StringType, TimestampType
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.datetimes import MICROS_PER_DAY

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "ts", TimestampType()),
)
SPEC = PartitionSpec(
    PartitionField(1, 1000, "identity", "i"),
    PartitionField(3, 1001, "day", "ts_day"),
    PartitionField(2, 1002, "bucket[4]", "s_bucket"),
)
NEW_YEAR = 1704067200_000_000 // MICROS_PER_DAY


@pytest.mark.parametrize(
    ("text", "partition", "residual"),
    [
        ("i = 5", (5, 0, 0), "true"),
        ("i = 5", (6, 0, 0), "false"),
        ("i = 5", (None, 0, 0), "false"),
        ("i is null", (None, 0, 0), "true"),
        ("i != 5", (None, 0, 0), "false"),
        ("i > 3 and s = 'x'", (5, 0, 3), "s = 'x'"),
        ("i > 3 and s = 'x'", (2, 0, 3), "false"),
        ("i > 3 and s = 'x'", (5, 0, 2), "false"),
        ("i > 3 or s = 'x'", (5, 0, 2), "true"),
        ("i > 3 or s = 'x'", (2, 0, 3), "s = 'x'"),
        ("s != 'x'", (2, 0, 2), "true"),
        ("ts >= '2024-01-01'", (0, NEW_YEAR, 0), "true"),
        ("ts >= '2024-01-01'", (0, NEW_YEAR - 1, 0), "false"),
        (
            "ts >= '2024-01-01 12:00:00' and i = 0",
            (0, NEW_YEAR, 0),
            "ts >= timestamp'2024-01-01T12:00:00.000000'",
        ),
        ("ts < '2024-01-01 12:00:00'", (0, NEW_YEAR, 0), "ts < timestamp'2024-01-01T12:00:00.000000'"),
        ("date(ts) = '2024-01-01'", (0, NEW_YEAR, 0), "true"),
        ("bucket(4, s) = 3", (0, 0, 3), "true"),
        ("bucket(4, s) = 3", (0, 0, 2), "false"),
        ("true", (0, 0, 0), "true"),
    ],
)
def test_what_a_partition_decides_is_gone(text, partition, residual):
    assert str(residual_evaluator(SPEC, parse(text), SCHEMA)(partition)) == residual


def test_without_partitions_the_whole_predicate_is_left():
    assert str(residual_evaluator(UNPARTITIONED, parse("I = 5"), SCHEMA, case_sensitive=False)(())) == "i = 5"


def test_residuals_of_one_partition_are_one_object():
    residual_of = residual_evaluator(SPEC, parse("i > 3 and s = 'x'"), SCHEMA)
    assert residual_of((5, 0, 3)) is residual_of([5, 0, 3])


@pytest.mark.parametrize(
    ("text", "residual"),
    [
        ("i = 5 and s = 'x'", "s = 'x'"),
        ("i = 6 or s = 'x'", "s = 'x'"),
        ("i = 6", "false"),
        ("bucket(4, i) = 3 or i > 3", "true"),
        ("bucket(4, i) = 3", "true"),
        ("bucket(8, i) = 5", "false"),
        ("ts is null and s = 'x'", "s = 'x'"),
        ("ts > '2024-01-01' and s = 'x'", "false"),
    ],
)
def test_constant_columns_are_decided(text, residual):
    constants = {1: 5, 3: None}
    assert str(residual_by_constants(bind(SCHEMA, parse(text)), constants)) == residual
