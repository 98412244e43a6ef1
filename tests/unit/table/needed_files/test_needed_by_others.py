"""Which of a table's files others need: its way back, copies of it, and whoever has the deepest folder around one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import CorruptMetadataError, NoSuchTableError
from hms_iceberg.metastore import Identifier, MetadataVersion, TableRow
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.storage import Places
from hms_iceberg.table.needed_files.needed_by_others import (
    MIGRATION_ID,
    backup_of,
    copies_of,
    files_of_others,
    is_journal,
    looked_for,
    may_be_copy,
    names_of,
    needed_by_others,
)
from tests.support.tables import LOCATION, NAME, World, data_file, metadata

ELSEWHERE = "mem://elsewhere/t"
PLACES = Places(None)


class Rows:
    """A metastore's rows, some of which have partitions."""

    def __init__(self, *rows: TableRow, partitions: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._rows = rows
        self._partitions = partitions or {}
        self.asked = 0

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        self.asked += 1
        return iter(self._rows)

    def row(self, identifier: Identifier) -> TableRow | None:
        return next((row for row in self._rows if str(row) == ".".join(identifier).lower()), None)

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        if identifier[1] not in self._partitions:
            raise NoSuchTableError(f"{identifier} has no partitions")
        return iter(self._partitions[identifier[1]])


def iceberg(name: str, location: str, **properties: str) -> TableRow:
    return TableRow(("db", name), location, {"uuid": "theirs", **properties}, True)


def hive(name: str, location: str, is_partitioned: bool = False, **properties: str) -> TableRow:
    return TableRow(("db", name), location, properties, False, is_partitioned)


@pytest.fixture
def world() -> World:
    made = World.with_table()
    made.append(data_file())
    return made


def test_journals_are_known_by_their_names_hidden_or_not() -> None:
    journals = ("_repair-1.json", "repair-1.json", "_hive-migration.1.json", "hive-migration.1.json")
    assert all(is_journal(f"{LOCATION}/metadata/{name}") for name in journals)
    others = ("__repair-1.json", "_repair.json", "a_repair-1.json", "_repair-1/a.json", "epair-1.json", "x.avro")
    assert not any(is_journal(f"{LOCATION}/metadata/{name}") for name in others)


# ------------------------------------------------------------------------------------------------ way back

MARKED = {MIGRATION_ID: "m1"}


@pytest.mark.parametrize(
    ("properties", "row", "is_backup"),
    [
        ({}, hive("events_backup_", f"{LOCATION}/"), True),
        ({}, hive("events_backup_", ELSEWHERE), False),
        ({}, hive("events_backup_", ELSEWHERE, **MARKED), False),
        ({}, hive("other", LOCATION), False),
        ({}, iceberg("events_backup_", LOCATION), False),
        (MARKED, hive("events_backup_", ELSEWHERE, **MARKED), True),
        (MARKED, hive("renamed", ELSEWHERE, **MARKED), True),
        (MARKED, hive("renamed", ELSEWHERE, **{MIGRATION_ID: "m10"}), False),
        (MARKED, hive("events_backup_", ELSEWHERE, **{MIGRATION_ID: "m2"}), False),
        (MARKED, iceberg("events_backup_", LOCATION, **MARKED), False),
        (MARKED, iceberg("renamed", LOCATION, **MARKED), False),
    ],
)
def test_the_hive_table_before_a_migration_is_known_by_its_mark_or_by_its_name_and_place(
    properties: dict[str, str], row: TableRow, is_backup: bool
) -> None:
    found = backup_of(NAME, metadata(properties=properties), f"{LOCATION}/metadata/1.json", Rows(row), PLACES)
    assert (None if found is None else found.name) == (str(row) if is_backup else None)


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_the_hive_table_before_a_migration_reads_what_is_in_its_folders_and_not_hidden_or_iceberg_s(
    is_partitioned: bool,
) -> None:
    rows = Rows(
        hive("events_backup_", LOCATION, is_partitioned),
        partitions={"events_backup_": (LOCATION, f"{ELSEWHERE}/p=1")} if is_partitioned else None,
    )
    found = backup_of(NAME, metadata(), f"{LOCATION}/metadata/1.json", rows, PLACES)
    assert found is not None
    for path, is_needed in (
        (f"{LOCATION}/000000_0", True),
        (f"{LOCATION}/a/b/000000_0", True),
        (f"{LOCATION}/data/a.parquet", False),
        (f"{LOCATION}/metadata/a.avro", False),
        (f"{LOCATION}/_a", False),
        (f"{LOCATION}/.a/b", False),
        (f"{LOCATION}/a/_b/c", False),
        (f"{ELSEWHERE}/p=1/000000_0", is_partitioned),
        (f"{ELSEWHERE}/_p/p=1/000000_0", False),
        (f"{ELSEWHERE}/000000_0", False),
    ):
        assert found.needs(PLACES.anywhere(path)) is is_needed, path


def test_a_search_is_repeated_where_a_table_is_renamed_during_it_but_not_for_ever() -> None:
    for failures in range(4):
        asked: list[None] = []

        def look(failures: int = failures, asked: list[None] = asked) -> str:
            asked.append(None)
            if len(asked) <= failures:
                raise NoSuchTableError("renamed")
            return "found"

        if failures < 3:
            assert looked_for(look) == "found" and len(asked) == failures + 1
        else:
            with pytest.raises(NoSuchTableError):
                looked_for(look)


# -------------------------------------------------------------------------------------------------- others


def names(world: World) -> str:
    """A metadata file of another table that names the same data file."""
    version = world.version()
    location = f"{ELSEWHERE}/metadata/{len(world.storage.files)}.metadata.json"
    content = replace(version.metadata, table_uuid="4a6f1c3e-0000-4000-8000-000000000000", location=ELSEWHERE)
    world.storage.create(location, metadata_to_json(content))
    return location


def asked_about(world: World) -> list[str]:
    return [*world.live_paths(), f"{LOCATION}/x", f"{LOCATION}/data/p=1/x", f"{LOCATION}/./data/p=1/x"]


def test_whoever_needs_a_file_of_a_table_is_told(world: World) -> None:
    version = world.version()
    (file,) = world.live_paths()
    uuid, there = str(version.metadata.table_uuid), names(world)
    below = [f"{LOCATION}/data/p=1/x", f"{LOCATION}/./data/p=1/x"]
    own = iceberg("events", LOCATION, uuid=uuid, metadata_location=version.location)
    copy = iceberg("copy", ELSEWHERE, uuid=uuid, metadata_location=version.location)
    sharer = iceberg("sharer", ELSEWHERE, metadata_location=there, **{"write.data.path": f"{LOCATION}/data"})
    inner = iceberg("inner", f"{LOCATION}/data/p=1", metadata_location=there)
    backup = hive("events_backup_", LOCATION)
    cases: list[tuple[Rows, dict[str, Any], dict[str, str]]] = [
        (Rows(own), {}, {}),
        (Rows(own, iceberg("far", ELSEWHERE)), {}, {}),
        (Rows(own, copy), {}, {file: "table db.copy, a copy"}),
        (
            Rows(own, iceberg("copy", LOCATION, uuid=uuid, metadata_location=version.location)),
            {},
            {file: "table db.copy, a copy"},
        ),
        (Rows(own, sharer), {}, {file: "table db.sharer, which has a folder with it"}),
        (Rows(own, inner), {}, dict.fromkeys(below, "table db.inner (they are in its folder)")),
        (Rows(own, hive("h", f"{LOCATION}/data/p=1")), {}, dict.fromkeys(below, "table db.h (they are in its folder)")),
        (
            Rows(own, hive("h", f"{LOCATION}/data/p=1", True), partitions={"h": ("", ELSEWHERE)}),
            {},
            dict.fromkeys(below, "table db.h (they are in its folder)"),
        ),
        (
            Rows(own, hive("h", ELSEWHERE, True), partitions={"h": (f"{LOCATION}/data/p=1",)}),
            {},
            dict.fromkeys(below, "table db.h (they are in its folder)"),
        ),
        (Rows(own, backup), {}, {f"{LOCATION}/x": "the Hive table db.events_backup_, its way back from the migration"}),
        (Rows(own, backup), {"keep_backup": False}, {}),
        (
            Rows(own, copy, hive("h", f"{LOCATION}/data")),
            {},
            {file: "table db.copy, a copy", **dict.fromkeys(below, "table db.h (they are in its folder)")},
        ),
    ]
    for rows, how, needed in cases:
        found = needed_by_others(("db", "EVENTS"), version, asked_about(world), world.storage, rows, **how)
        assert found == needed, rows._rows
        assert rows.asked == 1, "all tables of a metastore are told once"
    assert needed_by_others(NAME, version, asked_about(world), world.storage, None) == {}
    assert needed_by_others(NAME, version, (), world.storage, Rows(copy)) == {}


def test_files_of_others_are_those_in_their_folders_or_that_they_name_in_the_table_s_own(world: World) -> None:
    version = world.version()
    (file,) = world.live_paths()
    uuid, there = str(version.metadata.table_uuid), names(world)
    data = {"write.data.path": f"{LOCATION}/data"}
    for rows, theirs in (
        (Rows(iceberg("events", LOCATION, uuid=uuid, metadata_location=version.location)), set()),
        (Rows(iceberg("copy", LOCATION, uuid=uuid, metadata_location=version.location)), set()),
        (Rows(iceberg("sharer", ELSEWHERE, metadata_location=there, **data)), {file}),
        (Rows(iceberg("far", ELSEWHERE, metadata_location=there)), set()),
        (Rows(hive("h", f"{LOCATION}/data/p=1")), set(asked_about(world)[2:])),
        (Rows(hive("events_backup_", LOCATION)), set()),
    ):
        assert files_of_others(NAME, version, asked_about(world), world.storage, rows) == theirs, rows._rows


# -------------------------------------------------------------------------------------------------- copies


def test_a_copy_has_the_uuid_or_if_none_is_told_a_place_in_the_table_s_folders(world: World) -> None:
    version = world.version()
    uuid = str(version.metadata.table_uuid)
    log = replace(version.metadata.metadata_log[0], metadata_file=f"{ELSEWHERE}/old/1.metadata.json")
    moved = MetadataVersion(version.location, replace(version.metadata, metadata_log=(log,)))
    untold = {"uuid": ""}
    for row, is_copy in (
        (iceberg("a", ELSEWHERE, uuid=uuid), True),
        (iceberg("a", LOCATION), False),
        (iceberg("a", LOCATION, **untold), True),
        (iceberg("a", f"{LOCATION}/inner", **untold), True),
        (iceberg("a", ELSEWHERE, **untold), False),
        (iceberg("a", "", **untold), False),
        (iceberg("a", "", metadata_location=f"{LOCATION}/metadata/1.json", **untold), True),
        (iceberg("a", "", metadata_location=f"{ELSEWHERE}/old/1.json", **untold), True),
        (hive("a", LOCATION, uuid=uuid), False),
    ):
        assert copies_of(moved, Rows(row), PLACES) == ((row,) if is_copy else ()), row
    old = MetadataVersion(version.location, replace(version.metadata, table_uuid=None))
    assert len(copies_of(old, Rows(iceberg("a", LOCATION), iceberg("b", ELSEWHERE)), PLACES)) == 1
    assert not may_be_copy(iceberg("a", ELSEWHERE, **untold), None, (), PLACES)


def test_a_table_whose_metadata_file_is_gone_names_nothing_and_one_that_is_damaged_says_so(world: World) -> None:
    version = world.version()
    row = iceberg("a", LOCATION, metadata_location=version.location)
    assert set(names_of(row, world.storage)) >= {*world.live_paths(), version.location}
    world.storage.files[version.location] = b"{"
    with pytest.raises(CorruptMetadataError):
        list(names_of(row, world.storage))
    del world.storage.files[version.location]
    assert list(names_of(row, world.storage)) == []
