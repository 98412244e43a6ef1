"""A transaction whose table went, came, or became another one since it was begun; and one that is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hms_iceberg.errors import (
    CommitConflictError,
    CommitFailedError,
    InvalidInputError,
    MissingFileError,
    NoSuchTableError,
    NotAnIcebergTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.expressions.parser import parse
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.metadata.metadata_definition import set_properties
from hms_iceberg.spec.metadata.metadata_json import metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.transaction.retry import Approach
from hms_iceberg.transaction.transaction import Created, CreatedOrReplaced, Existing, Transaction
from hms_iceberg.updates.conditional_changes import RequireUnchanged
from hms_iceberg.updates.machinery.update import Update, Workspace
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.schema.schema_changes import AddColumn, DeleteColumn
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from hms_iceberg.updates.table_settings import SetProperties
from tests.support import memory_metastore as outcomes
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.tables import LOCATION, NAME, World, data_file, metadata


@pytest.fixture
def world() -> World:
    return World.with_table()


def created_by_others(world: World) -> None:
    Transaction(NAME, Created(metadata()), world.metastore, world.storage).commit()


def create_anew(world: World) -> None:
    world.metastore.drop_table(NAME)
    created_by_others(world)


@pytest.mark.parametrize(
    ("meanwhile", "error", "said"),
    [
        (lambda world: None, MissingFileError, "There is no file .*snap-"),
        (
            lambda world: world.metastore.drop_table(NAME),
            NoSuchTableError,
            r"db\.events: it was dropped meanwhile.*snap-",
        ),
        (create_anew, CommitConflictError, "the name now belongs to one with UUID"),
    ],
    ids=["still there", "dropped", "created anew"],
)
def test_where_files_of_the_table_are_gone_it_is_told_what_became_of_the_table(
    world: World, meanwhile: Callable[[World], None], error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = world.begin(FastAppend((data_file(),)))
    world.append(data_file())
    snapshot = world.version().metadata.current_snapshot()
    assert snapshot is not None
    read = world.storage.read

    def purged(location: str) -> bytes:
        if location == snapshot.manifest_list:
            monkeypatch.setattr(world.storage, "read", read)
            meanwhile(world)
            del world.storage.files[location]
        return read(location)

    monkeypatch.setattr(world.storage, "read", purged)
    with pytest.raises(error, match=said):
        transaction.commit()


def test_where_files_of_a_new_table_are_gone_nobody_dropped_it(world: World) -> None:
    class Missing(SetProperties):
        def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
            raise MissingFileError("There is no file x.")

    creates = Transaction(("db", "new"), Created(metadata()), world.metastore, world.storage)
    creates.add(Missing({}), preview=False)
    with pytest.raises(MissingFileError, match="no file x"):
        creates.commit()


def test_a_metadata_file_whose_name_is_used_again_is_read_again(world: World) -> None:
    location = f"{LOCATION}/metadata/v1.metadata.json"
    first, second = metadata(), metadata()
    world.metastore.drop_table(NAME)
    world.metastore.swap(NAME, None, MetadataVersion(location, first))
    world.storage.create(location, metadata_to_json(first))
    transaction = world.begin(SetProperties({"a": "1"}))
    world.storage.files[location] = metadata_to_json(second)
    with pytest.raises(CommitConflictError, match=str(second.table_uuid)):
        transaction.commit()


class Alone(SetProperties):
    """Properties that suit no table with a property `theirs`."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The change."""
        if "theirs" in base.properties:
            raise InvalidInputError("There is one already.")
        return super().apply(base, workspace)


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (
            (RequireUnchanged(parse("amount > 7")), SetProperties({"a": "1"})),
            SchemaUpdate((DeleteColumn(("amount",)),)),
            r"after a concurrent commit dropped or renamed a column of it \(mem:.*'amount'",
        ),
        (
            (Alone({"a": "1"}),),
            SetProperties({"theirs": "1"}),
            r"possible when it was made, and is not any more after a concurrent commit \(mem:.*There is one already",
        ),
    ],
)
def test_a_change_that_another_one_made_impossible_says_which_commit_it_was(
    world: World, mine: tuple[Update, ...], theirs: Update, said: str
) -> None:
    transaction = world.begin(*mine)
    world.commit(theirs)
    with pytest.raises(CommitConflictError, match=said):
        transaction.commit()


@pytest.mark.parametrize("first", [Approach.LOOK, Approach.TRUST])
def test_a_name_that_became_a_hive_table_s_is_told_as_that(world: World, first: Approach) -> None:
    transaction = Transaction(NAME, Existing(world.version()), world.metastore, world.storage, first=first)
    transaction.add(FastAppend((data_file(),)))

    def answered(*_: object) -> None:
        raise NotAnIcebergTableError("db.events is not an Iceberg table. Migrate it")

    world.metastore.add_foreign_table(NAME)
    world.metastore.script.append(answered)
    with pytest.raises(NotAnIcebergTableError, match="Migrate it"):
        transaction.commit()
    assert transaction.attempts == 1


def test_a_table_of_a_version_that_is_only_previewed_is_not_changed(world: World) -> None:
    version = world.version()
    previewed = MetadataVersion(version.location, replace(version.metadata, format_version=4))
    with pytest.raises(UnsupportedError, match=r"Cannot change table db\.events"):
        Transaction(NAME, Existing(previewed), world.metastore, world.storage)


def test_a_transaction_that_is_over_takes_nothing_more_and_deletes_nothing_more(world: World) -> None:
    update = SetProperties({"a": "1"})
    for end in (Transaction.abandon, Transaction.commit):
        transaction = world.begin(FastAppend((data_file(),)), update)
        assert transaction.updates[1:] == (update,) and len(transaction.updates) == 2
        end(transaction)
        deleted = list(world.storage.deleted)
        transaction.abandon()
        assert world.storage.deleted == deleted
        for preview in (True, False):
            with pytest.raises(InvalidInputError, match=r"db\.events was committed or given up already"):
                transaction.add(update, preview=preview)
        with pytest.raises(InvalidInputError, match=r"db\.events was committed or given up already"):
            transaction.commit()
    assert len(world.live_paths()) == 1


def test_a_change_that_cannot_be_made_is_not_added_and_one_without_a_preview_fails_when_it_is_committed(
    world: World,
) -> None:
    wrong = SchemaUpdate((AddColumn(("id",), LongType()),))
    transaction = world.begin(SetProperties({"a": "1"}))
    with pytest.raises(InvalidInputError):
        transaction.add(wrong)
    assert len(transaction.updates) == 1
    transaction.add(SetProperties({"b": "2"}), preview=False)
    transaction.add(SetProperties({"c": "3"}), preview=False)
    after = transaction.commit().metadata
    assert [after.properties[key] for key in "abc"] == ["1", "2", "3"]
    late = world.begin()
    late.add(wrong, preview=False)
    with pytest.raises(InvalidInputError):
        late.commit()


class Shows(InMemoryMetastore):
    """A metastore that shows columns, and takes no column `odd`."""

    def check_columns(self, identifier: Identifier, before: Schema | None, after: Schema) -> None:
        """Refuses it, unless it has it already."""
        if "odd" in after.column_names and (before is None or "odd" not in before.column_names):
            raise InvalidInputError(f"Cannot show the column odd of {identifier}")


def test_columns_that_the_metastore_cannot_show_are_refused_when_they_are_asked_for_and_when_they_are_committed() -> (
    None
):
    odd = SchemaUpdate((AddColumn(("odd",), LongType()),))
    world = World(metastore=Shows())
    world.metastore.create_namespace("db", {})
    Transaction(NAME, Created(metadata()), world.metastore, world.storage).commit()
    with pytest.raises(InvalidInputError, match="odd"):
        world.begin(odd)
    late = world.begin()
    late.add(odd, preview=False)
    with pytest.raises(InvalidInputError, match="odd"):
        late.commit()
    schema = Schema(NestedField(1, "odd", LongType()))
    with pytest.raises(InvalidInputError, match="odd"):
        Transaction(("db", "new"), Created(metadata(schema)), world.metastore, world.storage)
    assert world.metastore.swaps == 1


# --------------------------------------------------------------------------------- create and replace


def replacement(world: World, must_exist: bool = False, first: Approach = Approach.LOOK) -> Transaction:
    """Creates the table, or gives the one that is there another property."""

    def replaced(before: TableMetadata) -> TableMetadata:
        return set_properties(before, {"how": "replaced", "after": world.version().location})

    there = world.metastore.table_exists(NAME)
    origin = CreatedOrReplaced(
        lambda: metadata(properties={"how": "created"}), replaced, world.version() if there else None, must_exist
    )
    return Transaction(NAME, origin, world.metastore, world.storage, first=first)


def how(world: World) -> str:
    return world.version().metadata.properties["how"]


def test_a_table_that_comes_or_goes_while_it_is_created_or_replaced_is_replaced_or_created(world: World) -> None:
    creates = replacement(world)
    world.metastore.drop_table(NAME)
    creates.commit()
    assert (how(world), creates.attempts) == ("created", 1)
    replaces = replacement(world)
    replaces.commit()
    assert (how(world), replaces.attempts) == ("replaced", 1)

    world.metastore.script.append(outcomes.after(lambda: world.metastore.drop_table(NAME)))
    creates = replacement(world)
    creates.commit()
    assert (how(world), creates.attempts) == ("created", 2)

    world.metastore.drop_table(NAME)
    world.metastore.script.append(outcomes.after(lambda: created_by_others(world)))
    replaces = replacement(world)
    locks = world.metastore.locks_taken
    replaces.commit()
    assert (how(world), replaces.attempts) == ("replaced", 2)
    assert world.metastore.locks_taken == locks + 1, "there is a row to lock now"


def test_what_others_changed_in_a_table_that_is_replaced_is_replaced_with_it(world: World) -> None:
    replaces = replacement(world)
    replaces.add(SetProperties({"a": "mine"}))
    world.commit(SetProperties({"a": "theirs"}))
    assert replaces.commit().metadata.properties["a"] == "mine"


def test_no_row_is_locked_where_there_is_none_to_lock(world: World) -> None:
    world.metastore.drop_table(NAME)
    locks = world.metastore.locks_taken
    replacement(world, first=Approach.LOCK).commit()
    assert world.metastore.locks_taken == locks
    replacement(world, first=Approach.LOCK).commit()
    assert world.metastore.locks_taken == locks + 1


def test_only_a_table_that_is_there_can_be_replaced(world: World) -> None:
    gone = replacement(world, must_exist=True)
    swapped = replacement(world, must_exist=True)
    assert not gone.origin.either and replacement(world).origin.either
    world.metastore.script.append(outcomes.after(lambda: world.metastore.drop_table(NAME)))
    with pytest.raises(NoSuchTableError, match="it was dropped meanwhile"):
        swapped.commit()
    with pytest.raises(NoSuchTableError, match=r"Cannot replace table db\.events: it does not exist"):
        gone.commit()
    with pytest.raises(NoSuchTableError, match="Create it"):
        replacement(world, must_exist=True)


def test_a_create_whose_name_is_taken_and_a_conflict_that_allows_no_retry_are_told(world: World) -> None:
    creates = Transaction(NAME, Created(metadata()), world.metastore, world.storage)
    loads = world.metastore.loads
    with pytest.raises(TableAlreadyExistsError):
        creates.commit()
    assert creates.attempts == 1 and world.metastore.loads <= loads + 1
    world.commit(SetProperties({"commit.retry.num-retries": "0"}))
    replaces = replacement(world)
    world.metastore.script.append(outcomes.after(lambda: world.metastore.drop_table(NAME)))
    with pytest.raises(CommitFailedError, match=r"Table db\.events was dropped meanwhile"):
        replaces.commit()
    once = metadata(properties={"commit.retry.num-retries": "0"})
    creates = Transaction(
        NAME, CreatedOrReplaced(lambda: once, lambda before: once, None), world.metastore, world.storage
    )
    world.metastore.script.append(outcomes.after(lambda: created_by_others(world)))
    with pytest.raises(CommitFailedError, match=r"Table db\.events was created meanwhile"):
        creates.commit()
