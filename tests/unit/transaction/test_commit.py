"""Attempts, retries and outcomes of a commit, over a metastore in memory whose swaps end as scripted."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace

import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    InvalidInputError,
    MetastoreUnavailableError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
)
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from hms_iceberg.transaction.outcome import Outcome
from hms_iceberg.transaction.retry import Approach
from hms_iceberg.transaction.transaction import Created, Existing, Transaction, table_commit
from hms_iceberg.updates.conditional_changes import Epoch, OnceAnEpoch
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionSpecUpdate
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.schema.schema_changes import AddColumn
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from hms_iceberg.updates.table_settings import SetProperties
from tests.support import memory_metastore as outcomes
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import NAME, World, data_file, metadata


@pytest.fixture
def world() -> World:
    return World.with_table()


def kinds(locations: list[str]) -> list[str]:
    """What files are, by their names: data files do not go through a workspace here."""
    names = [location.rsplit("/", 1)[-1] for location in locations]
    return sorted(
        "metadata" if name.endswith(".metadata.json") else "list" if name.startswith("snap-") else "manifest"
        for name in names
    )


def test_an_append_writes_one_manifest_one_manifest_list_and_one_metadata_file(world: World) -> None:
    world.storage.created.clear()
    world.append(data_file())
    assert kinds(world.storage.created) == ["list", "manifest", "metadata"]
    assert world.storage.deleted == []


def test_a_replayed_append_keeps_both_appends(world: World) -> None:
    mine, theirs = data_file(), data_file()
    transaction = world.begin(FastAppend((mine,)))
    world.append(theirs)
    transaction.commit()
    assert world.live_paths() == sorted([mine.file_path, theirs.file_path])


def test_a_retry_writes_one_manifest_list_and_one_metadata_file_and_nothing_else(world: World) -> None:
    mine = data_file()
    transaction = world.begin(FastAppend((mine,)))
    transaction.metadata  # noqa: B018  the preview writes what the first attempt needs
    world.metastore.script.append(outcomes.after(lambda: world.append(data_file())))
    world.storage.created.clear()
    other_files = 3
    transaction.commit()
    created = kinds(world.storage.created)
    assert transaction.attempts == 2
    assert created.count("list") == 2, "the other writer's, and the one of the retry"
    assert created.count("manifest") == 1, "the other writer's"
    assert created.count("metadata") == 3, "the other writer's, and one for each attempt"
    assert len(created) == other_files + 3
    left = [location for location in world.storage.created if location not in world.storage.files]
    assert kinds(left) == ["metadata"], "of the attempt that lost"
    assert len(world.live_paths()) == 2


def test_the_second_attempt_takes_the_lock_before_it_loads(world: World) -> None:
    world.metastore.script.append(outcomes.conflict)
    world.append(data_file())
    assert world.metastore.locks_taken == 1


def test_the_snapshot_id_stays_the_same_over_attempts(world: World) -> None:
    update = FastAppend((data_file(),))
    world.metastore.script.append(outcomes.after(lambda: world.append(data_file())))
    after = world.commit(update)
    assert after.current_snapshot_id == update.snapshot_id


def test_a_replay_gets_the_next_sequence_number_and_the_newest_parent(world: World) -> None:
    transaction = world.begin(FastAppend((data_file(),)))
    theirs = world.append(data_file())
    snapshot = transaction.commit().metadata.current_snapshot()
    assert snapshot is not None
    assert (snapshot.sequence_number, snapshot.parent_snapshot_id) == (2, theirs.current_snapshot_id)


def test_a_commit_gives_up_after_the_retries_that_the_table_allows(world: World) -> None:
    world.commit(SetProperties({"commit.retry.num-retries": "2"}))
    world.metastore.script.extend([outcomes.conflict] * 9)
    before = set(world.storage.files)
    transaction = world.begin(FastAppend((data_file(),)))
    with pytest.raises(CommitFailedError):
        transaction.commit()
    assert transaction.attempts == 3
    assert set(world.storage.files) == before, "a certain failure leaves no file behind"


def test_a_certain_failure_deletes_the_data_files_written_for_it(world: World) -> None:
    world.storage.create("mem://warehouse/data/x.parquet", b"")
    world.metastore.script.append(outcomes.server_gone)
    transaction = world.begin(FastAppend((data_file(),)))
    transaction.track("mem://warehouse/data/x.parquet")
    with pytest.raises(MetastoreUnavailableError):
        transaction.commit()
    assert "mem://warehouse/data/x.parquet" not in world.storage.files


def test_a_success_keeps_the_data_files_written_for_it(world: World) -> None:
    world.storage.create("mem://warehouse/data/x.parquet", b"")
    transaction = world.begin(FastAppend((data_file(),)))
    transaction.track("mem://warehouse/data/x.parquet")
    transaction.commit()
    assert "mem://warehouse/data/x.parquet" in world.storage.files


@pytest.mark.parametrize("number", [1, 2], ids=["the same epoch", "a later epoch"])
def test_a_commit_of_an_epoch_that_another_one_committed_meanwhile_changes_nothing_and_deletes_its_files(
    world: World, number: int
) -> None:
    def commit_of(number: int, file: DataFile) -> Transaction:
        world.storage.create(file.file_path, b"")
        epoch = Epoch("a-stream", number, "main")
        transaction = world.begin(OnceAnEpoch(FastAppend((file,), properties=epoch.properties), epoch))
        transaction.track(file.file_path)
        return transaction

    waiting, file, theirs = commit_of(1, mine := data_file()), data_file(), data_file()
    commit_of(number, file).commit()
    after = world.append(theirs)
    waiting.commit()
    assert world.version().metadata == after
    assert world.live_paths() == sorted([file.file_path, theirs.file_path])
    assert file.file_path in world.storage.files and mine.file_path not in world.storage.files
    commit_of(number + 1, mine).commit()
    assert mine.file_path in world.live_paths() and mine.file_path in world.storage.files


def test_a_lost_answer_to_a_swap_that_was_made_is_a_success(world: World) -> None:
    world.metastore.script.append(outcomes.lost_answer_after_success)
    file = data_file()
    world.append(file)
    assert world.live_paths() == [file.file_path]


def test_a_lost_answer_is_a_success_where_another_commit_came_after_it(world: World) -> None:
    mine, theirs = data_file(), data_file()

    def made_then_overtaken(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        world.append(theirs)
        raise CommitStateUnknownError("lost")

    world.metastore.script.append(made_then_overtaken)
    world.append(mine)
    assert world.live_paths() == sorted([mine.file_path, theirs.file_path])


def test_an_unknown_outcome_deletes_nothing_and_says_how_to_find_out(world: World) -> None:
    world.metastore.script.append(outcomes.lost_answer_after_failure)
    update = FastAppend((data_file(),))
    transaction = world.begin(update)
    with pytest.raises(CommitStateUnknownError) as caught:
        transaction.commit()
    assert world.storage.deleted == []
    message = str(caught.value)
    assert str(update.snapshot_id) in message
    assert "db.events" in message
    assert "00001-" in message


@pytest.mark.parametrize("outcome", [outcomes.lost_answer_after_success, outcomes.success_reported_as_conflict])
def test_a_commit_that_could_not_be_looked_for_is_refused_before_anything_is_sent(
    world: World, outcome: outcomes.Outcome
) -> None:
    before, location = set(world.storage.files), world.version().location
    world.metastore.script.append(outcome)
    with pytest.raises(ConfigurationError, match=r"commit\.status-check\.num-retries"):
        world.commit(SetProperties({"commit.status-check.num-retries": "many"}))
    assert list(world.metastore.script) == [outcome], "no swap was asked for"
    assert (world.version().location, set(world.storage.files)) == (location, before)


@pytest.mark.parametrize("compares", [True, False])
def test_a_lost_request_that_another_commit_overtook_is_lost_only_where_it_cannot_be_carried_out_late(
    world: World, compares: bool
) -> None:
    mine, theirs, world.metastore.compares = data_file(), data_file(), compares

    def overtaken(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        world.append(theirs)
        raise CommitStateUnknownError("lost")

    world.metastore.script.append(overtaken)
    transaction = world.begin(FastAppend((mine,)))
    if compares:
        transaction.commit()
        assert transaction.attempts == 2
    else:
        with pytest.raises(CommitStateUnknownError, match="lost"):
            transaction.commit()
        assert world.storage.deleted == []
    assert transaction.outcome is (Outcome.MADE if compares else Outcome.UNKNOWN)
    assert world.live_paths() == sorted([mine.file_path, theirs.file_path] if compares else [theirs.file_path])


def test_an_unknown_outcome_stays_unknown_where_the_metastore_is_gone(world: World) -> None:
    def made_then_gone(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        metastore.down = True
        raise CommitStateUnknownError("lost")

    world.metastore.script.append(made_then_gone)
    file = data_file()
    with pytest.raises(CommitStateUnknownError):
        world.append(file)
    world.metastore.down = False
    assert world.live_paths() == [file.file_path], "it had been made, and every file of it is still there"


def test_ones_own_success_reported_as_a_conflict_is_a_success_and_not_made_twice(world: World) -> None:
    world.metastore.script.append(outcomes.success_reported_as_conflict)
    file = data_file()
    after = world.append(file)
    assert len(after.snapshots) == 1
    assert world.live_paths() == [file.file_path]


@pytest.mark.parametrize(
    "error",
    [MetastoreUnavailableError, StorageError, CommitConflictError, OSError, MemoryError, KeyboardInterrupt],
    ids=lambda error: error.__name__,
)
def test_whatever_stops_the_attempt_after_it_ones_own_success_reported_as_a_conflict_loses_no_file(
    world: World, error: type[BaseException]
) -> None:
    world.storage.create("mem://warehouse/data/x.parquet", b"")
    transaction = world.begin(FastAppend((file := data_file(),)))
    transaction.track("mem://warehouse/data/x.parquet")

    def conflict_then_error(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        metastore.next_acquire_fails = error("as told")
        raise CommitFailedError("modified")

    world.metastore.script.append(conflict_then_error)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            transaction.commit()
    else:
        transaction.commit()
        assert transaction.outcome is Outcome.MADE
    assert world.live_paths() == [file.file_path]
    assert "mem://warehouse/data/x.parquet" in world.storage.files
    world.check()


@pytest.mark.parametrize("others", [1, 3])
def test_ones_own_success_that_fell_off_the_log_of_previous_versions_is_found_by_its_snapshot(
    world: World, others: int
) -> None:
    world.commit(SetProperties({"write.metadata.previous-versions-max": "1"}))
    mine = data_file()

    def made_then_overtaken(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        for _ in range(others):
            world.append(data_file())
        raise CommitFailedError("modified")

    world.metastore.script.append(made_then_overtaken)
    world.append(mine)
    assert len(world.live_paths()) == others + 1 and mine.file_path in world.live_paths()
    world.check()


def test_where_the_log_of_previous_versions_proves_no_loss_a_lost_change_keeps_its_files(world: World) -> None:
    world.commit(SetProperties({"write.metadata.previous-versions-max": "1"}))
    transaction = world.begin(FastAppend((data_file(),)))

    def overtaken(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        for _ in range(3):
            world.append(data_file())
        metastore.next_acquire_fails = StorageError("as told")
        raise CommitFailedError("modified")

    world.metastore.script.append(overtaken)
    with pytest.raises(StorageError, match="as told"):
        transaction.commit()
    assert transaction.outcome is Outcome.UNKNOWN
    assert all(location in world.storage.files for location in transaction.workspace.created)
    assert len(world.live_paths()) == 3


@pytest.mark.parametrize("is_mine", [True, False])
def test_a_create_that_others_overtook_until_the_log_forgot_it_is_unknown_and_another_table_is_lost(
    is_mine: bool,
) -> None:
    short = {"write.metadata.previous-versions-max": "1", "commit.retry.num-retries": "0"}
    world = World()
    world.metastore.create_namespace("db", {})
    transaction = Transaction(NAME, Created(metadata(properties=short)), world.metastore, world.storage)

    def overtaken(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        if is_mine:
            swap()
        else:
            Transaction(NAME, Created(metadata(properties=short)), metastore, world.storage).commit()
        for _ in range(3):
            world.append(data_file())
        raise TableAlreadyExistsError("exists")

    world.metastore.script.append(overtaken)
    with pytest.raises(TableAlreadyExistsError):
        transaction.commit()
    assert transaction.outcome is (Outcome.UNKNOWN if is_mine else Outcome.LOST)
    assert all((each in world.storage.files) is is_mine for each in transaction.workspace.created)
    assert len(world.live_paths()) == 3


def test_a_copy_of_the_table_with_ones_snapshot_is_not_the_table_and_its_files_stay(world: World) -> None:
    transaction = world.begin(FastAppend((data_file(),)))

    def made_dropped_and_copied(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        copy = replace(world.version().metadata, table_uuid=str(uuid.uuid4()), metadata_log=())
        metastore.drop_table(NAME)
        Transaction(NAME, Created(copy), metastore, world.storage).commit()
        raise CommitFailedError("modified")

    world.metastore.script.append(made_dropped_and_copied)
    with pytest.raises(CommitConflictError, match="the name now belongs to one with UUID"):
        transaction.commit()
    assert transaction.outcome is Outcome.UNKNOWN
    assert len(world.live_paths()) == 1, "the copy has all its files"


def test_ones_own_success_reported_as_a_conflict_in_the_last_attempt_is_a_success(world: World) -> None:
    world.commit(SetProperties({"commit.retry.num-retries": "0"}))
    world.metastore.script.append(outcomes.success_reported_as_conflict)
    file = data_file()
    world.append(file)
    assert world.live_paths() == [file.file_path]


def test_a_conflict_that_no_look_at_the_table_confirms_is_an_unknown_outcome_and_the_files_stay(world: World) -> None:
    world.commit(SetProperties({"commit.retry.num-retries": "0"}))

    def made_then_conflict_then_gone(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        metastore.down = True
        raise CommitFailedError("modified")

    world.metastore.script.append(made_then_conflict_then_gone)
    file = data_file()
    with pytest.raises(CommitStateUnknownError):  # it was told as failed before, and whoever repeated it made it twice
        world.append(file)
    world.metastore.down = False
    assert world.live_paths() == [file.file_path]


def test_an_interrupt_during_the_swap_deletes_nothing(world: World) -> None:
    world.metastore.script.append(outcomes.interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.append(data_file())
    assert world.storage.deleted == []


def test_a_file_that_cannot_be_written_fails_the_commit_and_the_others_are_deleted(world: World) -> None:
    def refuse(location: str) -> None:
        if location.endswith(".metadata.json"):
            raise StorageError(f"Disk full at {location}.")

    before = set(world.storage.files)
    transaction = world.begin(FastAppend((data_file(),)))
    world.storage.before_create = refuse
    with pytest.raises(StorageError, match="Disk full"):
        transaction.commit()
    world.storage.before_create = None
    assert set(world.storage.files) == before
    world.append(data_file())
    assert len(world.live_paths()) == 1


def test_a_table_dropped_meanwhile_fails_the_commit(world: World) -> None:
    transaction = world.begin(FastAppend((data_file(),)))
    world.metastore.drop_table(NAME)
    with pytest.raises(NoSuchTableError, match=r"db\.events"):
        transaction.commit()


def test_a_table_dropped_and_created_anew_is_a_conflict(world: World) -> None:
    transaction = world.begin(FastAppend((data_file(),)))
    world.metastore.drop_table(NAME)
    Transaction(NAME, Created(metadata()), world.metastore, world.storage).commit()
    with pytest.raises(CommitConflictError, match="UUID"):
        transaction.commit()


def test_a_change_that_cannot_be_replayed_is_a_conflict_and_not_retried(world: World) -> None:
    world.commit(SetProperties({"owner": "ann"}))
    transaction = world.begin(SetProperties({"owner": "bob"}))
    world.commit(SetProperties({"owner": "cleo"}))
    with pytest.raises(CommitConflictError, match=r"bob.*cleo"):
        transaction.commit()
    assert transaction.attempts == 1


def test_changes_that_commute_are_both_made(world: World) -> None:
    transaction = world.begin(SetProperties({"a": "1"}))
    world.commit(SetProperties({"b": "2"}))
    properties = transaction.commit().metadata.properties
    assert (properties["a"], properties["b"]) == ("1", "2")


def test_a_change_that_changes_nothing_writes_nothing(world: World) -> None:
    world.commit(SetProperties({"a": "1"}))
    world.storage.created.clear()
    swaps = world.metastore.swaps
    world.commit(SetProperties({"a": "1"}))
    assert (world.storage.created, world.metastore.swaps) == ([], swaps)


def test_several_updates_move_the_table_by_one_version(world: World) -> None:
    before = world.version()
    world.commit(FastAppend((data_file(),)), SetProperties({"a": "1"}), FastAppend((data_file(),)))
    after = world.version()
    assert before.location.rsplit("/", 1)[-1].startswith("00000-")
    assert after.location.rsplit("/", 1)[-1].startswith("00001-")
    assert len(after.metadata.snapshots) == 2
    assert [entry.metadata_file for entry in after.metadata.metadata_log] == [before.location]
    assert len(after.metadata.snapshot_log) == 1, "the snapshot in between was never current"
    assert len(world.live_paths()) == 2


def test_a_committed_transaction_cannot_be_used_again(world: World) -> None:
    transaction = world.begin(FastAppend((data_file(),)))
    transaction.commit()
    with pytest.raises(InvalidInputError, match="Begin a new one"):
        transaction.commit()
    with pytest.raises(InvalidInputError):
        transaction.add(FastAppend((data_file(),)))


def test_an_abandoned_transaction_leaves_no_file(world: World) -> None:
    before = set(world.storage.files)
    transaction = world.begin(FastAppend((data_file(),)))
    transaction.abandon()
    assert set(world.storage.files) == before


def test_a_create_that_the_server_repeats_and_then_refuses_is_a_success() -> None:
    metastore, storage = InMemoryMetastore(), InMemoryStorage()
    metastore.create_namespace("db", {})
    metastore.script.append(outcomes.success_reported_as_existing)
    version = Transaction(NAME, Created(metadata()), metastore, storage).commit()
    assert metastore.load(NAME).metadata_location == version.location
    assert version.location in storage.files


@pytest.mark.parametrize("other", ["table", "Hive table"])
def test_a_create_whose_answer_was_lost_keeps_its_file_where_the_name_is_somebody_elses(other: str) -> None:
    """It may have been made and renamed, or be made when the name is free again."""
    metastore, storage = InMemoryMetastore(), InMemoryStorage()
    metastore.create_namespace("db", {})

    def made_then_renamed(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        swap()
        metastore.rename_table(NAME, ("db", "renamed"))
        if other == "table":
            Transaction(NAME, Created(metadata()), metastore, storage).commit()
        else:
            metastore.add_foreign_table(NAME)
        raise CommitStateUnknownError("lost")

    metastore.script.append(made_then_renamed)
    transaction = Transaction(NAME, Created(metadata()), metastore, storage)
    with pytest.raises(CommitStateUnknownError):
        transaction.commit()
    assert transaction.outcome is Outcome.UNKNOWN
    assert metastore.load(("db", "renamed")).metadata_location in storage.files


@pytest.mark.parametrize("is_overwrite", [False, True])
def test_a_registration_that_was_lost_is_not_told_as_made_because_the_log_of_another_file_names_its_file(
    world: World, is_overwrite: bool
) -> None:
    old = world.version()
    world.append(data_file())
    newer, name = world.version(), ("db", "registered")
    if is_overwrite:
        Transaction(name, Created(metadata()), world.metastore, world.storage).commit()
    commit = table_commit(name, world.metastore, world.storage)

    def others_are_first(metastore: InMemoryMetastore, identifier: object, swap: outcomes.Swap) -> None:
        if is_overwrite:
            metastore.drop_table(name)
        with metastore.lease(name, {}) as lease:
            lease.swap(None, newer)
        raise CommitStateUnknownError("lost")

    world.metastore.script.append(others_are_first)
    with pytest.raises(CommitStateUnknownError), commit, world.metastore.lease(name, {}) as lease:
        commit.swap(lease, commit.read(lease.load().metadata_location) if is_overwrite else None, old)
    assert (commit.outcome, world.storage.deleted) == (Outcome.UNKNOWN, [])


def test_a_create_of_a_name_that_is_taken_deletes_only_its_own_file(world: World) -> None:
    before = set(world.storage.files)
    with pytest.raises(TableAlreadyExistsError):
        Transaction(NAME, Created(metadata()), world.metastore, world.storage).commit()
    assert set(world.storage.files) == before


def test_old_metadata_files_are_deleted_where_the_table_asks_for_it(world: World) -> None:
    world.commit(
        SetProperties(
            {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
        )
    )
    for number in range(5):
        world.commit(SetProperties({"n": str(number)}))
    version = world.version()
    assert len(version.metadata.metadata_log) == 2
    left = sorted(location for location in world.storage.files if location.endswith(".metadata.json"))
    assert left == sorted([*(entry.metadata_file for entry in version.metadata.metadata_log), version.location])


def test_metadata_is_compressed_where_the_table_asks_for_it(world: World) -> None:
    world.commit(SetProperties({"write.metadata.compression-codec": "gzip"}))
    world.append(data_file())
    location = world.version().location
    assert location.endswith(".gz.metadata.json")
    assert world.storage.files[location].startswith(b"\x1f\x8b")


def test_writers_in_threads_lose_nothing(world: World) -> None:
    world.commit(SetProperties({"commit.retry.num-retries": "20"}))
    files = [data_file() for _ in range(24)]
    failures: list[BaseException] = []

    def work(mine: list) -> None:  # type: ignore[type-arg]
        try:
            for file in mine:
                world.append(file)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(files[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert world.live_paths() == sorted(file.file_path for file in files)
    total = world.version().metadata.current_snapshot()
    assert total is not None
    assert total.summary["total-data-files"] == "24"


def test_the_origin_of_a_transaction_is_the_version_it_was_begun_on(world: World) -> None:
    version = world.version()
    transaction = Transaction(NAME, Existing(version), world.metastore, world.storage)
    assert transaction.metadata is version.metadata


def test_data_written_with_a_column_whose_id_was_taken_meanwhile_is_a_conflict(world: World) -> None:
    column = SchemaUpdate((AddColumn(("mine",), StringType()),))
    transaction = world.begin(column, FastAppend((data_file(),)))
    world.commit(SchemaUpdate((AddColumn(("theirs",), StringType()),)))
    with pytest.raises(CommitConflictError, match=r"mine.*theirs"):
        transaction.commit()
    alone = world.begin(SchemaUpdate((AddColumn(("alone",), StringType()),)))
    world.commit(SchemaUpdate((AddColumn(("other",), StringType()),)))
    assert alone.commit().metadata.schema().find_id("alone") == 6


def test_data_written_with_a_spec_whose_id_was_taken_meanwhile_is_a_conflict(world: World) -> None:
    spec = PartitionSpecUpdate((AddPartitionField("id", BucketTransform(4)),))
    transaction = world.begin(spec, FastAppend((data_file(spec_id=1, partition=(0,)),)))
    world.commit(PartitionSpecUpdate((AddPartitionField("amount", BucketTransform(4)),)))
    with pytest.raises(CommitConflictError, match="partition spec 1"):
        transaction.commit()


def test_data_written_with_a_new_column_is_replayed_over_what_does_not_touch_ids(world: World) -> None:
    transaction = world.begin(SchemaUpdate((AddColumn(("mine",), StringType()),)), FastAppend((data_file(),)))
    world.append(data_file())
    assert transaction.commit().metadata.schema().find_id("mine") == 4
    assert len(world.live()) == 2


def test_a_version_that_was_verified_a_moment_ago_is_committed_to_without_another_look(world: World) -> None:
    transaction = Transaction(NAME, Existing(world.version()), world.metastore, world.storage, first=Approach.TRUST)
    transaction.add(FastAppend((data_file(),)))
    loads = world.metastore.loads
    transaction.commit()
    assert world.metastore.loads == loads


def test_a_verified_version_that_is_old_all_the_same_is_replayed_over_at_once(world: World) -> None:
    transaction = Transaction(NAME, Existing(world.version()), world.metastore, world.storage, first=Approach.TRUST)
    transaction.add(FastAppend((data_file(),)))
    world.append(data_file())
    world.commit(SetProperties({"commit.retry.min-wait-ms": "60000"}))
    transaction.commit()
    assert transaction.attempts == 2
    assert len(world.live()) == 2
    world.check()


def test_without_retries_a_version_is_always_looked_for(world: World) -> None:
    world.commit(SetProperties({"commit.retry.num-retries": "0"}))
    transaction = Transaction(NAME, Existing(world.version()), world.metastore, world.storage, first=Approach.TRUST)
    transaction.add(FastAppend((data_file(),)))
    world.append(data_file())
    transaction.commit()
    assert len(world.live()) == 2


def test_where_others_commit_as_well_the_first_attempt_takes_the_lock(world: World) -> None:
    transaction = Transaction(NAME, Existing(world.version()), world.metastore, world.storage, first=Approach.LOCK)
    transaction.add(FastAppend((data_file(),)), preview=False)
    world.append(data_file())
    locks = world.metastore.locks_taken
    transaction.commit()
    assert (transaction.attempts, world.metastore.locks_taken) == (1, locks + 1)
    assert len(world.live()) == 2
    world.check()


def test_without_retries_the_only_attempt_takes_the_lock(world: World) -> None:
    world.commit(SetProperties({"commit.retry.num-retries": "0"}))
    locks = world.metastore.locks_taken
    world.commit(SetProperties({"a": "1"}))
    assert world.metastore.locks_taken == locks + 1


def test_an_interrupt_while_the_lock_of_a_retry_is_given_back_deletes_no_committed_file(world: World) -> None:
    def press_control_c() -> None:
        raise KeyboardInterrupt

    transaction = world.begin(FastAppend((data_file(),)))
    world.append(data_file())
    world.metastore.on_release = press_control_c
    with pytest.raises(KeyboardInterrupt):
        transaction.commit()
    assert len(world.live()) == 2
    world.check()
