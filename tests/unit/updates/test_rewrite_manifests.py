"""Manifests written anew hold the files that were live, sorted by partition, by whichever way they are written."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hms_iceberg.spec.data_types import DoubleType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.updates.partition_spec import PartitionSpecUpdate, RemovePartitionField
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import World, data_file, equality_deletes, metadata

NAN, INF = math.nan, math.inf
SCHEMA = Schema(NestedField(1, "id", DoubleType()), NestedField(2, "city", StringType()))
BY_BOTH = PartitionSpec(
    PartitionField(1, 1000, IdentityTransform(), "id"), PartitionField(2, 1001, IdentityTransform(), "city")
)


@pytest.fixture(params=["copied", "encoded anew"])
def world(request: pytest.FixtureRequest) -> World:
    """A table whose manifests are copied byte by byte, or of an older format."""
    world = World.with_table(metadata(SCHEMA, BY_BOTH))
    partitions = [(NAN, "a"), (1.0, "b"), (None, "c"), (INF, "b"), (1.0, None), (-INF, "b"), (0.5, "a"), (7.0, "gone")]
    files = [data_file(partition=each) for each in partitions]
    world.append(*files[:4])
    world.append(*files[4:])
    world.commit(PartitionSpecUpdate((RemovePartitionField("city"),)))
    world.append(*(data_file(partition=(each,), spec_id=1) for each in (NAN, 2.0, None, 1.0)))
    world.commit(RowDelta((equality_deletes(files[0]),)))
    world.commit(DeleteFiles(files[-1:]))  # its entry is still there
    if request.param == "encoded anew":
        world.commit(SetProperties({"format-version": "3"}))
    return world


def partitions_of(world: World, spec_id: int) -> list[tuple[Any, ...]]:
    files = [entry.data_file for entry in world.live()]
    return [
        tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in file.partition)
        for file in files
        if file.spec_id == spec_id and file.is_data
    ]


BY_ID = [(None, "c"), (-INF, "b"), (0.5, "a"), (1.0, None), (1.0, "b"), (INF, "b"), ("nan", "a")]
BY_CITY = [(1.0, None), (0.5, "a"), ("nan", "a"), (-INF, "b"), (1.0, "b"), (INF, "b"), (None, "c")]


@pytest.mark.parametrize(("cluster_by", "expected"), [((), BY_ID), (("city",), BY_CITY)], ids=["all", "city first"])
def test_files_are_sorted_by_the_fields_asked_for_that_their_spec_has_and_then_by_the_others(
    world: World, cluster_by: tuple[str, ...], expected: list[tuple[Any, ...]]
) -> None:
    world.commit(RewriteManifests(cluster_by=cluster_by))
    assert partitions_of(world, 0) == expected
    assert partitions_of(world, 1) == [(None,), (1.0,), (2.0,), ("nan",)]
    world.check()


def test_manifests_of_the_content_asked_for_are_rewritten_and_others_kept(world: World) -> None:
    for content, processed in ((ManifestContent.DELETES, "1"), (ManifestContent.DATA, "11"), (None, "12")):
        before = world.live_paths()
        snapshot = world.commit(RewriteManifests(content=content)).current_snapshot()
        assert snapshot is not None and snapshot.summary["entries-processed"] == processed
        assert world.live_paths() == before


def test_files_are_sorted_by_a_key_of_the_caller(world: World) -> None:
    def key(file: DataFile) -> str:
        return file.file_path[::-1]

    world.commit(RewriteManifests(sort_key=key))
    files = [entry.data_file for entry in world.live() if entry.data_file.is_data and entry.data_file.spec_id == 0]
    assert files == sorted(files, key=key) and len(files) == 7
    world.check()
