"""Scans of real files: parts of plans and of files, limits, and counts that open no data file."""

from __future__ import annotations

import datetime as dt
import weakref
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.formats import parquet_frames
from hms_iceberg.arrow.formats.parquet_frames import FrameReader
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import MissingFileError, UnknownColumnError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.scan.planner import plan_parts, plan_scan
from hms_iceberg.scan.tasks import ScanRequest
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, TimestampType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform
from hms_iceberg.table import Table
from tests.support.row_tables import arrow, create, ids, live, numbered, row
from tests.support.tables import BY_CITY


def without_data_files(table: Table) -> Table:
    """Removes the data files, so that a read of one fails."""
    for file in live(table):
        if file.is_data:
            Path(file.file_path.removeprefix("file:")).unlink()
    return table


def test_groups_of_parts_read_every_row_once(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "merge-on-read", **{"write.parquet.row-group-limit": "10"})
    table.append(numbered(0, 95))
    table.append(numbered(95, 100))
    table.delete("id in (3, 50, 97)")
    scan = table.scan(options={"read.split.target-size": "2000", "read.split.open-file-cost": "1"})
    groups = list(scan.plan_tasks())
    assert len(groups) > 5
    parts = [scan.read(group.tasks).read_all()["id"].to_pylist() for group in groups]
    assert max(map(len, parts)) < 40
    assert sorted(chain(*parts)) == ids(table)
    assert sum(group.estimated_rows_count for group in groups) <= 100
    (whole,) = table.scan().plan_tasks()
    assert len(whole.tasks) == 2


def test_a_plan_in_parts_is_the_whole_plan(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "merge-on-read", spec=BY_CITY)
    for start in range(0, 50, 10):
        table.append(numbered(start, start + 10))
    with table.new_row_delta() as delta:
        delta.delete_equal(arrow([row(key) for key in range(3, 30)]).select(["id", "city"]), ["id"])
    request = ScanRequest(table.metadata, row_filter=parse("id > 12 and city is not null"))
    whole = plan_scan(request, table.storage)
    parts = list(plan_parts(request, table.storage, entries=5))
    assert len(parts) > 1
    assert [task for part in parts for task in part.tasks()] == list(whole.tasks())
    assert any(task.delete_files for task in whole.tasks())
    (empty,) = plan_parts(ScanRequest(create(tmp_path / "empty").metadata), table.storage)
    assert len(empty) == 0


def test_a_plan_in_parts_reads_and_holds_one_part_at_a_time(tmp_path: Path) -> None:
    table = create(tmp_path, 2, "merge-on-read")
    for start in range(0, 60, 10):
        table.append(numbered(start, start + 10))
    read: list[str] = []

    class Counted(ArrowStorage):
        def read(self, location: str) -> bytes:
            read.append(location)
            return super().read(location)

    parts = []
    for part in plan_parts(ScanRequest(table.metadata), Counted({"io.manifest.cache.max-total-bytes": "0"}), entries=2):
        parts.append(weakref.ref(part))
        assert len(part) == 2
        assert len([location for location in read if "-m" in location]) == 2 * len(parts)
        assert sum(each() is not None for each in parts) <= 2
        part = None
    assert len(parts) == 3


def test_a_wrong_filter_is_refused_by_the_call_not_by_the_first_row(tmp_path: Path) -> None:
    scan = create(tmp_path).scan("cty = 'Rome'")
    for read in (scan.plan_files, scan.to_arrow_batch_reader, scan.plan_tasks, scan.count):
        with pytest.raises(UnknownColumnError, match="city"):
            read()


@pytest.mark.parametrize("content", ["data", "deletes", "manifest list"])
def test_a_missing_file_names_itself_and_the_snapshot_that_needs_it(tmp_path: Path, content: str) -> None:
    table = create(tmp_path, 2, "merge-on-read")
    table.append(numbered(0, 10))
    table.delete("id = 3")
    (task,) = table.scan().plan_files()
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    paths = {"data": task.file.file_path, "deletes": task.delete_files[0].file_path}
    missing = paths.get(content, snapshot.manifest_list)
    table.storage.delete(missing)
    calls = [lambda: table.scan().to_arrow(), lambda: list(table.scan().to_arrow_batch_reader())]
    for call in calls:
        with pytest.raises(MissingFileError) as caught:
            call()
        assert missing in str(caught.value)
        assert f"snapshot {snapshot.snapshot_id} of the table at {table.location()}" in str(caught.value)


def test_a_limit_opens_no_more_files_than_it_needs(tmp_path: Path) -> None:
    table = create(tmp_path)
    for start in range(0, 30, 10):
        table.append(numbered(start, start + 10))
    newest, *others = [task.file.file_path for task in table.scan().plan_files()]
    for path in others:
        Path(path.removeprefix("file:")).unlink()
    assert table.scan(limit=10).to_arrow().num_rows == 10
    assert table.scan(limit=3).to_arrow()["id"].to_pylist() == [20, 21, 22]
    assert table.scan(limit=0).to_arrow().num_rows == 0
    with pytest.raises(MissingFileError, match=r"\.parquet"):
        table.scan(limit=11).to_arrow()
    assert table.scan(limit=11).count() == 11
    assert newest


@pytest.mark.parametrize("limit", [0, 1, 9, 10, 11, 25, 59, 60, 61])
def test_a_limit_gives_the_first_rows_and_decodes_no_more_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    original, decoded = FrameReader.read, []

    def spy(self: FrameReader, *given: Any) -> Any:
        found = original(self, *given)
        assert found is not None
        decoded.append(found.count)
        return found

    monkeypatch.setattr(FrameReader, "read", spy)
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
    monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", 0)
    table = create(tmp_path, 2, "merge-on-read", **{"write.parquet.row-group-limit": "10"})
    table.append(numbered(0, 30))
    table.append(numbered(30, 60))
    names = ("id", "city", "_pos")
    rows = table.scan(selected_fields=names).to_arrow()
    decoded.clear()
    assert table.scan(selected_fields=names, limit=limit).to_arrow().equals(rows.slice(0, limit))
    assert bool(decoded) == bool(limit)
    assert max(decoded, default=0) <= limit
    table.delete("id in (0, 5, 31)")
    for text in ("true", "id >= 7", "id >= 7 and id != 12"):
        kept = table.scan(text, names).to_arrow()
        assert table.scan(text, names, limit=limit).to_arrow().equals(kept.slice(0, limit)), text


COUNTED = {
    "true": 120,
    "false": 0,
    "id >= 0": 120,
    "id < 60": 60,
    "id >= 60 and city is not null": 60,
    "city = 'Rome'": 40,
    "city is null or id < 0": 0,
    "city = 'Rome' and id < 60": 20,
    "not (city = 'Rome' and id < 60)": 100,
    "city in ('Rome', 'Oslo') and amount >= 0": 80,
}


@pytest.mark.parametrize(("text", "rows"), COUNTED.items())
def test_files_that_metrics_decide_are_counted_without_being_opened(tmp_path: Path, text: str, rows: int) -> None:
    table = create(tmp_path, 2, spec=BY_CITY)
    cities = ("Oslo", "Rome", "Bonn")
    for start in (0, 60):
        table.append(arrow(row(key, city=cities[key % 3], amount=key) for key in range(start, start + 60)))
    assert without_data_files(table).scan(text).count() == rows
    assert table.scan(text, limit=7).count() == min(rows, 7)


def test_files_that_metrics_do_not_decide_are_read(tmp_path: Path) -> None:
    table = create(tmp_path, 2)
    table.append(arrow([row(1, amount=None), row(2, amount=4), row(3, amount=5)]))
    table.append(numbered(10, 20))
    assert table.scan("amount >= 4").count() == 12
    assert table.scan("not amount < 4").count() == 12
    assert table.scan("amount is null").count() == 1
    assert table.scan("id between 2 and 12").count() == 5
    with pytest.raises(MissingFileError):
        without_data_files(table).scan("amount >= 4").count()


@pytest.mark.parametrize("version", [2, 3])
def test_rows_less_position_deletes_are_counted_without_opening_data_files(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version, "merge-on-read")
    table.append(numbered(0, 20))
    table.append(numbered(20, 40))
    table.delete("id in (3, 4, 25)")
    table.delete("id = 5")
    assert without_data_files(table).scan().count() == 36
    assert table.scan("id < 100").count() == 36


def test_equality_deletes_are_looked_up(tmp_path: Path) -> None:
    table = create(tmp_path, 2)
    table.append(numbered(0, 20))
    with table.new_row_delta() as delta:
        delta.delete_equal(arrow([row(3), row(77)]).select(["id"]), ["id"])
    assert table.scan().count() == 19


def test_nan_and_partitions_by_time_are_counted_right(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "at", TimestampType()), NestedField(3, "x", DoubleType())
    )
    table = create(tmp_path, 2, schema=schema, spec=PartitionSpec(PartitionField(2, 1000, DayTransform(), "day")))
    start = dt.datetime(2026, 1, 1)
    rows: list[dict[str, Any]] = [
        {"id": key, "at": start + dt.timedelta(hours=key), "x": float("nan") if key % 5 == 0 else float(key)}
        for key in range(72)
    ]
    table.append(pa.Table.from_pylist(rows))
    assert table.scan("x > 10").count() == sum(1 for each in rows if not each["x"] <= 10)
    assert table.scan("x <= 100").count() == sum(1 for each in rows if each["x"] <= 100)
    assert table.scan("x is not nan").count() == sum(1 for each in rows if each["x"] == each["x"])
    assert table.scan("at < '2026-01-02 07:00:00'").count() == 31
    assert without_data_files(table).scan("at >= '2026-01-02' and at < '2026-01-03 00:00:00'").count() == 24


# ---------------------------------------------------------------------------------- filters on metadata columns


@pytest.fixture(params=[2, 3])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Rows in several files of two specs and several row groups, some deleted, some updated."""
    table = create(tmp_path, request.param, "merge-on-read", spec=BY_CITY, **{"write.parquet.row-group-limit": "3"})
    table.append(numbered(0, 30))
    with table.update_spec() as spec:
        spec.remove_field("city")
        spec.add_field("id", BucketTransform(2), "id_bucket")
    table.append(numbered(30, 40))
    table.delete("id in (4, 31)")
    table.update({"amount": 7}, "id in (9, 33)")
    return table


METADATA_FILTERS = {
    "_spec_id = 0": lambda row: row["_spec_id"] == 0,
    "_spec_id != 0 and id > 35": lambda row: row["_spec_id"] != 0 and row["id"] > 35,
    "_pos between 2 and 4": lambda row: 2 <= row["_pos"] <= 4,
    "_pos < 2 or _spec_id = 1": lambda row: row["_pos"] < 2 or row["_spec_id"] == 1,
    "not _pos < 5": lambda row: row["_pos"] >= 5,
    "_partition.city = 'Rome'": lambda row: row["_partition"]["city"] == "Rome",
    "_partition.city is null": lambda row: row["_partition"]["city"] is None,
    "_partition.city like 'Ro%' or _pos = 1": lambda row: row["_partition"]["city"] == "Rome" or row["_pos"] == 1,
    "_partition.id_bucket = 1": lambda row: row["_partition"]["id_bucket"] == 1,
    "_file like 'x%'": lambda row: False,
    "_file is not null and city = 'Oslo'": lambda row: row["city"] == "Oslo",
    "_deleted = true": lambda row: False,
    "_row_id in (3, 31, 38)": lambda row: row["_row_id"] in (3, 31, 38),
    "_row_id is null": lambda row: row["_row_id"] is None,
    "_row_id >= 20 or _pos = 0": lambda row: (row["_row_id"] or 0) >= 20 or row["_pos"] == 0,
    "_last_updated_sequence_number > 2": lambda row: (row["_last_updated_sequence_number"] or 0) > 2,
}
METADATA_COLUMNS = ("_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")


def test_rows_can_be_filtered_by_metadata_columns(stored: Table) -> None:
    every = stored.scan(selected_fields=("*", *METADATA_COLUMNS)).to_arrow().to_pylist()
    assert len(every) == 38
    path = every[7]["_file"]
    filters = {**METADATA_FILTERS, f"_file = '{path}'": lambda row: row["_file"] == path}
    for text, wanted in filters.items():
        expected = sorted(row["id"] for row in every if wanted(row))
        assert sorted(stored.scan(text, ("id",)).to_arrow()["id"].to_pylist()) == expected, text
        assert stored.scan(text).count() == len(expected), text


def test_only_files_that_a_metadata_column_leaves_are_planned_and_only_row_groups_read(stored: Table) -> None:
    everything = list(stored.scan().plan_files())
    path = everything[0].file.file_path
    (task,) = stored.scan(f"_file = '{path}'").plan_files()
    assert task.file.file_path == path
    assert str(task.residual) == "true"
    of_spec = [task.file.spec_id for task in stored.scan("_spec_id = 1 and id > 0").plan_files()]
    assert set(of_spec) == {1} and len(of_spec) < len(everything)
    rome = list(stored.scan("_partition.city = 'Rome'").plan_files())
    assert {task.file.partition for task in rome} == {("Rome",)}
    assert stored.scan("_partition.city = 'Rome'").count() == sum(task.file.record_count for task in rome) - 1


def test_a_column_of_the_table_comes_before_a_metadata_column_of_its_name(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "_pos", LongType()), NestedField(2, "x", LongType()))
    table = create(tmp_path, schema=schema)
    table.append(pa.table({"_pos": [10, 20], "x": [1, 2]}))
    assert table.scan("_pos = 20", ("x",)).to_arrow()["x"].to_pylist() == [2]


def test_a_wrong_name_of_a_metadata_column_is_an_unknown_column(stored: Table) -> None:
    with pytest.raises(UnknownColumnError, match="_flie"):
        stored.scan("_flie = 'x'").to_arrow()
    with pytest.raises(UnknownColumnError, match="nothing"):
        stored.scan("_partition.nothing = 1").to_arrow()


def test_changes_can_be_filtered_by_metadata_columns(stored: Table) -> None:
    changes = stored.changelog_scan(row_filter="_spec_id = 1").to_arrow()
    assert min(changes["id"].to_pylist()) >= 9
    assert set(changes["_change_type"].to_pylist()) == {"INSERT", "DELETE"}
