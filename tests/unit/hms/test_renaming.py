"""Renames of rows, and rows of views: what is sent, and what is told of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from hms_iceberg.errors import (
    CommitFailedError,
    InvalidInputError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from hms_iceberg.hms.commit.capability import MODIFIED, expectation
from hms_iceberg.hms.commit.lease import rename_row
from hms_iceberg.hms.commit.pointer_kinds import TableSwap, ViewSwap
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import RowSettings, new_row
from hms_iceberg.metastore import Identifier, ViewMetadataVersion
from hms_iceberg.spec.data_types import IntegerType, NestedField
from hms_iceberg.spec.metadata.view_metadata import SQLViewRepresentation, ViewVersion, new_view_metadata
from hms_iceberg.spec.schema import Schema
from tests.support.one_row_client import BASE, NAME, NEW, OTHERS, OneRowClient

TARGET: Identifier = ("db", "renamed")


class RowsClient:
    """A metastore of some rows; `before` and `after` an alter is made, something may happen."""

    pool = "thrift://here"

    def __init__(self) -> None:
        self.rows: dict[Identifier, ttypes.Table] = {NAME: new_row(NAME, BASE, RowSettings())}
        self.sent: list[Mapping[str, str]] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.looks_that_fail = 0

    def get_table(self, database: str, name: str) -> ttypes.Table:
        if self.sent and self.looks_that_fail:
            self.looks_that_fail -= 1
            raise MetastoreUnavailableError("away")
        if (database, name) not in self.rows:
            raise NoSuchTableError(f"There is no {database}.{name}.")
        return copy.deepcopy(self.rows[database, name])

    def alter_table(self, database: str, name: str, row: ttypes.Table, environment: Mapping[str, str]) -> None:
        self.sent.append(environment)
        self.before()
        if (row.dbName, row.tableName) in self.rows:
            raise TableAlreadyExistsError("taken")
        del self.rows[database, name]
        self.rows[row.dbName, row.tableName] = copy.deepcopy(row)
        self.after()


class Guard:
    """A lock that may be lost."""

    lost = False

    def ensure_active(self) -> None:
        if self.lost:
            raise LockError("lost")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> RowsClient:
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.0))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 0.02)
    return RowsClient()


def rename(client: RowsClient, compare: bool = False, guard: Guard | None = None) -> None:
    swap = TableSwap(cast(HmsClient, client), RowSettings())
    rename_row(cast(HmsClient, client), NAME, TARGET, swap.renamable, guard or Guard(), compare)


def fail(error: Exception, action: Callable[[], None] = lambda: None) -> Callable[[], None]:
    def raise_it() -> None:
        action()
        raise error

    return raise_it


@pytest.mark.parametrize("compare", [True, False])
def test_a_row_gets_another_name_and_keeps_all_else(client: RowsClient, compare: bool) -> None:
    row = client.rows[NAME]
    row.parameters.update({"a": "1", "TRANSLATED_TO_EXTERNAL": "TRUE"})
    rename(client, compare)
    (renamed,) = client.rows.values()
    assert (renamed.dbName, renamed.tableName) == TARGET and list(client.rows) == [TARGET]
    assert renamed.parameters == {key: row.parameters[key] for key in row.parameters if key != "TRANSLATED_TO_EXTERNAL"}
    assert renamed.sd.location == row.sd.location
    assert client.sent == [expectation("metadata_location", BASE.location) if compare else {}]


def test_without_its_lock_nothing_is_sent(client: RowsClient) -> None:
    guard = Guard()
    guard.lost = True
    with pytest.raises(LockError):
        rename(client, guard=guard)
    assert client.sent == [] and list(client.rows) == [NAME]


@pytest.mark.parametrize("external", ["FALSE", None])
def test_a_managed_table_is_not_renamed_as_its_files_would_be_moved(client: RowsClient, external: str | None) -> None:
    parameters = client.rows[NAME].parameters
    parameters.pop("EXTERNAL")
    parameters.update({} if external is None else {"EXTERNAL": external})
    with pytest.raises(UnsupportedError, match=r"Cannot rename table db\.events: it is a managed table"):
        rename(client)
    assert client.sent == []
    parameters["EXTERNAL"] = "true"
    rename(client)


def test_a_name_that_is_taken_a_change_meanwhile_and_another_refusal_are_told(client: RowsClient) -> None:
    client.rows[TARGET] = new_row(TARGET, OTHERS, RowSettings())
    taken = r"Cannot rename db\.events: db\.renamed exists already"
    with pytest.raises(TableAlreadyExistsError, match=taken):
        rename(client)
    client.rows[TARGET] = new_row(TARGET, BASE, RowSettings())  # registered from the same file
    client.before = fail(MetastoreError("refused"))
    with pytest.raises(TableAlreadyExistsError, match=taken):
        rename(client)
    del client.rows[TARGET]
    client.before = fail(MetastoreError(MODIFIED))
    with pytest.raises(CommitFailedError, match=r"Cannot rename db\.events: it was changed meanwhile"):
        rename(client)
    for error in (MetastoreError("refused"), MetastoreUnavailableError("away"), InvalidInputError("no such name")):
        client.before = fail(error)
        with pytest.raises(type(error), match=str(error)):
            rename(client)
    assert list(client.rows) == [NAME]


@pytest.mark.parametrize(
    "error", [NoSuchTableError("gone"), MetastoreError(MODIFIED), TableAlreadyExistsError("there")]
)
def test_a_refusal_of_what_was_made_already_is_a_success(client: RowsClient, error: Exception) -> None:
    client.after = fail(error)
    rename(client)
    assert list(client.rows) == [TARGET]


@pytest.mark.parametrize("compare", [True, False])
@pytest.mark.parametrize("looks_that_fail", [0, 1, 2])
def test_a_lost_answer_to_a_rename_that_was_made_is_a_success(
    client: RowsClient, compare: bool, looks_that_fail: int
) -> None:
    client.after = fail(MetastoreAnswerLostError("cut"))
    client.looks_that_fail = looks_that_fail
    rename(client, compare)
    assert list(client.rows) == [TARGET]


def test_a_lost_answer_to_a_rename_that_nobody_sees_made_is_unknown(client: RowsClient) -> None:
    lost = MetastoreAnswerLostError("cut")
    client.before = fail(lost)
    with pytest.raises(MetastoreAnswerLostError, match=r"whether the rename of db\.events to db\.renamed was made"):
        rename(client)
    # Ours is at both names, or another one is at the new name: neither is a rename.
    for there in (BASE, NEW):
        client.rows[TARGET] = new_row(TARGET, there, RowSettings())
        with pytest.raises(MetastoreAnswerLostError):
            rename(client)


@pytest.mark.parametrize("looks_that_fail", [0, 99])
def test_a_rename_is_not_taken_for_made_because_its_table_was_dropped_or_nobody_could_look(
    client: RowsClient, looks_that_fail: int
) -> None:
    client.before = fail(MetastoreAnswerLostError("cut"), lambda: client.rows.pop(NAME))
    client.looks_that_fail = looks_that_fail
    with pytest.raises(MetastoreAnswerLostError, match="Cannot tell whether"):
        rename(client, compare=True)


# --------------------------------------------------------------------------------------------------- views


def seen(number: int) -> ViewMetadataVersion:
    schema = Schema(NestedField(1, "id", IntegerType()))
    version = ViewVersion(1, 0, number, {}, (SQLViewRepresentation("select 1 as id", "spark"),), ("db",))
    return ViewMetadataVersion(f"mem://v/metadata/{number}.json", new_view_metadata(schema, version, "mem://v", {}))


OLD, CURRENT = seen(1), seen(2)


@pytest.fixture
def views() -> Any:
    client = OneRowClient()
    client.pool = "thrift://here"  # type: ignore[attr-defined]
    client.row = None
    return ViewSwap(cast(HmsClient, client), RowSettings())


def test_a_view_is_created_read_changed_and_renamed_by_its_row(views: Any) -> None:
    views.create(NAME, OLD)
    assert views.pointer(views.read(NAME)).metadata_location == OLD.location
    views.commit(NAME, OLD, CURRENT, Guard(), False)
    assert views.renamable(views.read(NAME)).metadata_location == CURRENT.location
    assert views.lock_properties(CURRENT) == {} and views.named(NAME) == "view db.events"


def test_a_view_that_is_not_there_or_whose_name_is_taken_is_told_as_that(views: Any) -> None:
    with pytest.raises(NoSuchViewError, match=r"There is no view db\.events in thrift://here"):
        views.read(NAME)
    views.create(NAME, OLD)
    views.client.before.append(fail(NoSuchTableError("gone"), lambda: setattr(views.client, "row", None)))
    with pytest.raises(NoSuchViewError, match=r"view db\.events was dropped meanwhile"):
        views.commit(NAME, OLD, CURRENT, Guard(), False)
    views.create(NAME, OLD)
    views.client.before.append(fail(TableAlreadyExistsError("taken")))
    with pytest.raises(ViewAlreadyExistsError, match=r"Cannot create view db\.events: it exists already"):
        views.create(NAME, CURRENT)
    views.client.row = new_row(NAME, BASE, RowSettings())
    views.client.before.append(fail(TableAlreadyExistsError("taken")))
    with pytest.raises(TableAlreadyExistsError, match="a table or a Hive view of that name exists") as told:
        views.create(NAME, CURRENT)
    assert not isinstance(told.value, ViewAlreadyExistsError)
    with pytest.raises(NoSuchViewError):
        views.pointer(views.read(NAME))
    views.client.before.append(fail(TableAlreadyExistsError("taken"), lambda: setattr(views.client, "row", None)))
    with pytest.raises(TableAlreadyExistsError, match="of that name exists"):
        views.create(NAME, CURRENT)


def test_a_table_s_row_tells_how_it_is_locked() -> None:
    swap = TableSwap(cast(HmsClient, OneRowClient()), RowSettings())
    assert swap.lock_properties(BASE) == BASE.metadata.properties and swap.named(NAME) == "table db.events"
    assert swap.pointer(swap.read(NAME)).metadata_location == BASE.location
