"""The manifests of many snapshots and their live files are those that each snapshot names, read one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, MissingFileError
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.file_matching import live_files
from hms_iceberg.updates.machinery.listed_manifests import manifests_of_all
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import BY_CITY, World, data_file, metadata, position_deletes


def told(manifest: ManifestFile) -> ManifestFile:
    """What is read of a manifest: all but what its list says of partitions."""
    return replace(manifest, partitions=None)


def one_by_one(made: TableMetadata, world: World) -> dict[str, ManifestFile]:
    every = (each for snapshot in made.snapshots for each in manifest_list_of(snapshot, world.storage))
    return {each.manifest_path: told(each) for each in every}


@pytest.fixture(params=["1", "2", "3", "upgraded"])
def world(request: pytest.FixtureRequest) -> World:
    """A table with appends, deletes and removed files."""
    version = 1 if request.param == "upgraded" else int(request.param)
    made = World.with_table(metadata(spec=BY_CITY, format_version=version))
    files = [data_file(city=city) for city in ("Bonn", "Ulm", "Bonn")]
    for file in files:
        made.append(file)
    if request.param == "upgraded":
        made.commit(SetProperties({"format-version": "2"}))
    if request.param in ("2", "upgraded"):
        made.commit(RowDelta((position_deletes(files[0]),)))
    made.commit(DeleteFiles((files[1],)))
    made.append(data_file(city="Ulm"))
    return made


def test_many_lists_read_together_name_what_each_names(world: World) -> None:
    made = world.version().metadata
    assert len(made.snapshots) > 4
    expected = one_by_one(made, world)
    found = manifests_of_all(made.snapshots, world.storage)
    assert {path: told(each) for path, each in found.items()} == expected
    snapshot = made.snapshots[-1]
    (alone,) = ({each.manifest_path for each in manifest_list_of(snapshot, world.storage)},)
    assert manifests_of_all([snapshot], world.storage).keys() == alone
    assert manifests_of_all([], world.storage) == {}


@pytest.mark.parametrize("kind", ["gone", "cut", "no list at all"])
def test_a_list_that_cannot_be_read_is_told_and_the_others_count(world: World, kind: str) -> None:
    made = world.version().metadata
    lost = str(made.snapshots[2].manifest_list)
    others = replace(made, snapshots=made.snapshots[:2] + made.snapshots[3:])
    expected = one_by_one(others, world)
    if kind == "gone":
        del world.storage.files[lost]
    else:
        world.storage.files[lost] = world.storage.files[lost][:-20] if kind == "cut" else b"no list at all"
    error = MissingFileError if kind == "gone" else CorruptManifestError
    with pytest.raises(error):
        manifests_of_all(made.snapshots, world.storage)
    errors: list[Exception] = []
    found = manifests_of_all(made.snapshots, world.storage, errors.append)
    assert {path: told(each) for path, each in found.items()} == expected
    assert [type(each) for each in errors] == [error]


def test_a_list_that_says_it_is_of_another_snapshot_is_read_by_itself(world: World) -> None:
    made = world.version().metadata
    first, *others = made.snapshots
    exchanged = (replace(first, manifest_list=others[0].manifest_list), *others)
    errors: list[Exception] = []
    found = manifests_of_all(exchanged, world.storage, errors.append)
    assert {path: told(each) for path, each in found.items()} == one_by_one(made, world)
    for error in errors:
        assert isinstance(error, CorruptFileError)


def live(world: World, manifests: list[ManifestFile]) -> set[tuple[str, int]]:
    entries = (each for manifest in manifests for each in entries_of(manifest, world.storage))
    return {(each.data_file.file_path, int(each.data_file.content)) for each in entries if each.is_live}


def test_live_files_are_those_of_each_manifest_and_what_cannot_be_read_is_told(world: World) -> None:
    made = world.version().metadata
    manifests = list(manifests_of_all(made.snapshots, world.storage).values())
    found = {row for frame in live_files(manifests, made, world.storage) for row in frame.iter_rows()}
    assert found == live(world, manifests) and len(found) >= 4
    lost = manifests[1]
    kept = world.storage.files[lost.manifest_path]
    rest = live(world, [each for each in manifests if each is not lost])
    for data in (None, b"no manifest", kept[:-20]):
        if data is None:
            del world.storage.files[lost.manifest_path]
        else:
            world.storage.files[lost.manifest_path] = data
        error = MissingFileError if data is None else CorruptManifestError
        with pytest.raises(error):
            list(live_files(manifests, made, world.storage))
        errors: list[Exception] = []
        frames = list(live_files(manifests, made, world.storage, errors.append))
        assert {row for frame in frames for row in frame.iter_rows()} == rest
        assert [type(each) for each in errors] == [error]
