"""Who has files in and around a table's folder: by the rows of a metastore, and by metadata files that lie there."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.metastore import TablePointer
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import FileInfo, Places
from hms_iceberg.table.needed_files.nearby_tables import NearbyTables, Search
from tests.support.memory_storage import InMemoryStorage
from tests.support.spelled_places import RowsMetastore
from tests.support.tables import LOCATION, NAME, metadata

OWN = metadata()
UUID = str(OWN.table_uuid)
ELSEWHERE = "mem://elsewhere/t"


def search(folder: str = LOCATION, but: str = "") -> Search:
    return Search(NAME, OWN, f"{LOCATION}/metadata/v1.metadata.json", folder, Places(None), but)


def told(found: NearbyTables) -> tuple[set[str], set[str], set[str]]:
    """Folders of others below the table's, Hive tables with files in its own folders, and tables that may name any."""
    folders = {each.below(Places(None).anywhere(LOCATION)) for each in found.folders}
    return folders, {each.name for each in found.hive}, set(map(str, found.sharers))


def iceberg(location: str, name: str = "other", **properties: str) -> RowsMetastore:
    metastore = RowsMetastore()
    identifier = ("db", name)
    metastore._rows[identifier] = TablePointer(identifier, location, {"uuid": "theirs", **properties}, location)
    metastore.create_namespace("db", {})
    return metastore


def hive(location: str, *partitions: str, name: str = "other") -> RowsMetastore:
    metastore = RowsMetastore()
    metastore.add_hive(("db", name), location, partitions or None)
    return metastore


@pytest.mark.parametrize(
    ("rows", "folders", "in_own", "sharers"),
    [
        (iceberg(f"{LOCATION}/inner"), {"inner", "inner/metadata", "inner/data"}, (), ()),
        (iceberg(ELSEWHERE), (), (), ()),
        (iceberg(ELSEWHERE, uuid=""), (), (), ()),
        (iceberg(ELSEWHERE, uuid=UUID), (), (), ("db.other",)),
        (iceberg(ELSEWHERE, snapshot="TRUE"), (), (), ("db.other",)),
        (iceberg(ELSEWHERE, snapshot="false"), (), (), ()),
        (iceberg(LOCATION), (), (), ("db.other",)),
        (iceberg(ELSEWHERE, **{"write.data.path": f"{LOCATION}/data"}), (), (), ("db.other",)),
        (iceberg(ELSEWHERE, **{"write.data.path": f"{LOCATION}/theirs"}), {"theirs"}, (), ()),
        (iceberg(LOCATION, name="EVENTS"), (), (), ()),
        (iceberg(f"{LOCATION}/inner", name="spared"), (), (), ()),
        (hive(f"{LOCATION}/inner/"), {"inner"}, (), ()),
        (hive(LOCATION), (), ("db.other",), ()),
        (hive(f"{LOCATION}/data"), (), ("db.other",), ()),
        (hive("mem://warehouse/db.db"), (), (), ()),
        (hive(ELSEWHERE), (), (), ()),
        (hive(LOCATION, name="Events"), (), (), ()),
        (hive(f"{LOCATION}/inner", ELSEWHERE), {"inner"}, (), ()),
        (hive(LOCATION, ELSEWHERE), (), (), ()),
        (hive(ELSEWHERE, f"{LOCATION}/data/p=1", f"{ELSEWHERE}/p=2", ""), {"data/p=1"}, (), ()),
        (hive(LOCATION, f"{LOCATION}/data"), (), ("db.other",), ()),
    ],
)
def test_the_rows_of_a_metastore_tell_whose_folders_are_in_a_table_s(
    rows: RowsMetastore, folders: Any, in_own: Any, sharers: Any
) -> None:
    looked = search(but="db.spared")
    looked.in_metastore(rows)
    found = told(looked.found())
    assert found == (set(folders), set(in_own), set(sharers))
    if any(found):
        with pytest.raises(UnsupportedError, match=r"Cannot drop it: others .*Drop or move them first"):
            looked.found().refuse("drop it")
    else:
        looked.found().refuse("drop it")


@pytest.mark.parametrize("rows", [hive(""), hive("", "")])
def test_a_row_without_a_location_says_nothing_of_the_root_of_a_disk_that_is_searched(rows: RowsMetastore) -> None:
    looked = search("/mnt/events")
    looked.in_metastore(rows)
    assert told(looked.found()) == (set(), set(), set())


def test_a_file_in_a_table_around_the_folder_that_is_searched_is_needed() -> None:
    for rows in (iceberg(f"{LOCATION}/inner"), hive(f"{LOCATION}/inner"), hive(ELSEWHERE, f"{LOCATION}/inner")):
        looked = search(f"{LOCATION}/inner/deep")
        looked.in_metastore(rows)
        assert looked.found().needs(Places(None).anywhere(f"{LOCATION}/inner/deep/x"))
        assert not looked.found().needs(Places(None).anywhere(f"{LOCATION}/x"))


# ------------------------------------------------------------------------------------------ metadata files


def version(location: str, **more: Any) -> TableMetadata:
    return replace(metadata(), location=location, **more)


def put(storage: InMemoryStorage, path: str, content: TableMetadata | bytes, modified_ms: int = 1) -> FileInfo:
    data = content if isinstance(content, bytes) else metadata_to_json(content)
    location = f"{LOCATION}/{path}"
    storage.create(location, gzip.compress(data) if path.endswith(".gz") else data)
    return FileInfo(location, len(data), modified_ms)


@pytest.mark.parametrize(
    ("path", "content", "folders"),
    [
        ("inner/metadata/1.metadata.json", version(f"{LOCATION}/inner"), {"inner"}),
        ("inner/metadata/1.metadata.json.gz", version(f"{LOCATION}/inner"), {"inner"}),
        ("inner/_iceberg/1.metadata.json", version(f"{LOCATION}/inner"), {"inner"}),
        ("inner/metadata/1.metadata.json", version(ELSEWHERE), {"inner"}),  # it was moved here
        ("inner/metadata/1.metadata.json", version(f"{LOCATION}/other"), {"inner", "other"}),
        ("inner/metadata/1.metadata.json", b"{", {"inner"}),
        ("inner/metadata/1.json", version(f"{LOCATION}/inner"), set()),
        ("metadata/2.metadata.json", version(f"{LOCATION}/inner"), set()),  # the table's own folder
        ("old/1.metadata.json", replace(OWN, location=LOCATION), set()),  # the table's own, once
        ("old/1.metadata.json", version(LOCATION), {"old"}),
        ("copy/metadata/1.metadata.json", replace(OWN, location=f"{LOCATION}/copy"), {"copy"}),
        (
            "inner/metadata/1.metadata.json",
            version(ELSEWHERE, properties={"write.data.path": f"{LOCATION}/theirs"}),
            {"inner", "theirs"},
        ),
    ],
)
def test_metadata_files_tell_of_tables_that_no_metastore_knows(
    path: str, content: TableMetadata | bytes, folders: set[str]
) -> None:
    storage = InMemoryStorage()
    looked = search()
    looked.in_listing([put(storage, path, content)], storage)
    found = told(looked.found())[0]
    assert {each.partition("/")[0] for each in found} == folders


def test_the_newest_metadata_file_of_a_folder_tells_and_one_that_is_gone_claims_it() -> None:
    storage, looked = InMemoryStorage(), search()
    listed = [
        put(
            storage,
            f"inner/metadata/{number}.metadata.json",
            version(ELSEWHERE, properties={"write.data.path": f"{LOCATION}/d{modified_ms}"}),
            modified_ms,
        )
        for number, modified_ms in enumerate((2, 3, 1))
    ]
    looked.in_listing([*listed, FileInfo(f"{LOCATION}/gone/metadata/1.metadata.json", 1, 1)], storage)
    found = told(looked.found())[0]
    assert found == {"inner", "d3", "gone"}


def test_a_table_that_left_metadata_files_in_the_folder_may_still_name_files_in_it() -> None:
    storage = InMemoryStorage()
    left = version(LOCATION)
    files = [
        put(storage, "metadata/1.metadata.json", left),
        put(storage, "metadata/2.metadata.json", OWN),
        put(storage, "metadata/3.metadata.json", b"{"),
        put(storage, "other/1.metadata.json", version(LOCATION, table_uuid="4a6f1c3e-0000-4000-8000-000000000000")),
    ]
    gone = FileInfo(f"{LOCATION}/metadata/gone.metadata.json", 1)
    for uuid, unnamed, shares in (
        (left.table_uuid, [*files, gone], True),
        ("", [*files, gone], False),
        (None, [*files, gone], True),
        (None, files[1:], False),
        (left.table_uuid, files[1:], False),
        ("4a6f1c3e-0000-4000-8000-000000000000", files, False),
    ):
        rows = iceberg(ELSEWHERE)
        properties = rows._rows["db", "other"].properties  # type: ignore[union-attr]
        properties.pop("uuid")  # type: ignore[attr-defined]
        properties.update({} if uuid is None else {"uuid": uuid})  # type: ignore[attr-defined]
        looked = search()
        looked.in_own_folders(unnamed, storage)
        looked.in_metastore(rows)
        assert told(looked.found()) == (set(), set(), {"db.other"} if shares else set()), (uuid, unnamed)
