from __future__ import annotations

import pytest

from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)
from hms_iceberg.spec.promotion import can_promote, keeps_results, promotions_of
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from tests.support.spec_strategies import CLASSIC_PRIMITIVES, NEW_TYPES

ALWAYS = {
    (IntegerType(), LongType()),
    (FloatType(), DoubleType()),
    (DecimalType(9, 2), DecimalType(18, 2)),
    (DecimalType(9, 2), DecimalType(38, 2)),
    (DecimalType(18, 2), DecimalType(38, 2)),
}
SINCE_V3 = {(DateType(), TimestampType()), (DateType(), TimestampNanoType())}
KINDS = {*CLASSIC_PRIMITIVES, *NEW_TYPES, DecimalType(9, 2), DecimalType(18, 2), DecimalType(38, 2), StructType()}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_just_the_promotions_of_the_specification_are_allowed(version):
    allowed = {
        (old, new) for old in KINDS for new in KINDS if old != new and can_promote(old, new, format_version=version)
    }
    expected = ALWAYS if version < 3 else ALWAYS | SINCE_V3 | {(UnknownType(), new) for new in KINDS - {UnknownType()}}
    assert allowed == expected


def test_every_type_stays_what_it_is():
    assert all(can_promote(kind, kind, 1) for kind in KINDS)


@pytest.mark.parametrize(
    ("kind", "version", "text"),
    [
        (IntegerType(), 2, "long"),
        (StringType(), 3, "nothing else"),
        (DateType(), 2, "nothing else"),
        (DateType(), 3, "timestamp or timestamp_ns"),
        (UnknownType(), 3, "any type that is not nested"),
        (DecimalType(9, 2), 2, "decimal of scale 2 and a precision above 9"),
    ],
)
def test_messages_name_what_a_type_may_become(kind, version, text):
    assert promotions_of(kind, version) == text


@pytest.mark.parametrize(
    ("text", "old", "new", "kept"),
    [
        ("bucket[4]", IntegerType(), LongType(), True),
        ("identity", FloatType(), DoubleType(), True),
        ("truncate[4]", DecimalType(9, 2), DecimalType(18, 2), True),
        ("day", DateType(), TimestampType(), True),
        ("month", DateType(), TimestampNanoType(), True),
        ("identity", DateType(), TimestampType(), False),
        ("bucket[4]", DateType(), TimestampType(), False),
        ("void", DateType(), TimestampType(), True),
        ("zorder", IntegerType(), LongType(), False),
        ("identity", UnknownType(), FixedType(4), True),
        ("identity", DateType(), DateType(), True),
    ],
)
def test_a_promotion_keeps_the_results_of_some_transforms(text, old, new, kept):
    assert keeps_results(parse_transform(text), old, new) is kept
