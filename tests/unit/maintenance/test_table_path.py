"""A table whose paths are rewritten is, once it is copied, the same table elsewhere."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.arrow.deletes.puffin import copy_puffin
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError, InvalidInputError, StorageError
from hms_iceberg.maintenance import check_table, expire_snapshots, rewrite_table_path
from hms_iceberg.maintenance.check.findings import WrongSummary
from hms_iceberg.maintenance.table_path import TablePathResult
from hms_iceberg.spec.manifests.manifest_values import ManifestEntryStatus
from hms_iceberg.table import Table
from hms_iceberg.table.readable import StaticTable
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from tests.support.hdfs_path import copy_files, local_path, remove_folder
from tests.support.operations import BY_CITY, MERGE_ON_READ, OPERATIONS, SCHEMA, begin, rows
from tests.support.row_tables import create


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def made(folder: Path, version: int = 2, **properties: str) -> Table:
    table = create(folder, version, schema=SCHEMA, spec=BY_CITY, **properties)
    begin(table)
    return table


def copy(result: TablePathResult) -> None:
    """Copies what the file list names, as any tool would."""
    listed = local_path(result.file_list_location).read_bytes().decode()
    copies = dict(csv.reader(listed.splitlines()))
    assert copies == result.copies
    copy_files((local_path(origin), local_path(place)) for origin, place in copies.items())


def opened(target: Path, result: TablePathResult) -> StaticTable:
    return StaticTable.from_metadata(f"{target}/events/metadata/{result.latest_version}")


def content(table: Any, snapshot_id: int) -> list[str]:
    return sorted(map(repr, table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()))


def contents(table: Any) -> dict[int, list[str]]:
    return {each.snapshot_id: content(table, each.snapshot_id) for each in table.metadata.snapshots}


def findings(table: Any) -> list[type]:
    """What is wrong with a table, but for sizes in summaries: delete files with other paths have other sizes."""
    found = check_table(table, record_counts=True).findings
    return [type(each) for each in found if not (isinstance(each, WrongSummary) and each.key.endswith("files-size"))]


# Deletes are of another form in version 2.
DELETES = ("delete_rows_merge_on_read", "delete_rows_by_partition", "row_delta", "orc_data_and_deletes", "upgrade")
CASES = [(name, 3) for name, each in OPERATIONS.items() if 3 in each.versions]
CASES += [(name, 2) for name in (*DELETES, "equality_deletes", "avro_data_and_deletes")]


@pytest.mark.parametrize(("name", "version"), [*CASES, ("upgrade", 1), ("update_copy_on_write", 1)])
def test_a_copied_table_has_every_row_of_every_snapshot(source: Path, target: Path, name: str, version: int) -> None:
    table = made(source, version, **OPERATIONS[name].properties)
    OPERATIONS[name].run(table)
    table.refresh()
    before, found = contents(table), findings(table)
    result = rewrite_table_path(table, str(source), str(target))
    assert result.latest_version == local_path(table.metadata_location).name
    copy(result)
    remove_folder(source)  # nothing of the copy may point back
    copied = opened(target, result)
    assert contents(copied) == before
    assert findings(copied) == found
    assert str(source) not in copied.storage.read(copied.metadata_location).decode()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("data_format", ["parquet", "orc", "avro"])
def test_what_came_after_a_version_is_enough_for_a_table_that_was_copied_then(
    source: Path, target: Path, version: int, data_format: str
) -> None:
    table = made(source, version, **MERGE_ON_READ, **{"write.format.default": data_format})
    table.delete("id = 2")
    copy(rewrite_table_path(table, str(source), f"{target}/"))
    first = local_path(table.metadata_location).name
    known = {path for path in target.rglob("*") if path.is_file()}
    table.delete("id = 1")  # in version 3 a vector that takes the place of one that was copied
    table.append(rows(20))
    table.rewrite_manifests().commit()
    expire_snapshots(table, snapshot_ids=[table.snapshots()[0].snapshot_id])
    result = rewrite_table_path(table, str(source), str(target), start_version=first)
    assert {local_path(place) for place in result.copies.values()}.isdisjoint(known)
    copy(result)
    before = contents(table)
    remove_folder(source)
    copied = opened(target, result)
    assert contents(copied) == before and findings(copied) == []


def test_an_earlier_version_can_be_the_end(source: Path, target: Path) -> None:
    table = made(source)
    middle, before = local_path(table.metadata_location).name, contents(table)
    table.append(rows(20))
    result = rewrite_table_path(table, str(source), str(target), end_version=middle)
    copy(result)
    assert result.latest_version == middle and contents(opened(target, result)) == before


def test_files_of_snapshots_that_no_metadata_knows_any_more_are_copied(source: Path, target: Path) -> None:
    table = made(source, **{"write.metadata.previous-versions-max": "1"})
    expire_snapshots(table, older_than=2**62)
    table.append(rows(20))
    table.append(rows(21))
    before = content(table, table.current_snapshot().snapshot_id)
    result = rewrite_table_path(table, str(source), str(target))
    copy(result)
    remove_folder(source)
    copied = opened(target, result)
    assert content(copied, copied.current_snapshot().snapshot_id) == before


def test_removed_files_are_renamed_and_not_copied(source: Path, target: Path) -> None:
    table = made(source)
    table.delete("city = 'Bonn'")
    result = rewrite_table_path(table, str(source), str(target))
    copy(result)
    copied = opened(target, result)
    removed = [
        entry.data_file.file_path
        for manifest in manifest_list_of(copied.current_snapshot(), copied.storage)
        for entry in entries_of(manifest, copied.storage)
        if entry.status is ManifestEntryStatus.DELETED
    ]
    assert removed and all(path.startswith(str(target)) for path in removed)


def test_properties_that_name_folders_move_with_the_table(source: Path, target: Path) -> None:
    table = made(
        source, **{"write.data.path": f"{source}/events/files", "write.metadata.path": f"{source}/events/meta"}
    )
    result = rewrite_table_path(table, str(source), str(target))
    copy(result)
    copied = StaticTable.from_metadata(f"{target}/events/meta/{result.latest_version}")
    assert copied.properties["write.data.path"] == f"{target}/events/files"
    assert contents(copied) == contents(table)


def test_no_file_list_is_written_where_none_is_wanted(source: Path, target: Path) -> None:
    staging = source.parent / "staging"
    result = rewrite_table_path(
        made(source), str(source), str(target), staging_location=str(staging), create_file_list=False
    )
    assert result.file_list_location == "N/A" and not list(staging.rglob("file-list")) and list(staging.rglob("*.avro"))


def test_bad_input_is_refused_and_leaves_nothing(source: Path, target: Path) -> None:
    table = made(source)
    first, last = (
        local_path(each).name for each in (table.metadata.metadata_log[0].metadata_file, table.metadata_location)
    )
    before = set(source.rglob("*"))
    for arguments, message in [
        ({"source_prefix": f"{source}/even"}, "not under"),
        ({"source_prefix": ""}, "non-empty"),
        ({"target_prefix": ""}, "non-empty"),
        ({"target_prefix": f"{source}/"}, "two different"),
        ({"start_version": "v1.json"}, r"db\.events: no version 'v1.json'"),
        ({"start_version": last, "end_version": first}, "not before"),
        ({"staging_location": f"{source}/events/data"}, "not empty"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            rewrite_table_path(table, **{"source_prefix": str(source), "target_prefix": str(target), **arguments})
    files = {path for path in source.rglob("*") if path.is_file()}
    assert files == {path for path in before if path.is_file()}


def test_a_failure_leaves_no_staged_file(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(source, 3, **MERGE_ON_READ)
    table.delete("id = 2")
    create_file, staging = ArrowStorage.create, source.parent / "staging"

    def failing(storage: ArrowStorage, location: str, data: bytes) -> None:
        if location.endswith("file-list"):
            raise StorageError("full")
        create_file(storage, location, data)

    monkeypatch.setattr(ArrowStorage, "create", failing)
    with pytest.raises(StorageError, match="full"):
        rewrite_table_path(table, str(source), str(target), staging_location=str(staging))
    assert not [path for path in staging.rglob("*") if path.is_file()]


def test_only_puffin_files_are_copied_as_such(tmp_path: Path) -> None:
    storage = ArrowStorage()
    for data in (b"", b"PFA1", b"PFA1PFA1{}" + b"\xff\xff\xff\x7f" + bytes(4) + b"PFA1"):
        path = tmp_path / f"{len(data)}.puffin"
        path.write_bytes(data)
        with pytest.raises(CorruptDataFileError, match=str(path)):
            copy_puffin(storage, str(path), f"{path}.copy", str)
