from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from hms_iceberg.errors import (
    CommitFailedError,
    InvalidInputError,
    InvalidPartitionSpecError,
    InvalidSchemaError,
    InvalidSortOrderError,
    NoSuchRefError,
    NoSuchSnapshotError,
    RefAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.spec.data_types import (
    DateType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    VariantType,
)
from hms_iceberg.spec.metadata import metadata_definition as definition
from hms_iceberg.spec.metadata import metadata_snapshots as snapshots
from hms_iceberg.spec.metadata.table_metadata import check_metadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import (
    EncryptionKey,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
)
from hms_iceberg.spec.sort_orders import UNSORTED, SortField, SortOrder
from tests.support.spec_strategies import table_metadata

SCHEMA = Schema(NestedField(11, "id", LongType(), True), NestedField(12, "day", DateType()), identifier_field_ids=[11])
SPEC = PartitionSpec(PartitionField(12, 1007, "month", "day_month"), spec_id=4)
ORDER = SortOrder(SortField(11), order_id=9)


def new_table(version=2, **changed):
    arguments = {"schema": SCHEMA, "partition_spec": SPEC, "sort_order": ORDER, "location": "s3://b/t/", "at_ms": 1000}
    return definition.new_table_metadata(**{**arguments, "format_version": version, **changed})


def snapshot(metadata, snapshot_id=1, timestamp_ms=2000, added_rows=10, **changed):
    made = Snapshot(
        snapshot_id,
        metadata.current_snapshot_id,
        metadata.next_sequence_number(),
        timestamp_ms,
        f"{snapshot_id}.avro",
        None,
        {"operation": "append"},
        metadata.current_schema_id,
        metadata.next_row_id,
        None if metadata.next_row_id is None else added_rows,
    )
    return replace(made, **changed)


def with_snapshots(count, version=2):
    metadata = new_table(version)
    for number in range(1, count + 1):
        metadata = snapshots.add_snapshot(metadata, snapshot(metadata, number, 1000 + 1000 * number))
    return metadata


# ------------------------------------------------------------------------------------------- new tables


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_has_fresh_ids_and_no_data(version):
    metadata = new_table(version)
    assert metadata.format_version == version
    assert uuid.UUID(metadata.table_uuid)
    assert metadata.location == "s3://b/t"
    assert metadata.last_updated_ms == 1000
    assert [(field.field_id, field.name) for field in metadata.schema().fields] == [(1, "id"), (2, "day")]
    assert metadata.schema().identifier_field_ids == (1,)
    assert metadata.spec() == PartitionSpec(PartitionField(2, 1000, "month", "day_month"))
    assert metadata.sort_order() == SortOrder(SortField(1), order_id=1)
    assert (metadata.last_column_id, metadata.last_partition_id, metadata.last_sequence_number) == (2, 1000, 0)
    assert metadata.next_row_id == (0 if version == 3 else None)
    assert (metadata.current_snapshot_id, metadata.snapshots, metadata.refs) == (None, (), {})


def test_the_format_version_may_be_a_property():
    metadata = new_table(None, properties={"format-version": "3", "owner": "me", "n": 5, "flag": True})
    assert metadata.format_version == 3
    assert metadata.properties == {
        "write.parquet.compression-codec": "zstd",
        "owner": "me",
        "n": "5",
        "flag": "true",
    }
    assert new_table(None).format_version == 2


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"uuid": "x"}, "must not contain 'uuid'"),
        ({"a": None}, "'a': expected text, got None"),
        ({"a": ["x"]}, "expected text"),
        ({5: "x"}, "expected text"),
        ({"format-version": "two"}, "'two', expected 1, 2 or 3"),
    ],
)
def test_properties_that_cannot_be_kept_are_refused(properties, message):
    with pytest.raises(InvalidInputError, match=message):
        new_table(None, properties=properties)


def test_a_table_of_an_unknown_format_version_is_refused():
    with pytest.raises(UnsupportedError, match="Format version 4 is not supported"):
        new_table(4)


def test_a_table_needs_a_location():
    with pytest.raises(InvalidInputError, match="Invalid table location"):
        new_table(location="/")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (NestedField(1, "a", TimestampNanoType()), "'a' has type timestamp_ns, which needs format version 3"),
        (NestedField(1, "a", VariantType()), "needs format version 3"),
        (NestedField(1, "a", LongType(), initial_default=1), "initial default, which needs format version 3"),
    ],
)
def test_columns_of_version_3_are_refused_in_version_2(field, message):
    with pytest.raises(InvalidSchemaError, match=message):
        new_table(2, schema=Schema(field), partition_spec=PartitionSpec(), sort_order=UNSORTED)
    assert new_table(3, schema=Schema(field), partition_spec=PartitionSpec(), sort_order=UNSORTED).schema().fields == (
        field,
    )


def test_defaults_that_the_specification_forbids_are_refused():
    struct = StructType(NestedField(2, "x", LongType()))
    for field in (
        NestedField(1, "s", struct, initial_default={2: 5}),
        NestedField(1, "v", VariantType(), write_default=1),
    ):
        with pytest.raises(InvalidSchemaError, match="default"):
            new_table(3, schema=Schema(field), partition_spec=PartitionSpec(), sort_order=UNSORTED)
    empty = NestedField(1, "s", struct, initial_default={}, write_default={})
    assert new_table(3, schema=Schema(empty), partition_spec=PartitionSpec(), sort_order=UNSORTED).schema().fields == (
        empty,
    )


def test_a_spec_or_order_that_does_not_fit_the_schema_is_refused():
    with pytest.raises(InvalidPartitionSpecError):
        new_table(partition_spec=PartitionSpec(PartitionField(11, 1000, "hour", "h")))
    with pytest.raises(InvalidPartitionSpecError):
        new_table(partition_spec=PartitionSpec(PartitionField(99, 1000, "hour", "h")))
    with pytest.raises(InvalidSortOrderError):
        new_table(sort_order=SortOrder(SortField(99)))
    with pytest.raises(UnsupportedError, match="not known"):
        new_table(partition_spec=PartitionSpec(PartitionField(11, 1000, "zorder", "z")))


# ------------------------------------------------------------------------------------------- definition


def test_a_new_schema_gets_the_next_id_and_a_known_one_keeps_its_own():
    metadata = new_table()
    wider = Schema(*metadata.schema().fields, NestedField(3, "c", StringType()))
    changed = definition.set_current_schema(metadata, wider)
    assert (changed.current_schema_id, changed.last_column_id) == (1, 3)
    assert changed.schema().same_as(wider)
    assert definition.set_current_schema(changed, metadata.schema()).current_schema_id == 0
    assert definition.add_schema(changed, wider) is changed
    assert definition.set_current_schema(changed, 0).current_schema_id == 0
    with pytest.raises(InvalidInputError, match="no schema with id 7"):
        definition.set_current_schema(metadata, 7)


def test_a_schema_without_a_column_that_the_table_is_partitioned_by_is_refused():
    metadata = new_table()
    with pytest.raises(InvalidPartitionSpecError, match="no column with id 2"):
        definition.set_current_schema(metadata, metadata.schema().select("id"))
    with pytest.raises(InvalidSortOrderError, match="no column with id 1"):
        definition.set_current_schema(metadata, metadata.schema().select("day"))


def test_the_last_column_id_never_goes_back():
    metadata = new_table(partition_spec=PartitionSpec(), sort_order=UNSORTED)
    changed = definition.set_current_schema(metadata, metadata.schema().select("id"))
    assert changed.last_column_id == 2


def test_a_new_spec_gets_the_next_id_and_a_known_one_keeps_its_own():
    metadata = new_table()
    other = PartitionSpec(PartitionField(1, 1001, "bucket[4]", "b"))
    changed = definition.set_default_spec(metadata, other)
    assert (changed.default_spec_id, changed.last_partition_id) == (1, 1001)
    again = definition.set_default_spec(changed, PartitionSpec(PartitionField(2, 7, "month", "day_month")))
    assert again.default_spec_id == 0
    assert again.partition_specs == changed.partition_specs
    assert definition.set_default_spec(again, 1).default_spec_id == 1


def test_a_spec_of_version_1_needs_sequential_ids():
    metadata = new_table(1)
    with pytest.raises(InvalidInputError, match=r"\[1001\] are not sequential from 1000"):
        definition.add_spec(metadata, PartitionSpec(PartitionField(1, 1001, "bucket[4]", "b")))


def test_a_new_order_gets_the_next_id_and_unsorted_is_0():
    metadata = new_table()
    changed = definition.set_default_sort_order(metadata, SortOrder(SortField(2)))
    assert changed.default_sort_order_id == 2
    unsorted = definition.set_default_sort_order(changed, UNSORTED)
    assert unsorted.default_sort_order_id == 0
    assert definition.set_default_sort_order(unsorted, SortOrder(SortField(1))).default_sort_order_id == 1


def test_parts_in_use_are_not_removed():
    metadata = definition.set_default_spec(new_table(), PartitionSpec(PartitionField(1, 1001, "bucket[4]", "b")))
    assert definition.remove_specs(metadata, {0}).specs_by_id.keys() == {1}
    with pytest.raises(InvalidInputError, match="default one"):
        definition.remove_specs(metadata, {1})
    with pytest.raises(InvalidInputError, match="current schema"):
        definition.remove_schemas(metadata, {0})


def test_an_upgrade_goes_up_only():
    metadata = replace(new_table(1), table_uuid=None)
    second = definition.upgrade_format_version(metadata, 2)
    assert second.table_uuid is not None
    third = definition.upgrade_format_version(second, 3)
    assert third.next_row_id == 0
    assert definition.upgrade_format_version(third, 3) is third
    with pytest.raises(InvalidInputError, match="Cannot downgrade"):
        definition.upgrade_format_version(third, 2)
    with pytest.raises(UnsupportedError):
        definition.upgrade_format_version(third, 4)


def test_properties_are_set_and_removed():
    metadata = definition.set_properties(new_table(), {"a": 1, "b": False, "format-version": "3"})
    assert metadata.format_version == 3
    assert metadata.properties["a"] == "1"
    assert metadata.properties["b"] == "false"
    removed = definition.remove_properties(metadata, ["a", "nope"])
    assert "a" not in removed.properties
    assert definition.remove_properties(removed, ["a"]) is removed
    assert definition.set_properties(removed, {"b": "false"}) is removed
    with pytest.raises(InvalidInputError):
        definition.set_properties(metadata, {"current-schema": "x"})


def test_a_changed_table_is_younger_and_never_older():
    metadata = new_table(at_ms=10**15)
    assert definition.set_properties(metadata, {"a": "b"}).last_updated_ms == 10**15
    assert definition.set_properties(new_table(at_ms=5), {"a": "b"}, at_ms=9).last_updated_ms == 9


def test_a_replaced_table_keeps_history_ids_by_name_and_properties():
    metadata = definition.set_properties(with_snapshots(2), {"kept": "1"})
    schema = Schema(NestedField(1, "new", StringType()), NestedField(2, "id", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, "identity", "new"))
    replaced = definition.replace_table_metadata(metadata, schema, spec, properties={"added": "2"}, format_version=3)
    assert [(field.field_id, field.name) for field in replaced.schema().fields] == [(3, "new"), (1, "id")]
    assert replaced.spec().fields == (PartitionField(3, 1001, "identity", "new"),)
    assert replaced.sort_order() == UNSORTED
    assert replaced.current_snapshot_id is None
    assert "main" not in replaced.refs
    assert replaced.snapshots == metadata.snapshots
    assert replaced.snapshot_log == metadata.snapshot_log
    assert replaced.properties["kept"] == "1"
    assert replaced.properties["added"] == "2"
    assert replaced.table_uuid == metadata.table_uuid
    assert replaced.format_version == 3
    appended = snapshots.add_snapshot(replaced, snapshot(replaced, 9, 9000))
    assert appended.current_snapshot_id == 9


def test_a_replaced_table_of_version_1_keeps_dropped_partition_fields_as_void():
    replaced = definition.replace_table_metadata(
        new_table(1), SCHEMA, PartitionSpec(PartitionField(11, 1000, "bucket[4]", "b"))
    )
    assert [str(field) for field in replaced.spec().fields] == ["1000: day_month: void(2)", "1001: b: bucket[4](1)"]


# -------------------------------------------------------------------------------------------- snapshots


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_snapshot_becomes_current_and_is_logged(version):
    metadata = with_snapshots(2, version)
    assert metadata.current_snapshot_id == 2
    assert metadata.refs == {"main": SnapshotRef(2)}
    assert metadata.snapshot_log == (SnapshotLogEntry(1, 2000), SnapshotLogEntry(2, 3000))
    assert metadata.last_updated_ms == 3000
    assert metadata.last_sequence_number == (0 if version == 1 else 2)
    assert metadata.next_row_id == (20 if version == 3 else None)


def test_a_snapshot_on_a_branch_leaves_main_alone():
    metadata = with_snapshots(1)
    changed = snapshots.add_snapshot(metadata, snapshot(metadata, 2), "dev")
    assert changed.refs["dev"] == SnapshotRef(2)
    assert changed.current_snapshot_id == 1
    assert changed.snapshot_log == metadata.snapshot_log


def test_a_staged_snapshot_has_no_reference():
    metadata = with_snapshots(1)
    changed = snapshots.add_snapshot(metadata, snapshot(metadata, 2), None)
    assert changed.refs == metadata.refs
    assert changed.snapshot_by_id(2) is not None
    assert changed.last_sequence_number == 2


def test_a_branch_keeps_its_retention_when_it_moves():
    metadata = snapshots.set_ref(with_snapshots(1), "dev", SnapshotRef(1, SnapshotRefType.BRANCH, 5, 6, 7))
    moved = snapshots.add_snapshot(metadata, snapshot(metadata, 2), "dev")
    assert moved.refs["dev"] == SnapshotRef(2, SnapshotRefType.BRANCH, 5, 6, 7)


def test_a_snapshot_that_is_behind_the_table_may_be_tried_again():
    metadata = with_snapshots(2, 3)
    with pytest.raises(CommitFailedError, match=r"sequence number 2 .* last one is 2 already") as caught:
        snapshots.add_snapshot(metadata, snapshot(metadata, 5, sequence_number=2))
    assert caught.value.retryable
    with pytest.raises(CommitFailedError, match=r"first row id 3 .* next one is 20 already"):
        snapshots.add_snapshot(metadata, snapshot(metadata, 5, first_row_id=3))


def test_a_snapshot_that_is_not_complete_is_refused():
    metadata = with_snapshots(1, 3)
    with pytest.raises(InvalidInputError, match="has it already"):
        snapshots.add_snapshot(metadata, snapshot(metadata, 1))
    with pytest.raises(InvalidInputError, match="no manifest list"):
        snapshots.add_snapshot(metadata, snapshot(metadata, 5, manifest_list=None, manifest_locations=("m",)))
    with pytest.raises(InvalidInputError, match="needs 'first-row-id'"):
        snapshots.add_snapshot(metadata, snapshot(metadata, 5, first_row_id=None))
    tagged = snapshots.set_ref(metadata, "v1", SnapshotRef(1, SnapshotRefType.TAG))
    with pytest.raises(InvalidInputError, match="it is a tag"):
        snapshots.add_snapshot(tagged, snapshot(tagged, 5), "v1")


def test_intermediate_snapshots_of_a_transaction_are_not_logged():
    base = with_snapshots(1)
    metadata = base
    for number in (2, 3):
        metadata = snapshots.add_snapshot(metadata, snapshot(metadata, number, 1000 + 1000 * number))
    committed = snapshots.suppress_intermediate_snapshots(metadata, base)
    assert [entry.snapshot_id for entry in committed.snapshot_log] == [1, 3]
    assert len(committed.snapshots) == 3
    assert snapshots.suppress_intermediate_snapshots(base, base) is base


def test_a_rollback_is_logged_at_its_own_time():
    metadata = snapshots.set_branch_snapshot(with_snapshots(2), 1, at_ms=9000)
    assert metadata.current_snapshot_id == 1
    assert metadata.snapshot_log[-1] == SnapshotLogEntry(1, 9000)
    assert snapshots.set_branch_snapshot(metadata, 1) is metadata
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 9; it may have expired"):
        snapshots.set_branch_snapshot(metadata, 9)


def test_references_are_set_and_removed():
    metadata = snapshots.set_ref(with_snapshots(2), "v1", SnapshotRef(1, SnapshotRefType.TAG))
    assert snapshots.set_ref(metadata, "v1", SnapshotRef(1, SnapshotRefType.TAG)) is metadata
    with pytest.raises(RefAlreadyExistsError, match="a tag 'v1' already"):
        snapshots.set_ref(metadata, "v1", SnapshotRef(2, SnapshotRefType.TAG), replace_existing=False)
    with pytest.raises(InvalidInputError, match="Cannot replace tag 'v1'"):
        snapshots.set_ref(metadata, "v1", SnapshotRef(2))
    with pytest.raises(InvalidInputError, match="must be a branch"):
        snapshots.set_ref(metadata, "main", SnapshotRef(2, SnapshotRefType.TAG))
    with pytest.raises(InvalidInputError, match="never expires"):
        snapshots.set_ref(metadata, "main", SnapshotRef(2, max_ref_age_ms=5))
    with pytest.raises(NoSuchSnapshotError):
        snapshots.set_ref(metadata, "v2", SnapshotRef(9, SnapshotRefType.TAG))
    assert "v1" not in snapshots.remove_ref(metadata, "v1").refs
    assert snapshots.remove_ref(metadata, "main").current_snapshot_id is None
    with pytest.raises(NoSuchRefError, match=r"no branch or tag 'nope'; it has \['main', 'v1'\]"):
        snapshots.remove_ref(metadata, "nope")


def test_retention_of_main_changes_without_a_new_log_entry():
    metadata = with_snapshots(1)
    changed = snapshots.set_ref(metadata, "main", SnapshotRef(1, min_snapshots_to_keep=5))
    assert changed.snapshot_log == metadata.snapshot_log


def test_removed_snapshots_take_their_statistics_and_all_earlier_log_entries_along():
    metadata = with_snapshots(4)
    for number in (1, 2, 4):
        metadata = snapshots.set_statistics(metadata, StatisticsFile(number, f"{number}.puffin", 5, 4))
        metadata = snapshots.set_partition_statistics(metadata, PartitionStatisticsFile(number, f"{number}.parquet", 5))
    removed = snapshots.remove_snapshots(metadata, [2, 99])
    assert [each.snapshot_id for each in removed.snapshots] == [1, 3, 4]
    assert [entry.snapshot_id for entry in removed.snapshot_log] == [3, 4]
    assert [each.snapshot_id for each in removed.statistics] == [1, 4]
    assert [each.snapshot_id for each in removed.partition_statistics] == [1, 4]
    assert snapshots.remove_snapshots(metadata, [99]) is metadata


def test_referenced_snapshots_are_not_removed():
    metadata = snapshots.set_ref(with_snapshots(2), "v1", SnapshotRef(1, SnapshotRefType.TAG))
    with pytest.raises(InvalidInputError, match=r"still referenced: 2 by 'main', 1 by 'v1'"):
        snapshots.remove_snapshots(metadata, [1, 2])


def test_statistics_of_a_snapshot_are_replaced_and_removed():
    metadata = snapshots.set_statistics(with_snapshots(1), StatisticsFile(1, "a", 5, 4))
    metadata = snapshots.set_statistics(metadata, StatisticsFile(1, "b", 5, 4))
    assert [each.statistics_path for each in metadata.statistics] == ["b"]
    assert snapshots.remove_statistics(metadata, 1).statistics == ()
    assert snapshots.remove_statistics(metadata, 9) is metadata
    assert snapshots.remove_partition_statistics(metadata, 9) is metadata
    with pytest.raises(NoSuchSnapshotError):
        snapshots.set_statistics(metadata, StatisticsFile(9, "a", 5, 4))


def test_encryption_keys_need_version_3_and_unique_ids():
    key = EncryptionKey("k", "bWV0YQ==")
    with pytest.raises(InvalidInputError, match="format version 3"):
        snapshots.add_encryption_key(new_table(2), key)
    metadata = snapshots.add_encryption_key(new_table(3), key)
    assert snapshots.add_encryption_key(metadata, key) is metadata
    with pytest.raises(InvalidInputError, match="another key"):
        snapshots.add_encryption_key(metadata, EncryptionKey("k", "b3RoZXI="))
    assert snapshots.remove_encryption_key(metadata, "k").encryption_keys == ()


def test_the_metadata_log_keeps_the_newest_files():
    metadata = definition.set_properties(new_table(), {"write.metadata.previous-versions-max": 2})
    assert snapshots.append_metadata_log(metadata, None, 1) is metadata
    for number in range(4):
        metadata = snapshots.append_metadata_log(metadata, f"v{number}.json", 100 + number)
    assert [entry.metadata_file for entry in metadata.metadata_log] == ["v2.json", "v3.json"]
    assert metadata.metadata_log[-1].timestamp_ms == 103


@pytest.mark.parametrize(("value", "expected"), [("0", 1), ("-5", 1), ("7", 7), ("many", 100)])
def test_the_length_of_the_metadata_log_is_at_least_one(value, expected):
    metadata = definition.set_properties(new_table(), {"write.metadata.previous-versions-max": value})
    assert snapshots.previous_versions_max(metadata) == expected


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(table_metadata())
def test_random_histories_keep_every_rule(metadata):
    check_metadata(metadata)
    assert metadata.last_column_id >= max(schema.highest_field_id for schema in metadata.schemas)
    assert metadata.last_partition_id >= max(spec.last_assigned_field_id for spec in metadata.partition_specs)
