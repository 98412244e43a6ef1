from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from hms_iceberg.errors import (
    CorruptManifestError,
    CorruptMetadataError,
    MissingFileError,
    NoSuchSnapshotError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedError,
)
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.scan.manifests.cache import ManifestCache
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    VoidTransform,
)
from hms_iceberg.spec.values.single_values import to_bytes
from tests.support.snapshots import LOCATION, ManifestTable

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "city", StringType()), NestedField(3, "ts", TimestampType())
)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
BY_CITY_1 = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"), spec_id=1)
EXISTING, DELETED = ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED


def data_file(name: str, low: int | None = None, high: int | None = None, **more: Any) -> DataFile:
    metrics: dict[str, Any] = {}
    if low is not None and high is not None:
        metrics = {
            "value_counts": {1: 10},
            "null_value_counts": {1: 0},
            "lower_bounds": {1: to_bytes(LongType(), low)},
            "upper_bounds": {1: to_bytes(LongType(), high)},
        }
    base = {"file_path": f"{LOCATION}/data/{name}", "file_format": "PARQUET", "record_count": 10}
    return DataFile(**{**base, "file_size_in_bytes": 100, **metrics, **more})


def test_a_table_without_snapshot_has_an_empty_plan() -> None:
    plan = ManifestTable(SCHEMA).plan("id = 1")
    assert len(plan) == 0
    assert plan.snapshot is None
    assert list(plan.tasks()) == []
    assert plan.files.columns[:3] == ["file_path", "file_format", "spec_id"]


def test_files_of_all_commits_are_planned_with_their_sequence_numbers() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"))
    table.commit(data_file("b"), data_file("c"))
    plan = table.plan()
    assert plan.files.select("file_path", "sequence_number", "file_sequence_number").rows() == [
        (f"{LOCATION}/data/b", 2, 2),
        (f"{LOCATION}/data/c", 2, 2),
        (f"{LOCATION}/data/a", 1, 1),
    ]
    assert plan.files["record_count"].sum() == 30


def test_a_snapshot_is_planned_as_it_was() -> None:
    table = ManifestTable(SCHEMA)
    first = table.commit(data_file("a"))
    table.commit(data_file("b"))
    assert table.planned(snapshot_id=first.snapshot_id) == ["a"]
    assert table.planned() == ["a", "b"]


def test_removed_files_are_left_out_and_carried_over_files_keep_their_numbers() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"), data_file("b"))
    table.manifests = []
    table.commit(ManifestEntry(EXISTING, 77, 1, 1, data_file("a")), ManifestEntry(DELETED, None, 1, 1, data_file("b")))
    assert table.plan().files.select("file_path", "snapshot_id", "sequence_number").rows() == [
        (f"{LOCATION}/data/a", 77, 1)
    ]


@pytest.mark.parametrize("others", [0, 1])
def test_a_carried_over_file_without_a_sequence_number_inherits_none_and_is_refused(others: int) -> None:
    table = ManifestTable(SCHEMA)
    for number in range(others):
        table.commit(data_file(f"other{number}"))
    table.commit(ManifestEntry(EXISTING, 77, 1, 1, data_file("a")), data_file("b"))
    _without_numbers(table)
    with pytest.raises(CorruptManifestError, match=r"data/a was carried over .* has no sequence number"):
        table.plan()


def test_a_file_carried_over_from_version_1_has_the_sequence_number_0_that_its_manifest_has() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(ManifestEntry(EXISTING, 77, 1, 1, data_file("a")))
    _without_numbers(table)
    old = replace(table.manifests[0], sequence_number=0, min_sequence_number=0)
    table.manifests = [old]
    table.commit(data_file("b"))
    found = table.plan().files.select("file_path", "sequence_number").rows()
    assert found == [(f"{LOCATION}/data/b", 2), (f"{LOCATION}/data/a", 0)]


def _without_numbers(table: ManifestTable) -> None:
    """Takes the sequence numbers from the entries of the newest manifest."""
    location = table.manifests[0].manifest_path
    reader = fastavro.reader(io.BytesIO(table.storage.files[location]))
    records = [{**each, "sequence_number": None} for each in reader]
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, records, reader.codec, metadata=reader.metadata)
    table.storage.files[location] = out.getvalue()


def test_files_are_pruned_by_bounds_of_a_column() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a", 0, 9), data_file("b", 10, 19), data_file("c"))
    assert table.planned("id = 9") == ["a", "c"]
    assert table.planned("id > 9") == ["b", "c"]
    assert table.planned("id in (3, 100)") == ["a", "c"]
    assert table.planned("id < 0 or id >= 19") == ["b", "c"]
    assert table.planned("not (id < 10)") == ["b", "c"]


def test_files_are_pruned_by_partition_and_residuals_drop_what_partitions_decide() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(*(data_file(city, partition=(city,)) for city in "abc"))
    plan = table.plan("city = 'b' and id = 5")
    (task,) = plan.tasks()
    assert task.file.partition == ("b",)
    assert str(task.residual) == "id = 5"
    assert [str(task.residual) for task in table.plan("city < 'c'").tasks()] == ["true", "true"]


def test_manifests_without_a_matching_partition_are_not_read() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(*(data_file(city, partition=(city,)) for city in "abc"), apart=True)
    plan = table.plan("city = 'b'")
    assert (plan.metrics.manifests_kept, plan.metrics.manifests_total) == (1, 3)
    assert (plan.metrics.files_kept, plan.metrics.files_total) == (1, 1)


def test_manifests_without_live_files_are_not_read() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(ManifestEntry(DELETED, 1, 1, 1, data_file("a")))
    assert table.plan().metrics.manifests_kept == 0


def test_metrics_are_not_decoded_where_partitions_decide_the_filter() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    # The bounds contradict the partition, so that looking at them would lose the file.
    wrong = {"lower_bounds": {2: b"x"}, "upper_bounds": {2: b"z"}}
    table.commit(data_file("a", partition=("a",), **wrong))
    assert table.planned("city = 'a'") == ["a"]
    assert table.planned("city = 'a' and city < 'b' and id = 5") == []


def test_hidden_partitions_prune() -> None:
    table = ManifestTable(SCHEMA, PartitionSpec(PartitionField(3, 1000, DayTransform(), "ts_day")))
    table.commit(*(data_file(str(n), partition=(n,)) for n in (0, 1, 2, None)))
    assert table.planned("ts >= timestamp'1970-01-02T00:00:00'") == ["1", "2"]
    assert table.planned("ts < timestamp'1970-01-01T12:00:00'") == ["0"]
    assert table.planned("ts is null") == ["None"]


def test_each_spec_prunes_by_its_own_transforms() -> None:
    bucket = PartitionSpec(PartitionField(1, 1001, BucketTransform(4), "id_bucket"), spec_id=2)
    table = ManifestTable(SCHEMA, PartitionSpec(), BY_CITY_1, bucket)
    of_five = BucketTransform(4).bind(LongType())(5)
    table.commit(data_file("none"))
    assert {"p1000", "p1001"} <= set(table.plan().files.columns)
    table.commit(
        data_file("city-a", spec_id=1, partition=("a",)),
        data_file("city-b", spec_id=1, partition=("b",)),
        data_file("bucket-5", spec_id=2, partition=(of_five,)),
        data_file("bucket-other", spec_id=2, partition=((of_five + 1) % 4,)),
    )
    assert table.planned("city = 'a' and id = 5") == ["bucket-5", "city-a", "none"]
    plan = table.plan()
    assert plan.partitions.names == {0: (), 1: ("p1000",), 2: ("p1001",)}
    partitions = {task.file.file_path.rpartition("/")[2]: task.file.partition for task in plan.tasks()}
    assert partitions["none"] == ()
    assert partitions["city-a"] == ("a",)
    assert partitions["bucket-5"] == (of_five,)


def test_one_field_id_for_different_fields_of_a_v1_table_makes_columns_apart() -> None:
    other = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"), spec_id=1)
    table = ManifestTable(SCHEMA, BY_CITY, other, format_version=1)
    table.commit(data_file("a", partition=("x",)), data_file("b", spec_id=1, partition=(3,)))
    plan = table.plan("city = 'x'")
    assert plan.partitions.names == {0: ("p1000",), 1: ("p1000_s1",)}
    assert {task.file.file_path[-1]: task.file.partition for task in plan.tasks()} == {"a": ("x",), "b": (3,)}


def test_a_dropped_partition_source_keeps_its_values_and_says_nothing_about_the_filter() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(data_file("a", partition=("x",)))
    table.with_schema(Schema(SCHEMA.fields[0], schema_id=1))
    (task,) = table.plan("id = 5").tasks()
    assert task.file.partition == ("x",)


def test_void_partition_fields_are_null_and_prune_nothing() -> None:
    spec = PartitionSpec(PartitionField(2, 1000, VoidTransform(), "city"))
    table = ManifestTable(SCHEMA, spec)
    table.commit(data_file("a", partition=(None,)))
    (task,) = table.plan("city = 'x'").tasks()
    assert task.file.partition == (None,)


def test_partition_values_of_all_kinds_come_back_as_stored_values() -> None:
    import uuid
    from decimal import Decimal

    kinds = [DateType(), DecimalType(9, 2), UUIDType(), IntegerType()]
    schema = Schema(*(NestedField(n, f"c{n}", kind) for n, kind in enumerate(kinds, 1)))
    spec = PartitionSpec(*(PartitionField(n, 999 + n, IdentityTransform(), f"c{n}") for n in range(1, 5)))
    partition = (-1, Decimal("-12.30"), uuid.UUID(int=2**127 + 5), None)
    table = ManifestTable(schema, spec)
    table.commit(data_file("a", partition=partition), data_file("b", partition=(None,) * 4))
    found = {task.file.file_path[-1]: task.file.partition for task in table.plan().tasks()}
    assert found == {"a": partition, "b": (None,) * 4}
    assert table.planned("c2 = -12.3 and c3 = '80000000-0000-0000-0000-000000000005' and c1 = date'1969-12-31'") == [
        "a"
    ]


def test_row_ids_of_v3_are_given_in_the_order_of_the_manifests() -> None:
    table = ManifestTable(SCHEMA, format_version=3)
    table.commit(data_file("a"), data_file("b"))
    table.commit(data_file("c"))
    assert dict(table.plan().files.select("file_path", "first_row_id").rows()) == {
        f"{LOCATION}/data/a": 0,
        f"{LOCATION}/data/b": 10,
        f"{LOCATION}/data/c": 20,
    }


def test_row_ids_of_a_large_manifest_are_the_same() -> None:
    table = ManifestTable(SCHEMA, format_version=3)
    table.commit(data_file("first"))
    table.commit(*(data_file(f"{n:04}", first_row_id=5 if n == 1 else None) for n in range(600)))
    row_ids = dict(table.plan().files.select("file_path", "first_row_id").rows())
    assert row_ids[f"{LOCATION}/data/0000"] == 10
    assert row_ids[f"{LOCATION}/data/0001"] == 5
    assert row_ids[f"{LOCATION}/data/0002"] == 20


def test_many_small_manifests_and_large_ones_make_one_plan() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(*(data_file(f"large-{n:04}", n, n, partition=("x",)) for n in range(700)))
    table.commit(*(data_file(f"small-{n:03}", n, n, partition=(str(n),)) for n in range(250)), apart=True)
    assert len(table.plan()) == 950
    assert table.planned("id = 249") == ["large-0249", "small-249"]
    warm = table.plan("id = 249")
    assert warm.metrics.manifests_cached == 251
    assert table.plan("id = 249 and city = '7'").metrics.manifests_kept == 1


def test_the_second_plan_reads_only_the_manifest_list() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a", 0, 9))
    table.plan()
    table.storage.reads.clear()
    assert table.planned("id = 5") == ["a"]
    assert [read.rpartition("/")[2].startswith("snap-") for read in table.storage.reads] == [True]


def test_a_cache_without_room_changes_nothing_but_the_reads() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a", 0, 9), data_file("b", 10, 19))
    table.storage.manifest_cache = ManifestCache(max_bytes=0)
    assert table.planned("id = 5") == ["a"]
    assert table.planned("id = 15") == ["b"]
    assert table.plan().metrics.manifests_cached == 0


def test_snapshots_of_old_v1_tables_that_name_their_manifests_are_planned() -> None:
    table = ManifestTable(SCHEMA, PartitionSpec(), BY_CITY_1, format_version=1)
    table.commit(data_file("a"), data_file("b", spec_id=1, partition=("x",)))
    manifests = tuple(manifest.manifest_path for manifest in table.manifests)
    snapshot = Snapshot(snapshot_id=5, timestamp_ms=1, manifest_locations=manifests)
    table.metadata = replace(table.metadata, snapshots=(snapshot,), current_snapshot_id=5)
    assert table.planned() == ["a", "b"]
    assert table.planned("city = 'y'") == ["a"]


def test_names_of_columns_match_in_any_case_where_asked() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a", 0, 9))
    assert table.planned("ID = 50", case_sensitive=False) == []
    with pytest.raises(UnknownColumnError, match="ID"):
        table.planned("ID = 50")


def test_what_does_not_compare_is_refused() -> None:
    with pytest.raises(TypeMismatchError):
        ManifestTable(SCHEMA).plan("id = 'x'")


def test_a_snapshot_that_the_table_does_not_have_is_named() -> None:
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 42"):
        ManifestTable(SCHEMA).plan(snapshot_id=42)


def test_a_missing_manifest_is_named_with_its_snapshot() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"))
    path = table.manifests[0].manifest_path
    table.storage.delete(path)
    with pytest.raises(MissingFileError, match=path) as caught:
        table.plan()
    assert f"snapshot {table.metadata.current_snapshot_id} of the table at {LOCATION}" in str(caught.value)


@pytest.mark.parametrize("files", [1, 600])
def test_a_damaged_manifest_is_named_and_never_planned(files: int) -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("good"))
    table.commit(*(data_file(f"{n}", n, n) for n in range(files)))
    path = table.manifests[0].manifest_path
    data = table.storage.files[path]
    table.storage.files[path] = data[:-120] + b"\xff" * 80 + data[-40:]
    with pytest.raises(CorruptManifestError, match=path):
        table.plan()


def test_a_spec_that_the_table_does_not_have_is_named() -> None:
    table = ManifestTable(SCHEMA, PartitionSpec(), BY_CITY_1)
    table.commit(data_file("a", spec_id=1, partition=("x",)))
    table.metadata = replace(table.metadata, partition_specs=(PartitionSpec(),), default_spec_id=0)
    with pytest.raises(CorruptMetadataError, match=r"partition spec 1, .* \[0\]"):
        table.plan()


def test_encrypted_manifests_are_refused() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"))
    table.commit_manifests([replace(table.manifests[0], key_metadata=b"k")], 99)
    with pytest.raises(UnsupportedError, match="encrypted"):
        table.plan()


def test_a_plan_without_a_cache_of_its_own_uses_the_one_of_the_process() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a", 0, 9))
    request = ScanRequest(table.metadata, row_filter=parse("id = 5"))
    plan_scan(request, table.storage)
    assert plan_scan(request, table.storage).metrics.manifests_cached == 1
