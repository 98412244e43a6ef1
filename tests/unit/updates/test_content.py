"""Operations that add and remove files: what the table holds after them, and what their snapshots say."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import replace

import fastavro
import pytest

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, EqualTo, GreaterThanOrEqual, LessThan
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.snapshots_and_refs import Operation
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.machinery import manifest_splice
from hms_iceberg.updates.machinery.content import Isolation, overwriting, row_delta_operation
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.machinery.manifest_filter import merge_manifests
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.partition_spec import PartitionSpecUpdate, RemovePartitionField
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite, ReplacePartitions
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.table_settings import SetProperties
from tests.support.tables import (
    BY_CITY,
    World,
    data_file,
    deletion_vector,
    equality_deletes,
    metadata,
    position_deletes,
)


@pytest.fixture(params=[1, 2, 3])
def any_version(request: pytest.FixtureRequest) -> World:
    return World.with_table(metadata(format_version=request.param))


@pytest.fixture
def world() -> World:
    return World.with_table()


@pytest.fixture
def by_city() -> World:
    return World.with_table(metadata(spec=BY_CITY))


def summary(world: World) -> dict[str, str]:
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    return snapshot.summary


def test_the_summary_of_an_append_counts_as_java_does(any_version: World) -> None:
    any_version.append(data_file(0, 9), data_file(10, 14))
    any_version.append(data_file(20, 20))
    found = summary(any_version)
    expected = {
        "operation": "append",
        "added-data-files": "1",
        "added-records": "1",
        "added-files-size": "100",
        "changed-partition-count": "1",
        "total-data-files": "3",
        "total-records": "16",
        "total-files-size": "1600",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    assert {key: found[key] for key in expected} == expected
    assert "deleted-data-files" not in found
    any_version.check()


def test_partitions_are_summed_up_where_the_table_asks_for_it(by_city: World) -> None:
    by_city.commit(SetProperties({"write.summary.partition-limit": "2"}))
    by_city.append(data_file(0, 4, "Bonn"), data_file(5, 9, "Köln"))
    found = summary(by_city)
    assert found["changed-partition-count"] == "2"
    assert found["partition-summaries-included"] == "true"
    assert "added-records=5" in found["partitions.city=Bonn"]
    by_city.append(*(data_file(0, 0, city) for city in "abc"))
    assert "partition-summaries-included" not in summary(by_city)


def test_files_are_deleted_by_a_filter_that_all_of_their_rows_match(any_version: World) -> None:
    old, new = data_file(0, 9), data_file(10, 19)
    any_version.append(old)
    any_version.append(new)
    any_version.commit(DeleteFiles(row_filter=LessThan("id", 10)))
    assert any_version.live_paths() == [new.file_path]
    found = summary(any_version)
    assert (found["operation"], found["deleted-records"], found["total-records"]) == ("delete", "10", "10")
    any_version.check()


def test_a_delete_by_filter_refuses_a_file_with_some_rows_that_match(world: World) -> None:
    world.append(data_file(0, 9))
    before = dict(world.storage.files)
    with pytest.raises(InvalidInputError, match="some, but not all"):
        world.commit(DeleteFiles(row_filter=LessThan("id", 5)))
    assert len(world.live_paths()) == 1
    assert before.keys() <= world.storage.files.keys()


def test_a_delete_by_filter_keeps_manifests_without_matching_partitions(by_city: World) -> None:
    by_city.append(data_file(0, 9, "Bonn"))
    by_city.append(data_file(0, 9, "Köln"))
    by_city.storage.reads.clear()
    by_city.commit(DeleteFiles(row_filter=EqualTo("city", "Bonn")))
    assert len([name for name in by_city.storage.reads if name.endswith("-m0.avro")]) == 1
    assert [entry.data_file.partition for entry in by_city.live()] == [("Köln",)]
    by_city.check()


def test_a_delete_by_filter_is_replayed_on_the_files_that_are_there_then(world: World) -> None:
    first, second, third = data_file(0, 4), data_file(5, 9), data_file(10, 14)
    world.append(first)
    transaction = world.begin(DeleteFiles(row_filter=LessThan("id", 10)))
    world.append(second)
    world.append(third)
    transaction.commit()
    assert world.live_paths() == [third.file_path]
    world.check()


def test_a_file_that_is_not_there_any_more_cannot_be_deleted(world: World) -> None:
    file = data_file()
    world.append(file)
    transaction = world.begin(DeleteFiles((file,)))
    world.commit(DeleteFiles((file,)))
    with pytest.raises(CommitConflictError, match=file.file_path):
        transaction.commit()
    world.check()


def test_an_overwrite_by_files_replaces_them(any_version: World) -> None:
    old, other, new = data_file(0, 9), data_file(20, 29), data_file(0, 9)
    any_version.append(old, other)
    any_version.commit(Overwrite(added=(new,), removed=(old,)))
    assert any_version.live_paths() == sorted([other.file_path, new.file_path])
    assert summary(any_version)["operation"] == "overwrite"
    any_version.check()


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (Overwrite(added=(data_file(),)), "append"),
        (Overwrite(row_filter=GreaterThanOrEqual("id", 0)), "delete"),
        (Overwrite(added=(data_file(),), row_filter=GreaterThanOrEqual("id", 0)), "overwrite"),
        (Overwrite(added=(data_file(),), row_filter=EqualTo("id", -5)), "overwrite"),
    ],
)
def test_an_overwrite_is_named_by_what_it_did_or_was_to_do(world: World, change: Overwrite, operation: str) -> None:
    world.append(data_file())
    world.commit(change)
    assert summary(world)["operation"] == operation


def test_an_overwrite_refuses_rows_outside_of_its_filter_where_it_is_told_to(by_city: World) -> None:
    with pytest.raises(InvalidInputError, match="rows match the filter"):
        by_city.commit(
            Overwrite(added=(data_file(0, 9, "Köln"),), row_filter=EqualTo("city", "Bonn"), added_must_match=True)
        )


def test_replacing_partitions_leaves_the_others_alone(by_city: World) -> None:
    bonn, koeln = data_file(0, 9, "Bonn"), data_file(0, 9, "Köln")
    by_city.append(bonn, koeln)
    by_city.commit(RowDelta(added=(position_deletes(bonn), position_deletes(koeln))))
    new = data_file(0, 3, "Bonn")
    by_city.commit(ReplacePartitions((new,)))
    live = by_city.live()
    assert {entry.data_file.partition for entry in live if not entry.data_file.is_data} == {("Köln",)}
    assert {entry.data_file.file_path for entry in live if entry.data_file.is_data} == {new.file_path, koeln.file_path}
    assert summary(by_city)["replace-partitions"] == "true"
    by_city.check()


def test_replacing_an_unpartitioned_table_replaces_all_of_it(any_version: World) -> None:
    any_version.append(data_file(), data_file())
    new = data_file()
    any_version.commit(ReplacePartitions((new,)))
    assert any_version.live_paths() == [new.file_path]
    any_version.check()


def test_a_file_without_a_partition_replaces_files_of_specs_before_it(by_city: World) -> None:
    bonn = data_file(0, 3, "Bonn")
    by_city.append(bonn)
    by_city.commit(RowDelta(added=(position_deletes(bonn),)))
    by_city.commit(PartitionSpecUpdate((RemovePartitionField("city"),)))
    new = data_file(0, 3, spec_id=1)
    by_city.commit(ReplacePartitions((new,)))
    assert [entry.data_file.file_path for entry in by_city.live()] == [new.file_path]
    by_city.check()


def test_a_file_whose_partition_is_void_replaces_all_files() -> None:
    """As a field that was removed stays in version 1."""
    world = World.with_table(metadata(format_version=1, spec=BY_CITY))
    world.append(data_file(0, 3, "Bonn"), data_file(0, 3, "Köln"))
    world.commit(PartitionSpecUpdate((RemovePartitionField("city"),)))
    assert [field.transform.is_void for field in world.version().metadata.spec().fields] == [True]
    new = replace(data_file(0, 3, spec_id=1), partition=(None,))
    world.commit(ReplacePartitions((new,), isolation=Isolation.SERIALIZABLE))
    assert world.live_paths() == [new.file_path]
    world.check()


def test_an_append_only_replacement_refuses_a_partition_with_data(by_city: World) -> None:
    by_city.append(data_file(0, 9, "Bonn"))
    with pytest.raises(InvalidInputError, match="has data already"):
        by_city.commit(ReplacePartitions((data_file(0, 9, "Bonn"),), append_only=True))


def test_a_row_delta_adds_deletes_beside_the_data(world: World) -> None:
    file = data_file()
    world.append(file)
    world.commit(RowDelta(added=(position_deletes(file, 2), equality_deletes(file, 3))))
    found = summary(world)
    expected = {
        "operation": "delete",
        "added-delete-files": "2",
        "added-position-delete-files": "1",
        "added-equality-delete-files": "1",
        "added-position-deletes": "2",
        "added-equality-deletes": "3",
        "total-delete-files": "2",
    }
    assert {key: found[key] for key in expected} == expected
    world.check()


def test_a_row_delta_replaces_a_deletion_vector_by_one_that_holds_more() -> None:
    world = World.with_table(metadata(format_version=3))
    file = data_file()
    world.append(file)
    first, second = deletion_vector(file, 1), deletion_vector(file, 2)
    world.commit(RowDelta(added=(first,)))
    world.commit(RowDelta(added=(second,), removed=(first,)))
    found = summary(world)
    assert (found["added-dvs"], found["removed-dvs"], found["total-position-deletes"]) == ("1", "1", "2")
    world.check()


def test_of_two_vectors_in_one_file_only_the_one_that_is_replaced_goes() -> None:
    world = World.with_table(metadata(format_version=3))
    file, other = data_file(), data_file()
    world.append(file, other)
    first = deletion_vector(file)
    second = replace(deletion_vector(other), file_path=first.file_path, content_offset=44)
    world.commit(RowDelta((first, second)))
    newer = deletion_vector(file, 2)
    world.commit(RowDelta((newer,), (first,)))
    live = {(entry.data_file.file_path, entry.data_file.content_offset) for entry in world.live()}
    assert live == {(file.file_path, None), (other.file_path, None), (newer.file_path, 4), (first.file_path, 44)}
    assert summary(world)["removed-dvs"] == "1"
    with pytest.raises(CommitConflictError, match="1 of the files to remove are not in it"):
        world.commit(RowDelta((deletion_vector(file, 3),), (first,)))


def test_files_of_manifests_that_hold_none_of_the_removed_are_left_alone(by_city: World) -> None:
    files = [data_file(0, 9, city) for city in ("Bonn", "Köln", "Ulm")]
    for file in files:
        by_city.append(file)
    by_city.commit(DeleteFiles((files[1],)))
    kept = {key: summary(by_city)[key] for key in ("manifests-replaced", "manifests-kept", "manifests-created")}
    assert kept == {"manifests-replaced": "1", "manifests-kept": "2", "manifests-created": "1"}
    by_city.commit(DeleteFiles(row_filter=EqualTo("city", "Bonn")))
    assert (summary(by_city)["manifests-replaced"], summary(by_city)["manifests-kept"]) == ("1", "1")
    assert by_city.live_paths() == [files[2].file_path]


def test_a_file_that_is_there_twice_is_removed_twice_and_counted_once(world: World) -> None:
    file = data_file()
    world.append(file)
    world.append(file)
    world.commit(DeleteFiles((file,)))
    assert (world.live(), summary(world)["deleted-duplicate-files"]) == ([], "1")
    assert summary(world)["deleted-data-files"] == "1"


@pytest.mark.parametrize(
    ("target", "min_count", "sizes", "merged"),
    [
        (8, 2, [1, 1], [[0, 1]]),
        (8, 3, [1, 1], [[0], [1]]),
        (8, 2, [4, 4], [[0, 1]]),
        (8, 2, [4, 5], [[0], [1]]),
        (8, 1, [1], [[0]]),
        (8, 1, [3, 3, 3], [[0], [1, 2]]),
        (8, 2, [3, 3, 3], [[0], [1, 2]]),
        (8, 5, [4, 4, 4, 4], [[0], [1], [2, 3]]),
    ],
)
def test_manifests_are_packed_from_the_oldest_and_the_newest_wait_for_enough(
    world: World, target: int, min_count: int, sizes: list[int], merged: list[list[int]]
) -> None:
    unit = 100_000
    properties = {"target-size-bytes": str(target * unit), "min-count-to-merge": str(min_count)}
    world.commit(SetProperties({f"commit.manifest.{name}": value for name, value in properties.items()}))
    for _ in sizes:
        world.append(data_file())
    base = world.version().metadata
    manifests = manifest_list_of(base.current_snapshot(), world.storage)
    listed = [replace(each, manifest_length=size * unit) for each, size in zip(manifests, sizes, strict=True)]
    result, replaced = merge_manifests(listed, base, 77, FileWorkspace(world.storage))
    found = [{entry.data_file.file_path for entry in entries_of(each, world.storage)} for each in result]
    paths = [entry.data_file.file_path for each in manifests for entry in entries_of(each, world.storage)]
    assert found == [{paths[number] for number in group} for group in merged]
    assert replaced == sum(len(group) for group in merged if len(group) > 1)


def test_a_data_file_that_goes_takes_its_deletion_vector_with_it() -> None:
    world = World.with_table(metadata(format_version=3))
    file, other = data_file(), data_file()
    world.append(file, other)
    puffin = "mem://warehouse/shared.puffin"
    world.commit(
        RowDelta(added=(deletion_vector(file, file_path=puffin), deletion_vector(other, file_path=puffin, offset=44)))
    )
    world.commit(Overwrite(added=(data_file(),), removed=(file,)))
    vectors = [entry.data_file for entry in world.live() if entry.data_file.is_deletion_vector]
    assert [vector.referenced_data_file for vector in vectors] == [other.file_path]
    world.check()


@pytest.mark.parametrize(
    ("version", "make", "message"),
    [
        (1, position_deletes, "knows no deletes"),
        (2, deletion_vector, "knows no deletion vectors"),
        (3, position_deletes, "takes deletion vectors"),
    ],
)
def test_deletes_that_the_format_version_does_not_have_are_refused(version: int, make: object, message: str) -> None:
    world = World.with_table(metadata(format_version=version))
    file = data_file()
    world.append(file)
    with pytest.raises(InvalidInputError, match=message):
        world.commit(RowDelta(added=(make(file),)))  # type: ignore[operator]


def test_one_commit_cannot_add_two_deletion_vectors_for_one_file() -> None:
    world = World.with_table(metadata(format_version=3))
    file = data_file()
    world.append(file)
    with pytest.raises(InvalidInputError, match="two deletion vectors"):
        world.commit(RowDelta(added=(deletion_vector(file), deletion_vector(file))))


def test_rewritten_data_keeps_the_sequence_number_that_it_is_given_and_rewritten_deletes_get_a_new_one(
    world: World,
) -> None:
    file, other = data_file(0, 9), data_file(10, 19)
    world.append(file, other)
    old = position_deletes(other)
    world.commit(RowDelta(added=(equality_deletes(file), old)))
    new, deletes = data_file(0, 9), position_deletes(other)
    world.commit(RewriteFiles((file, old), (new, deletes), data_sequence_number=1))
    numbers = {each.data_file.file_path: (each.sequence_number, each.file_sequence_number) for each in world.live()}
    assert (numbers[new.file_path], numbers[deletes.file_path]) == ((1, 3), (3, 3))
    assert summary(world)["operation"] == "replace"
    world.check()


def test_deletes_that_are_older_than_all_data_go_in_the_commit_that_makes_them_so(world: World) -> None:
    first, second = data_file(0, 9), data_file(10, 19)
    world.append(first)  # 1
    old, new = equality_deletes(first), equality_deletes(second)
    world.commit(RowDelta(added=(old,)))  # 2
    world.append(second)  # 3
    world.commit(RowDelta(added=(new,)))  # 4
    world.commit(RewriteFiles((first,), (data_file(0, 8),), data_sequence_number=2))
    assert {entry.data_file.file_path for entry in world.live()} >= {old.file_path, new.file_path}
    compacted = next(
        entry.data_file for entry in world.live() if entry.sequence_number == 2 and entry.data_file.is_data
    )
    world.commit(RewriteFiles((compacted,), (data_file(0, 8),), data_sequence_number=4))
    assert [entry.data_file.file_path for entry in world.live() if not entry.data_file.is_data] == [new.file_path]
    found = summary(world)
    assert (found["operation"], found["removed-delete-files"], found["total-delete-files"]) == ("replace", "1", "1")
    world.commit(RowDelta((equality_deletes(second),)))
    newest = data_file(20, 29)
    world.commit(Overwrite((newest,), row_filter=AlwaysTrue()))
    assert world.live_paths() == [newest.file_path]
    world.check()


def test_an_overwrite_that_only_adds_is_an_append_also_where_deletes_of_nothing_go(world: World) -> None:
    world.commit(RowDelta((equality_deletes(data_file()),)))
    world.commit(Overwrite((data_file(),)))
    assert (summary(world)["operation"], summary(world)["removed-delete-files"]) == ("append", "1")
    world.check()


def test_files_of_a_branch_are_removed_from_the_branch(world: World) -> None:
    first, second, third = data_file(), data_file(), data_file()
    world.append(first)
    world.append(second, branch="audit")
    world.commit(Overwrite((third,), (second,), branch="audit"))
    assert world.live_paths("audit") == sorted([first.file_path, third.file_path])
    assert world.live_paths() == [first.file_path]


@pytest.mark.parametrize(
    ("removed", "added"),
    [
        ((), (data_file(),)),
        ((position_deletes(data_file()),), (data_file(),)),
        ((data_file(),), (position_deletes(data_file()),)),
        ((position_deletes(data_file()),), (position_deletes(data_file()), data_file())),
        ((data_file(), data_file()), (data_file(), position_deletes(data_file()))),
        ((), ()),
    ],
)
def test_a_rewrite_that_would_change_rows_is_refused(removed: tuple, added: tuple) -> None:  # type: ignore[type-arg]
    with pytest.raises(InvalidInputError, match="Cannot rewrite files"):
        RewriteFiles(removed, added)


@pytest.mark.parametrize(
    ("removed", "added"),
    [
        ((data_file(), position_deletes(data_file())), (data_file(), position_deletes(data_file()))),
        ((data_file(), position_deletes(data_file())), (data_file(),)),
        ((data_file(), position_deletes(data_file())), (position_deletes(data_file()),)),
        ((position_deletes(data_file()),), ()),
    ],
)
def test_a_rewrite_puts_each_kind_of_file_in_the_place_of_its_own(removed: tuple, added: tuple) -> None:  # type: ignore[type-arg]
    assert RewriteFiles(removed, added).new_files == added


DATA, POSITIONS = data_file(), position_deletes(data_file())
APPEND, OVERWRITE, DELETE = Operation.APPEND, Operation.OVERWRITE, Operation.DELETE


@pytest.mark.parametrize(
    ("added", "removed", "row_delta", "overwrite"),
    [
        ((DATA,), (), APPEND, APPEND),
        ((DATA, POSITIONS), (), OVERWRITE, APPEND),
        ((POSITIONS,), (), DELETE, APPEND),
        ((POSITIONS,), (DATA,), DELETE, OVERWRITE),
        ((POSITIONS,), (POSITIONS,), DELETE, OVERWRITE),
        ((DATA,), (DATA,), OVERWRITE, OVERWRITE),
        ((DATA,), (POSITIONS, DATA), OVERWRITE, OVERWRITE),
        ((), (DATA,), DELETE, DELETE),
        ((), (), OVERWRITE, OVERWRITE),
    ],
)
def test_an_operation_tells_whether_rows_came_or_went(
    added: tuple[DataFile, ...], removed: tuple[DataFile, ...], row_delta: Operation, overwrite: Operation
) -> None:
    """Whoever looks for concurrent deletes looks at the snapshots of these operations alone."""
    assert row_delta_operation(added, removed) is row_delta
    assert overwriting(None)(added, removed) is overwriting(AlwaysFalse())(added, removed) is overwrite
    assert overwriting(LessThan("id", 5))(added, removed) is (OVERWRITE if added else DELETE)


STAGED: dict[str, Callable[[DataFile], Update]] = {
    "append": lambda file: FastAppend((data_file(),), stage_only=True),
    "merging append": lambda file: MergeAppend((data_file(),), stage_only=True),
    "delete": lambda file: DeleteFiles((file,), stage_only=True),
    "overwrite": lambda file: Overwrite((data_file(),), (file,), stage_only=True),
    "replaced partitions": lambda file: ReplacePartitions((data_file(),), stage_only=True),
    "row delta": lambda file: RowDelta((position_deletes(file),), stage_only=True),
}


@pytest.mark.parametrize("make", STAGED.values(), ids=list(STAGED))
def test_what_is_staged_follows_main_and_moves_it_not(world: World, make: Callable[[DataFile], Update]) -> None:
    file = data_file()
    head = world.append(file).current_snapshot_id
    after = world.commit(make(file))
    assert after.current_snapshot_id == head and world.live_paths() == [file.file_path]
    assert [each.parent_snapshot_id for each in after.snapshots] == [None, head]


@pytest.mark.parametrize("kind", [FastAppend, MergeAppend, ReplacePartitions, Overwrite])
def test_only_a_row_delta_takes_deletes_beside_data(world: World, kind: type[FastAppend]) -> None:
    with pytest.raises(InvalidInputError, match="it holds position deletes, not data"):
        world.commit(kind((data_file(), position_deletes(data_file()))))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (replace(equality_deletes(data_file()), equality_ids=None), "Cannot add the equality deletes .* the key"),
        (replace(equality_deletes(data_file()), equality_ids=()), "Cannot add the equality deletes .* the key"),
        (replace(deletion_vector(data_file()), referenced_data_file=None), "Cannot add the deletion vector .* data"),
        (replace(deletion_vector(data_file()), content_offset=None), "Cannot add the deletion vector .* offset"),
        (replace(deletion_vector(data_file()), content_size_in_bytes=None), "Cannot add the deletion vector .* size"),
    ],
)
def test_deletes_that_nobody_could_apply_are_refused(file: DataFile, message: str) -> None:
    world = World.with_table(metadata(format_version=3))
    with pytest.raises(InvalidInputError, match=message):
        world.commit(RowDelta((file,)))


def test_a_file_that_is_named_may_match_the_filter_in_part(by_city: World) -> None:
    file, rest = data_file(0, 9, "Bonn"), data_file(5, 9, "Bonn")
    by_city.append(file)
    new = data_file(0, 4, "Bonn")
    change = Overwrite((new,), (file,), LessThan("id", 5), added_must_match=True)
    by_city.commit(change, FastAppend((rest,)))
    assert by_city.live_paths() == sorted([new.file_path, rest.file_path])


def test_partitions_and_all_of_a_table_replaced_at_once_is_all_of_it(by_city: World) -> None:
    by_city.append(data_file(0, 9, "Bonn"), data_file(0, 9, "Köln"))
    by_city.commit(PartitionSpecUpdate((RemovePartitionField("city"),)))
    files = data_file(0, 9, "Bonn"), data_file(spec_id=by_city.version().metadata.default_spec_id)
    by_city.commit(ReplacePartitions(files))
    assert by_city.live_paths() == sorted(file.file_path for file in files)


def test_deletes_of_replaced_partitions_go_with_them_and_those_of_others_stay(by_city: World) -> None:
    bonn, koeln = data_file(0, 9, "Bonn"), data_file(0, 9, "Köln")
    by_city.append(bonn, koeln)
    others = equality_deletes(koeln)
    by_city.commit(RowDelta((equality_deletes(bonn), others)))
    new = data_file(0, 3, "Bonn")
    by_city.commit(ReplacePartitions((new,)))
    assert by_city.live_paths() == sorted([koeln.file_path, others.file_path, new.file_path])
    assert summary(by_city)["removed-delete-files"] == "1"
    assert summary(by_city)["manifests-replaced"] == "2"
    by_city.commit(RowDelta((equality_deletes(data_file(city="Ulm")),)))
    by_city.commit(ReplacePartitions((newest := data_file(0, 3, "Ulm"),)))
    assert by_city.live_paths() == sorted(each.file_path for each in (koeln, others, new, newest))
    by_city.check()


def test_small_manifests_are_merged_when_there_are_enough(any_version: World) -> None:
    any_version.commit(SetProperties({"commit.manifest.min-count-to-merge": "3"}))
    files = [data_file() for _ in range(3)]
    for file in files:
        any_version.commit(MergeAppend((file,)))
    found = summary(any_version)
    assert (found["manifests-created"], found["manifests-kept"], found["manifests-replaced"]) == ("1", "0", "2")
    live = any_version.live()
    assert sorted(entry.data_file.file_path for entry in live) == sorted(file.file_path for file in files)
    if any_version.version().metadata.format_version > 1:
        assert sorted(entry.sequence_number or 0 for entry in live) == [1, 2, 3]
    any_version.check()


@pytest.mark.parametrize("few", [0, sys.maxsize], ids=["copied", "encoded"])
def test_a_merged_manifest_says_what_those_did_that_it_is_made_of(
    any_version: World, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(manifest_splice, "_FEW", few)

    def told() -> dict[str, tuple[object, ...]]:
        return {
            each.data_file.file_path: (
                each.snapshot_id,
                each.sequence_number,
                each.file_sequence_number,
                each.data_file.first_row_id,
                each.data_file.record_count,
            )
            for each in any_version.live()
        }

    files = [[data_file() for _ in range(30)] for _ in range(4)]
    for some in files[:3]:
        any_version.commit(FastAppend(tuple(some)))
    before = told()
    any_version.commit(SetProperties({"commit.manifest.min-count-to-merge": "2"}))
    any_version.commit(MergeAppend(tuple(files[3])))
    after = told()
    assert {path: after[path] for path in before} == before
    assert after.keys() - before.keys() == {each.file_path for each in files[3]}
    metadata = any_version.version().metadata
    (manifest,) = manifest_list_of(metadata.current_snapshot(), any_version.storage)
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (30, 90, 0)
    assert manifest.min_sequence_number == (1 if metadata.format_version > 1 else 0)
    any_version.check()

    any_version.commit(FastAppend((new := data_file(),)))
    any_version.commit(DeleteFiles((gone := files[1][5],)))
    assert told().keys() == after.keys() - {gone.file_path} | {new.file_path}
    assert {path: told()[path] for path in told().keys() & after.keys()} == {
        path: after[path] for path in after if path != gone.file_path
    }
    (manifest,) = manifest_list_of(any_version.version().metadata.current_snapshot(), any_version.storage)
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (0, 120, 1)
    records = [*fastavro.reader(io.BytesIO(any_version.storage.read(manifest.manifest_path)))]
    statuses = {each["data_file"]["file_path"]: each["status"] for each in records}
    assert len(records) == 121
    assert statuses == {path: 2 if path == gone.file_path else 0 for path in (*after, new.file_path)}
    any_version.check()


def test_a_merged_manifest_leaves_none_behind_that_nobody_uses(world: World) -> None:
    world.commit(SetProperties({"commit.manifest.min-count-to-merge": "2"}))
    world.commit(MergeAppend((data_file(),)))
    before = {name for name in world.storage.files if "-m" in name}
    world.commit(MergeAppend((data_file(),)))
    after = {name for name in world.storage.files if "-m" in name}
    assert len(after - before) == 1


def test_manifests_are_not_merged_where_that_is_switched_off(world: World) -> None:
    world.commit(SetProperties({"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"}))
    for _ in range(3):
        world.commit(MergeAppend((data_file(),)))
    assert summary(world)["manifests-kept"] == "2"


def test_a_delete_file_cannot_be_appended(world: World) -> None:
    with pytest.raises(InvalidInputError, match="row delta"):
        world.append(position_deletes(data_file()))


def test_a_snapshot_is_never_older_than_what_is_there_whatever_the_clock_says(world: World) -> None:
    newest = world.append(data_file()).last_updated_ms
    after = world.commit(SetProperties({"a": "1"}))
    for clock in (0, newest - 60_000, after.last_updated_ms + 60_000, newest):
        before = world.version().metadata.last_updated_ms
        transaction = world.begin()
        transaction.workspace._clock_ms = lambda clock=clock: clock
        transaction.add(FastAppend((data_file(),)))
        snapshot = transaction.commit().metadata.current_snapshot()
        assert snapshot is not None
        assert snapshot.timestamp_ms == max(before, clock)
    # Writers of the format may tell less of the table than of its snapshots.
    told = replace(world.version().metadata, last_updated_ms=newest)
    staged = FastAppend((data_file(),)).apply(told, FileWorkspace(world.storage, lambda: 0)).snapshots[-1]
    assert staged.timestamp_ms == max(each.timestamp_ms for each in told.snapshots) > newest


def test_a_new_branch_starts_at_the_current_snapshot_of_main(world: World) -> None:
    first, second = data_file(), data_file()
    world.append(first)
    world.append(second, branch="audit")
    assert world.live_paths() == [first.file_path]
    assert world.live_paths("audit") == sorted([first.file_path, second.file_path])
    world.check()


def test_a_staged_snapshot_moves_no_branch(world: World) -> None:
    world.append(data_file())
    update = FastAppend((data_file(),), stage_only=True, properties={"wap.id": "7"})
    after = world.commit(update)
    assert after.current_snapshot_id != update.snapshot_id
    staged = after.snapshot_by_id(update.snapshot_id)
    assert staged is not None
    assert staged.summary["wap.id"] == "7"


def test_row_ids_of_a_v3_table_are_given_once_and_stay_with_their_file() -> None:
    world = World.with_table(metadata(format_version=3))
    first, second = data_file(0, 9), data_file(0, 4)
    world.append(first)
    world.append(second)
    world.commit(DeleteFiles((first,)))
    world.append(data_file(0, 2))
    by_path = {entry.data_file.file_path: entry.data_file.first_row_id for entry in world.live()}
    assert by_path[second.file_path] == 10
    assert world.version().metadata.next_row_id == 18
    world.check()


def test_files_from_before_the_upgrade_to_v3_get_row_ids_with_the_next_commit() -> None:
    world = World.with_table(metadata(format_version=2))
    old = data_file(0, 9)
    world.append(old)
    world.commit(SetProperties({"format-version": "3"}))
    world.append(data_file(0, 4))
    assert sorted(entry.data_file.first_row_id or 0 for entry in world.live()) == [0, 5]
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    assert (snapshot.first_row_id, snapshot.added_rows) == (0, 15)
