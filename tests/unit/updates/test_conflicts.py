"""What concurrent commits do to each other: which replay, and which are refused, naming both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.expressions.tree import BooleanExpression, EqualTo, LessThan
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestFile
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from hms_iceberg.updates.conditional_changes import SinceSnapshot
from hms_iceberg.updates.machinery.content import Isolation, isolation_of
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionSpecUpdate, RemovePartitionField
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, Overwrite, ReplacePartitions
from hms_iceberg.updates.rows.rewrite_files import RewriteFiles
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots
from hms_iceberg.updates.snapshots.rollback import Rollback
from hms_iceberg.updates.table_settings import ReplaceSortOrder, SetProperties, SortKey
from tests.support.tables import (
    BY_CITY,
    World,
    data_file,
    deletion_vector,
    equality_deletes,
    metadata,
    position_deletes,
)

Files = Sequence[DataFile]
Make = Callable[[Files], Update]


@pytest.fixture
def by_city() -> World:
    return World.with_table(metadata(spec=BY_CITY))


def outcome(world: World, mine: Update, theirs: Update) -> str:
    """`replayed`, or the name of the error, when `theirs` is committed between the begin and the commit of `mine`."""
    transaction = world.begin(mine)
    world.commit(theirs)
    try:
        transaction.commit()
    except CommitConflictError:
        world.check()
        return "conflict"
    world.check()
    return "replayed"


BONN: BooleanExpression = EqualTo("city", "Bonn")
SERIALIZABLE, SNAPSHOT = Isolation.SERIALIZABLE, Isolation.SNAPSHOT


def anonymous_deletes(target: DataFile) -> DataFile:
    return replace(position_deletes(target), referenced_data_file=None)


MINE: dict[str, Make] = {
    "append": lambda files: FastAppend((data_file(0, 9, "Bonn"),)),
    "delete by filter": lambda files: DeleteFiles(row_filter=BONN),
    "delete file": lambda files: DeleteFiles((files[0],)),
    "overwrite file, serializable": lambda files: Overwrite(
        (data_file(0, 8, "Bonn"),), (files[0],), conflict_filter=BONN, isolation=SERIALIZABLE
    ),
    "overwrite file, snapshot": lambda files: Overwrite(
        (data_file(0, 8, "Bonn"),), (files[0],), conflict_filter=BONN, isolation=SNAPSHOT
    ),
    "overwrite file, serializable for all rows": lambda files: Overwrite(
        (data_file(0, 8, "Bonn"),), (files[0],), isolation=SERIALIZABLE
    ),
    "overwrite by filter, serializable": lambda files: Overwrite(
        (data_file(0, 8, "Bonn"),), row_filter=BONN, isolation=SERIALIZABLE
    ),
    "overwrite by filter, snapshot": lambda files: Overwrite(
        (data_file(0, 8, "Bonn"),), row_filter=BONN, isolation=SNAPSHOT
    ),
    "replace partitions": lambda files: ReplacePartitions((data_file(0, 8, "Bonn"),)),
    "replace partitions, serializable": lambda files: ReplacePartitions(
        (data_file(0, 8, "Bonn"),), isolation=SERIALIZABLE
    ),
    "row delta, serializable": lambda files: RowDelta(
        (position_deletes(files[0]),), conflict_filter=BONN, isolation=SERIALIZABLE
    ),
    "row delta, serializable for all rows": lambda files: RowDelta(
        (position_deletes(files[0]),), isolation=SERIALIZABLE
    ),
    "row delta that removes data": lambda files: RowDelta((data_file(0, 8, "Bonn"),), (files[0],)),
    "row delta, snapshot": lambda files: RowDelta(
        (position_deletes(files[0]),), conflict_filter=BONN, isolation=SNAPSHOT
    ),
    "rewrite": lambda files: RewriteFiles((files[0],), (data_file(0, 9, "Bonn"),)),
    "rewrite, old sequence": lambda files: RewriteFiles(
        (files[0],), (data_file(0, 9, "Bonn"),), data_sequence_number=1
    ),
}
THEIRS: dict[str, Make] = {
    "append to Bonn": lambda files: FastAppend((data_file(20, 29, "Bonn"),)),
    "append to Köln": lambda files: FastAppend((data_file(20, 29, "Köln"), data_file(30, 39, "Köln"))),
    "move rows from Köln to Bonn": lambda files: RowDelta((data_file(20, 29, "Bonn"), position_deletes(files[1]))),
    "remove Bonn's file": lambda files: DeleteFiles((files[0],)),
    "remove Köln's file": lambda files: DeleteFiles((files[1],)),
    "position deletes in Bonn": lambda files: RowDelta((position_deletes(files[0]),)),
    "position deletes in Köln": lambda files: RowDelta((position_deletes(files[1]),)),
    "position deletes in Bonn that name no file": lambda files: RowDelta((anonymous_deletes(files[0]),)),
    "position deletes in Köln that name no file": lambda files: RowDelta((anonymous_deletes(files[1]),)),
    "equality deletes in Bonn": lambda files: RowDelta((equality_deletes(files[0]),)),
    "compact Bonn": lambda files: RewriteFiles((files[0],), (data_file(0, 9, "Bonn"),)),
}
# Which of mine each of theirs is in conflict with; all others are replayed.
CONFLICTS: dict[str, set[str]] = {
    "append to Bonn": {
        "overwrite file, serializable",
        "overwrite by filter, serializable",
        "replace partitions, serializable",
        "row delta, serializable",
    },
    "append to Köln": set(),
    "move rows from Köln to Bonn": {
        "overwrite file, serializable",
        "overwrite by filter, serializable",
        "replace partitions, serializable",
        "row delta, serializable",
    },
    "remove Bonn's file": {
        "delete file",
        "overwrite file, serializable",
        "overwrite file, snapshot",
        "overwrite by filter, serializable",
        "overwrite by filter, snapshot",
        "replace partitions, serializable",
        "row delta, serializable",
        "row delta, snapshot",
        "row delta that removes data",
        "rewrite",
        "rewrite, old sequence",
    },
    "remove Köln's file": set(),
    "position deletes in Bonn": {
        "overwrite file, serializable",
        "overwrite file, snapshot",
        "overwrite by filter, serializable",
        "overwrite by filter, snapshot",
        "replace partitions, serializable",
        "row delta, serializable",
        "row delta, snapshot",
        "row delta that removes data",
        "rewrite",
        "rewrite, old sequence",
    },
    "position deletes in Köln": set(),
    "position deletes in Köln that name no file": set(),
    "equality deletes in Bonn": {
        "overwrite file, serializable",
        "overwrite file, snapshot",
        "overwrite by filter, serializable",
        "overwrite by filter, snapshot",
        "replace partitions, serializable",
        "row delta, serializable",
        "row delta, snapshot",
        "row delta that removes data",
        "rewrite",
    },
    "compact Bonn": {
        "delete file",
        "overwrite file, serializable",
        "overwrite file, snapshot",
        "row delta, serializable",
        "row delta, snapshot",
        "row delta that removes data",
        "rewrite",
        "rewrite, old sequence",
    },
}


# What has read all rows is in conflict with every change of any of them, and with a compaction of the file it replaces.
CONFLICTS = {
    theirs: {*mine, "overwrite file, serializable for all rows", "row delta, serializable for all rows"}
    for theirs, mine in CONFLICTS.items()
}
CONFLICTS["position deletes in Bonn that name no file"] = CONFLICTS["position deletes in Bonn"]


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("mine", MINE)
def test_each_change_replays_over_each_other_or_is_refused(by_city: World, mine: str, theirs: str) -> None:
    files = [data_file(0, 9, "Bonn"), data_file(0, 9, "Köln")]
    by_city.append(*files)
    expected = "conflict" if mine in CONFLICTS[theirs] else "replayed"
    assert outcome(by_city, MINE[mine](files), THEIRS[theirs](files)) == expected


@pytest.mark.parametrize("theirs", ["append to Köln", "append to Bonn"])
def test_a_change_begun_on_an_empty_table_sees_all_that_came_since(by_city: World, theirs: str) -> None:
    conflicting = {"append to Bonn": "conflict", "append to Köln": "replayed"}
    mine = MINE["overwrite by filter, serializable"]([])
    assert outcome(by_city, mine, THEIRS[theirs]([])) == conflicting[theirs]
    again = World.with_table(metadata(spec=BY_CITY))
    assert outcome(again, MINE["overwrite by filter, serializable"]([]), SetProperties({"a": "1"})) == "replayed"


def test_rows_added_beside_removed_ones_in_one_manifest_are_not_taken_for_removed(by_city: World) -> None:
    by_city.commit(SetProperties({"commit.manifest.min-count-to-merge": "1"}))
    bonn, koeln = data_file(0, 9, "Bonn"), data_file(0, 9, "Köln")
    by_city.append(bonn, koeln)
    theirs = Overwrite((data_file(20, 29, "Bonn"),), (koeln,))
    assert outcome(by_city, MINE["overwrite by filter, snapshot"]([]), theirs) == "replayed"
    (manifest,) = (each for each in _manifests(by_city, theirs.snapshot_id) if each.has_deleted_files())
    assert manifest.has_added_files(), "both in one"


def _manifests(world: World, snapshot_id: int) -> list[ManifestFile]:
    snapshot = world.version().metadata.snapshot_by_id(snapshot_id)
    return list(manifest_list_of(snapshot, world.storage))


@pytest.mark.parametrize(
    ("theirs", "conflicting"),
    [
        (lambda files: FastAppend((data_file(20, 29),)), {SERIALIZABLE}),
        (lambda files: DeleteFiles((files[0],)), {SERIALIZABLE, SNAPSHOT}),
        (lambda files: RowDelta((position_deletes(files[0]),)), {SERIALIZABLE, SNAPSHOT}),
        (lambda files: RowDelta((equality_deletes(files[0]),)), {SERIALIZABLE, SNAPSHOT}),
        (lambda files: RewriteFiles((files[0],), (data_file(0, 9),)), set()),
        (lambda files: SetProperties({"a": "1"}), set()),
    ],
    ids=["append", "removal", "position deletes", "equality deletes", "compaction", "property"],
)
@pytest.mark.parametrize("isolation", [SERIALIZABLE, SNAPSHOT])
def test_replacing_all_of_a_table_without_partitions_sees_changes_of_all(
    theirs: Make, conflicting: set[Isolation], isolation: Isolation
) -> None:
    files = [data_file(0, 9)]
    change = theirs(files)
    worlds = [World.with_table(), World.with_table()]
    worlds[0].append(*files)
    expected = "conflict" if isolation in conflicting else "replayed"
    # An empty table has nothing that could be removed.
    for world in worlds if isinstance(change, (FastAppend, SetProperties)) else worlds[:1]:
        assert outcome(world, ReplacePartitions((data_file(0, 8),), isolation), change) == expected


@pytest.mark.parametrize(
    "theirs",
    [
        lambda file: FastAppend((data_file(20, 29, "Bonn"),)),
        lambda file: DeleteFiles((file,)),
        lambda file: RowDelta((position_deletes(file),)),
    ],
    ids=["append", "removal", "position deletes"],
)
def test_replacing_all_of_a_table_sees_changes_of_its_former_partitions(
    by_city: World, theirs: Callable[[DataFile], Update]
) -> None:
    by_city.append(file := data_file(0, 9, "Bonn"))
    by_city.commit(PartitionSpecUpdate((RemovePartitionField("city"),)))
    spec_id = by_city.version().metadata.default_spec_id
    assert outcome(by_city, ReplacePartitions((data_file(spec_id=spec_id),), SERIALIZABLE), theirs(file)) == "conflict"


def test_rewritten_deletes_are_a_conflict_with_those_who_take_their_data_or_make_others_for_it() -> None:
    world = World.with_table(metadata(format_version=3))
    file, other = data_file(), data_file()
    world.append(file, other)
    old = deletion_vector(file)
    world.commit(RowDelta((old,)))

    def mine() -> RewriteFiles:
        return RewriteFiles((old,), (deletion_vector(file),))

    assert outcome(world, mine(), RowDelta((deletion_vector(other),))) == "replayed"
    (old,) = (each.data_file for each in world.live() if each.data_file.referenced_data_file == file.file_path)
    newer = deletion_vector(file, 2)
    assert outcome(world, mine(), RowDelta((newer,), (old,))) == "conflict"
    old = newer
    assert outcome(world, mine(), DeleteFiles((file,))) == "conflict"


@pytest.mark.parametrize("is_for_it", [True, False])
def test_vectors_written_in_the_place_of_deletes_by_key_stand_beside_no_other_and_need_their_file(
    is_for_it: bool,
) -> None:
    for theirs in (lambda file: RowDelta((deletion_vector(file),)), lambda file: DeleteFiles((file,))):
        world = World.with_table(metadata(format_version=3))
        file, other = data_file(), data_file()
        world.append(file, other)
        world.commit(RowDelta((by_key := equality_deletes(file),)))
        mine = RewriteFiles((by_key,), (deletion_vector(file),))
        expected = "conflict" if is_for_it else "replayed"
        assert outcome(world, mine, theirs(file if is_for_it else other)) == expected


def test_rewritten_position_deletes_need_the_data_files_that_they_were_written_for(by_city: World) -> None:
    files = [data_file(0, 9, "Bonn"), data_file(0, 9, "Bonn")]
    by_city.append(*files)
    old = anonymous_deletes(files[0])
    by_city.commit(RowDelta((old,)))
    rewrite = RewriteFiles((old,), (anonymous_deletes(files[0]),), frozenset({files[0].file_path}))
    assert outcome(by_city, rewrite, RowDelta((position_deletes(files[1]),))) == "replayed"
    rewrite = RewriteFiles(rewrite.added, (anonymous_deletes(files[0]),), frozenset({files[0].file_path}))
    assert outcome(by_city, rewrite, DeleteFiles((files[0],))) == "conflict"


def test_vectors_of_other_data_files_of_a_partition_are_none_of_a_replaced_ones_business() -> None:
    world = World.with_table(metadata(format_version=3))
    file, other = data_file(), data_file()
    world.append(file, other)
    world.commit(RowDelta((old := deletion_vector(file),)))
    mine = RowDelta((deletion_vector(file, 2),), (old,))
    assert outcome(world, mine, RowDelta((deletion_vector(other),))) == "replayed"


def test_write_skew_is_allowed_under_snapshot_isolation_and_refused_under_serializable(by_city: World) -> None:
    """Two writers read both cities, and each empties one because the other still has rows: together, both are empty."""
    bonn, koeln = data_file(0, 9, "Bonn"), data_file(0, 9, "Köln")
    by_city.append(bonn, koeln)
    read_both = LessThan("id", 100)

    def emptying(file: DataFile, isolation: Isolation) -> Overwrite:
        return Overwrite(
            (data_file(0, -1, file.partition[0], records=0),),
            (file,),
            conflict_filter=read_both,
            isolation=isolation,
        )

    first = by_city.begin(emptying(koeln, SERIALIZABLE))
    by_city.commit(emptying(bonn, SERIALIZABLE))
    with pytest.raises(CommitConflictError):
        first.commit()

    again = World.with_table(metadata(spec=BY_CITY))
    again.append(bonn, koeln)
    second = again.begin(emptying(koeln, SNAPSHOT))
    again.commit(emptying(bonn, SNAPSHOT))
    second.commit()
    assert sum(entry.data_file.record_count for entry in again.live()) == 0, "the anomaly"


def test_two_deletion_vectors_for_one_file_are_a_conflict() -> None:
    world = World.with_table(metadata(format_version=3))
    file, other, third = data_file(), data_file(), data_file()
    world.append(file, other, third)
    assert outcome(world, RowDelta((deletion_vector(file),)), RowDelta((deletion_vector(other),))) == "replayed"
    assert outcome(world, RowDelta((deletion_vector(third),)), RowDelta((deletion_vector(third),))) == "conflict"


def test_a_vector_that_a_rewrite_of_deletes_makes_meanwhile_is_a_conflict_with_another_for_its_file() -> None:
    world = World.with_table(metadata(format_version=3))
    file, other = data_file(), data_file()
    world.append(file, other)
    vectors = deletion_vector(file), deletion_vector(other)
    world.commit(RowDelta(vectors))
    theirs = RewriteFiles(vectors[:1], (deletion_vector(file, rows=1),))
    assert outcome(world, RowDelta((deletion_vector(other, 2),), (vectors[1],)), theirs) == "replayed"
    theirs = RewriteFiles(theirs.added, (deletion_vector(file, rows=1),))
    assert outcome(world, RowDelta((deletion_vector(file),)), theirs) == "conflict"


@pytest.mark.parametrize("names_its_file", [True, False])
def test_position_deletes_that_came_before_an_upgrade_are_a_conflict_with_a_vector_that_would_hide_them(
    names_its_file: bool,
) -> None:
    world = World.with_table()
    file, other = data_file(), data_file()
    read = world.append(file, other).current_snapshot_id
    assert read is not None
    bounds = {2147483546: file.file_path.encode()}
    more = {} if names_its_file else {"referenced_data_file": None, "lower_bounds": bounds, "upper_bounds": bounds}
    world.commit(RowDelta((replace(position_deletes(file), **more),)), SetProperties({"format-version": "3"}))
    world.commit(SinceSnapshot(RowDelta((deletion_vector(other),)), read))
    with pytest.raises(CommitConflictError, match="so that the deletes are merged"):
        world.commit(SinceSnapshot(RowDelta((deletion_vector(file),)), read))


def test_equality_deletes_of_a_spec_without_fields_are_a_conflict_with_a_rewrite_in_every_spec() -> None:
    world = World.with_table()
    world.commit(PartitionSpecUpdate((AddPartitionField("city", IdentityTransform(), "city"),)))
    file, other = data_file(0, 9, "Bonn", spec_id=1), data_file(0, 9, "Köln", spec_id=1)
    world.append(file, other)
    rewrite = RewriteFiles((file,), (data_file(0, 9, "Bonn", spec_id=1),))
    assert outcome(world, rewrite, RowDelta((equality_deletes(other),))) == "replayed"
    rewrite = RewriteFiles(rewrite.added, (file,))
    assert outcome(world, rewrite, RowDelta((equality_deletes(data_file()),))) == "conflict"


@pytest.mark.parametrize("begun_empty", [True, False])
def test_a_change_is_refused_where_snapshots_since_its_start_have_expired(by_city: World, begun_empty: bool) -> None:
    if not begun_empty:
        by_city.append(data_file(0, 9, "Köln"))
    transaction = by_city.begin(RowDelta((data_file(0, 9, "Bonn"),), conflict_filter=BONN, isolation=SERIALIZABLE))
    by_city.append(data_file(0, 9, "Bonn"))
    by_city.append(data_file(0, 9, "Köln"))
    newest = by_city.version().metadata.last_updated_ms + 1
    assert len(by_city.commit(ExpireSnapshots(newest, at_ms=newest)).snapshots) == 1
    with pytest.raises(CommitConflictError, match=r"snapshots expired.*repeat the change"):
        transaction.commit()


def test_a_branch_rolled_back_under_a_change_is_a_conflict(by_city: World) -> None:
    first = by_city.append(data_file(0, 9, "Köln"))
    file = data_file(0, 9, "Bonn")
    by_city.append(file)
    mine = RowDelta((position_deletes(file),), isolation=SNAPSHOT)
    assert outcome(by_city, mine, Rollback(first.current_snapshot_id)) == "conflict"


def test_a_rollback_under_which_somebody_committed_is_a_conflict(by_city: World) -> None:
    first = by_city.append(data_file(0, 9, "Bonn"))
    by_city.append(data_file(0, 9, "Bonn"))
    assert outcome(by_city, Rollback(first.current_snapshot_id), FastAppend((data_file(0, 1, "Köln"),))) == "conflict"


def test_partition_fields_that_differ_are_both_added(by_city: World) -> None:
    mine = PartitionSpecUpdate((AddPartitionField("id", BucketTransform(4)),))
    theirs = PartitionSpecUpdate((AddPartitionField("amount", BucketTransform(4)),))
    assert outcome(by_city, mine, theirs) == "replayed"
    names = [field.name for field in by_city.version().metadata.spec().fields]
    assert names == ["city", "amount_bucket_4", "id_bucket_4"]


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (AddPartitionField("id", BucketTransform(4), "a"), AddPartitionField("id", BucketTransform(4), "b")),
        (AddPartitionField("id", BucketTransform(4), "a"), AddPartitionField("amount", BucketTransform(8), "a")),
        (RemovePartitionField("city"), RemovePartitionField("city")),
    ],
)
def test_changes_of_the_same_partition_field_are_a_conflict(by_city: World, mine: object, theirs: object) -> None:
    changes = [PartitionSpecUpdate((change,)) for change in (mine, theirs)]  # type: ignore[arg-type]
    assert outcome(by_city, *changes) == "conflict"


def test_two_sort_orders_are_a_conflict_unless_they_are_the_same(by_city: World) -> None:
    by_id, by_amount = ReplaceSortOrder((SortKey("id"),)), ReplaceSortOrder((SortKey("amount"),))
    assert outcome(by_city, by_id, by_amount) == "conflict"
    assert outcome(by_city, by_id, by_id) == "replayed"


def test_the_isolation_level_is_the_tables() -> None:
    assert isolation_of({}, "delete") is SERIALIZABLE
    assert isolation_of({"write.update.isolation-level": "Snapshot"}, "update") is SNAPSHOT
