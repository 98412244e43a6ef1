"""Manifest lists of fast appends: the parent's bytes are copied, and hold the same manifests."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from dataclasses import replace

import pytest

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.spec.manifests.avro_container import join_blocks, read_blocks, read_container
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.machinery.manifest_files import ListFacts, entries_of, extend_manifest_list, manifest_list_of
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionSpecUpdate, RemovePartitionField
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import LOCATION, World, data_file, metadata


def current_list(world: World) -> str:
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    return snapshot.manifest_list


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_list_that_grew_by_copying_is_the_list_that_would_be_written(version: int) -> None:
    world = World.with_table(metadata(format_version=version))
    for _ in range(3):
        world.append(data_file())
    metadata_now = world.version().metadata
    snapshot = metadata_now.current_snapshot()
    assert snapshot is not None
    manifests = manifest_list_of(snapshot, world.storage)
    whole, _ = encode_manifest_list(manifests, version, snapshot.snapshot_id, None, snapshot.sequence_number, 0)
    assert manifests == decode_manifest_list(whole)
    assert len(list(read_blocks(read_container(world.storage.files[current_list(world)], "list"), "list"))) == 3
    header = read_container(world.storage.files[current_list(world)], "list")
    assert header.text("snapshot-id") == str(snapshot.snapshot_id)
    world.check()


def test_a_list_of_another_version_is_written_anew() -> None:
    world = World.with_table(metadata(format_version=2))
    world.append(data_file())
    world.commit(SetProperties({"format-version": "3"}))
    world.append(data_file())
    assert len(list(read_blocks(read_container(world.storage.files[current_list(world)], "list"), "list"))) == 1
    world.check()


def stored(world: World) -> bytes:
    return world.storage.files[current_list(world)]


def blocks_of(data: bytes) -> list[tuple[int, bytes]]:
    found = read_blocks(read_container(data, "list"), "list")
    return [(block.records, data[block.start : block.end]) for block in found]


@pytest.mark.parametrize(
    ("count", "rows", "are_joined"),
    [(50, 1, False), (70, 1, True), (70, 30, False)],
    ids=["few", "many small ones", "many larger ones"],
)
def test_many_small_blocks_are_joined_now_and_then(count: int, rows: int, are_joined: bool) -> None:
    world = World.with_table()
    world.append(data_file())
    snapshot = world.version().metadata.current_snapshot()
    (one,) = manifest_list_of(snapshot, world.storage)
    header = read_container(stored(world), "list")
    names = [[f"{LOCATION}/metadata/{block:03d}-{row:03d}-m0.avro" for row in range(rows)] for block in range(count)]
    lists = ([replace(one, manifest_path=name) for name in each] for each in names)
    blocks = [block for each in lists for block in blocks_of(encode_manifest_list(each, 2, 7, None, 1)[0])]
    facts = ListFacts(2, 8, 7, 2, None)
    parent = join_blocks(blocks, header.schema_json, header.codec, {})
    data, _, kept = extend_manifest_list(parent, "mem://list", [one], facts)
    assert len(blocks_of(data)) == (1 if are_joined else count + 1) and kept == count * rows
    paths = [each.manifest_path for each in decode_manifest_list(data)]
    assert paths == [one.manifest_path, *(name for each in names for name in each)]


def test_a_list_with_another_compression_is_written_anew() -> None:
    world = World.with_table()
    world.append(data_file())
    manifests = decode_manifest_list(stored(world))
    world.storage.files[current_list(world)] = encode_manifest_list(manifests, 2, 7, None, 1, codec="null")[0]
    snapshot = world.append(data_file()).current_snapshot()
    assert len(blocks_of(stored(world))) == 1 and len(manifest_list_of(snapshot, world.storage)) == 2


CHANGES: dict[str, Callable[[DataFile], Update]] = {
    "append": lambda gone: FastAppend((data_file(city="Bonn", spec_id=1),)),
    "merging append": lambda gone: MergeAppend((data_file(city="Bonn", spec_id=1),)),
    "delete": lambda gone: DeleteFiles((gone,)),
    "rewritten manifests": lambda gone: RewriteManifests(),
    "expiry": lambda gone: ExpireSnapshots(0, clean_metadata=True),
}


@pytest.mark.parametrize("make", CHANGES.values(), ids=list(CHANGES))
def test_a_table_whose_snapshots_name_their_manifests_goes_on_with_what_these_are(
    make: Callable[[DataFile], Update],
) -> None:
    """In the first tables of all there were no lists, and only a manifest knows its partition spec."""
    world = World.with_table(metadata(format_version=1))
    world.append(gone := data_file())
    world.commit(PartitionSpecUpdate((AddPartitionField("city", IdentityTransform(), "city"),)))
    world.append(data_file(city="Ulm", spec_id=1))
    made = world.commit(PartitionSpecUpdate((RemovePartitionField("city"),)))
    head = made.snapshots[-1]
    named = tuple(each.manifest_path for each in manifest_list_of(head, world.storage))
    old = replace(made, snapshots=(*made.snapshots[:-1], replace(head, manifest_list=None, manifest_locations=named)))
    change = make(gone)
    after = change.apply(old, FileWorkspace(world.storage))
    listed = manifest_list_of(after.current_snapshot(), world.storage)
    live = {
        entry.data_file.file_path: entry.data_file.spec_id
        for manifest in listed
        for entry in entries_of(manifest, world.storage)
        if entry.is_live
    }
    before = {each.file_path: each.spec_id for each in (entry.data_file for entry in world.live())}
    added = {each.file_path: each.spec_id for each in change.new_files}
    removed = {gone.file_path} if isinstance(change, DeleteFiles) else set()
    assert live == {path: spec for path, spec in {**before, **added}.items() if path not in removed}
    assert [each.manifest_length for each in listed] == [
        len(world.storage.files[each.manifest_path]) for each in listed
    ]
    assert set(live.values()) <= {spec.spec_id for spec in after.partition_specs}


def test_a_damaged_list_is_named() -> None:
    world = World.with_table()
    world.append(data_file())
    location = current_list(world)
    world.storage.files[location] = world.storage.files[location][:-20]
    with pytest.raises(CorruptManifestError, match=location.rsplit("/", 1)[-1]):
        world.append(data_file())


def test_an_append_costs_the_same_however_many_manifests_there_are() -> None:
    def calls(count: int) -> int:
        world = World.with_table()
        world.append(data_file())
        _inflate(world, count)
        transaction = world.begin(FastAppend((data_file(),)))
        with cProfile.Profile() as profile:
            transaction.commit()
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)  # what is computed once
    assert calls(10_000) < 1.5 * calls(10)


def _inflate(world: World, count: int) -> None:
    """Makes the current manifest list one of `count` manifests."""
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    (one,) = manifest_list_of(snapshot, world.storage)
    many: list[ManifestFile] = [
        replace(one, manifest_path=f"{LOCATION}/metadata/{number:08d}-m0.avro") for number in range(count)
    ]
    data, _ = encode_manifest_list(many, 2, snapshot.snapshot_id, None, 1)
    world.storage.files[current_list(world)] = data
