"""Tables by path: versions, hints, concurrent writers."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import (
    CommitConflictError,
    CommitFailedError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.metastore import MetadataVersion, Metastore
from hms_iceberg.table import StaticTable, Table
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.file_system_metastore import FileSystemMetastore

ARROW = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=ARROW)


@pytest.fixture
def tables() -> FileSystemTables:
    return FileSystemTables()


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "events")


def names(location: str) -> list[str]:
    return sorted(path.name for path in (Path(location) / "metadata").iterdir() if path.suffix != ".avro")


def test_versions_are_numbered_and_the_hint_names_the_last(tables: FileSystemTables, location: str) -> None:
    table = tables.create(ARROW, location)
    table.append(rows(1))
    table.append(rows(2))
    assert names(location) == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "version-hint.text"]
    assert (Path(location) / "metadata" / "version-hint.text").read_text() == "3"
    loaded = tables.load(location + "/")
    assert loaded.metadata_location.endswith("/v3.metadata.json")
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert [entry.metadata_file.rsplit("/", 1)[-1] for entry in loaded.metadata_log()] == [
        "v1.metadata.json",
        "v2.metadata.json",
    ]
    assert StaticTable.from_metadata(location).scan().count() == 2


@pytest.mark.parametrize("hint", [None, "1", "text", ""])
def test_a_hint_that_is_missing_old_or_no_number_does_not_matter(
    tables: FileSystemTables, location: str, hint: str | None
) -> None:
    table = tables.create(ARROW, location)
    table.append(rows(1))
    table.append(rows(2))
    path = Path(location) / "metadata" / "version-hint.text"
    path.unlink()
    if hint is not None:
        path.write_text(hint)
    assert tables.load(location).scan().count() == 2
    table.append(rows(3))
    assert tables.load(location).scan().count() == 3


def test_versions_are_compressed_as_the_version_before_them_says(tables: FileSystemTables, location: str) -> None:
    table = tables.create(ARROW, location, properties={"write.metadata.compression-codec": "gzip"})
    table.append(rows(1))
    table.set_properties({"write.metadata.compression-codec": "none"})
    table.append(rows(2))
    folder = Path(location) / "metadata"
    found = {path.name: path.read_bytes()[:2] == b"\x1f\x8b" for path in folder.glob("v*.json")}
    assert found == {
        "v1.metadata.json": False,
        "v2.gz.metadata.json": True,
        "v3.gz.metadata.json": True,
        "v4.metadata.json": False,
    }
    assert tables.load(location).scan().count() == 2


@pytest.mark.parametrize("codecs", [("none", "gzip"), ("gzip", "none")])
def test_a_writer_who_changes_the_codec_and_one_who_does_not_lose_nothing(
    tables: FileSystemTables, location: str, codecs: tuple[str, str]
) -> None:
    mine = tables.create(ARROW, location, properties={"write.metadata.compression-codec": codecs[0]})
    theirs = FileSystemTables().load(location)
    create = mine.metastore._storage.create  # type: ignore[attr-defined]
    versions: list[str] = []

    def overtaken(place: str, content: bytes) -> None:
        if "/v" in place and not versions:
            versions.append(place)
            theirs.set_properties({"write.metadata.compression-codec": codecs[1]})
        create(place, content)

    mine.metastore._storage.create = overtaken  # type: ignore[attr-defined]
    mine.append(rows(1))
    table = tables.load(location)
    assert table.scan().count() == 1
    assert table.properties["write.metadata.compression-codec"] == codecs[1]


def test_writers_in_threads_lose_nothing(tables: FileSystemTables, location: str) -> None:
    tables.create(ARROW, location, properties={"commit.retry.min-wait-ms": "1"})
    failures: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            table = FileSystemTables().load(location)
            for number in range(5):
                table.append(rows(writer * 10 + number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    found = tables.load(location).scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == [writer * 10 + number for writer in range(3) for number in range(5)]
    assert len(names(location)) == 17


def test_a_version_that_another_writer_made_is_a_conflict(tables: FileSystemTables, location: str) -> None:
    mine = tables.create(ARROW, location, properties={"commit.retry.num-retries": "0"})
    theirs = FileSystemTables().load(location)
    transaction = mine.transaction()
    transaction.append(rows(1))
    load = FileSystemMetastore.load

    def overtaken(store: FileSystemMetastore, identifier: tuple[str, ...]) -> object:
        pointer = load(store, identifier)
        if theirs.current_snapshot() is None:
            theirs.append(rows(2))
        return pointer

    mine.metastore.load = overtaken.__get__(mine.metastore)  # type: ignore[method-assign]
    with pytest.raises(CommitFailedError, match=r"v2\.metadata\.json"):
        transaction.commit_transaction()
    assert tables.load(location).scan().to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize("trusts", [True, False], ids=["trusted", "looked for"])
def test_a_table_made_anew_in_the_same_folder_loses_no_row_to_a_writer_of_the_one_before(
    tables: FileSystemTables, location: str, trusts: bool
) -> None:
    def made(first: int) -> Table:
        table = tables.create(ARROW, location)
        table.append(rows(first))
        return table

    version = MetadataVersion((old := made(1)).metadata_location, old.metadata)
    before = tables.table_at(location, version, time.monotonic() if trusts else None)
    begun = before.transaction()
    begun.append(rows(2))
    tables.drop(location)
    now = made(3)
    assert now.metadata_location == before.metadata_location and before != now
    for change in (begun.commit_transaction, lambda: before.append(rows(4)), lambda: before.set_properties({"a": "1"})):
        with pytest.raises(CommitConflictError, match="the name now belongs to one with UUID"):
            change()
    assert tables.load(location).scan().to_arrow()["id"].to_pylist() == [3]
    with pytest.raises(NoSuchTableError, match="its name belongs to the table at"):
        before.refresh()
    now.append(rows(5))
    found = tables.load(location).scan()
    assert sorted(found.to_arrow()["id"].to_pylist()) == [3, 5]
    assert sorted(task.file.record_count for task in found.plan_files()) == [1, 1]


def test_a_file_that_was_created_although_the_store_complained_is_a_success(location: str) -> None:
    class Complaining(ArrowStorage):
        complain = False

        def create(self, location: str, data: bytes) -> None:
            super().create(location, data)
            if self.complain and "/v2." in location:
                raise StorageError("The answer was lost.")

    storage = Complaining({})
    table = FileSystemTables(storage=storage).create(ARROW, location)
    storage.complain = True
    table.append(rows(1))
    assert table.metadata_location.endswith("/v2.metadata.json")
    assert table.scan().count() == 1


def test_a_conflict_with_a_file_of_our_own_is_a_success(location: str) -> None:
    class Repeating(ArrowStorage):
        def create(self, location: str, data: bytes) -> None:
            super().create(location, data)
            if "/v2." in location:
                super().create(location, data)

    table = FileSystemTables(storage=Repeating({})).create(ARROW, location)
    table.append(rows(1))
    assert FileSystemTables().load(location).scan().count() == 1


def test_a_file_that_could_not_be_created_is_a_certain_failure(location: str) -> None:
    class Full(ArrowStorage):
        def create(self, location: str, data: bytes) -> None:
            if "/v2." in location:
                raise StorageError("No space is left.")
            super().create(location, data)

    table = FileSystemTables(storage=Full({})).create(ARROW, location)
    with pytest.raises(StorageError, match="No space is left"):
        table.append(rows(1))
    files = [path.name for path in Path(location).rglob("*") if path.is_file()]
    assert sorted(files) == ["v1.metadata.json", "version-hint.text"]


def test_a_file_of_another_writer_after_a_complaint_is_a_conflict(location: str) -> None:
    class Overtaken(ArrowStorage):
        def create(self, location: str, data: bytes) -> None:
            if "/v2." in location:  # another writer's is there, without our snapshot
                super().create(location, self.read(location.replace("/v2.", "/v1.")))
                raise StorageError("The answer was lost.")
            super().create(location, data)

    tables = FileSystemTables(storage=Overtaken({}))
    table = tables.create(ARROW, location, properties={"commit.retry.num-retries": "0"})
    with pytest.raises(CommitFailedError, match="The answer was lost"):
        table.append(rows(1))


def test_hadoops_checksum_of_an_older_hint_is_removed(tables: FileSystemTables, location: str) -> None:
    table = tables.create(ARROW, location)
    checksum = Path(location) / "metadata" / ".version-hint.text.crc"
    checksum.write_bytes(b"crc")
    table.append(rows(1))
    assert not checksum.exists()


def test_a_table_cannot_be_moved(tables: FileSystemTables, location: str) -> None:
    table = tables.create(ARROW, location)
    with pytest.raises(UnsupportedError, match=r"write\.metadata\.path"):
        table.set_properties({"write.metadata.path": location + "-other"})
    assert tables.load(location).properties.get("write.metadata.path") is None


def test_names_that_are_taken_or_free_are_told(tables: FileSystemTables, location: str) -> None:
    assert not tables.exists(location)
    with pytest.raises(NoSuchTableError, match=location):
        tables.load(location)
    with pytest.raises(NoSuchTableError):
        tables.drop(location)
    tables.create(ARROW, location).append(rows(1))
    assert tables.exists(location)
    with pytest.raises(TableAlreadyExistsError, match=location):
        tables.create(ARROW, location)
    tables.drop(location)
    assert not tables.exists(location)
    assert [path for path in Path(location).rglob("*") if path.is_file()] == []


def test_stores_without_exclusive_creation_are_not_written(tables: FileSystemTables) -> None:
    store = FileSystemMetastore(tables.storage)
    assert isinstance(store, Metastore)
    with pytest.raises(UnsupportedError, match="not exclusive on s3"):
        store.swap(("s3://bucket/events",), None, None)  # type: ignore[arg-type]
