from __future__ import annotations

from dataclasses import replace

import pytest

from hms_iceberg.errors import CorruptMetadataError, InvalidInputError
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.field_mapping import NAME_MAPPING_PROPERTY, MappedField, NameMapping
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot, SnapshotLogEntry, SnapshotRef, SnapshotRefType
from hms_iceberg.spec.sort_orders import SortField, SortOrder

FIRST = Schema(NestedField(1, "a", LongType()))
SECOND = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()), schema_id=1)


def snapshot(snapshot_id, parent=None, schema_id=None):
    return Snapshot(snapshot_id, parent, snapshot_id, snapshot_id * 100, f"{snapshot_id}.avro", schema_id=schema_id)


TABLE = TableMetadata(
    format_version=2,
    table_uuid="uuid",
    location="s3://bucket/t",
    last_updated_ms=1000,
    last_column_id=2,
    schemas=(FIRST, SECOND),
    current_schema_id=1,
    sort_orders=(SortOrder(), SortOrder(SortField(1))),
    default_sort_order_id=1,
    last_sequence_number=4,
    current_snapshot_id=2,
    snapshots=(snapshot(1, None, 0), snapshot(2, 1, 1), snapshot(3, 1), snapshot(4, 3)),
    snapshot_log=(SnapshotLogEntry(1, 100), SnapshotLogEntry(4, 400), SnapshotLogEntry(2, 500)),
    refs={"main": SnapshotRef(2), "dev": SnapshotRef(4), "v1": SnapshotRef(1, SnapshotRefType.TAG)},
)


def test_current_parts_are_found_by_their_ids():
    assert TABLE.schema() is SECOND
    assert TABLE.schema_by_id(0) is FIRST
    assert TABLE.spec().is_unpartitioned()
    assert TABLE.sort_order().fields == (SortField(1),)
    assert TABLE.sort_order_by_id(0).is_unsorted
    assert TABLE.current_snapshot() is TABLE.snapshots[1]
    assert replace(TABLE, current_snapshot_id=None).current_snapshot() is None


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (lambda table: table.schema_by_id(7), "no schema with id 7; it has 0, 1"),
        (lambda table: table.spec_by_id(7), "no partition spec with id 7; it has 0"),
        (lambda table: table.sort_order_by_id(7), "no sort order with id 7; it has 0, 1"),
    ],
)
def test_the_error_of_an_unknown_id_names_those_that_exist(find, message):
    with pytest.raises(InvalidInputError, match=message):
        find(TABLE)


def test_snapshots_are_found_by_id_branch_and_tag():
    assert TABLE.snapshot_by_id(3) is TABLE.snapshots[2]
    assert TABLE.snapshot_by_id(9) is None
    assert TABLE.snapshot_by_name("dev") is TABLE.snapshots[3]
    assert TABLE.snapshot_by_name("v1") is TABLE.snapshots[0]
    assert TABLE.snapshot_by_name("main") is TABLE.snapshot_by_name(None) is TABLE.current_snapshot()
    assert TABLE.snapshot_by_name("nope") is None


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"), [(99, None), (100, 1), (399, 1), (400, 4), (499, 4), (500, 2), (10**15, 2)]
)
def test_time_travel_follows_the_snapshot_log_and_not_parents(timestamp_ms, expected):
    found = TABLE.snapshot_as_of(timestamp_ms)
    assert (found and found.snapshot_id) == expected


def test_ancestors_go_back_to_the_first_snapshot_that_is_left():
    assert [each.snapshot_id for each in TABLE.ancestors_of(4)] == [4, 3, 1]
    assert [each.snapshot_id for each in TABLE.ancestors_of(2)] == [2, 1]
    assert list(TABLE.ancestors_of(None)) == []
    expired = replace(TABLE, snapshots=TABLE.snapshots[1:])
    assert [each.snapshot_id for each in expired.ancestors_of(2)] == [2]


def test_a_cycle_of_parents_is_refused_and_not_followed_forever():
    cyclic = replace(TABLE, snapshots=(snapshot(1, 2), snapshot(2, 1)))
    with pytest.raises(CorruptMetadataError, match="snapshot 2 is its own ancestor"):
        list(cyclic.ancestors_of(2))


def test_a_snapshot_has_the_schema_of_its_time():
    assert TABLE.schema_for_snapshot(TABLE.snapshots[0]) is FIRST
    assert TABLE.schema_for_snapshot(TABLE.snapshots[2]) is SECOND


def test_the_name_mapping_comes_from_the_properties():
    assert TABLE.name_mapping() is None
    mapped = replace(TABLE, properties={NAME_MAPPING_PROPERTY: '[{"field-id": 1, "names": ["x"]}]'})
    assert mapped.name_mapping() == NameMapping((MappedField(1, ("x",)),))


def test_only_tables_from_version_2_on_count_their_changes():
    assert TABLE.next_sequence_number() == 5
    assert replace(TABLE, format_version=1, last_sequence_number=0).next_sequence_number() == 0
