"""What a table names and where it writes, and how its files are deleted when it is dropped."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hms_iceberg.errors import StorageDeniedError
from hms_iceberg.metastore import TableRow
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Places
from hms_iceberg.table.needed_files.named_files import (
    OwnFolders,
    check_right_to_purge,
    check_rights_to_delete,
    files_of,
    folders_of_row,
    is_in_any,
    purge_files,
)
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import LOCATION, World, data_file, metadata

PLACES = Places(None)


class Guarded(InMemoryStorage):
    """Tells who may delete what, and lets nobody delete what has `kept` in its name."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def check_right_to_delete(self, location: str) -> None:
        """As the name says."""
        self.asked.append(location)
        if "kept" in location:
            raise StorageDeniedError(f"Cannot delete {location}.")

    def delete(self, location: str) -> None:
        """As the name says; the first file takes longer than all others."""
        if "kept" in location:
            raise StorageDeniedError(f"Cannot delete {location}.")
        if location.endswith("/0"):
            time.sleep(0.05)
        super().delete(location)


def places(*locations: str) -> set[Place]:
    return set(map(PLACES.anywhere, locations))


@pytest.mark.parametrize(
    ("properties", "file", "folders"),
    [
        ({}, "s3://w/t/metadata/1.json", {"s3://w/t", "s3://w/t/metadata", "s3://w/t/data"}),
        ({}, "", {"s3://w/t", "s3://w/t/metadata", "s3://w/t/data"}),
        (
            {"write.data.path": "s3://w/d", "write.metadata.path": "s3://w/m"},
            "s3://w/old/1.json",
            {"s3://w/t", "s3://w/m", "s3://w/old", "s3://w/d"},
        ),
    ],
)
def test_a_table_owns_its_folder_and_wherever_its_metadata_is_and_its_files_go(
    properties: dict[str, str], file: str, folders: set[str]
) -> None:
    own = OwnFolders.by_properties("s3://w/t", properties, file, PLACES)
    assert set(own.all()) == places(*folders)
    row = TableRow(("db", "t"), "s3://w/t", {**properties, "metadata_location": file}, True)
    assert set(folders_of_row(row, PLACES)) == places(*folders)
    for is_iceberg in (True, False):
        nowhere = TableRow(("db", "t"), "", {"metadata_location": file}, is_iceberg)
        assert set(folders_of_row(nowhere, PLACES)) <= places(file.rpartition("/")[0], "/metadata", "/data") - places(
            "/"
        )
    assert list(folders_of_row(TableRow(("db", "t"), ""), PLACES)) == []


def test_a_place_is_in_any_of_some_folders_if_it_is_in_one() -> None:
    (file,) = places("s3://w/t/a")
    assert is_in_any(file, places("s3://w/u", "s3://w/t")) and is_in_any(file, places("s3://w/t/a"))
    assert not is_in_any(file, places("s3://w/u", "s3://w/t/a/b")) and not is_in_any(file, ())


def test_a_snapshot_without_a_manifest_list_names_its_manifests() -> None:
    world = World.with_table(metadata(format_version=1))
    world.append(file := data_file())
    version = world.version()
    (manifest,) = (name for name in world.storage.files if name.endswith("-m0.avro"))
    old = Snapshot(1, manifest_locations=(manifest,))
    named = files_of(replace(version.metadata, snapshots=(old,)), version.location, world.storage)
    assert named.data == (file.file_path,)
    assert named.metadata == (manifest, version.metadata.metadata_log[0].metadata_file, version.location)


# -------------------------------------------------------------------------------------- tables that were dropped


def test_whether_the_files_of_a_table_may_be_deleted_is_found_out_first_of_very_many_by_a_spread() -> None:
    for count, asked, last in ((3, 2, 2), (1000, 999, 999), (10_000, 1000, 9_991)):
        storage, files = Guarded(), [f"{LOCATION}/{number}" for number in range(count)]
        check_rights_to_delete(files, storage, {files[1]: "another table"})
        assert (len(storage.asked), storage.asked[0], storage.asked[-1]) == (asked, files[0], files[last])
        assert files[1] not in storage.asked
    with pytest.raises(StorageDeniedError, match="/kept"):
        check_rights_to_delete([f"{LOCATION}/a", f"{LOCATION}/kept"], Guarded(), {})
    check_rights_to_delete([f"{LOCATION}/kept"], InMemoryStorage(), {})  # it cannot tell


def test_the_right_to_purge_is_tried_with_a_file_that_leaves_no_trace() -> None:
    tried: list[str] = []
    storage = InMemoryStorage()
    storage.before_create = tried.append
    check_right_to_purge(f"{LOCATION}/metadata/v1.metadata.json", storage)
    (probe,) = tried
    assert probe.startswith(f"{LOCATION}/metadata/.purge-") and storage.files == {} and storage.deleted == [probe]

    def refuse(location: str) -> None:
        raise StorageDeniedError(f"Cannot write {location}.")

    storage.before_create = refuse
    with pytest.raises(StorageDeniedError):
        check_right_to_purge(f"{LOCATION}/metadata/v1.metadata.json", storage)


def test_a_purge_deletes_in_order_what_nobody_else_needs_and_counts_it() -> None:
    storage = Guarded()
    files = [f"{LOCATION}/{number}" for number in range(250)]
    doomed = [*files[:100], *files[101:]]
    assert purge_files([*files[:7], f"{LOCATION}/kept", *files[7:]], storage, "db.t", {files[100]: "db.u"}) == 249
    assert storage.deleted == doomed
