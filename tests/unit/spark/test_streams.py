"""How far a batch of a stream goes, and what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError, UnsupportedError
from hms_iceberg.spark.read_questions import CheckStream, FirstOffset, LatestOffset, StreamBatch
from hms_iceberg.spark.reading.streams import check_stream, first_offset, latest_offset, plan_batch
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables

BY_PART = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))


def rows(*parts: int) -> pa.Table:
    """One row for each part, so one file each."""
    return pa.table({"id": pa.array(range(len(parts)), pa.int64()), "part": pa.array(parts, pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three files, then two."""
    made = FileSystemTables().create(rows(1).schema, str(tmp_path / "t"), BY_PART)
    made.append(rows(1, 2, 3))
    made.append(rows(4, 5))
    return made


def latest(table: Table, start: dict[str, Any] | None = None, everything: bool = False, **options: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    start = start or first_offset(table.metadata, table.storage, FirstOffset(named))["offset"]
    asked = LatestOffset("t", everything, named, start)
    return latest_offset(table.metadata, table.storage, asked)["offset"]


def parts(table: Table, start: dict[str, Any] | None, end: dict[str, Any], **options: str) -> list[int]:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    batch = StreamBatch(end, named, start)
    plan = plan_batch(table.metadata, table.storage, "t", table.metadata.current_schema_id, batch)
    (column,) = plan.partitions.columns(0)
    return sorted(plan.files[column].to_list())


def at(table: Table, snapshot: int, position: int) -> dict[str, Any]:
    snapshot_id = table.metadata.snapshots[snapshot].snapshot_id
    return {"version": 1, "snapshot_id": snapshot_id, "position": position, "scan_all_files": False}


def test_a_stream_begins_with_the_oldest_snapshot_and_ends_with_the_newest(table: Table) -> None:
    end = latest(table)
    assert end == at(table, 1, 2)
    assert parts(table, None, end) == [1, 2, 3, 4, 5]
    assert latest(table, end) is None


def test_limits_of_files_end_a_batch_within_a_snapshot(table: Table) -> None:
    offset, batches = None, []
    while (end := latest(table, offset, streaming_max_files_per_micro_batch="2")) is not None:
        batches.append(parts(table, offset, end))
        offset = end
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert sorted(part for batch in batches for part in batch) == [1, 2, 3, 4, 5]
    assert latest(table, everything=True, streaming_max_files_per_micro_batch="2") == at(table, 1, 2)


def test_limits_of_rows_take_at_least_a_file(table: Table) -> None:
    assert latest(table, streaming_max_rows_per_micro_batch="1") == at(table, 0, 1)
    assert latest(table, streaming_max_rows_per_micro_batch="2") == at(table, 0, 2)
    table.append(pa.concat_tables([rows(6)] * 9))
    big = at(table, 1, 2)
    assert latest(table, big, streaming_max_rows_per_micro_batch="5") == at(table, 2, 1)


def test_a_stream_from_a_time_leaves_older_snapshots_out(table: Table) -> None:
    second = table.metadata.snapshots[1]
    options = {"stream_from_timestamp": str(second.timestamp_ms)}
    end = latest(table, **options)
    assert parts(table, None, end, **options) == [4, 5]
    assert latest(table, stream_from_timestamp=str(second.timestamp_ms + 1)) is None


def test_a_stream_of_an_empty_table_begins_with_its_first_snapshot(tmp_path: Path) -> None:
    table = FileSystemTables().create(rows(1).schema, str(tmp_path / "empty"), BY_PART)
    assert latest(table) is None
    table.append(rows(7))
    of_java = {"version": 1, "snapshot_id": -1, "position": -1, "scan_all_files": False}
    assert parts(table, of_java, latest(table, of_java)) == [7]


def test_deleted_and_overwritten_rows_are_refused_or_passed_over(table: Table) -> None:
    start = latest(table)
    table.delete("part = 4")
    with pytest.raises(UnsupportedError, match=r"is delete, .*streaming-skip-delete-snapshots"):
        latest(table, start)
    passing = {"streaming_skip_delete_snapshots": "true"}
    assert latest(table, start, **passing) is None
    table.overwrite(rows(8), "part = 1")
    assert [str(each.operation) for each in table.metadata.snapshots[2:]] == ["delete", "overwrite"]
    table.append(rows(9))
    passing["streaming_skip_overwrite_snapshots"] = "true"
    end = latest(table, start, **passing)
    assert 9 in parts(table, start, end, **passing)
    assert pc.max(table.scan().to_arrow()["part"]).as_py() == 9


def test_an_expired_or_foreign_offset_is_refused(table: Table) -> None:
    gone = {**at(table, 0, 1), "snapshot_id": 77}
    with pytest.raises(NoSuchSnapshotError, match=r"its snapshot 77, which the checkpoint names, has expired"):
        latest(table, gone)
    with pytest.raises(NoSuchSnapshotError, match=r"its snapshot 77, which the checkpoint names"):
        parts(table, None, gone)
    with pytest.raises(UnsupportedError, match=r"expected an offset of version 1"):
        latest(table, {**at(table, 0, 1), "scan_all_files": True})
    for damaged in ({"version": 1}, {**at(table, 0, 1), "position": None}, {"logOffset": 3}):
        with pytest.raises(UnsupportedError, match=r"expected an offset of version 1"):
            latest(table, damaged)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"branch": "main"}, r"Cannot stream the table t: the option branch selects"),
        ({"streaming-max-files-per-micro-batch": "0"}, r"expected a number from 1"),
        ({"streaming-skip-delete-snapshots": "perhaps"}, r"not true or false"),
        ({"stream-from": "1"}, r"unknown option 'stream-from'; did you mean 'stream-from-timestamp'"),
    ],
)
def test_options_that_a_stream_cannot_have(table: Table, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_stream(table.metadata, table.storage, CheckStream("t", options))
