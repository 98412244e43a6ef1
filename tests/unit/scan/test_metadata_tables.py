from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.scan.manifests.entry_frames import MAPS
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.scan.manifests.metric_columns import Metric
from hms_iceberg.scan.metadata_tables import (
    METADATA_TABLES,
    MetadataRequest,
    file_tables,
    metadata_table,
    metadata_table_parts,
    metadata_table_start,
)
from hms_iceberg.spec.data_types import DecimalType, DoubleType, LongType, NestedField, StringType, TimestampType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MetadataLogEntry, SnapshotRef
from hms_iceberg.spec.transforms.partition_transforms import DayTransform, IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from tests.support.every_type import EVERY_TYPE
from tests.support.snapshots import ManifestTable

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "city", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "price", DecimalType(9, 2)),
    NestedField(5, "f", DoubleType()),
)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
BY_CITY_AND_DAY = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "city"), PartitionField(3, 1001, DayTransform(), "ts_day"), spec_id=1
)


def data_file(path: str, **more: Any) -> DataFile:
    base: dict[str, Any] = {"file_path": path, "file_format": "PARQUET", "record_count": 10, "file_size_in_bytes": 100}
    return DataFile(**{**base, **more})


def rows(table: ManifestTable, name: str, **more: Any) -> list[dict[str, Any]]:
    found = metadata_table(name, MetadataRequest(table.metadata, table.storage, **more))
    assert found.frame.columns == [field.name for field in found.schema.fields]
    return found.frame.to_dicts()


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_every_table_of_an_empty_table_is_empty_and_has_its_columns(name: str) -> None:
    assert rows(ManifestTable(SCHEMA, BY_CITY), name) == []


def test_files_are_those_that_are_live_with_their_metrics_under_the_columns_names() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    price = to_bytes(DecimalType(9, 2), Decimal("1.50"))
    first = data_file(
        "a",
        partition=("x",),
        column_sizes={1: 7},
        value_counts={1: 10},
        null_value_counts={1: 2},
        lower_bounds={1: to_bytes(LongType(), -5), 2: b"x", 4: price},
        upper_bounds={1: to_bytes(LongType(), 5), 2: b"\xff"},
        split_offsets=(4,),
    )
    table.commit(first, data_file("d", partition=("x",), content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,)))
    table.commit(ManifestEntry(ManifestEntryStatus.DELETED, None, 1, 1, data_file("gone", partition=("y",))))
    a, d = sorted(rows(table, "files"), key=lambda row: row["file_path"])
    assert (a["content"], a["spec_id"], a["partition"], a["record_count"]) == (0, 0, {"city": "x"}, 10)
    assert a["column_sizes"] == [{"key": 1, "value": 7}]
    assert a["readable_metrics"]["id"] == {
        "column_size": 7,
        "value_count": 10,
        "null_value_count": 2,
        "nan_value_count": None,
        "lower_bound": -5,
        "upper_bound": 5,
    }
    assert list(a["readable_metrics"]) == ["city", "f", "id", "price", "ts"]
    assert str(a["readable_metrics"]["price"]["lower_bound"]) == "1.50"
    assert (a["readable_metrics"]["city"]["lower_bound"], a["readable_metrics"]["city"]["upper_bound"]) == ("x", None)
    assert d["equality_ids"] == [1]
    assert [row["file_path"] for row in rows(table, "data_files")] == ["a"]
    assert [row["file_path"] for row in rows(table, "delete_files")] == ["d"]


@pytest.mark.parametrize("name", ["files", "data_files", "delete_files", "entries", "all_files", "all_entries"])
def test_some_columns_are_those_of_the_whole_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    counted = data_file("a", partition=("x",), value_counts={1: 10}, lower_bounds={1: to_bytes(LongType(), -5)})
    deletes = data_file("d", partition=("x",), content=DataFileContent.POSITION_DELETES, upper_bounds={2: b"x"})
    table.commit(counted)
    table.commit(deletes)
    whole = rows(table, name)
    asked: list[Sequence[str]] = []
    entries, files = ManifestDecoder.entries, ManifestDecoder.files

    def remembering(decoder: ManifestDecoder, metrics: Sequence[str]) -> Any:
        asked.append(metrics)
        return entries(decoder, metrics)

    def remembering_maps(decoder: ManifestDecoder, metrics: Sequence[Metric] = ()) -> Any:
        asked.append([name for name, field_id in metrics if field_id is None])
        return files(decoder, metrics)

    monkeypatch.setattr(ManifestDecoder, "entries", remembering)
    monkeypatch.setattr(ManifestDecoder, "files", remembering_maps)
    for column in whole[0]:
        cache_of(table.storage).clear()
        assert rows(table, name, columns=[column]) == [{column: row[column]} for row in whole]
        is_map = column.endswith(("counts", "sizes", "_bounds"))
        maps = MAPS if column in ("data_file", "readable_metrics") else [column] if is_map else []
        assert asked and all(sorted(each) == sorted(maps) for each in asked)
        asked.clear()
    cache_of(table.storage).clear()
    some = rows(
        table,
        name,
        columns=["readable_metrics"],
        metrics={"id": ["upper_bound", "value_count"], "ts": ["nan_value_count"]},
    )
    whole_metrics = [row["readable_metrics"] for row in whole]
    assert some == [
        {
            "readable_metrics": {
                "id": {"value_count": row["id"]["value_count"], "upper_bound": row["id"]["upper_bound"]},
                "ts": {"nan_value_count": None},
            }
        }
        for row in whole_metrics
    ]
    assert asked and all(set(each) == {"value_counts", "nan_value_counts", "upper_bounds"} for each in asked)


def test_the_columns_of_an_empty_table_have_the_types_of_a_full_one() -> None:
    table = ManifestTable(EVERY_TYPE, format_version=3)
    empty = metadata_table("files", MetadataRequest(table.metadata, table.storage)).frame
    table.commit(data_file("a"))
    assert metadata_table("files", MetadataRequest(table.metadata, table.storage)).frame.schema == empty.schema


def test_maps_of_metrics_are_decoded_once_and_no_plan_takes_them_for_metrics() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.storage.manifest_cache = None
    table.commit(
        data_file("a", partition=("x",), value_counts={1: 10, 2: -1}, lower_bounds={1: to_bytes(LongType(), 5)}),
        data_file("b", partition=("y",), upper_bounds={1: to_bytes(LongType(), 4)}),
        data_file("d", content=DataFileContent.EQUALITY_DELETES, partition=("x",), value_counts={1: 3}),
    )
    for columns in (["file_path"], ["file_path", "value_counts"]):  # the second finds files without maps
        rows(table, "files", columns=columns)
    whole = rows(table, "files")
    assert [(row["value_counts"], row["lower_bounds"]) for row in whole if row["file_path"] != "b"] == [
        ([{"key": 1, "value": 10}, {"key": 2, "value": -1}], [{"key": 1, "value": to_bytes(LongType(), 5)}]),
        ([{"key": 1, "value": 3}], None),
    ]
    assert [row["file_path"] for row in table.plan("id > 4").files.to_dicts()] == ["a"]
    for manifest in table.manifests:
        table.storage.delete(manifest.manifest_path)
    assert rows(table, "files") == whole


def test_files_of_a_table_that_was_never_partitioned_have_no_partition() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"))
    (row,) = rows(table, "files")
    assert "partition" not in row


def test_entries_include_removals_and_what_they_inherit() -> None:
    table = ManifestTable(SCHEMA, UNPARTITIONED, format_version=3)
    snapshot = table.commit(
        data_file("a"),
        ManifestEntry(ManifestEntryStatus.DELETED, None, 0, 0, data_file("gone")),
        data_file("b"),
    )
    found = [
        (
            row["status"],
            row["snapshot_id"],
            row["sequence_number"],
            row["data_file"]["file_path"],
            row["data_file"]["first_row_id"],
        )
        for row in rows(table, "entries")
    ]
    assert found == [
        (1, snapshot.snapshot_id, 1, "a", 0),
        (2, snapshot.snapshot_id, 0, "gone", None),
        (1, snapshot.snapshot_id, 1, "b", 10),
    ]


def test_tables_of_an_older_snapshot_and_of_all_snapshots() -> None:
    table = ManifestTable(SCHEMA)
    first = table.commit(data_file("a"))
    table.manifests = []
    second = table.commit(data_file("b"))
    assert [row["file_path"] for row in rows(table, "files")] == ["b"]
    assert [row["file_path"] for row in rows(table, "files", snapshot_id=first.snapshot_id)] == ["a"]
    assert sorted(row["file_path"] for row in rows(table, "all_files")) == ["a", "b"]
    assert sorted(row["data_file"]["file_path"] for row in rows(table, "all_entries")) == ["a", "b"]
    assert [row["reference_snapshot_id"] for row in rows(table, "all_manifests")] == [
        first.snapshot_id,
        second.snapshot_id,
    ]


@pytest.mark.parametrize("most", [1, 2, 3, 100])
@pytest.mark.parametrize("name", file_tables.TABLES)
def test_parts_below_one_another_are_the_table(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tables, "_PART_ENTRIES", 1)
    table = ManifestTable(SCHEMA, BY_CITY)
    for number in range(5):
        table.commit(*(data_file(f"{number}-{each}", partition=("x",), value_counts={1: 3}) for each in range(number)))
    table.commit(data_file("d", partition=("x",), content=DataFileContent.POSITION_DELETES))
    parts = metadata_table_parts(name, MetadataRequest(table.metadata, table.storage), most)
    found = [metadata_table(name, part) for part in parts]
    assert (1 if most == 1 else 2) <= len(parts) <= most
    assert [row for part in found for row in part.frame.to_dicts()] == rows(table, name)
    assert len({part.schema for part in found}) == 1
    cheap = MetadataRequest(table.metadata, table.storage, columns=["file_path", "status"])
    assert metadata_table_parts(name, cheap, most) == [cheap]


@pytest.mark.parametrize("name", file_tables.TABLES)
def test_the_first_rows_need_only_the_first_manifests(name: str) -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    for number in range(1, 4):
        table.commit(*(data_file(f"{number}-{each}", partition=("x",)) for each in range(number)))
    table.commit(data_file("d", partition=("x",), content=DataFileContent.POSITION_DELETES))
    request, whole = MetadataRequest(table.metadata, table.storage), rows(table, name)
    for count in range(len(whole) + 2):
        some = metadata_table_start(name, request, count)
        found = metadata_table(name, some).frame.to_dicts()
        assert found == whole[: len(found)] and len(found) >= min(count, len(whole))
        assert some.listed is not None and len(some.listed) <= max(count, 0) + 1


def test_manifests_count_data_and_delete_files_apart_and_show_partitions_as_text() -> None:
    table = ManifestTable(SCHEMA, BY_CITY, BY_CITY_AND_DAY)
    table.commit(
        data_file("a", spec_id=1, partition=("x", 0)),
        data_file("b", spec_id=1, partition=(None, 364)),
        data_file("d", partition=(None,), content=DataFileContent.POSITION_DELETES),
    )
    data, deletes = rows(table, "manifests")
    assert (data["content"], data["added_data_files_count"], data["added_delete_files_count"]) == (0, 2, 0)
    assert (deletes["content"], deletes["added_data_files_count"], deletes["added_delete_files_count"]) == (1, 0, 1)
    assert data["partition_summaries"] == [
        {"contains_null": True, "contains_nan": False, "lower_bound": "x", "upper_bound": "x"},
        {"contains_null": False, "contains_nan": False, "lower_bound": "1970-01-01", "upper_bound": "1970-12-31"},
    ]
    only_null = {"contains_null": True, "contains_nan": False, "lower_bound": "null", "upper_bound": "null"}
    assert deletes["partition_summaries"] == [only_null]  # Java's words


def test_partitions_that_differ_in_a_dropped_column_alone_are_one() -> None:
    table = ManifestTable(SCHEMA, BY_CITY, BY_CITY_AND_DAY)
    table.commit(
        data_file("a", partition=("x",)),
        data_file("b", spec_id=1, partition=("x", 0)),
        data_file("c", spec_id=1, partition=("x", 1)),
        data_file("d", spec_id=1, partition=(None, 1)),
    )
    assert [row["file_count"] for row in rows(table, "partitions")] == [1, 1, 1, 1]
    kept = Schema(*(field for field in SCHEMA.fields if field.name != "ts"))
    table.metadata = replace(table.metadata, schemas=(kept,))
    found = [(row["partition"], row["file_count"], row["record_count"]) for row in rows(table, "partitions")]
    assert found == [({"city": None}, 1, 10), ({"city": "x"}, 3, 30)]


def test_partitions_sum_up_files_and_deletes_and_tell_a_missing_field_from_null() -> None:
    table = ManifestTable(SCHEMA, BY_CITY, BY_CITY_AND_DAY)
    first = table.commit(data_file("a", partition=("x",)), data_file("b", partition=("x",)))
    second = table.commit(
        data_file("c", spec_id=1, partition=("x", None)),
        data_file("d", partition=("x",), content=DataFileContent.POSITION_DELETES, record_count=3),
        data_file("e", partition=("y",), content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,)),
    )
    found = {(row["partition"]["city"], row["spec_id"]): row for row in rows(table, "partitions")}
    assert set(found) == {("x", 0), ("x", 1), ("y", 0)}
    old = found["x", 0]
    assert (old["record_count"], old["file_count"], old["total_data_file_size_in_bytes"]) == (20, 2, 200)
    assert (old["position_delete_record_count"], old["position_delete_file_count"]) == (3, 1)
    assert old["last_updated_snapshot_id"] == second.snapshot_id
    assert found["y", 0]["equality_delete_file_count"] == 1
    assert found["x", 1]["partition"] == {"city": "x", "ts_day": None}
    assert first.timestamp_ms < second.timestamp_ms
    assert old["last_updated_at"] == second.timestamp_ms * 1000


def test_a_table_that_was_never_partitioned_is_one_partition() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"), data_file("b"))
    (row,) = rows(table, "partitions")
    assert (row["record_count"], row["file_count"]) == (20, 2)
    assert "partition" not in row
    assert "spec_id" not in row


def test_the_partition_has_no_field_of_a_dropped_column_as_in_java() -> None:
    table = ManifestTable(SCHEMA, BY_CITY)
    table.commit(data_file("a", partition=("x",)))
    table.with_schema(Schema(SCHEMA.fields[0], schema_id=1))
    (row,) = rows(table, "files")
    assert "partition" not in row
    (row,) = rows(table, "partitions")
    assert (row["file_count"], "partition" in row) == (1, False)


def test_snapshots_history_and_refs_follow_the_metadata() -> None:
    table = ManifestTable(SCHEMA)
    first, second = table.commit(data_file("a")), table.commit(data_file("b"))
    tag = SnapshotRef(first.snapshot_id, "tag", max_ref_age_ms=5)  # type: ignore[arg-type]
    table.metadata = replace(table.metadata, refs={**table.metadata.refs, "t": tag})
    snapshots = rows(table, "snapshots")
    assert [(row["snapshot_id"], row["parent_id"], row["operation"]) for row in snapshots] == [
        (first.snapshot_id, None, "append"),
        (second.snapshot_id, first.snapshot_id, "append"),
    ]
    assert snapshots[0]["committed_at"] == first.timestamp_ms * 1000
    assert snapshots[0]["summary"] == []
    assert [(row["snapshot_id"], row["is_current_ancestor"]) for row in rows(table, "history")] == [
        (first.snapshot_id, True),
        (second.snapshot_id, True),
    ]
    assert {(row["name"], row["type"], row["max_reference_age_in_ms"]) for row in rows(table, "refs")} == {
        ("main", "BRANCH", None),
        ("t", "TAG", 5),
    }


def test_metadata_log_entries_name_the_snapshot_that_was_current_then() -> None:
    table = ManifestTable(SCHEMA)
    snapshot = table.commit(data_file("a"))
    log = (MetadataLogEntry("v0.json", snapshot.timestamp_ms - 1), MetadataLogEntry("v1.json", snapshot.timestamp_ms))
    table.metadata = replace(table.metadata, metadata_log=log)
    found = [
        (row["file"], row["latest_snapshot_id"], row["latest_sequence_number"])
        for row in rows(table, "metadata_log_entries", metadata_location="v2.json")
    ]
    assert found == [
        ("v0.json", None, None),
        ("v1.json", snapshot.snapshot_id, 1),
        ("v2.json", snapshot.snapshot_id, 1),
    ]


def test_unknown_names_and_snapshots_are_refused() -> None:
    table = ManifestTable(SCHEMA)
    with pytest.raises(InvalidInputError, match="No metadata table 'fils': expected one of all_data_files"):
        rows(table, "fils")
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 5"):
        rows(table, "files", snapshot_id=5)
