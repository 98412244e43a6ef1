"""Branches, tags, rollback, cherry-pick, expiry and the rewriting of manifests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    InvalidInputError,
    NoSuchRefError,
    NoSuchSnapshotError,
    RefAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, SnapshotRefType, StatisticsFile
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionSpecUpdate
from hms_iceberg.updates.rewrite_manifests import RewriteManifests
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles, ReplacePartitions
from hms_iceberg.updates.rows.row_delta import RowDelta
from hms_iceberg.updates.schema.schema_changes import AddColumn
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots, retained_refs, unreachable_files
from hms_iceberg.updates.snapshots.rollback import CherryPick, Rollback, SetCurrentSnapshot
from hms_iceberg.updates.snapshots.snapshot_refs import (
    CreateRef,
    FastForward,
    RemoveRef,
    RenameBranch,
    ReplaceRef,
    SetRetention,
)
from hms_iceberg.updates.table_settings import RemoveStatistics, SetLocation, SetProperties, SetStatistics
from tests.support.tables import BY_CITY, World, data_file, metadata, position_deletes

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


@pytest.fixture
def world() -> World:
    return World.with_table()


def appended(world: World, count: int = 1, **more: object) -> tuple[list[DataFile], list[int]]:
    """Commits appends of one file each; their files and snapshot ids."""
    files, ids = [], []
    for _ in range(count):
        update = FastAppend((data_file(),), **more)  # type: ignore[arg-type]
        world.commit(update)
        files += update.files
        ids.append(update.snapshot_id)
    return files, ids


def conflicts(world: World, mine: Update, theirs: Update) -> bool:
    transaction = world.begin(mine)
    world.commit(theirs)
    try:
        transaction.commit()
    except CommitConflictError:
        return True
    return False


def test_a_tag_stays_and_a_branch_moves(world: World) -> None:
    files, ids = appended(world)
    world.commit(CreateRef("v1"), CreateRef("audit", ids[0], BRANCH))
    appended(world, branch="audit")
    refs = world.version().metadata.refs
    assert refs["v1"].snapshot_id == ids[0]
    assert refs["audit"].snapshot_id != ids[0]
    assert world.live_paths("v1") == [files[0].file_path]
    with pytest.raises(InvalidInputError, match="tags do not move"):
        appended(world, branch="v1")


def test_refs_are_renamed_replaced_removed_and_fast_forwarded(world: World) -> None:
    _, ids = appended(world, 3)
    world.commit(CreateRef("a", ids[0], BRANCH), CreateRef("t", ids[0]))
    world.commit(RenameBranch("a", "b"), FastForward("b", "main"), ReplaceRef("t", TAG, ids[1]))
    refs = world.version().metadata.refs
    assert {name: ref.snapshot_id for name, ref in refs.items()} == {"main": ids[2], "b": ids[2], "t": ids[1]}
    world.commit(RemoveRef("b", BRANCH), RemoveRef("t", TAG))
    assert set(world.version().metadata.refs) == {"main"}


def test_the_retention_of_a_ref_is_set_bit_by_bit(world: World) -> None:
    appended(world)
    world.commit(CreateRef("a", kind=BRANCH, max_ref_age_ms=5))
    world.commit(SetRetention("a", min_snapshots_to_keep=3), SetRetention("a", max_snapshot_age_ms=7))
    ref = world.version().metadata.refs["a"]
    assert (ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms) == (5, 3, 7)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda ids: CreateRef("main", ids[0]), RefAlreadyExistsError),
        (lambda ids: CreateRef("x", 5), NoSuchSnapshotError),
        (lambda ids: RemoveRef("x", BRANCH), NoSuchRefError),
        (lambda ids: RemoveRef("main", BRANCH), InvalidInputError),
        (lambda ids: RenameBranch("main", "x"), InvalidInputError),
        (lambda ids: ReplaceRef("x", TAG, ids[0]), NoSuchRefError),
        (lambda ids: ReplaceRef("main", TAG, ids[0]), InvalidInputError),
        (lambda ids: FastForward("main", "x"), NoSuchRefError),
        (lambda ids: SetCurrentSnapshot(5), NoSuchSnapshotError),
        (lambda ids: SetCurrentSnapshot(), InvalidInputError),
        (lambda ids: Rollback(5), NoSuchSnapshotError),
        (lambda ids: Rollback(before_ms=1), NoSuchSnapshotError),
        (lambda ids: CherryPick(5), NoSuchSnapshotError),
    ],
)
def test_what_is_not_there_or_not_possible_is_refused_at_once(
    world: World, make: Callable[[list[int]], Update], kind: type[Exception]
) -> None:
    _, ids = appended(world)
    swaps = world.metastore.swaps
    with pytest.raises(kind):
        world.commit(make(ids))
    assert world.metastore.swaps == swaps


def test_a_tag_of_an_empty_table_is_refused(world: World) -> None:
    with pytest.raises(NoSuchSnapshotError, match="no snapshot yet"):
        world.commit(CreateRef("x"))


def test_a_rollback_goes_to_an_ancestor_only(world: World) -> None:
    files, ids = appended(world, 2)
    _, staged = appended(world, stage_only=True)
    world.commit(Rollback(ids[0]))
    assert world.live_paths() == [files[0].file_path]
    assert [entry.snapshot_id for entry in world.version().metadata.snapshot_log] == [*ids, ids[0]]
    with pytest.raises(InvalidInputError, match="not an ancestor"):
        world.commit(Rollback(staged[0]))
    world.commit(SetCurrentSnapshot(ids[1]))
    assert len(world.live_paths()) == 2


def test_a_rollback_to_a_time_goes_to_the_last_snapshot_before_it(world: World) -> None:
    _, ids = appended(world, 2)
    times = [snapshot.timestamp_ms for snapshot in world.version().metadata.snapshots]
    world.commit(Rollback(before_ms=times[1] + 1))
    assert world.version().metadata.current_snapshot_id == ids[1]


def test_a_ref_that_moved_meanwhile_is_not_moved_away(world: World) -> None:
    _, ids = appended(world, 2)
    world.commit(CreateRef("a", ids[0], BRANCH))
    assert conflicts(world, ReplaceRef("a", BRANCH, ids[1]), FastAppend((data_file(),), branch="a"))
    assert conflicts(world, RemoveRef("a", BRANCH), FastAppend((data_file(),), branch="a"))
    assert conflicts(world, CreateRef("b", ids[0]), CreateRef("b", ids[1]))
    assert not conflicts(world, CreateRef("c", ids[0]), FastAppend((data_file(),)))
    assert not conflicts(world, RenameBranch("a", "d"), FastAppend((data_file(),), branch="a"))


# ------------------------------------------------------------------------------------------- cherry-pick


def test_a_staged_append_is_published_by_fast_forward_or_made_again(world: World) -> None:
    appended(world)
    (first,), (first_id,) = appended(world, stage_only=True, properties={"wap.id": "1"})
    (second,), (second_id,) = appended(world, stage_only=True, properties={"wap.id": "2"})
    assert world.commit(CherryPick(first_id)).current_snapshot_id == first_id
    after = world.commit(CherryPick(second_id)).current_snapshot()
    assert after is not None
    assert after.snapshot_id != second_id
    assert (after.summary["source-snapshot-id"], after.summary["published-wap-id"]) == (str(second_id), "2")
    assert {first.file_path, second.file_path} < set(world.live_paths())
    world.check()


def test_a_snapshot_is_published_once(world: World) -> None:
    appended(world)
    _, (staged,) = appended(world, stage_only=True, properties={"wap.id": "1"})
    appended(world)
    world.commit(CherryPick(staged))
    with pytest.raises(InvalidInputError, match="has it already"):
        world.commit(CherryPick(staged))
    _, (other,) = appended(world, stage_only=True, properties={"wap.id": "1"})
    with pytest.raises(InvalidInputError, match=r"wap\.id 1"):
        world.commit(CherryPick(other))


def test_a_dynamic_overwrite_is_picked_where_its_partitions_did_not_change() -> None:
    world = World.with_table(metadata(spec=BY_CITY))
    world.append(data_file(0, 9, "Bonn"), data_file(0, 9, "Köln"))
    new = data_file(0, 3, "Bonn")
    staged = ReplacePartitions((new,), stage_only=True)
    world.commit(staged)
    world.append(data_file(5, 6, "Köln"))
    world.commit(CherryPick(staged.snapshot_id))
    assert [entry.data_file.file_path for entry in world.live() if entry.data_file.partition == ("Bonn",)] == [
        new.file_path
    ]
    again = ReplacePartitions((data_file(0, 3, "Bonn"),), stage_only=True)
    world.commit(again)
    world.append(data_file(5, 6, "Bonn"))
    with pytest.raises(CommitConflictError, match="partition"):
        world.commit(CherryPick(again.snapshot_id))


def test_other_operations_cannot_be_picked(world: World) -> None:
    (file,), _ = appended(world)
    staged = DeleteFiles((file,), stage_only=True)
    world.commit(staged)
    appended(world)
    with pytest.raises(InvalidInputError, match="it is a delete"):
        world.commit(CherryPick(staged.snapshot_id))


# ------------------------------------------------------------------------------------------------ expiry


def spread(world: World, count: int, step_ms: int = 1000) -> list[int]:
    """Appends whose snapshots are `step_ms` apart; their times."""
    for _ in range(count):
        transaction = world.begin()
        transaction.workspace._clock_ms = lambda: world.version().metadata.last_updated_ms + step_ms
        transaction.add(FastAppend((data_file(),)))
        transaction.commit()
    return [snapshot.timestamp_ms for snapshot in world.version().metadata.snapshots]


def kept(world: World, update: ExpireSnapshots) -> list[int]:
    """Places, in the order of their making, of the snapshots that stay."""
    before = [snapshot.snapshot_id for snapshot in world.version().metadata.snapshots]
    after = {snapshot.snapshot_id for snapshot in world.commit(update).snapshots}
    return [place for place, snapshot_id in enumerate(before) if snapshot_id in after]


def test_old_snapshots_expire_and_the_last_ones_stay(world: World) -> None:
    times = spread(world, 6)
    assert kept(world, ExpireSnapshots(older_than_ms=times[3], at_ms=times[5])) == [3, 4, 5]
    assert kept(world, ExpireSnapshots(older_than_ms=times[5] + 1, retain_last=2, at_ms=times[5])) == [1, 2]
    assert kept(world, ExpireSnapshots(older_than_ms=times[5] + 1, at_ms=times[5])) == [1]


def test_the_tables_and_the_branchs_own_settings_count(world: World) -> None:
    times = spread(world, 5)
    world.commit(
        SetProperties({"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "2"})
    )
    world.commit(SetRetention("main", min_snapshots_to_keep=4))
    assert kept(world, ExpireSnapshots(at_ms=times[4] + 5)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("properties", "branch", "update", "expected"),
    [
        ({"history.expire.max-snapshot-age-ms": "1500"}, {}, {}, [3, 4]),
        ({"history.expire.max-snapshot-age-ms": "1500"}, {"max_snapshot_age_ms": 2500}, {}, [2, 3, 4]),
        ({}, {"max_snapshot_age_ms": 1500}, {}, [3, 4]),
        ({}, {"max_snapshot_age_ms": 1}, {}, [4]),
        ({}, {"min_snapshots_to_keep": 1, "max_snapshot_age_ms": 1}, {"retain_last": 3}, [4]),
        ({"history.expire.max-ref-age-ms": "1"}, {}, {"older_than_ms": 2**62}, [4]),
    ],
)
def test_what_is_younger_than_the_table_or_its_branch_say_stays(
    world: World, properties: dict[str, str], branch: dict[str, int], update: dict[str, int], expected: list[int]
) -> None:
    times = spread(world, 5)
    world.commit(SetProperties({"history.expire.min-snapshots-to-keep": "1", **properties}))
    if branch:
        world.commit(SetRetention("main", **branch))
    assert kept(world, ExpireSnapshots(**{"at_ms": times[4] + (7 if "older_than_ms" in update else 0), **update})) == (
        expected
    )
    assert "main" in world.version().metadata.refs


def test_a_tag_keeps_its_snapshot_and_none_before_it(world: World) -> None:
    times = spread(world, 4)
    ids = [snapshot.snapshot_id for snapshot in world.version().metadata.snapshots]
    world.commit(CreateRef("kept", ids[3]), SetCurrentSnapshot(ids[0]))
    assert kept(world, ExpireSnapshots(older_than_ms=times[3] + 1, retain_last=3, at_ms=times[3])) == [0, 3]


def test_a_ref_is_kept_up_to_its_age_and_one_without_its_snapshot_is_not(world: World) -> None:
    times = spread(world, 2)
    first = world.version().metadata.snapshots[0].snapshot_id
    world.commit(CreateRef("old", first, max_ref_age_ms=1000))
    base = world.version().metadata
    assert set(retained_refs(base, times[0] + 1000)) == {"main", "old"}
    assert set(retained_refs(base, times[0] + 1001)) == {"main"}
    gone = replace(base, snapshots=base.snapshots[1:], snapshot_log=())
    assert set(retained_refs(gone, times[0])) == {"main"}


def test_what_a_tag_or_branch_points_at_stays_until_the_ref_expires(world: World) -> None:
    times = spread(world, 4)
    ids = [snapshot.snapshot_id for snapshot in world.version().metadata.snapshots]
    world.commit(CreateRef("old", ids[0], max_ref_age_ms=10_000), CreateRef("kept", ids[1]))
    update = ExpireSnapshots(older_than_ms=times[3] + 1, at_ms=times[3])
    assert kept(world, update) == [0, 1, 3]
    assert kept(world, ExpireSnapshots(older_than_ms=times[3] + 1, at_ms=times[0] + 10_001)) == [1, 2]
    assert set(world.version().metadata.refs) == {"main", "kept"}


def test_what_is_below_a_tag_and_on_no_branch_stays_as_long_as_the_table_says(world: World) -> None:
    times = spread(world, 4)
    ids = [snapshot.snapshot_id for snapshot in world.version().metadata.snapshots]
    world.commit(CreateRef("kept", ids[3]), SetCurrentSnapshot(ids[0]))
    assert kept(world, ExpireSnapshots(older_than_ms=times[2], at_ms=times[3])) == [0, 2, 3]


def test_a_snapshot_named_by_its_id_expires_unless_a_ref_points_at_it(world: World) -> None:
    times = spread(world, 3)
    ids = [snapshot.snapshot_id for snapshot in world.version().metadata.snapshots]
    early = times[0] - 1
    assert kept(world, ExpireSnapshots(early, snapshot_ids=frozenset({ids[0]}))) == [1, 2]
    with pytest.raises(InvalidInputError, match="'main'"):
        world.commit(ExpireSnapshots(early, snapshot_ids=frozenset({ids[2]})))
    with pytest.raises(NoSuchSnapshotError):
        world.commit(ExpireSnapshots(early, snapshot_ids=frozenset({5})))


def test_schemas_and_specs_of_snapshots_that_stay_are_kept_when_metadata_is_cleaned(world: World) -> None:
    for number, transform in enumerate((IdentityTransform(), BucketTransform(4))):
        world.append(data_file())
        world.commit(SchemaUpdate((AddColumn((f"new{number}",), LongType()),)))
        world.commit(PartitionSpecUpdate((AddPartitionField("city", transform, f"city{number}"),)))
    world.append(data_file(partition=("Bonn", 1), spec_id=2))
    first, second, third = world.version().metadata.snapshots
    assert [each.schema_id for each in (first, second, third)] == [0, 1, 2]
    world.commit(CreateRef("kept", first.snapshot_id), SchemaUpdate((AddColumn(("last",), LongType()),)))
    after = world.commit(ExpireSnapshots(0, snapshot_ids=frozenset({second.snapshot_id}), clean_metadata=True))
    assert {schema.schema_id for schema in after.schemas} == {0, 2, 3}
    assert {spec.spec_id for spec in after.partition_specs} == {0, 2}
    world.commit(PartitionSpecUpdate((AddPartitionField("city", BucketTransform(8), "city2"),)))
    cleaned = ExpireSnapshots(0, clean_metadata=True)
    assert world.commit(cleaned).default_spec_id == 3, "it stays, though no snapshot has it yet"
    swaps = world.metastore.swaps
    world.commit(cleaned)
    assert world.metastore.swaps == swaps, "nothing is left to be cleaned"


def test_schemas_and_specs_stay_unless_it_is_said_that_metadata_is_cleaned(world: World) -> None:
    world.commit(SchemaUpdate((AddColumn(("new",), LongType()),)))
    world.commit(PartitionSpecUpdate((AddPartitionField("city", IdentityTransform(), "city"),)))
    appended(world, 2)
    after = world.commit(ExpireSnapshots(2**62))
    assert (len(after.snapshots), len(after.schemas), len(after.partition_specs)) == (1, 2, 2)


def test_a_table_whose_files_may_belong_to_others_is_not_expired(world: World) -> None:
    appended(world, 2)
    world.commit(SetProperties({"gc.enabled": "false"}))
    with pytest.raises(UnsupportedError, match=r"gc\.enabled"):
        world.commit(ExpireSnapshots())
    expired = world.commit(ExpireSnapshots(2**62, of_others_files=True))
    assert len(expired.snapshots) == 1, "by whoever deletes no file"


def test_a_tag_made_meanwhile_protects_its_snapshot(world: World) -> None:
    times = spread(world, 3)
    first = world.version().metadata.snapshots[0].snapshot_id
    transaction = world.begin(ExpireSnapshots(times[2] + 1, at_ms=times[2]))
    world.commit(CreateRef("keep", first))
    after = transaction.commit().metadata
    assert after.snapshots[0].snapshot_id == first
    assert len(after.snapshots) == 2


def test_files_become_unreachable_when_no_snapshot_uses_them(world: World) -> None:
    gone, stays = data_file(), data_file()
    world.append(gone, stays)
    world.commit(RowDelta((position_deletes(gone), position_deletes(stays))))
    world.commit(DeleteFiles((gone,)))
    world.append(data_file())
    before = world.version().metadata
    after = world.commit(ExpireSnapshots(before.last_updated_ms + 1, at_ms=before.last_updated_ms + 1))
    found = unreachable_files(before, after, world.storage)
    assert found.data_files == (gone.file_path,)
    assert len(found.delete_files) == 1
    assert len(found.manifest_lists) == 3
    for location in found.manifests + found.manifest_lists:
        world.storage.delete(location)
    world.check()
    assert stays.file_path in world.live_paths()


def test_what_the_table_is_made_of_is_no_unreachable_data_file_whatever_a_manifest_says(world: World) -> None:
    world.append(data_file())
    version = world.version()
    snapshot = version.metadata.current_snapshot()
    assert snapshot is not None and snapshot.manifest_list is not None
    (manifest,) = manifest_list_of(snapshot, world.storage)
    statistics = StatisticsFile(snapshot.snapshot_id, "mem://a.puffin", 10, 5)
    made_of = [snapshot.manifest_list, manifest.manifest_path, version.location, statistics.statistics_path]
    named = [data_file(file_path=each) for each in made_of]
    world.commit(SetStatistics(statistics), FastAppend(tuple(named)))
    world.commit(DeleteFiles(tuple(named)))
    world.commit(CreateRef("kept", snapshot.snapshot_id))
    before = world.version().metadata
    after = world.commit(ExpireSnapshots(2**62))
    assert len(after.snapshots) == 2
    assert unreachable_files(before, after, world.storage).data_files == ()


def test_statistics_of_expired_snapshots_are_unreachable(world: World) -> None:
    _, ids = appended(world, 2)
    world.commit(
        SetStatistics(StatisticsFile(ids[0], "mem://a.puffin", 10, 5)),
        SetStatistics(PartitionStatisticsFile(ids[0], "mem://b.parquet", 10)),
        SetStatistics(StatisticsFile(ids[1], "mem://c.puffin", 10, 5)),
    )
    before = world.version().metadata
    after = world.commit(ExpireSnapshots(before.last_updated_ms + 1))
    assert unreachable_files(before, after, world.storage).statistics_files == ("mem://a.puffin", "mem://b.parquet")
    assert world.commit(RemoveStatistics(ids[1])).statistics == ()


def test_files_of_old_snapshots_without_a_manifest_list_are_found_whatever_their_spec() -> None:
    world = World.with_table(metadata(format_version=1))
    world.append(gone := data_file())
    world.commit(PartitionSpecUpdate((AddPartitionField("city", IdentityTransform(), "city"),)))
    world.append(stays := data_file(city="Ulm", spec_id=1))
    made = world.version().metadata
    paths = [each.manifest_path for each in manifest_list_of(made.current_snapshot(), world.storage)]
    first, second = (replace(each, manifest_list=None) for each in made.snapshots)
    snapshots = (replace(first, manifest_locations=(paths[1],)), replace(second, manifest_locations=(paths[0],)))
    before = replace(made, snapshots=snapshots)
    after = replace(before, snapshots=snapshots[1:], snapshot_log=())
    found = unreachable_files(before, after, world.storage)
    assert (found.data_files, found.manifest_lists) == ((gone.file_path,), ())
    assert stays.file_path in world.live_paths()
    shared = (replace(made.snapshots[0], manifest_list=made.snapshots[1].manifest_list), made.snapshots[1])
    after = replace(made, snapshots=shared[1:], snapshot_log=())
    assert unreachable_files(replace(made, snapshots=shared), after, world.storage).all() == ()


# ---------------------------------------------------------------------------------- manifests, settings


def test_manifests_are_rewritten_into_few_and_files_stay_what_they_are(world: World) -> None:
    appended(world, 5)
    before = {(entry.data_file.file_path, entry.snapshot_id, entry.sequence_number) for entry in world.live()}
    world.commit(RewriteManifests())
    after = {(entry.data_file.file_path, entry.snapshot_id, entry.sequence_number) for entry in world.live()}
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    counts = {key: snapshot.summary[key] for key in ("manifests-created", "manifests-replaced", "entries-processed")}
    assert counts == {"manifests-created": "1", "manifests-replaced": "5", "entries-processed": "5"}
    assert after == before
    world.check()


def test_only_chosen_manifests_are_rewritten(world: World) -> None:
    _, ids = appended(world, 4)
    world.commit(RewriteManifests(rewrite_if=lambda manifest: manifest.added_snapshot_id in ids[:2]))
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    assert (snapshot.summary["manifests-created"], snapshot.summary["manifests-kept"]) == ("1", "2")
    swaps = world.metastore.swaps
    world.commit(RewriteManifests(rewrite_if=lambda manifest: False))
    assert world.metastore.swaps == swaps


def test_manifests_rewritten_beside_an_append_keep_both(world: World) -> None:
    appended(world, 3)
    transaction = world.begin(RewriteManifests())
    created = len(world.storage.created)
    world.append(data_file())
    theirs = len(world.storage.created) - created
    transaction.commit()
    assert len(world.live()) == 4
    mine = len(world.storage.created) - created - theirs
    assert mine == 3, "the new manifest of all four, a manifest list, a metadata file"
    world.check()


def test_the_location_moves_for_new_files_only(world: World) -> None:
    appended(world)
    world.commit(SetLocation("mem://elsewhere/events"))
    appended(world)
    version = world.version()
    assert version.location.startswith("mem://elsewhere/events/metadata/")
    assert conflicts(world, SetLocation("mem://a"), SetLocation("mem://b"))
