"""What is said twice of a manifest is compared when it is read, row by row and column by column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list, encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestContent, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from tests.support.tables import BY_CITY, World, data_file, metadata


@pytest.fixture
def world() -> World:
    world = World.with_table(metadata(spec=BY_CITY))
    world.append(data_file(0, 9, "Bonn"), data_file(10, 19, "Ulm"))
    return world


def read_both_ways(world: World, **said: Any) -> None:
    table, manifest = listed(world)
    manifest = replace(manifest, **said)
    data = world.storage.read(manifest.manifest_path)
    with pytest.raises(CorruptManifestError, match=manifest.manifest_path) as by_column:
        ManifestDecoder([(data, manifest)], partition_columns(table)).files()
    if "partitions" not in said:
        with pytest.raises(CorruptManifestError) as by_row:
            decode_manifest(data, manifest)
        assert str(by_row.value) == str(by_column.value)


def listed(world: World) -> tuple[TableMetadata, ManifestFile]:
    table = world.version().metadata
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    (manifest,) = decode_manifest_list(world.storage.read(snapshot.manifest_list), "", snapshot.snapshot_id)
    return table, manifest


@pytest.mark.parametrize(
    "said",
    [
        {"added_files_count": 1},
        {"added_files_count": 3},
        {"existing_files_count": 1},
        {"deleted_files_count": 1},
        {"added_rows_count": 21},
        {"deleted_rows_count": 5},
        {"content": ManifestContent.DELETES},
        {"partitions": (FieldSummary(False, None, b"Bonn", b"Oslo"),)},
        {"partitions": (FieldSummary(False, None, b"Berlin", b"Trier"),)},
        {"partitions": (FieldSummary(False, None, b"C", None),)},
        {"partitions": (FieldSummary(False, None, b"\xff\xfe", b"Ulm"),)},
    ],
    ids=str,
)
def test_a_manifest_that_is_not_what_its_list_says_is_refused(world: World, said: dict[str, Any]) -> None:
    read_both_ways(world, **said)


def test_what_a_list_leaves_open_is_not_compared(world: World) -> None:
    table, manifest = listed(world)
    data = world.storage.read(manifest.manifest_path)
    counts = [f"{status}_{what}_count" for status in ("added", "existing", "deleted") for what in ("files", "rows")]
    silent = replace(manifest, partitions=None, **dict.fromkeys(counts))
    assert len(decode_manifest(data, silent)) == 2
    assert ManifestDecoder([(data, silent)], partition_columns(table)).files().height == 2


def test_every_manifest_of_several_is_compared_with_its_own_row(world: World) -> None:
    table, manifest = listed(world)
    data = world.storage.read(manifest.manifest_path)
    wrong = replace(manifest, manifest_path="mem://other.avro", added_rows_count=19)
    decoder = ManifestDecoder([(data, manifest), (data, wrong)], partition_columns(table))
    with pytest.raises(CorruptManifestError, match=r"mem://other\.avro: its added files have 20 rows"):
        decoder.files()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"added_files_count": 0}, "20 added rows in no file"),
        ({"deleted_rows_count": -1, "deleted_files_count": 1}, "deleted_rows_count is -1"),
        ({"manifest_length": -5}, "manifest_length is -5"),
        ({"manifest_path": ""}, "location is empty"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(world: World, said: dict[str, Any], message: str) -> None:
    _, manifest = listed(world)
    data, _ = encode_manifest_list([replace(manifest, **said)], 2, 5, None, 1)
    with pytest.raises(CorruptManifestError, match=message):
        decode_manifest_list(data, "mem://list.avro")
    assert len(decode_manifest_list(data, "mem://list.avro", checked=False)) == 1


def test_the_list_of_another_snapshot_is_refused(world: World) -> None:
    _, manifest = listed(world)
    data, _ = encode_manifest_list([manifest], 2, 5, None, 1)
    assert decode_manifest_list(data, "mem://list.avro", 5) == [manifest]
    with pytest.raises(CorruptManifestError, match="that of snapshot 5, expected 6"):
        decode_manifest_list(data, "mem://list.avro", 6)
