"""A swap whose lock is lost, or whose answer is: what is sent, and what is told."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, cast

import pytest

from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit import late_requests
from hms_iceberg.hms.commit.table_swap import TableSwap
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.row_settings import RowSettings
from hms_iceberg.hms.rows.table_rows import new_row
from hms_iceberg.metastore import MetadataVersion
from tests.support.tables import metadata

NAME = ("db", "events")
BASE, NEW, OTHERS = (MetadataVersion(f"mem://t/metadata/0000{n}-x.metadata.json", metadata()) for n in range(3))


class Client:
    """A metastore with one row.

    Attributes:
        row: what it has; None where the table was dropped.
        sent: the rows that alters brought.
        answers: what happens at each alter, before it is carried out (`before`) or after; nothing where there is none.
    """

    def __init__(self) -> None:
        self.row: ttypes.Table | None = new_row(NAME, BASE, RowSettings())
        self.sent: list[ttypes.Table] = []
        self.before: list[Callable[[], None]] = []
        self.after: list[Callable[[], None]] = []
        self.away = False

    def get_table(self, database: str, name: str) -> ttypes.Table:
        if self.away:
            raise MetastoreUnavailableError("away")
        if self.row is None:
            raise NoSuchTableError("dropped")
        return copy.deepcopy(self.row)

    def alter_table(self, database: str, name: str, row: ttypes.Table, environment: Mapping[str, str]) -> None:
        self.sent.append(copy.deepcopy(row))
        if self.before:
            self.before.pop(0)()
        self.row = copy.deepcopy(row)
        if self.after:
            self.after.pop(0)()

    def create_table(self, row: ttypes.Table) -> None:
        self.alter_table(*NAME, row, {})

    def show(self, version: MetadataVersion) -> None:
        """Somebody else commits."""
        self.row = new_row(NAME, version, RowSettings())


class Guard:
    """A lock that can be lost."""

    def __init__(self) -> None:
        self.lost = False

    def ensure_active(self) -> None:
        if self.lost:
            raise LockError("no sign of life got through")

    def lose(self) -> None:
        self.lost = True


def fail(error: Exception) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture
def commit(client: Client, guard: Guard, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(late_requests, "_LOOKS", (0.0, 0.0))
    monkeypatch.setattr(late_requests, "_LATE_SECONDS", 0.05)
    swaps = TableSwap(cast(HmsClient, client), RowSettings())

    def make(compare: bool = False, base: Any = BASE) -> None:
        swaps.commit(NAME, base, NEW, guard, compare)

    return make


def location(row: ttypes.Table | None) -> str:
    assert row is not None
    return str(row.parameters["metadata_location"])


def test_a_lock_that_was_lost_before_the_alter_sends_nothing(
    client: Client, guard: Guard, commit: Callable[..., None]
) -> None:
    guard.lose()
    with pytest.raises(CommitFailedError, match="nothing was sent"):
        commit()
    assert client.sent == []


def test_a_lock_that_was_lost_during_the_alter_that_was_made_is_a_success(
    client: Client, guard: Guard, commit: Callable[..., None]
) -> None:
    client.after.append(guard.lose)
    commit()
    assert location(client.row) == NEW.location


def test_a_lock_that_was_lost_during_an_alter_that_somebody_wrote_over_is_unknown(
    client: Client, guard: Guard, commit: Callable[..., None]
) -> None:
    client.after += [lambda: (guard.lose(), client.show(OTHERS))]  # type: ignore[list-item, func-returns-value]
    with pytest.raises(CommitStateUnknownError, match="may or may not"):
        commit()


def test_a_lock_that_was_lost_during_an_alter_that_cannot_be_looked_at_is_unknown(
    client: Client, guard: Guard, commit: Callable[..., None]
) -> None:
    def lose_all() -> None:
        guard.lose()
        client.away = True

    client.after.append(lose_all)
    with pytest.raises(CommitStateUnknownError):
        commit()


def test_a_lock_that_was_lost_after_the_columns_were_taken_out_does_not_send_the_new_ones(
    client: Client, guard: Guard, commit: Callable[..., None]
) -> None:
    refusal = MetastoreError("The following columns have types incompatible with the existing columns: id")
    client.before.append(fail(refusal))
    client.after.append(guard.lose)
    with pytest.raises(CommitFailedError, match="nothing was sent"):
        commit()
    assert [location(row) for row in client.sent] == [NEW.location, BASE.location]
    assert client.row is not None and client.row.sd.cols == []


def test_a_moved_pointer_is_a_conflict_before_anything_is_sent(client: Client, commit: Callable[..., None]) -> None:
    client.show(OTHERS)
    with pytest.raises(CommitFailedError, match="moved on"):
        commit()
    assert client.sent == []


@pytest.mark.parametrize("compare", [True, False])
def test_a_lost_answer_to_a_request_that_never_arrives_is_unknown(
    client: Client, commit: Callable[..., None], compare: bool
) -> None:
    client.before.append(fail(MetastoreAnswerLostError("cut")))
    with pytest.raises(CommitStateUnknownError):
        commit(compare)
    assert len(client.sent) == 1, "an alter is never sent again"


@pytest.mark.parametrize("compare", [True, False])
def test_a_request_that_arrives_late_is_waited_for_where_the_server_does_not_compare(
    client: Client, commit: Callable[..., None], compare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive_late() -> None:
        threading.Timer(0.2, client.show, (NEW,)).start()
        raise MetastoreAnswerLostError("cut")

    monkeypatch.setattr(late_requests, "_LATE_SECONDS", 20.0)
    monkeypatch.setattr(late_requests, "_LOOKS", (0.0, 0.02))
    client.before.append(arrive_late)
    with pytest.raises(CommitStateUnknownError) if compare else nullcontext():
        commit(compare)
    assert len(client.sent) == 1


def test_a_lost_answer_to_a_request_that_was_carried_out_is_a_success(
    client: Client, commit: Callable[..., None]
) -> None:
    client.after.append(fail(MetastoreAnswerLostError("cut")))
    commit()
    assert len(client.sent) == 1


def test_a_refusal_after_the_change_was_made_is_a_success(client: Client, commit: Callable[..., None]) -> None:
    client.after.append(fail(MetastoreError("a listener failed")))
    commit()
    assert location(client.row) == NEW.location


def test_a_refusal_that_changed_nothing_is_told_as_it_is(client: Client, commit: Callable[..., None]) -> None:
    client.before.append(fail(MetastoreError("no permission")))
    with pytest.raises(MetastoreError, match="no permission"):
        commit()
    assert location(client.row) == BASE.location


def test_a_refusal_because_the_table_was_dropped_meanwhile_says_so(client: Client, commit: Callable[..., None]) -> None:
    def drop() -> None:
        client.row = None
        raise MetastoreError("what table?")

    client.before.append(drop)
    with pytest.raises(NoSuchTableError, match="dropped meanwhile"):
        commit()


# ------------------------------------------------------------------------------------------------ creates


@pytest.mark.parametrize("error", [TableAlreadyExistsError("taken"), MetastoreError("a listener failed")])
def test_a_refused_create_that_was_made_all_the_same_is_a_success(client: Client, error: Exception) -> None:
    client.after.append(fail(error))
    TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)
    assert location(client.row) == NEW.location


@pytest.mark.parametrize("error", [TableAlreadyExistsError("taken"), MetastoreError("a listener failed")])
def test_a_refused_create_that_cannot_be_looked_at_is_unknown(client: Client, error: Exception) -> None:
    """Else its metadata file would be deleted, which may be that of the table that is there."""

    def refuse() -> None:
        client.away = True
        raise error

    client.after.append(refuse)
    with pytest.raises(CommitStateUnknownError):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)


def test_a_create_of_a_name_that_is_taken_is_refused(client: Client) -> None:
    client.before.append(fail(TableAlreadyExistsError("taken")))
    with pytest.raises(TableAlreadyExistsError, match="an Iceberg table of that name exists"):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)
