"""What a repair's journal says of the way back, and which files are kept for it."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from hms_iceberg.errors import StorageDeniedError
from hms_iceberg.maintenance.repair.repair_journal import (
    SERVICE_STATE,
    DoneRepair,
    needed_for_undo,
    repair_that_stands,
    state_of,
    write_done,
)
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.named_files import files_of
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import LOCATION, NAME, World, data_file

JOURNALS = f"{LOCATION}/metadata/_repair-"


@pytest.fixture
def world() -> World:
    """A table of one file."""
    made = World.with_table()
    made.append(data_file())
    return made


def table_of(world: World) -> Table:
    return Table(NAME, world.version(), world.metastore, world.storage)


def repaired(world: World, copy: bool = True, journal: str = f"{JOURNALS}1.json") -> tuple[MetadataVersion, DoneRepair]:
    """The version before a repair that changes a property, and what is noted of it."""
    before = world.version()
    location = journal.replace(".json", ".before")
    if copy:
        world.storage.create(location, world.storage.files[before.location])
    world.commit(SetProperties({"repaired": journal}))
    done = DoneRepair(journal, before.location, location if copy else "", state_of(world.version().metadata))
    write_done(done, world.storage)
    return before, done


def test_a_repair_stands_until_others_change_the_table_and_the_service_s_notes_are_no_change(world: World) -> None:
    assert repair_that_stands(world.version(), world.storage) is None
    _, done = repaired(world)
    assert repair_that_stands(world.version(), world.storage) == done
    world.commit(SetProperties({f"{SERVICE_STATE}visited": "today"}))
    assert repair_that_stands(world.version(), world.storage) == done
    world.commit(SetProperties({"a": "1"}))
    assert repair_that_stands(world.version(), world.storage) is None
    assert list(needed_for_undo(table_of(world))) == []


def test_the_state_of_a_table_is_that_of_its_content_not_of_its_spelling_or_its_times(world: World) -> None:
    metadata = world.version().metadata
    order = dict(reversed(metadata.properties.items()))
    for same in (replace(metadata, properties=order), replace(metadata, last_updated_ms=1, metadata_log=())):
        assert state_of(same) == state_of(metadata)
    for other in (replace(metadata, properties={}), replace(metadata, last_column_id=99)):
        assert state_of(other) != state_of(metadata)


def test_the_last_of_several_repairs_counts_and_notes_that_cannot_be_read_do_not(world: World) -> None:
    for number in (1, 3, 2):
        _, done = repaired(world, journal=f"{JOURNALS}{number}.json")
    found = [replace(done, journal=f"{JOURNALS}{number}.json") for number in (4, 6, 5)]
    for each in found:
        write_done(each, world.storage)
    for number, data in enumerate((b"{", b"[]", b'{"journal": "x"}', b"\xff")):
        world.storage.create(f"{JOURNALS}9{number}.done.json", data)
    world.storage.create(f"{JOURNALS}99.json", str(asdict(done)).encode())
    assert repair_that_stands(world.version(), world.storage) == found[1]


def test_a_journal_is_looked_for_where_metadata_files_are_and_where_new_ones_go(world: World) -> None:
    for folder in ("mem://elsewhere/new", f"{LOCATION}/metadata"):
        world.commit(SetProperties({"write.metadata.path": "mem://elsewhere/new"}))
        _, done = repaired(world, journal=f"{folder}/_repair-1.json")
        version = MetadataVersion(f"{LOCATION}/metadata/1.metadata.json", world.version().metadata)
        assert repair_that_stands(version, world.storage) == done


@pytest.mark.parametrize("has_copy", [True, False])
def test_what_the_version_before_a_repair_names_is_needed_as_long_as_it_can_be_read(
    world: World, has_copy: bool
) -> None:
    before, done = repaired(world, copy=has_copy)
    names = {before.location, *files_of(before.metadata, before.location, world.storage)}
    assert set(needed_for_undo(table_of(world))) == names
    del world.storage.files[before.location]
    assert set(needed_for_undo(table_of(world))) == (names if has_copy else {before.location})
    world.storage.files[before.location] = b"{"
    assert set(needed_for_undo(table_of(world))) == {done.before}


def test_a_manifest_that_is_gone_names_nothing_and_one_that_may_not_be_read_says_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, _ = repaired(world)
    manifest = next(name for name in world.storage.files if name.endswith("-m0.avro"))
    data = world.storage.files.pop(manifest)
    assert {before.location, manifest} <= set(needed_for_undo(table_of(world)))
    world.storage.files[manifest] = b"damaged"
    assert {before.location, manifest} <= set(needed_for_undo(table_of(world)))
    world.storage.files[manifest] = data
    read = world.storage.read

    def denied(location: str) -> bytes:
        if location == manifest:
            raise StorageDeniedError(f"Cannot read {location}.")
        return read(location)

    monkeypatch.setattr(world.storage, "read", denied)
    with pytest.raises(StorageDeniedError):
        list(needed_for_undo(table_of(world)))
