"""Where branches and tags may move, what others may do meanwhile, and which snapshots can be picked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hms_iceberg.errors import CommitConflictError, InvalidInputError, NoSuchRefError, RefAlreadyExistsError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import SnapshotRefType
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, ReplacePartitions
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.snapshots.rollback import CherryPick, Rollback, SetCurrentSnapshot
from hms_iceberg.updates.snapshots.snapshot_refs import (
    CreateRef,
    FastForward,
    RemoveRef,
    RenameBranch,
    ReplaceRef,
    SetRetention,
)
from tests.support.tables import BY_CITY, World, data_file, metadata, position_deletes

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


@pytest.fixture
def world() -> World:
    """Main at 2 with a tag at 0, branch `old` at 0, and branch `side` with a snapshot of its own on 1."""
    made = World.with_table()
    for _ in range(3):
        made.append(data_file())
    at = ids(made)
    made.commit(
        CreateRef("t", at[0], max_ref_age_ms=9), CreateRef("old", at[0], BRANCH), CreateRef("side", at[1], BRANCH)
    )
    made.append(data_file(), branch="side")
    return made


def ids(world: World) -> list[int]:
    return [snapshot.snapshot_id for snapshot in world.version().metadata.snapshots]


def places(made: TableMetadata) -> dict[str, int]:
    """Where refs are, in the order of the snapshots' making."""
    at = [snapshot.snapshot_id for snapshot in made.snapshots]
    return {name: at.index(ref.snapshot_id) for name, ref in made.refs.items()}


STARTS = {"main": 2, "t": 0, "old": 0, "side": 3}


@pytest.mark.parametrize(
    ("make", "moved"),
    [
        (lambda at: CreateRef("new"), {"new": 2}),
        (lambda at: CreateRef("new", at[3], BRANCH), {"new": 3}),
        (lambda at: RenameBranch("old", "new"), {"old": None, "new": 0}),
        (lambda at: RemoveRef("t", TAG), {"t": None}),
        (lambda at: ReplaceRef("t", TAG, at[3]), {"t": 3}),
        (lambda at: ReplaceRef("old", BRANCH, source="side"), {"old": 3}),
        (lambda at: FastForward("old", "side"), {"old": 3}),
        (lambda at: FastForward("old", "main"), {"old": 2}),
        (lambda at: FastForward("old", "t"), {}),
        (lambda at: FastForward("new", "side"), {"new": 3}),
        (lambda at: SetCurrentSnapshot(at[3]), {"main": 3}),
        (lambda at: SetCurrentSnapshot(ref="side"), {"main": 3}),
        (lambda at: SetCurrentSnapshot(ref="t"), {"main": 0}),
        (lambda at: Rollback(at[1]), {"main": 1}),
        (lambda at: Rollback(at[2]), {}),
    ],
)
def test_refs_go_where_they_are_sent(
    world: World, make: Callable[[list[int]], Update], moved: dict[str, int | None]
) -> None:
    after = world.commit(make(ids(world)))
    assert places(after) == {name: place for name, place in {**STARTS, **moved}.items() if place is not None}
    if "t" in after.refs:
        assert after.refs["t"].max_ref_age_ms == 9


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda at: CreateRef("t", at[1]), RefAlreadyExistsError, "there is a tag at snapshot"),
        (lambda at: RemoveRef("t", BRANCH), InvalidInputError, "it is a tag"),
        (lambda at: RemoveRef("old", TAG), InvalidInputError, "it is a branch"),
        (lambda at: RenameBranch("t", "new"), InvalidInputError, "it is a tag"),
        (lambda at: RenameBranch("old", "side"), RefAlreadyExistsError, "there is a branch at snapshot"),
        (lambda at: RenameBranch("nobody", "new"), NoSuchRefError, "nobody"),
        (lambda at: ReplaceRef("t", BRANCH, at[1]), InvalidInputError, "it is a tag"),
        (lambda at: ReplaceRef("t", TAG), NoSuchRefError, "events"),
        (lambda at: ReplaceRef("t", TAG, source="nobody"), NoSuchRefError, "nobody"),
        (lambda at: FastForward("main", "side"), InvalidInputError, "is not an ancestor of"),
        (lambda at: FastForward("side", "main"), InvalidInputError, "is not an ancestor of"),
        (lambda at: FastForward("t", "main"), InvalidInputError, "it is a tag"),
        (lambda at: FastForward("new", "nobody"), NoSuchRefError, "nobody"),
        (lambda at: SetRetention("nobody", 1), NoSuchRefError, "nobody"),
        (lambda at: SetCurrentSnapshot(at[1], "t"), InvalidInputError, "either by its id or by the name"),
        (lambda at: SetCurrentSnapshot(ref="nobody"), NoSuchRefError, "nobody"),
        (lambda at: Rollback(), InvalidInputError, "either to the id of a snapshot or to a time"),
        (lambda at: Rollback(at[3]), InvalidInputError, "not an ancestor of the current one"),
    ],
)
def test_what_a_ref_cannot_do_is_refused(
    world: World, make: Callable[[list[int]], Update], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        world.commit(make(ids(world)))
    assert places(world.version().metadata) == STARTS


@pytest.mark.parametrize(
    ("mine", "theirs", "is_refused"),
    [
        (lambda at: Rollback(at[0]), lambda at: FastAppend((data_file(),)), True),
        (lambda at: Rollback(at[0]), lambda at: FastAppend((data_file(),), branch="side"), False),
        (lambda at: SetCurrentSnapshot(at[0]), lambda at: FastAppend((data_file(),)), True),
        (lambda at: RenameBranch("old", "new"), lambda at: RemoveRef("old", BRANCH), True),
        (lambda at: RenameBranch("old", "new"), lambda at: CreateRef("new", at[1]), True),
        (lambda at: RenameBranch("old", "new"), lambda at: ReplaceRef("old", BRANCH, at[1]), False),
        (lambda at: RemoveRef("t", TAG), lambda at: ReplaceRef("t", TAG, at[1]), True),
        (lambda at: ReplaceRef("t", TAG, at[2]), lambda at: RemoveRef("t", TAG), True),
        (lambda at: SetRetention("t", max_ref_age_ms=1), lambda at: ReplaceRef("t", TAG, at[1]), False),
        (lambda at: FastForward("old", "main"), lambda at: ReplaceRef("old", BRANCH, at[1]), False),
        (lambda at: FastForward("old", "main"), lambda at: ReplaceRef("old", BRANCH, at[3]), True),
    ],
)
def test_a_ref_that_others_moved_is_decided_about_again_only_where_something_would_be_lost(
    world: World, mine: Callable[[list[int]], Update], theirs: Callable[[list[int]], Update], is_refused: bool
) -> None:
    at = ids(world)
    transaction = world.begin(mine(at))
    others = world.commit(theirs(at))
    if is_refused:
        with pytest.raises(CommitConflictError, match=r"db\.events"):
            transaction.commit()
        assert places(world.version().metadata) == places(others)
    else:
        transaction.commit()


def test_a_rollback_to_a_time_goes_to_the_last_snapshot_that_is_older_than_it(world: World) -> None:
    made = world.version().metadata
    times = [1000, 2000, 2000, 3000]
    snapshots = tuple(replace(each, timestamp_ms=time) for each, time in zip(made.snapshots, times, strict=True))
    apart = replace(made, snapshots=snapshots, snapshot_log=())
    for before_ms, place in ((1001, 0), (2000, 0), (2001, 2), (9999, 2)):
        assert Rollback(before_ms=before_ms)._target(apart) == snapshots[place].snapshot_id


# ------------------------------------------------------------------------------------------- cherry-pick


def by_city() -> World:
    made = World.with_table(metadata(spec=BY_CITY))
    made.append(data_file(0, 9, "Bonn"), data_file(0, 9, "Ulm"))
    return made


def test_a_snapshot_that_main_has_is_not_picked_again(world: World) -> None:
    at = ids(world)
    for place in (0, 2):
        with pytest.raises(InvalidInputError, match=rf"snapshot {at[place]} of main has it already\.$"):
            world.commit(CherryPick(at[place]))
    after = world.commit(CherryPick(at[3]))
    picked = after.current_snapshot()
    assert picked is not None and picked.summary["source-snapshot-id"] == str(at[3])
    assert "published-wap-id" not in picked.summary and picked.operation == "append"
    with pytest.raises(InvalidInputError, match=f"snapshot {picked.snapshot_id} of main has it already"):
        world.commit(CherryPick(at[3]))


def staged(world: World, update: Any) -> int:
    world.commit(replace(update, stage_only=True))
    return int(update.snapshot_id)


def test_a_dynamic_overwrite_that_is_picked_removes_what_it_replaced() -> None:
    world = by_city()
    new = data_file(0, 3, "Bonn")
    source = staged(world, ReplacePartitions((new,)))
    world.append(other := data_file(5, 6, "Ulm"))
    snapshot = world.commit(CherryPick(source)).current_snapshot()
    assert snapshot is not None
    told = ("replace-partitions", "added-data-files", "deleted-data-files", "total-data-files")
    assert [snapshot.summary[key] for key in told] == ["true", "1", "1", "3"] and snapshot.operation == "overwrite"
    assert {new.file_path, other.file_path} < set(world.live_paths())
    world.check()


@pytest.mark.parametrize("theirs", ["data", "deletes", "elsewhere"])
def test_a_dynamic_overwrite_is_not_picked_over_a_change_of_its_partitions(theirs: str) -> None:
    world = by_city()
    files = {entry.data_file.partition: entry.data_file for entry in world.live()}
    source = staged(world, ReplacePartitions((data_file(0, 3, "Bonn"),)))
    if theirs == "data":
        world.append(data_file(5, 6, "Bonn"))
    else:
        world.commit(RowDelta((position_deletes(files["Bonn" if theirs == "deletes" else "Ulm",]),)))
    if theirs == "elsewhere":
        world.commit(CherryPick(source))
    else:
        with pytest.raises(CommitConflictError, match="cherry-pick a dynamic overwrite of"):
            world.commit(CherryPick(source))


def test_a_dynamic_overwrite_on_a_snapshot_that_is_not_main_s_is_not_picked() -> None:
    world = by_city()
    (start,) = ids(world)
    world.commit(CreateRef("side", start, BRANCH))
    world.append(data_file(7, 8, "Ulm"), branch="side")
    update = ReplacePartitions((data_file(0, 3, "Bonn"),), branch="side")
    world.commit(update)
    with pytest.raises(CommitConflictError, match="which is not an ancestor of main"):
        world.commit(CherryPick(update.snapshot_id))


def test_only_appends_and_dynamic_overwrites_are_made_again() -> None:
    world = by_city()
    (file,) = (entry.data_file for entry in world.live() if entry.data_file.partition == ("Bonn",))
    source = staged(world, DeleteFiles((file,)))
    ahead = staged(world, RowDelta((position_deletes(file),)))
    assert world.commit(CherryPick(source)).current_snapshot_id == source, "what is on main's head is any change"
    with pytest.raises(InvalidInputError, match=rf"Cannot cherry-pick snapshot {ahead} .*main's head {source}"):
        world.commit(CherryPick(ahead))


def test_an_overwrite_that_is_not_dynamic_is_not_made_again() -> None:
    world = by_city()
    (file,) = (entry.data_file for entry in world.live() if entry.data_file.partition == ("Bonn",))
    source = staged(world, RowDelta((position_deletes(file), data_file(0, 3, "Bonn"))))
    world.append(data_file(5, 6, "Ulm"))
    with pytest.raises(InvalidInputError, match="Only appends and dynamic overwrites can be made again"):
        world.commit(CherryPick(source))


def test_a_dynamic_overwrite_of_an_empty_table_is_picked_on_what_came_to_other_partitions() -> None:
    for city, is_refused in (("Ulm", False), ("Bonn", True)):
        world = World.with_table(metadata(spec=BY_CITY))
        source = staged(world, ReplacePartitions((data_file(0, 3, "Bonn"),)))
        world.append(data_file(5, 6, city))
        if is_refused:
            with pytest.raises(CommitConflictError):
                world.commit(CherryPick(source))
        else:
            world.commit(CherryPick(source))
            assert len(world.live_paths()) == 2
