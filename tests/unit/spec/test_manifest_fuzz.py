"""Manifests and manifest lists of any damage: what they held, or a typed error."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from hms_iceberg.errors import IcebergError
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from tests.support.damage import damaged, damaged_inside
from tests.support.tables import BY_CITY, World, data_file, metadata

# How many damages each of the tests below tries; set HMS_ICEBERG_FUZZ to try more.
MUTATIONS = int(os.environ.get("HMS_ICEBERG_FUZZ", "1000"))

Damage = Callable[[random.Random, bytes], bytes]


@pytest.fixture(params=[1, 2, 3])
def world(request: pytest.FixtureRequest) -> World:
    world = World.with_table(metadata(spec=BY_CITY, format_version=request.param))
    world.append(*(data_file(low, low + 9, city) for low, city in ((0, "Bonn"), (10, "Ulm"), (20, "Oslo"))))
    return world


def head(world: World) -> tuple[bytes, ManifestFile, bytes]:
    """A manifest list, its only row, and the manifest."""
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    data = world.storage.read(snapshot.manifest_list)
    (manifest,) = decode_manifest_list(data, "the list")
    return data, manifest, world.storage.read(manifest.manifest_path)


@pytest.mark.parametrize("damage", [damaged, damaged_inside])
def test_a_damaged_manifest_has_as_many_files_and_rows_or_is_refused(world: World, damage: Damage) -> None:
    rng = random.Random(20_261_121)
    _, manifest, data = head(world)
    right = decode_manifest(data, manifest)
    refused = unnamed = 0
    for _ in range(MUTATIONS):
        try:
            found = decode_manifest(damage(rng, data), manifest)
        except IcebergError as error:
            refused += 1
            unnamed += manifest.manifest_path not in str(error)
            continue
        assert [entry.status for entry in found] == [entry.status for entry in right]
        assert [entry.data_file.content for entry in found] == [entry.data_file.content for entry in right]
        assert sum(entry.data_file.record_count for entry in found) == 30
    assert refused > MUTATIONS // 5
    assert unnamed == 0


@pytest.mark.parametrize("damage", [damaged, damaged_inside])
def test_a_damaged_manifest_list_is_read_or_refused(world: World, damage: Damage) -> None:
    rng = random.Random(20_261_121)
    data, _, content = head(world)
    refused = unnamed = 0
    for _ in range(MUTATIONS):
        try:
            for found in decode_manifest_list(damage(rng, data), "the list"):
                decode_manifest(content, found)
        except IcebergError as error:
            refused += 1
            unnamed += "manifest" not in str(error)
    assert refused > MUTATIONS // 5
    assert unnamed == 0
