"""Orphan files go, and nothing that any metadata of the table names."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.maintenance import check_table, remove_orphan_files
from hms_iceberg.maintenance.orphan_files import PrefixMismatch
from hms_iceberg.maintenance_policy import LEAST_AGE_MS
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, StatisticsFile
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.storage import FileInfo, Storage
from hms_iceberg.table import Table
from tests.support.hdfs_path import local_path, set_changed
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, begin, rows
from tests.support.row_tables import create, other_writer

NOW: Any = {"older_than": 2**62, "nobody_writes": True}


@pytest.fixture(params=[1, 3])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    made = create(tmp_path, request.param, schema=SCHEMA, spec=BY_CITY, **(MERGE_ON_READ if request.param > 1 else {}))
    begin(made)
    made.delete("id in (2, 11)")
    return made


def put(table: Table, name: str, age_days: float = 10, text: str = "x") -> Path:
    path = local_path(table.location()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    set_changed(path, path.stat().st_mtime_ns - int(age_days * 86400e9))
    return path


def on_disk(table: Table) -> set[Path]:
    return {path for path in local_path(table.location()).rglob("*") if path.is_file()}


def test_old_orphans_go_and_nothing_else(table: Table) -> None:
    before, content = on_disk(table), table.scan().to_arrow()
    orphans = {
        put(table, "data/city=Ulm/lost.parquet"),
        put(table, "metadata/lost-m0.avro"),
        put(table, "stray.orc", 3.1),
    }
    young = put(table, "data/young.parquet", age_days=2.9)
    found = remove_orphan_files(table, dry_run=True)
    assert set(map(local_path, found.locations)) == orphans and found.deleted == 0 and on_disk(table) > orphans
    result = remove_orphan_files(table)
    assert (result.deleted, result.left, result.bytes) == (3, {}, 3)
    assert on_disk(table) == before | {young}
    assert table.scan().to_arrow().equals(content) and check_table(table).findings == ()


def test_a_new_enough_table_has_no_orphans_even_without_a_grace_period(table: Table) -> None:
    before = on_disk(table)
    for keep_backup in (True, False):
        assert remove_orphan_files(table, keep_backup=keep_backup, **NOW).locations == ()
    assert on_disk(table) == before


def test_files_of_the_last_day_are_orphans_only_if_nobody_writes(table: Table) -> None:
    writer = put(table, "data/city=Ulm/not-committed-yet.parquet", age_days=0.5)
    for older_than in (dt.datetime.now(), int(time.time() * 1000) - LEAST_AGE_MS + 60_000, 2**62):
        for dry_run in (False, True):
            with pytest.raises(InvalidInputError, match=r"less than 24 hours.*db\.events.*nobody_writes=True"):
                remove_orphan_files(table, older_than=older_than, dry_run=dry_run)
    assert remove_orphan_files(table, older_than=int(time.time() * 1000) - LEAST_AGE_MS).locations == ()
    assert writer.exists()
    assert remove_orphan_files(table, **NOW).locations == (str(writer),)


def test_what_others_commit_while_the_folder_is_listed_is_no_orphan(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = type(table.storage).list

    def commit_then_list(storage: Storage, prefix: str) -> Iterator[FileInfo]:
        monkeypatch.undo()
        other_writer(table).append(rows(30, city="Ulm"))
        yield from listed(storage, prefix)

    monkeypatch.setattr(type(table.storage), "list", commit_then_list)
    assert remove_orphan_files(table, **NOW).locations == ()
    assert table.scan("id = 30").count() == 1 and check_table(table).findings == ()


def test_an_inventory_of_the_store_may_take_the_place_of_a_listing(table: Table) -> None:
    orphans = [put(table, name) for name in ("data/a.parquet", "data/b.parquet", "other/c.parquet")]
    named = [FileInfo(str(path), 0, 1) for path in on_disk(table) - {orphans[1]}]
    below = remove_orphan_files(table, files=named, location=f"{table.location()}/data", dry_run=True)
    assert below.locations == (str(orphans[0]),)
    result = remove_orphan_files(table, files=[*named, FileInfo(str(orphans[1]), 0, 2**62)])
    assert set(result.locations) == {str(orphans[0]), str(orphans[2])} and orphans[1].exists()


def test_a_file_of_the_very_time_or_of_none_is_not_older_and_a_link_or_a_journal_in_an_inventory_is_nobodys(
    table: Table,
) -> None:
    day = int(time.time() * 1000) - LEAST_AGE_MS - 60_000
    stray, root = f"{table.location()}/data/stray.parquet", FileInfo(table.location(), 0, 0)
    listed = [*table.storage.list(table.location()), root]
    for file, is_orphan in (
        (FileInfo(stray, 1, day), False),
        (FileInfo(stray, 1, day - 1), True),
        (FileInfo(stray, 1), False),  # it may be being written
        (FileInfo(stray, 1, 1, is_linked=True), False),
        (FileInfo(f"{table.location()}/metadata/_repair-1.json", 1, 1), False),
        (FileInfo(f"{table.location()}/metadata/_hive-migration.1.json", 1, 1), False),
    ):
        found = remove_orphan_files(table, files=[*listed, file], older_than=day, dry_run=True)
        assert found.locations == ((file.location,) if is_orphan else ())
    ageless = remove_orphan_files(table, files=[*listed, FileInfo(stray, 1)], dry_run=True, **NOW)
    assert ageless.locations == (stray,)


def test_what_is_committed_while_files_are_listed_stays(table: Table) -> None:
    lost = put(table, "data/lost.parquet")

    def listed() -> Iterator[FileInfo]:
        yield from table.storage.list(table.location())
        known = on_disk(table)
        other_writer(table).append(rows(70))
        new = (each for each in table.storage.list(table.location()) if local_path(each.location) not in known)
        yield from new

    assert [*map(local_path, remove_orphan_files(table, files=listed(), **NOW).locations)] == [lost]
    assert table.scan("id = 70").count() == 1 and check_table(table).findings == ()


def test_where_nothing_is_left_in_a_folder_nothing_is_an_orphan(table: Table) -> None:
    for path in on_disk(table):
        if path.suffix == ".parquet":
            path.unlink()
    assert remove_orphan_files(table, location=f"{table.location()}/data", **NOW).locations == ()


def test_what_cannot_be_deleted_is_told_and_stops_no_other(table: Table) -> None:
    before = on_disk(table)
    orphans = [str(put(table, f"data/{number}.parquet", text="")) for number in range(2_000)]
    folders = [f"{table.location()}/data", f"{table.location()}/metadata"]  # an inventory may name anything
    named = [FileInfo(each, 0, 1) for each in [folders[0], *orphans, folders[1]]]
    result = remove_orphan_files(table, files=named, workers=3)
    assert (result.deleted, set(result.left)) == (2_000, set(folders))
    assert on_disk(table) == before


def test_metadata_files_that_no_log_names_go(table: Table) -> None:
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    table.set_properties({"a": "1"})
    named = {table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)}
    old = {str(path) for path in on_disk(table) if path.name.endswith(".metadata.json")} - named
    assert len(old) > 2
    assert set(remove_orphan_files(table, **NOW).locations) == old
    assert check_table(table).findings == ()


def test_statistics_files_of_the_table_stay(table: Table) -> None:
    paths = [put(table, "metadata/a.stats"), put(table, "metadata/partition-stats.parquet")]
    snapshot = table.current_snapshot().snapshot_id
    with table.update_statistics() as update:
        update.set_statistics(StatisticsFile(snapshot, str(paths[0]), 1, 1, ()))
        update.set_statistics(PartitionStatisticsFile(snapshot, str(paths[1]), 1))
    assert remove_orphan_files(table, **NOW).locations == ()


def test_other_tables_below_the_folder_and_hidden_folders_are_left_alone(table: Table) -> None:
    kept = {
        put(table, "inner/metadata/v1.metadata.json"),
        put(table, "inner/data/a.parquet"),
        put(table, "_iceberg/a.parquet"),
        put(table, ".staging/a.parquet"),
        put(table, "data/_no_partition=1/a.parquet"),
    }
    result = remove_orphan_files(table)
    assert result.locations == ()
    assert result.other_tables == (f"{table.location()}/inner",)
    assert kept < on_disk(table)


def test_what_a_killed_process_left_half_written_is_an_orphan(table: Table) -> None:
    before = on_disk(table)
    output = table.storage.open_output(f"{table.location()}/data/city=Ulm/a.parquet")
    output.write(b"x")
    (half,) = on_disk(table) - before
    others = {put(table, "data/.a.parquet.crc"), put(table, "data/.a.tmp"), put(table, "data/.b.0123456789ag.tmp")}
    assert remove_orphan_files(table).locations == ()  # it may still be written
    set_changed(half, 1_000_000)
    assert remove_orphan_files(table).locations == (str(half),)
    output.abandon()
    assert on_disk(table) == before | others


def test_orphans_of_hidden_partitions_go(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "_city"))
    table = create(tmp_path, 2, schema=SCHEMA, spec=spec)
    lost = put(table, "data/_city=Ulm/a.parquet")
    assert remove_orphan_files(table).locations == (str(lost),)


def test_a_path_under_another_scheme_is_an_error_unless_said_otherwise(table: Table) -> None:
    if table.location().startswith("hdfs:"):
        pytest.skip("another host of HDFS is another cluster, which would be asked")
    folder = f"file://host{table.location()}"
    with pytest.raises(InvalidInputError, match=r"db\.events.*scheme or authority"):
        remove_orphan_files(table, location=folder, **NOW)
    for mode in ("ignore", "IGNORE", PrefixMismatch.IGNORE):
        assert remove_orphan_files(table, location=folder, **NOW, prefix_mismatch_mode=mode).locations == ()
    same = {"host": ""}
    assert remove_orphan_files(table, location=folder, **NOW, equal_authorities=same).locations == ()
    found = remove_orphan_files(table, location=folder, **NOW, prefix_mismatch_mode="delete", dry_run=True)
    assert len(found.locations) == len(on_disk(table))


def test_a_table_whose_files_may_belong_to_others_is_refused(table: Table) -> None:
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(UnsupportedError, match=r"db\.events.*gc\.enabled"):
        remove_orphan_files(table)
    table.remove_properties("gc.enabled")
    for mode in ("maybe", None):
        with pytest.raises(InvalidInputError, match="prefix_mismatch_mode"):
            remove_orphan_files(table, prefix_mismatch_mode=mode)  # type: ignore[arg-type]
