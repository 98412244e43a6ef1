"""What a new snapshot says of itself: its place, its times and row ids, and the counts of its summary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot, SnapshotRefType
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.new_snapshot import (
    SnapshotDraft,
    SummaryBuilder,
    parent_on,
    with_totals,
    write_snapshot,
)
from hms_iceberg.updates.snapshots.snapshot_refs import CreateRef
from tests.support.tables import (
    BY_CITY,
    World,
    data_file,
    deletion_vector,
    equality_deletes,
    metadata,
    position_deletes,
)


def head(made: TableMetadata) -> Snapshot:
    snapshot = made.current_snapshot()
    assert snapshot is not None
    return snapshot


def test_a_snapshot_follows_its_branch_s_head_or_main_s_if_the_branch_is_new() -> None:
    world = World.with_table()
    assert parent_on(world.version().metadata, "new") is None
    main = head(world.append(data_file()))
    world.commit(CreateRef("tag"), CreateRef("b", kind=SnapshotRefType.BRANCH))
    world.append(data_file(), branch="b")
    made = world.version().metadata
    assert parent_on(made, "main") == parent_on(made, "new") == main
    side = parent_on(made, "b")
    assert side is not None and side.parent_snapshot_id == main.snapshot_id
    with pytest.raises(InvalidInputError, match="tags do not move"):
        parent_on(made, "tag")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_snapshot_has_the_next_numbers_and_is_not_older_than_any_other(version: int) -> None:
    world = World.with_table(metadata(format_version=version))
    base = world.append(data_file(records=10))
    parent = head(base)
    late = replace(
        base,
        snapshots=(replace(parent, timestamp_ms=9000), replace(parent, snapshot_id=1, timestamp_ms=8000)),
        snapshot_log=(),
    )
    (manifest,) = manifest_list_of(parent, world.storage)
    for now, newest, last_updated_ms in ((5, 9000, 7), (9001, 9001, 7), (5, 9002, 9002)):
        workspace = FileWorkspace(world.storage, lambda now=now: now)  # type: ignore[misc]
        base = replace(late, last_updated_ms=last_updated_ms, snapshot_log=(), metadata_log=())
        draft = SnapshotDraft(
            7, Operation.APPEND, [replace(manifest, added_snapshot_id=7, first_row_id=None)], branch=None
        )
        for attempt in (1, 2):
            made = write_snapshot(base, draft, workspace)
            new = made.snapshot_by_id(7)
            assert new is not None and made.refs == base.refs, "it is staged"
            assert f"/snap-7-{attempt}-" in str(new.manifest_list)
        assert (new.timestamp_ms, new.parent_snapshot_id) == (newest, parent.snapshot_id)
        assert new.sequence_number == (0 if version == 1 else 2)
        assert (new.first_row_id, new.added_rows) == ((10, 10) if version == 3 else (None, None))
        assert made.next_row_id == (20 if version == 3 else None)
        assert (new.schema_id, new.key_id) == (base.current_schema_id, None)


def test_a_table_without_snapshots_has_a_first_one_without_a_parent_at_any_time() -> None:
    world = World.with_table(metadata(format_version=3))
    base = replace(world.version().metadata, last_updated_ms=0, next_row_id=0)
    made = write_snapshot(base, SnapshotDraft(7, Operation.APPEND, []), FileWorkspace(world.storage, lambda: 0))
    new = head(made)
    assert (new.timestamp_ms, new.parent_snapshot_id, new.first_row_id, new.added_rows) == (0, None, 0, 0)
    assert new.summary["manifests-created"] == "0" and new.summary["total-records"] == "0"


def test_the_manifests_of_a_snapshot_are_counted_as_created_kept_and_replaced() -> None:
    world = World.with_table(metadata(format_version=1))
    world.append(data_file())
    base = world.append(data_file())
    manifests = manifest_list_of(head(base), world.storage)
    mine = replace(manifests[0], added_snapshot_id=7)
    named = tuple(each.manifest_path for each in manifests)
    without_list = replace(head(base), manifest_list=None, manifest_locations=named)
    old = replace(base, snapshots=(*base.snapshots[:-1], without_list))
    for table, draft, expected in (
        (base, SnapshotDraft(7, Operation.REPLACE, [mine, manifests[1]], replaced_manifests=1), ("1", "1", "1")),
        (base, SnapshotDraft(7, Operation.APPEND, [mine], keeps_parent=True), ("1", "2", "0")),
        (old, SnapshotDraft(7, Operation.APPEND, [mine], keeps_parent=True), ("1", "2", "0")),
    ):
        made = write_snapshot(table, draft, FileWorkspace(world.storage))
        summary = head(made).summary
        assert tuple(summary[f"manifests-{each}"] for each in ("created", "kept", "replaced")) == expected
        kept = 2 if draft.keeps_parent else 1
        assert len(manifest_list_of(head(made), world.storage)) == kept + 1
        assert summary["engine-name"] == "hms_iceberg"


# --------------------------------------------------------------------------------------------------- the summary


def built(world_metadata: TableMetadata, added: Any = (), removed: Any = (), duplicates: int = 0) -> dict[str, str]:
    builder = SummaryBuilder(world_metadata).added(added).removed(removed).removed_duplicates(duplicates)
    return builder.build({"mine": "1"})


def test_files_are_counted_by_what_they_hold() -> None:
    file = data_file(records=10, file_size_in_bytes=1000)
    made = metadata(format_version=3)
    vector = deletion_vector(file, rows=2)
    vector_without_size = deletion_vector(file, rows=1, content_size_in_bytes=None)
    deletes = [position_deletes(file, rows=3), equality_deletes(file, rows=4), vector, vector_without_size]
    empty = data_file(records=0, file_size_in_bytes=0)
    assert built(made, [file, *deletes]) == {
        "mine": "1",
        "added-data-files": "1",
        "added-records": "10",
        "added-delete-files": "4",
        "added-position-delete-files": "1",
        "added-equality-delete-files": "1",
        "added-dvs": "2",
        "added-position-deletes": "6",
        "added-equality-deletes": "4",
        "added-files-size": str(1000 + 150 + 200 + 40),
        "changed-partition-count": "1",
    }
    assert built(made, removed=[file, file, *deletes[:1]], duplicates=2) == {
        "mine": "1",
        "deleted-data-files": "2",
        "deleted-records": "20",
        "removed-delete-files": "1",
        "removed-position-delete-files": "1",
        "removed-position-deletes": "3",
        "removed-files-size": "2150",
        "deleted-duplicate-files": "2",
        "changed-partition-count": "1",
    }
    assert built(made, [empty]) == {"mine": "1", "added-data-files": "1", "changed-partition-count": "1"}
    assert built(made) == {"mine": "1", "changed-partition-count": "0"}
    once = SummaryBuilder(made).removed_duplicates(1).removed_duplicates(2).build({})
    assert once["deleted-duplicate-files"] == "3"


@pytest.mark.parametrize(("limit", "is_told"), [("0", False), ("1", False), ("2", True), ("3", True)])
def test_partitions_are_told_up_to_as_many_as_the_table_says(limit: str, is_told: bool) -> None:
    made = metadata(spec=BY_CITY, properties={"write.summary.partition-limit": limit})
    files = [data_file(records=1, city=city, file_size_in_bytes=10) for city in ("Bonn", "Bonn", "Ulm")]
    told = built(made, files[:2], files[2:])
    assert told["changed-partition-count"] == "2"
    partitions = {key: value for key, value in told.items() if key.startswith("partition")}
    assert partitions == (
        {
            "partition-summaries-included": "true",
            "partitions.city=Bonn": "added-files-size=20,added-data-files=2,added-records=2",
            "partitions.city=Ulm": "removed-files-size=10,deleted-data-files=1,deleted-records=1",
        }
        if is_told
        else {}
    )
    assert "partition-summaries-included" not in built(made)
    unpartitioned = metadata(properties={"write.summary.partition-limit": "9"})
    told = built(unpartitioned, [data_file()])
    assert told["partition-summaries-included"] == "true" and not any(key.startswith("partitions.") for key in told)


@pytest.mark.parametrize(
    ("parent", "change", "total"),
    [
        (None, {"added-records": "5"}, "5"),
        (None, {"deleted-records": "1"}, None),
        ({"total-records": "7"}, {"added-records": "5", "deleted-records": "2"}, "10"),
        ({"total-records": "7"}, {"deleted-records": "7"}, "0"),
        ({"total-records": "7"}, {"deleted-records": "8"}, None),
        ({"total-records": "7"}, {}, "7"),
        ({}, {"added-records": "5"}, None),
        ({"total-records": "many"}, {"added-records": "5"}, None),
        ({"total-records": "7"}, {"added-records": "some"}, None),
    ],
)
def test_a_total_goes_on_from_the_parent_s_and_is_left_out_rather_than_guessed(
    parent: dict[str, str] | None, change: dict[str, str], total: str | None
) -> None:
    others = {} if parent is None else {"total-data-files": "3"}
    told = with_totals(change, None if parent is None else {**parent, **others})
    assert told.get("total-records") == total
    assert told["total-data-files"] == ("0" if parent is None else "3")
    assert change.items() <= told.items()
