from __future__ import annotations

import math
import struct
from dataclasses import replace

import pytest

from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.spec.data_types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_python, to_bytes
from tests.support.pruning import may_match, must_match

INNER = StructType(NestedField(20, "x", IntegerType(), True))
SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), True),
    NestedField(2, "all_nulls", IntegerType()),
    NestedField(3, "some_nulls", IntegerType()),
    NestedField(4, "no_nulls", IntegerType()),
    NestedField(5, "no_stats", IntegerType()),
    NestedField(6, "d", DoubleType()),
    NestedField(7, "all_nans", DoubleType()),
    NestedField(8, "some_nans", DoubleType()),
    NestedField(9, "nans_unknown", DoubleType()),
    NestedField(10, "s", StringType()),
    NestedField(11, "one", IntegerType()),
    NestedField(12, "st", INNER),
    NestedField(13, "added", IntegerType(), False, None, 42),
    NestedField(14, "u", UUIDType()),
    NestedField(15, "nulls_and_nans", DoubleType()),
)


def bounds(**values: object) -> dict[int, bytes]:
    fields = {name: SCHEMA.find_field(name) for name in values}
    return {
        field.field_id: to_bytes(field.field_type, from_python(field.field_type, values[name]))
        for name, field in fields.items()
    }


FILE = DataFile(
    file_path="f.parquet",
    file_format="PARQUET",
    record_count=50,
    file_size_in_bytes=1,
    value_counts=dict.fromkeys((1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 14, 15, 20), 50),
    null_value_counts={1: 0, 2: 50, 3: 10, 4: 0, 6: 0, 7: 0, 8: 0, 9: 0, 10: 0, 11: 0, 14: 0, 15: 20, 20: 0},
    nan_value_counts={6: 0, 7: 50, 8: 10, 15: 30},
    lower_bounds=bounds(
        id=30, some_nulls=30, no_nulls=30, d=1.0, some_nans=1.0, nans_unknown=1.0, s="abc", one=7, u="8" + "0" * 31
    ),
    upper_bounds=bounds(
        id=79, some_nulls=79, no_nulls=79, d=9.0, some_nans=9.0, nans_unknown=9.0, s="abz", one=7, u="f" * 32
    ),
)

MIGHT, NEVER = True, False
FULL, UNSURE = True, False


@pytest.mark.parametrize(
    ("text", "inclusive", "strict"),
    [
        ("true", MIGHT, FULL),
        ("false", NEVER, UNSURE),
        ("all_nulls is null", MIGHT, FULL),
        ("all_nulls is not null", NEVER, UNSURE),
        ("some_nulls is null", MIGHT, UNSURE),
        ("some_nulls is not null", MIGHT, UNSURE),
        ("no_nulls is null", NEVER, UNSURE),
        ("no_nulls is not null", MIGHT, FULL),
        ("no_stats is null", MIGHT, UNSURE),
        ("no_stats is not null", MIGHT, UNSURE),
        ("no_stats = 5", MIGHT, UNSURE),
        ("no_stats < 5", MIGHT, UNSURE),
        ("all_nulls = 5", NEVER, UNSURE),
        ("all_nulls != 5", NEVER, UNSURE),
        ("all_nulls < 5", NEVER, UNSURE),
        ("all_nulls > 5", NEVER, UNSURE),
        ("all_nulls not in (1, 2)", NEVER, UNSURE),
        ("id < 30", NEVER, UNSURE),
        ("id <= 30", MIGHT, UNSURE),
        ("id < 79", MIGHT, UNSURE),
        ("id <= 79", MIGHT, FULL),
        ("id < 80", MIGHT, FULL),
        ("id > 79", NEVER, UNSURE),
        ("id >= 79", MIGHT, UNSURE),
        ("id > 30", MIGHT, UNSURE),
        ("id >= 30", MIGHT, FULL),
        ("id > 29", MIGHT, FULL),
        ("some_nulls >= 30", MIGHT, UNSURE),
        ("some_nulls < 30", NEVER, UNSURE),
        ("id = 29", NEVER, UNSURE),
        ("id = 30", MIGHT, UNSURE),
        ("id = 80", NEVER, UNSURE),
        ("one = 7", MIGHT, FULL),
        ("one != 7", NEVER, UNSURE),
        ("one not in (7, 8)", NEVER, UNSURE),
        ("one in (6, 7)", MIGHT, FULL),
        ("id != 29", MIGHT, FULL),
        ("id != 30", MIGHT, UNSURE),
        ("id in (1, 29, 80)", NEVER, UNSURE),
        ("id in (1, 50, 80)", MIGHT, UNSURE),
        ("id not in (1, 29, 80)", MIGHT, FULL),
        ("id not in (1, 50)", MIGHT, UNSURE),
        ("not (id < 30)", MIGHT, FULL),
        ("id < 30 or one = 7", MIGHT, FULL),
        ("id < 30 and one = 7", NEVER, UNSURE),
        ("id >= 30 and one = 7", MIGHT, FULL),
        # NaN is above all numbers, and bounds do not cover it
        ("d > 9", NEVER, UNSURE),
        ("d >= 1", MIGHT, FULL),
        ("d <= 9", MIGHT, FULL),
        ("d is nan", NEVER, UNSURE),
        ("d is not nan", MIGHT, FULL),
        ("some_nans > 9", MIGHT, UNSURE),
        ("some_nans >= 1", MIGHT, FULL),
        ("some_nans <= 9", MIGHT, UNSURE),
        ("some_nans = 10", NEVER, UNSURE),
        ("some_nans != 10", MIGHT, FULL),
        ("nans_unknown > 9", MIGHT, UNSURE),
        ("nans_unknown < 1", NEVER, UNSURE),
        ("nans_unknown <= 9", MIGHT, UNSURE),
        ("all_nans is nan", MIGHT, FULL),
        ("all_nans is not nan", NEVER, UNSURE),
        ("all_nans > 1000", MIGHT, FULL),
        ("all_nans < 1000", NEVER, UNSURE),
        ("all_nans = 1000", NEVER, UNSURE),
        ("all_nans != 1000", MIGHT, FULL),
        ("all_nulls is null or all_nans is nan", MIGHT, FULL),
        ("nulls_and_nans > 5", MIGHT, UNSURE),
        ("nulls_and_nans < 5", NEVER, UNSURE),
        ("nulls_and_nans is not nan", MIGHT, UNSURE),
        # text
        ("s like 'ab%'", MIGHT, FULL),
        ("s like 'abc%'", MIGHT, UNSURE),
        ("s like 'abb%'", NEVER, UNSURE),
        ("s like 'ac%'", NEVER, UNSURE),
        ("s like 'abzz%'", NEVER, UNSURE),
        ("s like 'abcd%'", MIGHT, UNSURE),
        ("s not like 'ab%'", NEVER, UNSURE),
        ("s not like 'ac%'", MIGHT, FULL),
        ("s not like 'abd%'", MIGHT, UNSURE),
        # a column that the file may lack has no metrics: its rows may hold the initial default
        ("added = 42", MIGHT, UNSURE),
        ("added is null", MIGHT, UNSURE),
        # UUIDs are unsigned
        ("u < '80000000-0000-0000-0000-000000000000'", NEVER, UNSURE),
        ("u >= '80000000-0000-0000-0000-000000000000'", MIGHT, FULL),
        ("u = '00000000-0000-0000-0000-000000000001'", NEVER, UNSURE),
        # buckets are decided for single values only
        ("bucket(4, one) = 3", MIGHT, FULL),
        ("bucket(4, one) = 1", NEVER, UNSURE),
        ("bucket(4, one) in (0, 1, 2, 3)", MIGHT, FULL),
        ("bucket(4, id) = 3", MIGHT, UNSURE),
        ("bucket(4, all_nulls) = 3", NEVER, UNSURE),
    ],
)
def test_metrics_of_a_file(text, inclusive, strict):
    assert may_match(SCHEMA, parse(text), FILE) is inclusive
    assert must_match(SCHEMA, parse(text), FILE) is strict


def test_uuid_bounds_of_several_row_groups_are_no_bounds():
    text = "u = '00000000-0000-0000-0000-000000000001'"
    assert not may_match(SCHEMA, parse(text), replace(FILE, split_offsets=(4,)))
    assert may_match(SCHEMA, parse(text), replace(FILE, split_offsets=(4, 1000)))
    assert not may_match(SCHEMA, parse("u is null"), replace(FILE, split_offsets=(4, 1000)))


def test_an_empty_file_has_no_matching_row_and_no_other():
    empty = DataFile(file_path="f", file_format="AVRO", record_count=0, file_size_in_bytes=0)
    assert not may_match(SCHEMA, parse("no_stats = 5"), empty)
    assert must_match(SCHEMA, parse("no_stats = 5"), empty)


def test_a_file_without_metrics_may_hold_anything():
    bare = DataFile(file_path="f", file_format="AVRO", record_count=5, file_size_in_bytes=0)
    for text in ("id = 5", "some_nulls is null", "d is nan", "s like 'x%'", "id not in (1, 2)", "id is not null"):
        assert may_match(SCHEMA, parse(text), bare)
    assert not must_match(SCHEMA, parse("some_nulls is null"), bare)


def test_a_field_of_an_optional_struct_is_free_of_nulls_only_if_every_row_was_counted():
    def file(values: int) -> DataFile:
        return DataFile(
            file_path="f",
            file_format="ORC",
            record_count=10,
            file_size_in_bytes=0,
            value_counts={20: values},
            null_value_counts={20: 0},
            lower_bounds=bounds(**{"st.x": 1}),
            upper_bounds=bounds(**{"st.x": 5}),
        )

    # ORC of Java leaves rows out whose struct is null
    assert may_match(SCHEMA, parse("st.x is null"), file(7))
    assert not must_match(SCHEMA, parse("st.x > 0"), file(7))
    assert not may_match(SCHEMA, parse("st.x is null"), file(10))
    assert must_match(SCHEMA, parse("st.x > 0"), file(10))


def bare_file(**metrics: dict) -> DataFile:
    return DataFile(file_path="f", file_format="PARQUET", record_count=10, file_size_in_bytes=0, **metrics)


def test_bounds_that_are_nan_or_broken_are_no_bounds():
    nan = struct.pack("<d", math.nan)
    file = bare_file(
        lower_bounds={6: nan, 1: b"\x01"}, upper_bounds={6: nan, 1: b"\x01\x02\x03"}, nan_value_counts={6: 0}
    )
    for text in ("d < -1e300", "d > 1e300", "d = 5", "id = 5", "id < -5", "id > 5"):
        assert may_match(SCHEMA, parse(text), file)
        assert not must_match(SCHEMA, parse(text), file)


def test_text_bounds_that_are_not_utf8_are_no_bounds():
    file = bare_file(lower_bounds={10: b"\xff\xfe"}, upper_bounds={10: b"\xff\xfe"})
    assert may_match(SCHEMA, parse("s = 'a'"), file)
    assert may_match(SCHEMA, parse("s like 'a%'"), file)


def test_bounds_of_before_a_promotion_are_understood():
    promoted = Schema(
        NestedField(1, "l", LongType()), NestedField(2, "d", DoubleType()), NestedField(3, "t", TimestampType())
    )
    file = bare_file(
        lower_bounds={1: struct.pack("<i", -5), 2: struct.pack("<f", 0.1), 3: struct.pack("<i", 1)},
        upper_bounds={1: struct.pack("<i", 5), 2: struct.pack("<f", 0.5), 3: struct.pack("<i", 1)},
        nan_value_counts={2: 0},
    )
    assert not may_match(promoted, parse("l > 5"), file)
    assert may_match(promoted, parse("l = -5"), file)
    assert not may_match(promoted, parse("d > 0.5"), file)
    assert may_match(promoted, parse("d > 0.1"), file)
    assert not may_match(promoted, parse("t >= '1970-01-03'"), file)
    assert may_match(promoted, parse("t = '1970-01-02'"), file)


def test_text_is_compared_by_code_points():
    # in UTF-16 the emoji (a surrogate pair) would come before U+FFFD
    file = bare_file(
        lower_bounds={10: "\ufffd".encode()},
        upper_bounds={10: "😀".encode()},
        value_counts={10: 10},
        null_value_counts={10: 0},
    )
    assert may_match(SCHEMA, parse("s like '😀%'"), file)
    assert may_match(SCHEMA, parse("s > '\ufffd'"), file)
    assert not may_match(SCHEMA, parse("s like '😁%'"), file)


def test_signed_zeros_are_equal():
    zeros = bare_file(
        lower_bounds={6: struct.pack("<d", -0.0)},
        upper_bounds={6: struct.pack("<d", -0.0)},
        nan_value_counts={6: 0},
        value_counts={6: 10},
        null_value_counts={6: 0},
    )
    assert must_match(SCHEMA, parse("d = 0"), zeros)
    assert not may_match(SCHEMA, parse("d < 0"), zeros)
    assert must_match(SCHEMA, parse("d >= 0"), zeros)
