"""Manifest lists of fast appends: the parent's bytes are copied, and hold the same manifests."""

from __future__ import annotations

import cProfile
from dataclasses import replace

import pytest

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.spec.manifests.avro_container import read_blocks, read_container
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.rows.append import FastAppend
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


def test_many_small_blocks_are_joined_now_and_then() -> None:
    world = World.with_table()
    most = 0
    for _ in range(150):
        world.append(data_file())
        blocks = list(read_blocks(read_container(world.storage.files[current_list(world)], "list"), "list"))
        most = max(most, len(blocks))
    assert 10 < most < 80
    assert len(world.live()) == 150


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
