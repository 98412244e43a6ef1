"""What is asked before files are deleted: whose they are by the deepest folder, and whether names are one place."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CorruptMetadataError, FileAlreadyExistsError, InvalidInputError, UnsupportedError
from hms_iceberg.maintenance import check_table, expire_snapshots, remove_orphan_files, rewrite_table_path
from hms_iceberg.maintenance.check.findings import RepeatedFile
from hms_iceberg.maintenance.repair.carry_out_repair import repair_table
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.snapshots_and_refs import StatisticsFile
from hms_iceberg.table import StaticTable, Table
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.needed_files.remembered_rows import RememberedRows
from hms_iceberg.transaction.workspace import FileWorkspace, delete_dropped_versions
from hms_iceberg.updates.table_settings import SetLocation
from tests.support.spelled_places import NOW, SCHEMA, RowsMetastore, some_rows


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return os.path.realpath(tmp_path)


@pytest.fixture
def catalog(folder: str) -> Catalog:
    metastore = RowsMetastore()
    metastore.create_namespace("shop", {"location": f"{folder}/shop"})
    return Catalog("test", metastore, ArrowStorage(), {})


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """A table with two files of one row each."""
    made = catalog.create_table("shop.subject", SCHEMA)
    for number in (1, 2):
        made.append(some_rows(number))
    return made


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def there(folder: str) -> set[str]:
    return {str(path) for path in Path(folder).rglob("*") if path.is_file()}


def file_at(path: str, *numbers: int) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(some_rows(*numbers), path)
    return path


# ------------------------------------------------------------------------------------------- orphans


def test_a_copy_of_a_folder_whose_files_are_named_elsewhere_keeps_them(table: Table, folder: str) -> None:
    shutil.copytree(table.location(), f"{folder}/mounted")
    before = there(folder)
    with pytest.raises(InvalidInputError, match=r"shop\.subject.*below another folder.*/mounted/.*location"):
        remove_orphan_files(table, location=f"{folder}/mounted", **NOW)
    assert remove_orphan_files(table, location=f"{folder}/mounted", prefix_mismatch_mode="ignore", **NOW).deleted == 0
    assert there(folder) == before
    assert remove_orphan_files(table, location=f"{folder}/mounted", prefix_mismatch_mode="delete", **NOW).deleted > 5


def test_a_file_that_only_has_the_name_of_one_that_is_named_elsewhere_is_an_orphan(table: Table, folder: str) -> None:
    data = f"{folder}/mounted/data"
    named = next(iter(table.scan().plan_files())).file.file_path
    kept = file_at(f"{data}/{os.path.basename(named)}", 9)
    orphan = file_at(f"{data}/other/{os.path.basename(named)}", 9)
    ignored = {**NOW, "prefix_mismatch_mode": "ignore"}
    assert remove_orphan_files(table, location=f"{folder}/mounted", **ignored).locations == (orphan,)
    assert os.path.exists(kept)


def test_a_listing_without_any_file_that_the_table_names_there_tells_nothing(table: Table) -> None:
    data = f"{table.location()}/data"
    stray = file_at(f"{data}/stray.parquet", 9)
    for task in table.scan().plan_files():
        os.rename(task.file.file_path, f"{task.file.file_path}.moved")
    with pytest.raises(InvalidInputError, match=r"shop\.subject: none of the files that it names in .*/data was found"):
        remove_orphan_files(table, location=data, **NOW)
    assert len(there(data)) == 3 and os.path.exists(stray)
    assert remove_orphan_files(table, location=data, files=table.storage.list(data), **NOW).deleted == 3


def test_versions_of_a_table_by_path_stay_though_a_metastore_knows_an_earlier_one(
    catalog: Catalog, folder: str
) -> None:
    by_path = FileSystemTables().create(SCHEMA, f"{folder}/shop/t")
    by_path.append(some_rows(1))
    known = catalog.register_table("shop.t", by_path.metadata_location)
    by_path.append(some_rows(2))
    by_path.append(some_rows(3))
    stray = file_at(f"{folder}/shop/t/data/stray.parquet", 9)
    assert remove_orphan_files(known, **NOW).locations == (stray,)
    assert ids(FileSystemTables().load(f"{folder}/shop/t")) == [1, 2, 3]
    Path(by_path.metadata_location).write_text("{")
    with pytest.raises(CorruptMetadataError, match=r"shop\.t: the table by path with .*may name some"):
        remove_orphan_files(known, **NOW)


@pytest.mark.parametrize(
    "spelled", ["{}/job/../wh", "../wh", "{}/./wh", "{}//wh/", "{}/link", "file://{}/wh", "FILE:{}/wh"]
)
def test_the_current_version_of_a_table_by_path_stays_whatever_it_was_opened_by(
    folder: str, spelled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("job", "wh"):
        os.makedirs(f"{folder}/{name}")
    os.symlink(f"{folder}/wh", f"{folder}/link")
    monkeypatch.chdir(f"{folder}/job")
    one = load_catalog("one", type="hadoop", warehouse=spelled.format(folder))
    other = load_catalog("other", type="hadoop", warehouse=f"{folder}/wh")
    one.create_namespace("n")
    table = one.create_table("n.t", SCHEMA)
    for number in (1, 2, 3):
        table.append(some_rows(number))
    opened = other.load_table("n.t")
    stray = file_at(f"{folder}/wh/n/t/data/stray.parquet", 9)
    assert remove_orphan_files(opened, **NOW).deleted == 1 and not os.path.exists(stray)
    opened.append(some_rows(4))  # its folder is the table's, whatever it is called
    assert ids(one.load_table("n.t")) == ids(other.load_table("n.t")) == [1, 2, 3, 4]
    assert remove_orphan_files(one.load_table("n.t"), **NOW).locations == ()


def test_orphans_are_looked_for_among_the_tables_of_the_metastore_as_it_is_when_they_are_deleted(
    catalog: Catalog, table: Table
) -> None:
    assert isinstance(catalog.metastore, RowsMetastore)
    remembered = RememberedRows(catalog.metastore)
    list(remembered.rows())
    (theirs,) = hive(catalog, f"{table.location()}/data/other")
    stray = file_at(f"{table.location()}/data/stray.parquet", 9)
    assert set(remove_orphan_files(table, rows=remembered, dry_run=True, **NOW).locations) == {theirs, stray}
    assert remove_orphan_files(table, dry_run=True, **NOW).locations == (stray,)
    result = remove_orphan_files(table, rows=remembered, **NOW)
    assert (result.locations, result.other_tables) == ((stray,), (os.path.dirname(theirs),))
    assert os.path.exists(theirs)


def test_what_an_expiry_deletes_is_compared_with_the_tables_of_the_metastore_as_it_is_then(
    catalog: Catalog, table: Table
) -> None:
    assert isinstance(catalog.metastore, RowsMetastore)
    own = {task.file.file_path for task in table.scan().plan_files()}
    theirs = file_at(f"{table.location()}/data/other/000000_0", 9)
    table.add_files([theirs])
    remembered = RememberedRows(catalog.metastore)
    list(remembered.rows())
    catalog.metastore.add_hive(("shop", "other"), os.path.dirname(theirs))
    table.delete()
    told = {"older_than": 2**62, "retain_last": 1, "rows": remembered}
    assert expire_snapshots(table, dry_run=True, **told).kept == {}  # type: ignore[arg-type]
    assert set(expire_snapshots(table, dry_run=True, older_than=2**62, retain_last=1).kept) == {theirs}
    result = expire_snapshots(table, **told)  # type: ignore[arg-type]
    assert set(result.kept) == {theirs} and os.path.exists(theirs) and not any(map(os.path.exists, own))


def test_the_hive_table_before_a_migration_keeps_its_files_unless_it_is_told_that_it_need_not(
    catalog: Catalog, table: Table
) -> None:
    assert isinstance(catalog.metastore, RowsMetastore)
    catalog.metastore.add_hive(("shop", "subject_backup_"), table.location())
    theirs = file_at(f"{table.location()}/000000_0", 9)
    assert remove_orphan_files(table, **NOW).locations == ()
    assert remove_orphan_files(table, keep_backup=False, **NOW).locations == (theirs,)
    assert not os.path.exists(theirs) and ids(table) == [1, 2]
    theirs = file_at(f"{table.location()}/000000_1", 9)
    table.add_files([theirs])
    table.delete()
    for keep in (True, False):
        found = expire_snapshots(table, older_than=2**62, retain_last=1, dry_run=True, keep_backup=keep)
        who = "the Hive table shop.subject_backup_, its way back from the migration"
        assert found.kept == ({theirs: who} if keep else {})
    assert list(expire_snapshots(table, older_than=2**62, retain_last=1).kept) == [theirs] and os.path.exists(theirs)


def test_the_first_version_of_a_table_by_path_stays_where_other_versions_have_no_numbers(
    table: Table,
) -> None:
    shutil.copy(table.metadata_location, f"{table.location()}/metadata/v1.metadata.json")
    assert remove_orphan_files(table, **NOW).locations == ()


def test_files_that_a_table_left_where_it_lived_before_its_location_was_moved_stay(
    catalog: Catalog, folder: str
) -> None:
    first = catalog.create_table("shop.first", SCHEMA, location=f"{folder}/shop/shared")
    first.append(some_rows(1))
    with first.transaction() as transaction:
        transaction.add(SetLocation(f"{folder}/elsewhere"))
    first.append(some_rows(2))
    second = catalog.create_table("shop.second", SCHEMA, location=f"{folder}/shop/shared")
    second.append(some_rows(3))
    stray = file_at(f"{folder}/shop/shared/data/stray.parquet", 9)
    assert remove_orphan_files(second, **NOW).locations == (stray,)
    assert (ids(first), ids(second)) == ([1, 2], [3])


def test_schemes_and_servers_that_are_said_to_be_equal_name_one_file(table: Table) -> None:
    stray = file_at(f"{table.location()}/data/stray.parquet", 9)
    for told, spelled in (
        ({"equal_schemes": {"old, older": "file"}}, ("old:", "older://", "OLD:")),
        ({"equal_authorities": {"one, other": ""}}, ("file://one", "file://other")),
        ({"equal_schemes": {"old": "file"}, "equal_authorities": {"one": ""}}, ("old://one", "file://one")),
    ):
        for start in spelled:
            files = [replace(each, location=start + each.location) for each in table.storage.list(table.location())]
            with pytest.raises(InvalidInputError, match="equal_schemes, equal_authorities"):
                remove_orphan_files(table, files=files, location=f"{start}{table.location()}", **NOW)
            found = remove_orphan_files(table, files=files, dry_run=True, **NOW, **told)  # type: ignore[arg-type]
            assert found.locations == (start + stray,)


# ------------------------------------------------------------------------- the deepest folder decides


def iceberg(catalog: Catalog, place: str, **properties: str) -> list[str]:
    made = catalog.create_table("shop.other", SCHEMA, location=place, properties=properties)
    made.append(some_rows(7))
    return [task.file.file_path.removeprefix("file:") for task in made.scan().plan_files()]


def hive(catalog: Catalog, table: str, *partitions: str) -> list[str]:
    assert isinstance(catalog.metastore, RowsMetastore)
    catalog.metastore.add_hive(("shop", "other"), table, partitions or None)
    return [file_at(f"{place}/000000_{number}", 7 + number) for number, place in enumerate(partitions or (table,))]


def deeper(files: list[str]) -> list[str]:
    """The files, each in a folder of its own."""
    moved = [f"{os.path.dirname(each)}/a/b/{os.path.basename(each)}" for each in files]
    for source, target in zip(files, moved, strict=True):
        os.renames(source, target)
    return moved


# Each makes another table in or around the subject's folder, and tells the files that are its own.
OTHERS: dict[str, Callable[[Catalog, str], list[str]]] = {
    "iceberg below": lambda catalog, own: iceberg(catalog, f"{own}/./deep/other"),
    "iceberg in the data": lambda catalog, own: iceberg(catalog, f"{own}/data//other"),
    "iceberg in the same folder": lambda catalog, own: iceberg(catalog, f"file:{own}/"),
    "iceberg's data in the same folder": lambda catalog, own: iceberg(
        catalog, f"{own}_other", **{"write.data.path": f"{own}/data"}
    ),
    "hive below": lambda catalog, own: hive(catalog, f"{own}/other"),
    "hive below, in folders": lambda catalog, own: deeper(hive(catalog, f"{own}/other")),
    "hive in the data": lambda catalog, own: hive(catalog, f"{own}/data/../data/other"),
    "hive in the same folder": lambda catalog, own: hive(catalog, own),
    "hive in the same data": lambda catalog, own: hive(catalog, f"{own}/data"),
    "partitions": lambda catalog, own: hive(catalog, f"{own}_other", f"{own}/data/p=1", f"{own}/./p=2"),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("how", ["orphans", "expiry", "purge"])
def test_a_file_is_whose_folder_around_it_is_the_deepest(catalog: Catalog, table: Table, other: str, how: str) -> None:
    theirs = OTHERS[other](catalog, table.location())
    if how == "orphans":
        stray = file_at(f"{table.location()}/metadata/stray.avro", 9)
        assert remove_orphan_files(table, **NOW).locations == (stray,)
        assert all(map(os.path.exists, theirs)) and ids(table) == [1, 2]
        return
    own = [task.file.file_path for task in table.scan().plan_files()]
    table.add_files([each.replace("/shop/", "/shop/./") for each in theirs])
    if how == "purge":
        catalog.purge_table("shop.subject")
    else:
        table.delete()
        kept = expire_snapshots(table, older_than=2**62, retain_last=1).kept
        assert len(kept) >= len(theirs) and all("table shop.other" in who for who in kept.values())
    assert all(map(os.path.exists, theirs))
    # All files in a folder of Hive are its own, whoever wrote them.
    assert [os.path.exists(each) for each in own] == [other == "hive in the same data"] * 2


def test_a_table_at_the_root_of_its_database_purges_no_other(catalog: Catalog, table: Table, folder: str) -> None:
    root = catalog.create_table("shop.root", SCHEMA, location=f"{folder}/shop")
    root.append(some_rows(5))
    own = [task.file.file_path for task in root.scan().plan_files()]
    root.add_files([task.file.file_path for task in table.scan().plan_files()])
    stray = file_at(f"{folder}/shop/data/stray.parquet", 9)
    assert remove_orphan_files(root, **NOW).locations == (stray,)
    catalog.purge_table("shop.root")
    assert ids(table) == [1, 2] and check_table(table).findings == ()
    assert not any(map(os.path.exists, own))


def test_a_file_that_has_two_names_stays_as_long_as_one_of_them_is_needed(table: Table, folder: str) -> None:
    path = file_at(f"{folder}/in/f.parquet", 8)
    names = [path, f"{folder}/./in/f.parquet", f"file:{path}"]
    for name in names:
        table.add_files([name], check_duplicate_files=False)
    found = [each for each in check_table(table).findings if isinstance(each, RepeatedFile)]
    assert {each.location for each in found} <= set(names) and max(each.times for each in found) == 3
    doomed = [task.file for task in table.scan().plan_files() if task.file.file_path in names[:2]]
    change = table.new_delete()
    for file in doomed:
        change.delete_file(file)
    change.commit()
    expire_snapshots(table, older_than=2**62, retain_last=1)
    assert ids(table) == [1, 2, 8]


def test_what_an_expired_snapshot_calls_its_own_stays_if_it_is_the_table_s(table: Table) -> None:
    last, newest = table.snapshots()[-1], table.metadata_location
    named = [newest, str(last.manifest_list), *(task.file.file_path for task in table.scan().plan_files())]
    for number, path in enumerate(each.replace("/shop/", "/shop/nowhere/../") for each in named):
        table.append(some_rows(10 + number))
        with table.update_statistics() as update:
            update.set_statistics(StatisticsFile(table.refresh().snapshots()[-1].snapshot_id, path, 1, 1, ()))
    before = ids(table)
    expire_snapshots(table, snapshot_ids=[each.snapshot_id for each in table.snapshots()[2:-1]])
    assert ids(table) == before and all(map(os.path.exists, named))


def test_a_snapshot_that_calls_the_version_after_its_expiry_its_own_does_not_take_it_along(folder: str) -> None:
    table = FileSystemTables().create(SCHEMA, f"{folder}/t")
    table.append(some_rows(1))
    next_but_one = f"{folder}/./t/metadata/v5.metadata.json"
    with table.update_statistics() as update:
        update.set_statistics(StatisticsFile(table.refresh().snapshots()[-1].snapshot_id, next_but_one, 1, 1, ()))
    table.append(some_rows(2))
    expire_snapshots(table, older_than=2**62)
    assert table.metadata_location.endswith("/v5.metadata.json") and len(table.snapshots()) == 1
    assert ids(FileSystemTables().load(f"{folder}/t")) == [1, 2]


def test_a_file_is_not_added_twice_by_two_names(table: Table, folder: str) -> None:
    path = file_at(f"{folder}/in/f.parquet", 8)
    os.symlink(path, f"{folder}/in/link.parquet")
    for other in (f"{folder}/in/../in/f.parquet", f"file:{path}", f"{folder}/in/link.parquet", path):
        with pytest.raises(InvalidInputError, match=r"f\.parquet is named more than once"):
            table.add_files([path, other])
    assert ids(table) == [1, 2]


def test_versions_that_fall_off_the_log_stay_if_the_log_has_them_by_another_name(table: Table) -> None:
    log, newest = table.metadata.metadata_log, table.metadata_location
    table.set_properties(
        {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    )
    assert not any(os.path.exists(each.metadata_file) for each in log) and os.path.exists(newest)
    spelled = newest.replace("/shop/", "/shop/./")
    base = MetadataVersion(table.metadata_location, table.metadata)
    old = replace(base.metadata.metadata_log[-1], metadata_file=spelled)
    new = MetadataVersion(newest, base.metadata)
    workspace = FileWorkspace(table.storage)
    delete_dropped_versions(MetadataVersion(base.location, replace(base.metadata, metadata_log=(old,))), new, workspace)
    assert os.path.exists(newest)


def test_a_row_without_a_location_owns_nothing(catalog: Catalog, table: Table, folder: str) -> None:
    path = file_at(f"{folder}/in/f.parquet", 8)
    table.add_files([path])
    assert isinstance(catalog.metastore, RowsMetastore)
    catalog.metastore.add_hive(("shop", "odd"), "")
    catalog.metastore.add_hive(("shop", "odder"), "", ("",))
    oddest = ("shop", "oddest")
    catalog.metastore._rows[oddest] = TablePointer(oddest, "", {"uuid": "other"}, "")
    catalog.purge_table("shop.subject")
    assert not os.path.exists(path)


def test_a_hidden_folder_is_the_table_s_own_whatever_it_is_called(catalog: Catalog, folder: str) -> None:
    own = f"{folder}/shop/hidden/_data"
    properties = {"write.data.path": f"file:{folder}/./shop//hidden/_data"}
    table = catalog.create_table("shop.hidden", SCHEMA, properties=properties)
    table.append(some_rows(1))
    stray = file_at(f"{own}/stray.parquet", 9)
    file_at(f"{folder}/shop/hidden/_other/x.parquet", 9)
    assert remove_orphan_files(table, **NOW).locations == (stray,)
    assert ids(table) == [1]


def test_every_name_of_a_file_that_others_need_is_kept(catalog: Catalog, table: Table) -> None:
    (path,) = OTHERS["hive below"](catalog, table.location())
    names = [path, path.replace("/shop/", "/shop/./"), f"file:{path}"]
    for name in names:
        table.add_files([name], check_duplicate_files=False)
    catalog.purge_table("shop.subject")
    assert os.path.exists(path)


# ------------------------------------------------------------------------------------------ folders


def test_purging_a_folder_spares_files_of_others_and_refuses_what_is_in_it(folder: str) -> None:
    catalog = load_catalog("folders", type="hadoop", warehouse=f"{folder}/./wh")
    catalog.create_namespace("n")
    one, other = (catalog.create_table(f"n.{name}", SCHEMA) for name in ("one", "other"))
    one.append(some_rows(1))
    other.append(some_rows(2))
    one.add_files([task.file.file_path.replace("/./", "/") for task in other.scan().plan_files()])
    inner = FileSystemTables().create(SCHEMA, f"{folder}/wh/n/one/deep/inner")
    before = there(folder)
    for drop in (lambda: catalog.purge_table("n.one"), lambda: FileSystemTables().drop(f"{folder}//wh/n/one")):
        with pytest.raises(UnsupportedError, match=r"deep/inner"):
            drop()
    assert there(folder) == before
    FileSystemTables().drop(inner.location())
    catalog.purge_table("n.one")
    assert ids(other) == [2] and not there(f"{folder}/wh/n/one")


# -------------------------------------------------------------------------------- repair, other paths


def test_repair_takes_no_file_of_another_table_for_a_lost_one(catalog: Catalog, table: Table) -> None:
    before = {task.file.file_path for task in table.scan().plan_files()}
    snapshot = table.append(some_rows(3)).current_snapshot()
    (lost,) = {task.file.file_path for task in table.scan().plan_files()} - before
    (row,) = [
        each for each in table.inspect.manifests().to_pylist() if each["added_snapshot_id"] == snapshot.snapshot_id
    ]
    # Another table's file has as many rows as the one that is lost with its manifest.
    (path,) = hive(catalog, f"{table.location()}/data/other")
    os.rename(path, f"{path}.parquet")
    for each in (row["path"], lost):
        os.unlink(each)
    repair_table(catalog, ("shop", "subject"), dry_run=False, accept_loss=True)
    assert ids(catalog.load_table("shop.subject")) == [1, 2]


def test_paths_are_rewritten_whatever_their_spelling_and_nothing_that_was_there_goes(table: Table, folder: str) -> None:
    table.set_properties({"write.data.path": f"file:{folder}/shop/./subject//data"})
    table.append(some_rows(3))
    result = rewrite_table_path(table, f"{folder}/shop/subject", f"{folder}/moved", staging_location=f"{folder}/stage")
    for source, target in result.copies.items():
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(re.sub("^file:", "", source), target)
    shutil.rmtree(f"{folder}/shop/subject")
    moved = StaticTable.from_metadata(f"{folder}/moved/metadata/{result.latest_version}")
    assert sorted(moved.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_file_that_is_in_the_way_of_staging_is_not_deleted(table: Table, folder: str) -> None:
    class Filled(ArrowStorage):
        """Somebody writes into the staging folder after it was found empty."""

        def list(self, prefix: str) -> Any:
            found = list(super().list(prefix))
            if prefix.endswith("/stage"):
                file_at(f"{folder}/stage/metadata/{os.path.basename(table.metadata_location)}", 9)
            return iter(found)

    opened = Catalog("filled", table.catalog.metastore, Filled(), {}).load_table("shop.subject")
    with pytest.raises(FileAlreadyExistsError):
        rewrite_table_path(opened, table.location(), f"{folder}/moved", staging_location=f"{folder}/stage")
    assert len(there(f"{folder}/stage")) == 1
