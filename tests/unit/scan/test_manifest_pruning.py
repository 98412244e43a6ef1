from __future__ import annotations

import math
import struct

import pytest

from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.spec.data_types import DoubleType, IntegerType, NestedField, StringType, UUIDType
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from tests.support.pruning import manifest_may_match

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "f", DoubleType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "other", StringType()),
)
SPEC = PartitionSpec(
    PartitionField(1, 1000, "identity", "i"),
    PartitionField(2, 1001, "identity", "f"),
    PartitionField(3, 1002, "truncate[2]", "s2"),
)


def integer(value: int) -> bytes:
    return struct.pack("<i", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def kept(text: str, *summaries: FieldSummary | None) -> bool:
    defaults = (FieldSummary(False), FieldSummary(False), FieldSummary(False))
    manifest = ManifestFile(
        manifest_path="m.avro",
        manifest_length=1,
        partition_spec_id=0,
        added_snapshot_id=1,
        partitions=(*summaries, *defaults[len(summaries) :]),
    )
    return manifest_may_match(SPEC, SCHEMA, parse(text), manifest)


INTS = FieldSummary(True, False, integer(10), integer(20))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 9", False),
        ("i = 10", True),
        ("i > 20", False),
        ("i >= 20", True),
        ("i in (1, 30)", False),
        ("i in (1, 15)", True),
        ("i not in (1, 15)", True),
        ("i is null", True),
        ("not (i > 5)", False),
        ("other = 'x'", True),
        ("i = 9 or other = 'x'", True),
        ("i = 9 and other = 'x'", False),
    ],
)
def test_bounds_of_a_partition_field(text, expected):
    assert kept(text, INTS) is expected


def test_a_manifest_without_nulls_is_skipped_by_is_null():
    assert not kept("i is null", FieldSummary(False, False, integer(1), integer(2)))


def test_a_field_without_bounds_holds_nulls_only():
    only_nulls = FieldSummary(True, False)
    assert kept("i is null", only_nulls)
    assert not kept("i is not null", only_nulls)
    assert not kept("i != 5", only_nulls)


def test_nan_is_above_every_bound():
    summary = FieldSummary(False, True, double(1), double(2))
    assert kept("f > 100", INTS, summary)
    assert kept("f is nan", INTS, summary)
    assert not kept("f < 1", INTS, summary)
    assert not kept("f > 100", INTS, FieldSummary(False, False, double(1), double(2)))
    assert kept("f > 100", INTS, FieldSummary(False, None, double(1), double(2)))
    assert not kept("f < 100", INTS, FieldSummary(False, True))
    assert kept("f < 100", INTS, FieldSummary(True, None))


def test_bounds_that_are_nan_are_no_bounds():
    assert kept("f < -1", INTS, FieldSummary(False, None, double(math.nan), double(math.nan)))


def test_prefixes_meet_truncated_values():
    summary = FieldSummary(False, False, b"ab", b"cd")
    assert kept("s like 'abc%'", INTS, FieldSummary(False), summary)
    assert not kept("s like 'cez%'", INTS, FieldSummary(False), summary)
    assert not kept("s > 'ce'", INTS, FieldSummary(False), summary)


def test_a_manifest_list_without_summaries_keeps_every_manifest():
    manifest = ManifestFile(
        manifest_path="m.avro", manifest_length=1, partition_spec_id=0, added_snapshot_id=1, partitions=None
    )
    assert manifest_may_match(SPEC, SCHEMA, parse("i = 5"), manifest)
    assert not manifest_may_match(SPEC, SCHEMA, parse("false"), manifest)


def test_bounds_of_uuids_are_not_used_since_java_orders_them_as_signed_numbers():
    schema = Schema(NestedField(1, "u", UUIDType()))
    spec = PartitionSpec(PartitionField(1, 1000, "identity", "u"))
    # Java's least and greatest of 00…, 7f… and 80…
    summary = FieldSummary(False, False, b"\x80" + bytes(15), b"\x7f" + bytes(15))
    manifest = ManifestFile(
        manifest_path="m", manifest_length=1, partition_spec_id=0, added_snapshot_id=1, partitions=(summary,)
    )
    for text, expected in (("u = '00000000-0000-0000-0000-000000000000'", True), ("u is null", False)):
        assert manifest_may_match(spec, schema, parse(text), manifest) is expected


def test_a_missing_summary_of_one_field_says_nothing_about_it():
    assert kept("i = 9", None)
    assert not kept("i = 9 and s = 'x'", None, FieldSummary(False), FieldSummary(False, False, b"ab", b"cd"))
