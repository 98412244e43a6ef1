"""What a summary says of manifests is what the manifest lists before and after it say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from tests.support.tables import World, data_file, equality_deletes, metadata, position_deletes


def listed(world: World) -> dict[str, ManifestFile]:
    snapshot = world.version().metadata.current_snapshot()
    return {each.manifest_path: each for each in manifest_list_of(snapshot, world.storage)}


@pytest.mark.parametrize("merges", [True, False])
def test_manifests_are_counted_as_created_kept_and_replaced_whatever_is_done(merges: bool) -> None:
    merging = {"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": str(merges).lower()}
    world = World.with_table(metadata(properties=merging))
    files = [data_file() for _ in range(6)]
    deletes = [position_deletes(files[0]), position_deletes(files[0]), position_deletes(files[1])]
    doubled = position_deletes(files[2])
    steps: list[tuple[Callable[[], Update], str | None]] = [
        (lambda: FastAppend((files[0],)), None),
        (lambda: MergeAppend((files[1],)), None),
        (lambda: MergeAppend((files[2], files[3])), None),
        (lambda: RowDelta((deletes[0],)), None),
        (lambda: RowDelta((deletes[1], doubled)), None),
        (lambda: RowDelta((deletes[2], doubled)), None),
        (lambda: FastAppend((files[3],)), None),
        (lambda: DeleteFiles((files[3],)), "1"),
        (lambda: RewriteFiles(removed=(doubled,)), "1"),
        (lambda: RewriteFiles(removed=(files[0], files[1]), added=(files[4],)), None),
        (lambda: DeleteFiles((files[2],)), None),
    ]
    for number, (step, duplicates) in enumerate(steps):
        before = listed(world)
        world.commit(step())
        after = listed(world)
        snapshot = world.version().metadata.current_snapshot()
        assert snapshot is not None
        live = {path for path, each in before.items() if each.has_live_files()}
        told = [int(snapshot.summary[f"manifests-{key}"]) for key in ("created", "kept", "replaced")]
        counted = [len(after.keys() - before.keys()), len(after.keys() & before.keys()), len(live - after.keys())]
        assert told == counted, number
        assert snapshot.summary.get("deleted-duplicate-files") == duplicates, number
    assert world.live_paths() == [files[4].file_path]


@pytest.mark.parametrize("make", [data_file, lambda **more: equality_deletes(data_file(), **more)])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"spec_id": 7}, "its partition spec 7 is not one of the table's specs"),
        ({"partition": ("Ulm",)}, r"partition spec 0 has 0 fields, .* has 1"),
        ({"key_metadata": b"key"}, "the table is not encrypted, and the file is"),
    ],
)
def test_a_file_that_does_not_fit_the_table_is_not_added(
    make: Callable[..., DataFile], wrong: dict[str, Any], message: str
) -> None:
    world = World.with_table()
    file = make(**wrong)
    for update in (RowDelta((file,)), *([MergeAppend((file,)), FastAppend((file,))] if file.is_data else [])):
        with pytest.raises(InvalidInputError, match=message):
            world.commit(update)
