"""Expiring snapshots deletes what only they needed, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptManifestError,
    InvalidInputError,
    NoSuchTableError,
    StorageDeniedError,
    UnsupportedError,
)
from hms_iceberg.maintenance import check_table, expire_snapshots
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.spec.snapshots_and_refs import StatisticsFile
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.snapshots.expire_snapshots import unreachable_files
from tests.support.hdfs_path import local_path, other_spelling
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, begin, rows
from tests.support.row_tables import NAME, create, other_writer

ALL = 2**62


@pytest.fixture(params=[1, 2, 3])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    """Two files, rows of both deleted, one file replaced: every kind of file is left behind."""
    made = create(tmp_path, request.param, schema=SCHEMA, spec=BY_CITY, **(MERGE_ON_READ if request.param > 1 else {}))
    begin(made)
    made.delete("id in (2, 11)")
    made.delete("id = 12")
    made.overwrite(rows(20, city="Ulm"), "city = 'Köln'")
    return made


def files(table: Table) -> set[str]:
    """The files below a table's folder, but for metadata files."""
    return files_below(local_path(table.location()))


def files_below(folder: Path) -> set[str]:
    """The files below a folder, but for metadata files."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if not path.name.endswith(".metadata.json")}


def needed(table: Table) -> set[str]:
    """The files that the snapshots of a table use, counted one by one."""
    found: set[str] = set()
    for snapshot in table.snapshots():
        found.add(str(snapshot.manifest_list))
        for manifest in manifest_list_of(snapshot, table.storage):
            found.add(manifest.manifest_path)
            entries = entries_of(manifest, table.storage)
            found |= {entry.data_file.file_path for entry in entries if entry.is_live}
    return found | {each.statistics_path for each in table.metadata.statistics}


def test_what_only_expired_snapshots_needed_is_deleted(table: Table) -> None:
    before, left = files(table), table.scan().to_arrow()
    result = expire_snapshots(table, older_than=ALL)
    assert len(table.snapshots()) == 1 and len(result.snapshot_ids) == 4
    assert files(table) == needed(table)
    assert set(result.files.all()) == before - files(table)
    assert (result.deleted, result.left) == (len(before - files(table)), {})
    assert table.scan().to_arrow().equals(left)
    assert check_table(table, record_counts=True).findings == ()
    assert expire_snapshots(table, older_than=ALL).deleted == 0


def test_what_a_branch_a_tag_or_a_staged_snapshot_needs_stays(table: Table) -> None:
    first, second = (each.snapshot_id for each in table.snapshots()[:2])
    table.manage_snapshots().create_tag(first, "v1").create_branch(second, "old", min_snapshots_to_keep=1).commit()
    table.delete("id = 10", branch="old")
    table.new_append().append_file(next(iter(table.scan().plan_files())).file).stage_only().commit()
    staged = table.snapshots()[-1]
    expire_snapshots(table, older_than=staged.timestamp_ms)
    kept = {each.snapshot_id for each in table.snapshots()}
    assert {first, staged.snapshot_id, table.refs()["old"].snapshot_id} <= kept
    assert second not in kept
    assert files(table) == needed(table)
    assert table.scan(snapshot_id=first).count() == 3
    assert table.scan().use_ref("old").count() == 5


def test_a_dry_run_only_tells(table: Table) -> None:
    before, version = files(table), table.metadata_location
    result = expire_snapshots(table, older_than=ALL, dry_run=True)
    assert (files(table), table.refresh().metadata_location, result.deleted) == (before, version, 0)
    assert len(result.snapshot_ids) == 4
    assert set(expire_snapshots(table, older_than=ALL).files.all()) == set(result.files.all())


def test_snapshots_go_by_their_id_and_with_their_statistics(table: Table) -> None:
    snapshot = table.snapshots()[0]
    path = f"{table.location()}/metadata/of.stats"
    table.storage.create(path, b"PFA1")
    table.update_statistics().set_statistics(StatisticsFile(snapshot.snapshot_id, path, 4, 4)).commit()
    result = expire_snapshots(table, older_than=0, snapshot_ids=[snapshot.snapshot_id])
    assert result.snapshot_ids == (snapshot.snapshot_id,)
    assert result.files.statistics_files == (path,)
    assert files(table) == needed(table)
    with pytest.raises(InvalidInputError, match="main"):
        expire_snapshots(table, snapshot_ids=[table.snapshots()[-1].snapshot_id])


def test_a_table_whose_files_may_belong_to_others_is_refused(table: Table) -> None:
    table.set_properties({"gc.enabled": "false"})
    before = files(table)
    with pytest.raises(UnsupportedError, match=r"gc\.enabled is false"):
        expire_snapshots(table, older_than=ALL)
    assert files(table) == before


def test_an_unknown_outcome_deletes_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(table)

    def swap(*_: object) -> None:
        raise CommitStateUnknownError("no answer")

    monkeypatch.setattr(table.metastore, "swap", swap)
    with pytest.raises(CommitStateUnknownError):
        expire_snapshots(table, older_than=ALL)
    assert files(table) >= before


def test_a_branch_that_was_made_meanwhile_keeps_its_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    first = table.snapshots()[0].snapshot_id
    swap, other = table.metastore.swap, other_writer(table)

    def late(*arguments: object) -> object:
        monkeypatch.setattr(table.metastore, "swap", swap)
        other.manage_snapshots().create_branch(first, "kept").commit()
        return swap(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(table.metastore, "swap", late)
    expire_snapshots(table, older_than=ALL)
    assert {each.snapshot_id for each in table.snapshots()} == {first, table.snapshots()[-1].snapshot_id}
    assert files(table) == needed(table)
    assert table.scan(snapshot_id=first).count() == 3


def test_a_table_that_was_renamed_and_whose_name_another_one_took_loses_no_file(
    table: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    metastore, left = table.metastore, table.scan().to_arrow()
    assert isinstance(metastore, InMemoryMetastore)
    swap = metastore.swap

    def rename_after(*arguments: object) -> None:
        swap(*arguments)  # type: ignore[arg-type]
        monkeypatch.setattr(metastore, "swap", swap)
        metastore.rename_table(NAME, ("db", "renamed"))
        taker = create(tmp_path / "other")
        metastore.swap(NAME, None, MetadataVersion(taker.metadata_location, taker.metadata))

    monkeypatch.setattr(metastore, "swap", rename_after)
    before = files(table)
    with pytest.raises(NoSuchTableError, match=r"its name belongs to the table at .*/other/events"):
        expire_snapshots(table, older_than=ALL)
    assert files_below(tmp_path / "events") >= before
    pointer = metastore.load(("db", "renamed"))
    renamed = Table(("db", "renamed"), read_version(pointer.metadata_location, table.storage), metastore, table.storage)
    assert len(renamed.snapshots()) == 1 and renamed.scan().to_arrow().equals(left)


def test_a_file_that_is_live_under_another_spelling_stays(table: Table) -> None:
    file = next(iter(table.scan("city = 'Bonn'").plan_files())).file
    table.new_delete().delete_file(file).commit()
    again = replace(file, file_path=other_spelling(file.file_path), first_row_id=None)
    table.new_append().append_file(again).commit()
    expire_snapshots(table, older_than=ALL)
    assert local_path(file.file_path).exists()
    assert table.scan("city = 'Bonn'").count() == file.record_count


def test_nothing_is_deleted_where_a_needed_manifest_cannot_be_read(table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path = local_path(manifest_list_of(snapshot, table.storage)[0].manifest_path)
    path.write_bytes(b"damaged")
    before = files(table)
    with pytest.raises(CorruptManifestError):
        expire_snapshots(table, older_than=ALL)
    assert files(table) == before


def test_an_expired_manifest_that_is_gone_does_not_stop_the_others(table: Table) -> None:
    manifest = manifest_list_of(table.snapshots()[1], table.storage)[0]
    lost = {entry.data_file.file_path for entry in entries_of(manifest, table.storage)}
    local_path(manifest.manifest_path).unlink()
    expire_snapshots(table, older_than=ALL)
    assert needed(table) <= files(table) <= needed(table) | lost


def test_an_expiry_keeps_as_many_snapshots_as_it_is_told_and_none_is_no_number(table: Table) -> None:
    before = table.metadata_location
    for count in (0, -1):
        with pytest.raises(InvalidInputError, match=f"at least 1, cannot be: {count}"):
            expire_snapshots(table, older_than=ALL, retain_last=count)
    assert table.refresh().metadata_location == before
    ids = [each.snapshot_id for each in table.snapshots()]
    for expiry in (
        lambda: table.maintenance.expire_snapshots().older_than(ALL).retain_last(3).commit(),
        lambda: table.maintenance.expire_snapshots().by_ids(ids[-3:-2]).by_id(ids[-2]).older_than(0).commit(),
    ):
        expiry()
    assert [each.snapshot_id for each in table.snapshots()] == ids[-1:]


def test_an_expiry_that_is_broken_off_changes_nothing(table: Table) -> None:
    before = table.metadata_location
    with suppress(ZeroDivisionError), table.maintenance.expire_snapshots() as expiry:
        expiry.older_than(ALL)
        raise ZeroDivisionError
    assert table.refresh().metadata_location == before


def test_schemas_that_no_snapshot_refers_to_go_only_if_it_is_asked_for(table: Table) -> None:
    table.update_schema().add_column("other", StringType()).commit()
    table.append(rows(30))
    expire_snapshots(table, older_than=ALL)
    assert len(table.metadata.schemas) == 2
    expire_snapshots(table, older_than=ALL, clean_expired_metadata=True)
    assert len(table.metadata.schemas) == 1


def test_files_stay_where_it_is_not_asked_to_delete_them(table: Table) -> None:
    before = files(table)
    result = expire_snapshots(table, older_than=ALL, clean_expired_files=False)
    assert (len(result.snapshot_ids), result.deleted, result.left, files(table)) == (4, 0, {}, before)


def test_a_file_that_cannot_be_deleted_is_told_and_the_others_go(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    doomed = expire_snapshots(table, older_than=ALL, dry_run=True).files.all()
    stubborn, delete = next(iter(doomed)), type(table.storage).delete

    def refuse(storage: Storage, location: str) -> None:
        if location == stubborn:
            raise StorageDeniedError(f"Cannot delete {location}.")
        delete(storage, location)

    monkeypatch.setattr(type(table.storage), "delete", refuse)
    result = expire_snapshots(table, older_than=ALL)
    assert (result.deleted, result.left) == (len(list(doomed)) - 1, {stubborn: f"Cannot delete {stubborn}."})


def test_no_file_is_looked_for_between_the_versions_of_two_tables(table: Table) -> None:
    before = replace(table.metadata, table_uuid=None)  # as version 1 allows, for which `refresh` cannot tell
    with pytest.raises(CommitConflictError, match="no file was deleted"):
        unreachable_files(before, table.metadata, table.storage, str)
