"""Changes with a condition: what was read is unchanged, nothing came since a snapshot, an epoch is new."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.expressions.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.spec.changes.requirements import read_table_requirements
from hms_iceberg.spec.changes.table_changes import read_table_changes
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import SnapshotRefType
from hms_iceberg.updates.conditional_changes import (
    Epoch,
    OnceAnEpoch,
    RequestedChanges,
    RequireUnchanged,
    SinceSnapshot,
)
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.snapshots.snapshot_refs import CreateRef
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import World, data_file


@pytest.fixture
def world() -> World:
    made = World.with_table()
    made.append(data_file(0, 9))
    return made


def test_a_read_alone_is_never_refused_and_one_with_a_change_only_where_what_was_read_may_have_changed(
    world: World,
) -> None:
    head = world.version().metadata.current_snapshot_id
    assert head is not None
    world.commit(CreateRef("b", head, SnapshotRefType.BRANCH))
    for others, branch, row_filter, is_refused in (
        ("main", "main", "id > 15", True),
        ("main", "main", "id < 15", False),
        ("main", "b", "id > 15", False),
        ("b", "b", "id > 15", True),
        ("b", "main", "id > 15", False),
    ):
        read = RequireUnchanged(parse(row_filter), branch)
        alone, twice = world.begin(read), world.begin(read, RequireUnchanged(AlwaysTrue(), branch))
        with_change = world.begin(read, SetProperties({"n": f"{others}{branch}{row_filter}"}))
        after = world.append(data_file(20, 29), branch=others)
        assert alone.commit().metadata == twice.commit().metadata == after
        if is_refused:
            with pytest.raises(CommitConflictError, match=r"commit, after a read without a match, to table db\.events"):
                with_change.commit()
        else:
            with_change.commit()


def test_a_filter_of_a_read_names_columns_in_their_case_unless_it_is_said_otherwise(world: World) -> None:
    for said in ({}, {"case_sensitive": False}):
        transaction = world.begin(RequireUnchanged(parse("ID > 15"), **said), SetProperties({"n": str(said)}))
        world.append(data_file(20, 29))
        with pytest.raises(CommitConflictError) as told:
            transaction.commit()
        assert ("Unknown column 'ID'" in str(told.value)) is (not said)


@dataclass(frozen=True)
class Told(Update):
    """Notes what it is validated against, and adds a property."""

    branch: str
    seen: list[tuple[Any, ...]] = field(default_factory=list)
    files: tuple[DataFile, ...] = ()

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        return self.files

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        self.seen.append((start.current_snapshot_id, {name: ref.snapshot_id for name, ref in start.refs.items()}, base))

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        return SetProperties({"told": "1"}).apply(base, workspace)


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_change_is_validated_against_all_that_came_to_its_branch_since_a_snapshot(world: World, branch: str) -> None:
    first = world.version().metadata.current_snapshot_id
    assert first is not None
    world.append(data_file())
    second = world.version().metadata.current_snapshot_id
    assert second is not None
    world.commit(CreateRef("b", second, SnapshotRefType.BRANCH))
    before = world.version().metadata
    told = Told(branch, files=(data_file(),))
    since = SinceSnapshot(told, first)
    assert since.new_files == told.files
    assert world.commit(since).properties["told"] == "1"
    expected = {"main": second, "b": second, branch: first}
    assert told.seen == [(first, expected, before)]
    with pytest.raises(InvalidInputError, match=r"table db\.events from snapshot 7: it has no such snapshot"):
        world.begin(SinceSnapshot(told, 7))


def test_an_epoch_is_there_if_the_last_one_of_its_stream_in_the_branch_is_it_or_a_later_one(world: World) -> None:
    def commit(query_id: str, number: int, **more: Any) -> None:
        world.append(data_file(), properties=Epoch(query_id, number, "main").properties, **more)

    commit("s", 3)
    head = world.version().metadata.current_snapshot_id
    assert head is not None
    world.commit(CreateRef("b", head, SnapshotRefType.BRANCH))
    commit("s", 5)
    commit("other", 9)
    commit("s", 7, stage_only=True)
    world.append(data_file(), properties={"spark.sql.streaming.queryId": "s"})
    metadata = world.version().metadata
    for branch, last in (("main", 5), ("b", 3)):
        for number in range(2, 9):
            assert Epoch("s", number, branch).is_in(metadata) is (number <= last)
    assert not Epoch("nobody", 0, "main").is_in(metadata)
    assert not Epoch("s", 0, "main").is_in(World.with_table().version().metadata)


def test_a_change_of_an_epoch_that_is_there_is_neither_validated_nor_made(world: World) -> None:
    epoch = Epoch("s", 1, "main")
    for is_there in (False, True):
        told = Told("main", files=(data_file(),))
        once = OnceAnEpoch(told, epoch)
        assert once.new_files == told.files
        transaction = world.begin(once)
        after = world.append(data_file(), properties=epoch.properties if is_there else {})
        changed = transaction.commit().metadata
        assert (changed == after) is is_there and bool(told.seen) is not is_there


def test_a_request_is_made_once_and_only_where_its_requirements_hold(world: World) -> None:
    world.append(data_file())
    after = world.version().metadata
    one, other = after.snapshots
    changes = read_table_changes([{"action": "set-properties", "updates": {"asked": "1"}}])
    _, unmet = read_table_requirements([{"type": "assert-table-uuid", "uuid": "another"}])
    workspace = world.begin().workspace
    for snapshots, is_there in (
        ((), False),
        ((one,), True),
        ((one, other), True),
        ((one, replace(other, snapshot_id=7)), False),
        ((replace(one, manifest_list="mem://another"),), False),
    ):
        made = RequestedChanges((), changes, snapshots).apply(after, workspace)
        assert (made is after, "asked" in made.properties) == (is_there, not is_there)
        refused = RequestedChanges(unmet, changes, snapshots)
        if is_there:
            assert refused.apply(after, workspace) is after, "the requirements held when it was made"
        else:
            with pytest.raises(CommitConflictError, match="UUID does not match"):
                refused.apply(after, workspace)
