"""The files of a transaction: which are its own to delete, where its metadata go, and what a replay may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CommitConflictError, CorruptMetadataError, FileAlreadyExistsError, StorageError
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.data_types import IntegerType, LongType, NestedField, StructType
from hms_iceberg.spec.metadata.table_metadata import PREVIEWED_FORMAT_VERSION, TableMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MetadataLogEntry
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from hms_iceberg.transaction.workspace import (
    FileWorkspace,
    check_new_ids,
    check_same_ids,
    delete_dropped_versions,
    next_location,
    read_current,
    storage_of,
    write_version,
)
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import LOCATION, metadata

MINE, THEIRS = (f"{LOCATION}/metadata/{name}" for name in ("mine.avro", "theirs.avro"))


def test_a_file_of_somebody_else_stays_where_one_of_its_name_could_not_be_made() -> None:
    storage = InMemoryStorage()
    storage.create(THEIRS, b"theirs")
    workspace = FileWorkspace(storage)
    workspace.create(MINE, b"mine")
    with pytest.raises(FileAlreadyExistsError):
        workspace.create(THEIRS, b"mine")
    assert workspace.created == (MINE,)
    assert workspace.clean_up(committed=None) == [MINE]
    assert storage.files == {THEIRS: b"theirs"}


def test_what_a_failed_block_has_made_goes_and_what_was_there_before_stays() -> None:
    storage = InMemoryStorage()
    workspace = FileWorkspace(storage)
    workspace.create(MINE, b"mine")

    def part() -> None:
        with workspace.all_or_nothing():
            workspace.once("theirs", lambda: workspace.create(THEIRS, b"made within"))
            workspace.track(f"{LOCATION}/data/written.parquet")
            raise StorageError("as told")

    storage.create(f"{LOCATION}/data/written.parquet", b"rows")
    with pytest.raises(StorageError, match="as told"):
        part()
    assert storage.files == {MINE: b"mine"}
    assert (workspace.created, workspace.used()) == ((MINE,), {MINE})
    workspace.once("theirs", lambda: workspace.create(THEIRS, b"made again"))
    assert storage.files[THEIRS] == b"made again"
    assert set(workspace.clean_up(committed=None)) == {MINE, THEIRS}


def test_a_file_that_could_be_written_only_in_part_is_deleted_with_the_others() -> None:
    storage = InMemoryStorage()
    workspace = FileWorkspace(storage)

    def break_off(location: str) -> None:
        storage.files[location] = b"mi"
        raise StorageError("as told")

    storage.before_create = break_off
    with pytest.raises(StorageError, match="as told"):
        workspace.create(MINE, b"mine")
    assert workspace.clean_up(committed=None) == [MINE]
    assert storage.files == {}


def test_what_is_done_once_belongs_to_each_attempt_that_asks_for_it_and_nothing_else_does() -> None:
    workspace = FileWorkspace(storage := InMemoryStorage())
    lists = [f"{LOCATION}/metadata/{number}.avro" for number in range(2)]
    for each in lists:
        workspace.begin_attempt()
        workspace.create(each, b"list")
        workspace.once("manifest", lambda: workspace.create(MINE, b"mine"))
    assert workspace.used() == {lists[1], MINE}
    assert workspace.clean_up(workspace.used()) == [lists[0]]
    assert workspace.clean_up(committed=None) == [], "what is over is deleted no more"
    assert set(storage.files) == {lists[1], MINE}
    assert workspace.once("manifest", lambda: "made anew") == "made anew"
    workspace.track(THEIRS)
    workspace.clean_up(committed=workspace.used())
    assert workspace.clean_up(committed=None) == []


def test_a_file_that_cannot_be_deleted_is_left_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = FileWorkspace(storage := InMemoryStorage())
    delete = storage.delete

    def refuse(location: str) -> None:
        if location == THEIRS:
            raise StorageError("as told")
        delete(location)

    monkeypatch.setattr(storage, "delete", refuse)
    for each in (THEIRS, MINE):
        workspace.create(each, b"")
    assert workspace.clean_up(committed=None) == [MINE]
    assert set(storage.files) == {THEIRS}
    assert f"Could not delete the unused file {THEIRS}: as told" in caplog.text


def test_files_are_numbered_by_their_kind_from_0_on() -> None:
    workspace = FileWorkspace(InMemoryStorage())
    assert [workspace.next_number(kind) for kind in ("a", "a", "b", "a")] == [0, 1, 0, 2]


# ------------------------------------------------------------------------------------------ metadata files


@pytest.mark.parametrize(
    ("base", "number"),
    [
        (None, "00000"),
        ("00009-f81d4fae.metadata.json", "00010"),
        ("99999-f81d4fae.gz.metadata.json", "100000"),
        ("v3.metadata.json", "00000"),
        ("2-3/copy.metadata.json", "00000"),
    ],
)
def test_metadata_files_are_numbered_on_from_the_one_before(base: str | None, number: str) -> None:
    folder = f"{LOCATION}/metadata"
    assert next_location(base and f"{folder}/{base}", metadata()).startswith(f"{folder}/{number}-")


def test_the_last_version_that_was_written_is_remembered_as_the_json_that_it_is() -> None:
    for codec, begins in (("none", b"{"), ("gzip", b"\x1f\x8b")):
        workspace = FileWorkspace(storage := InMemoryStorage())
        version = write_version(None, metadata(properties={"write.metadata.compression-codec": codec}), workspace)
        assert workspace.last_version is not None
        location, data = workspace.last_version
        assert (location, data[:1]) == (version.location, b"{")
        assert storage.files[location].startswith(begins)
        assert location.endswith(".gz.metadata.json") is (codec == "gzip")


@pytest.mark.parametrize("deletes", [False, True])
def test_versions_that_fell_off_the_log_are_deleted_only_where_the_table_says_so(deletes: bool) -> None:
    storage, names = InMemoryStorage(), [f"{LOCATION}/metadata/v{number}.metadata.json" for number in range(4)]
    for name in names:
        storage.create(name, b"")
    log = tuple(MetadataLogEntry(name, number) for number, name in enumerate(names))
    table = metadata(properties={"write.metadata.delete-after-commit.enabled": str(deletes).lower()})
    old = MetadataVersion(f"{LOCATION}/metadata/v4.metadata.json", replace(table, metadata_log=log))
    new = MetadataVersion(names[0], replace(table, metadata_log=log[2:]))  # a file of a name that was there before
    delete_dropped_versions(old, new, FileWorkspace(storage))
    assert storage.deleted == ([names[1]] if deletes else [])


def test_metadata_of_another_place_are_not_those_of_a_folder_and_may_be_those_of_a_row() -> None:
    version = write_version(None, metadata(), FileWorkspace(storage := InMemoryStorage()))
    row = TablePointer(("db", "events"), version.location, location=f"{LOCATION}/")
    for pointer in (row, replace(row, is_folder=True), replace(row, location="mem://elsewhere")):
        assert read_current(pointer, storage) == version
    with pytest.raises(CorruptMetadataError, match="not of the table at mem://elsewhere: its table is at"):
        read_current(replace(row, location="mem://elsewhere", is_folder=True), storage)


def test_only_a_table_of_a_draft_is_read_by_a_storage_of_its_own() -> None:
    storage, table = ArrowStorage(), metadata()
    draft = replace(table, format_version=PREVIEWED_FORMAT_VERSION)
    assert storage_of(table, storage) is storage is not (own := storage_of(draft, storage))
    assert isinstance(own, ArrowStorage)
    assert storage_of(draft, no_drafts := InMemoryStorage()) is no_drafts


# ------------------------------------------------------------------------------------------ ids of files

ID, CITY, AMOUNT = metadata().schema().fields
PLACE = NestedField(4, "place", StructType(NestedField(5, "x", LongType())))
WIDER_PLACE = replace(PLACE, field_type=StructType(*PLACE.field_type.fields, NestedField(6, "y", LongType())))
NEW = NestedField(6, "new", LongType())
START = (ID, CITY, AMOUNT, PLACE)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"), spec_id=1)
BY_ID = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"), spec_id=1)


def table_of(fields: Sequence[NestedField], *specs: PartitionSpec) -> TableMetadata:
    specs = specs or (UNPARTITIONED,)
    return replace(metadata(), schemas=(Schema(*fields),), partition_specs=specs, default_spec_id=specs[-1].spec_id)


# The fields and specs of the files as they were written, and of the replay; START and an unpartitioned spec before.
KEPT = {
    "nothing changed": (table_of(START), table_of(START)),
    "a new column": (table_of((*START, NEW)), table_of((*START, NEW))),
    "one of others besides": (table_of((*START, NEW)), table_of((*START, NEW, NestedField(7, "b", LongType())))),
    "others renamed one": (table_of((*START, NEW)), table_of((ID, CITY, replace(AMOUNT, name="sum"), PLACE, NEW))),
    "others dropped one": (table_of((*START, NEW)), table_of((ID, CITY, PLACE, NEW))),
    "others wrote one in another case": (
        table_of((*START, NEW)),
        table_of((ID, CITY, replace(AMOUNT, name="Amount"), PLACE, NEW)),
    ),
    "dropped here alone": (table_of((ID, CITY, PLACE, NEW)), table_of((*START, NEW))),
    "dropped by both": (table_of((ID, CITY, PLACE, NEW)), table_of((ID, CITY, PLACE, NEW))),
    "mine is gone, theirs came": (
        table_of((ID, CITY, PLACE, NEW)),
        table_of((ID, CITY, PLACE, NEW, replace(AMOUNT, field_id=7))),
    ),
    "others made one anew that no file was written for by name": (
        table_of(START),
        table_of((ID, CITY, replace(AMOUNT, field_id=6), PLACE)),
    ),
    "a new spec": (table_of(START, UNPARTITIONED, BY_CITY), table_of(START, UNPARTITIONED, BY_CITY)),
    "an old spec is gone": (table_of(START, UNPARTITIONED, BY_CITY), table_of(START, BY_CITY)),
}
TWICE = (*START[:-1], NestedField(4, "CITY", LongType()))
TAKEN = {
    "the id is another column's": (table_of((*START, NEW)), table_of((*START, replace(NEW, name="theirs")))),
    "the column has another id": (table_of((*START, NEW)), table_of((*START, replace(NEW, field_id=7)))),
    "another type": (table_of((*START, NEW)), table_of((*START, replace(NEW, field_type=IntegerType())))),
    "another path": (
        table_of((ID, CITY, AMOUNT, WIDER_PLACE)),
        table_of((ID, CITY, AMOUNT, replace(WIDER_PLACE, name="spot"))),
    ),
    "made anew under a name that was there": (
        table_of((*START, NEW)),
        table_of((ID, CITY, replace(AMOUNT, field_id=7), PLACE, NEW)),
    ),
    "made anew in another case": (
        table_of((*START, NEW)),
        table_of((ID, CITY, NestedField(7, "AMOUNT", LongType()), PLACE, NEW)),
    ),
    "another spec": (table_of(START, UNPARTITIONED, BY_CITY), table_of(START, UNPARTITIONED, BY_ID)),
    "no such spec": (table_of(START, UNPARTITIONED, BY_CITY), table_of(START)),
}


@pytest.mark.parametrize(("written", "replayed"), KEPT.values(), ids=list(KEPT))
def test_a_replay_that_keeps_the_ids_of_the_files_is_made(written: TableMetadata, replayed: TableMetadata) -> None:
    check_new_ids(table_of(START), written, replayed, "db.events")


def test_columns_that_differ_in_case_alone_are_not_taken_for_each_other() -> None:
    check_new_ids(table_of(TWICE), table_of((*TWICE, NEW)), table_of((*TWICE, NEW)), "db.events")


@pytest.mark.parametrize(("written", "replayed"), TAKEN.values(), ids=list(TAKEN))
def test_a_replay_that_gives_the_ids_of_the_files_to_others_is_refused(
    written: TableMetadata, replayed: TableMetadata
) -> None:
    with pytest.raises(CommitConflictError, match=r"(?s)table db\.events.*Repeat the transaction"):
        check_new_ids(table_of(START), written, replayed, "db.events")


def test_a_table_that_is_replaced_has_the_columns_and_partitions_that_its_files_were_written_with() -> None:
    planned = table_of(START, BY_CITY)
    check_same_ids(planned, table_of(START, UNPARTITIONED, PartitionSpec(*BY_CITY.fields, spec_id=7)), "db.events")
    for now in (table_of(START, BY_ID), table_of((*START, NEW), BY_CITY)):
        with pytest.raises(CommitConflictError, match=r"Cannot replace table db\.events"):
            check_same_ids(planned, now, "db.events")
