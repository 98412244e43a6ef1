from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.scan.appends import AppendRequest, plan_appends
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import to_bytes
from tests.support.snapshots import ManifestTable, names

SCHEMA = Schema(NestedField(1, "id", LongType()))


def data_file(path: str, value: int = 0, **more: Any) -> DataFile:
    bound = {1: to_bytes(LongType(), value)}
    base: dict[str, Any] = {"file_format": "PARQUET", "record_count": 1, "file_size_in_bytes": 7}
    return DataFile(**{**base, "file_path": path, "lower_bounds": bound, "upper_bounds": bound, **more})


def appended(table: ManifestTable, start: int | None = None, end: int | None = None, **more: Any) -> list[str]:
    request = AppendRequest(table.metadata, start, end, **more)
    return names(task.file for task in plan_appends(request, table.storage).tasks())


def marked(table: ManifestTable, snapshot_id: int, operation: str) -> None:
    """Changes what a snapshot's summary says that it did."""
    snapshots = tuple(
        replace(each, summary={"operation": operation}) if each.snapshot_id == snapshot_id else each
        for each in table.metadata.snapshots
    )
    table.metadata = replace(table.metadata, snapshots=snapshots)


def test_files_that_were_appended_after_a_snapshot_are_planned() -> None:
    table = ManifestTable(SCHEMA)
    first, second, third = (table.commit(data_file(name)).snapshot_id for name in "abc")
    assert appended(table) == ["a", "b", "c"]
    assert appended(table, first) == ["b", "c"]
    assert appended(table, first, second) == ["b"]
    assert appended(table, first, second, from_inclusive=True) == ["a", "b"]
    assert appended(table, third) == []
    assert appended(table, third, third, from_inclusive=True) == ["c"]


def test_files_of_other_operations_and_their_deletes_are_passed_over() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a"))
    overwrite = table.commit(data_file("b"), data_file("d", content=DataFileContent.POSITION_DELETES))
    table.commit(data_file("c"))
    marked(table, overwrite.snapshot_id, "overwrite")
    assert appended(table) == ["a", "c"]
    plan = plan_appends(AppendRequest(table.metadata), table.storage)
    assert not plan.has_deletes
    assert plan.files["record_count"].sum() == 2


def test_files_that_a_merging_append_carried_over_are_planned_once() -> None:
    table = ManifestTable(SCHEMA)
    first = table.commit(data_file("a"))
    carried = ManifestEntry(ManifestEntryStatus.EXISTING, first.snapshot_id, 1, 1, data_file("a"))
    table.manifests = []
    table.commit(data_file("b"), carried)
    assert appended(table) == ["a", "b"]
    assert appended(table, first.snapshot_id) == ["b"]


def test_appended_files_are_pruned() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(data_file("a", 1), data_file("b", 2))
    assert appended(table, row_filter=parse("id = 2")) == ["b"]


def test_the_first_snapshot_may_have_expired_where_only_its_child_is_wanted() -> None:
    table = ManifestTable(SCHEMA)
    first = table.commit(data_file("a")).snapshot_id
    table.commit(data_file("b"))
    table.metadata = replace(table.metadata, snapshots=table.metadata.snapshots[1:])
    assert appended(table, first) == ["b"]
    with pytest.raises(NoSuchSnapshotError, match=str(first)):
        appended(table, first, from_inclusive=True)


def test_snapshots_that_do_not_follow_each_other_are_refused() -> None:
    table = ManifestTable(SCHEMA)
    first, second = (table.commit(data_file(name)).snapshot_id for name in "ab")
    with pytest.raises(InvalidInputError, match=f"from snapshot {second} to {first}"):
        appended(table, second, first)
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 77777"):
        appended(table, None, 77777)


def test_a_table_without_snapshots_has_no_appends() -> None:
    assert appended(ManifestTable(SCHEMA)) == []
