"""A swap whose lock is lost, or whose answer is: what is sent, and what is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

import pytest

from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    LockError,
    MetastoreAnswerLostError,
    MetastoreError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.pointer_kinds import TableSwap
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import RowSettings
from tests.support.one_row_client import BASE, NAME, NEW, OTHERS, OneRowClient


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
def client() -> OneRowClient:
    return OneRowClient()


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture
def commit(client: OneRowClient, guard: Guard, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.0))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 0.05)
    swaps = TableSwap(cast(HmsClient, client), RowSettings())

    def make(compare: bool = False, base: Any = BASE) -> None:
        swaps.commit(NAME, base, NEW, guard, compare)

    return make


def location(row: ttypes.Table | None) -> str:
    assert row is not None
    return str(row.parameters["metadata_location"])


def test_a_lock_that_was_lost_before_the_alter_sends_nothing(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    guard.lose()
    with pytest.raises(CommitFailedError, match="nothing was sent"):
        commit()
    assert client.sent == []


def test_a_lock_that_was_lost_during_the_alter_that_was_made_is_a_success(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    client.after.append(guard.lose)
    commit()
    assert location(client.row) == NEW.location


def test_a_lock_that_was_lost_during_an_alter_that_somebody_wrote_over_is_unknown(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    client.after += [lambda: (guard.lose(), client.show(OTHERS))]  # type: ignore[list-item, func-returns-value]
    with pytest.raises(CommitStateUnknownError, match="may or may not"):
        commit()


def test_a_lock_that_was_lost_during_an_alter_that_cannot_be_looked_at_is_unknown(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    def lose_all() -> None:
        guard.lose()
        client.away = True

    client.after.append(lose_all)
    with pytest.raises(CommitStateUnknownError):
        commit()


def test_a_lock_that_was_lost_after_the_columns_were_taken_out_does_not_send_the_new_ones(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    refusal = MetastoreError("The following columns have types incompatible with the existing columns: id")
    client.before.append(fail(refusal))
    client.after.append(guard.lose)
    with pytest.raises(CommitFailedError, match="nothing was sent"):
        commit()
    assert [location(row) for row in client.sent] == [NEW.location, BASE.location]
    assert client.row is not None and client.row.sd.cols == []


def test_a_moved_pointer_is_a_conflict_before_anything_is_sent(
    client: OneRowClient, commit: Callable[..., None]
) -> None:
    client.show(OTHERS)
    with pytest.raises(CommitFailedError, match="moved on"):
        commit()
    assert client.sent == []


@pytest.mark.parametrize("compare", [True, False])
def test_a_lost_answer_to_a_request_that_never_arrives_is_unknown(
    client: OneRowClient, commit: Callable[..., None], compare: bool
) -> None:
    client.before.append(fail(MetastoreAnswerLostError("cut")))
    with pytest.raises(CommitStateUnknownError):
        commit(compare)
    assert len(client.sent) == 1, "an alter is never sent again"


@pytest.mark.parametrize("compare", [True, False])
def test_a_request_that_arrives_late_is_waited_for_where_the_server_does_not_compare(
    client: OneRowClient, commit: Callable[..., None], compare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive_late() -> None:
        threading.Timer(0.2, client.show, (NEW,)).start()
        raise MetastoreAnswerLostError("cut")

    monkeypatch.setattr(answers, "_LATE_SECONDS", 20.0)
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.02))
    client.before.append(arrive_late)
    with pytest.raises(CommitStateUnknownError) if compare else nullcontext():
        commit(compare)
    assert len(client.sent) == 1


def test_a_lost_answer_to_a_request_that_was_carried_out_is_a_success(
    client: OneRowClient, commit: Callable[..., None]
) -> None:
    client.after.append(fail(MetastoreAnswerLostError("cut")))
    commit()
    assert len(client.sent) == 1


def test_a_refusal_after_the_change_was_made_is_a_success(client: OneRowClient, commit: Callable[..., None]) -> None:
    client.after.append(fail(MetastoreError("a listener failed")))
    commit()
    assert location(client.row) == NEW.location


def test_a_refusal_that_changed_nothing_is_told_as_it_is(client: OneRowClient, commit: Callable[..., None]) -> None:
    client.before.append(fail(MetastoreError("no permission")))
    with pytest.raises(MetastoreError, match="no permission"):
        commit()
    assert location(client.row) == BASE.location


def test_a_refusal_because_the_table_was_dropped_meanwhile_says_so(
    client: OneRowClient, commit: Callable[..., None]
) -> None:
    def drop() -> None:
        client.row = None
        raise NoSuchTableError("table not found")

    client.before.append(drop)
    with pytest.raises(NoSuchTableError, match="not found"):
        commit()


@pytest.mark.parametrize("is_made", [True, False])
def test_a_refusal_that_does_not_say_that_the_table_is_gone_is_unknown_where_it_is(
    client: OneRowClient, commit: Callable[..., None], is_made: bool
) -> None:
    """The commit may have been made, and the table renamed since: then its files are in use."""

    def rename() -> None:
        client.row = None
        raise MetastoreError("a listener failed")

    (client.after if is_made else client.before).append(rename)
    with pytest.raises(CommitStateUnknownError):
        commit()


# --------------------------------------------------------------------------- back to the previous version


def show_previous(client: OneRowClient) -> None:
    assert client.row is not None
    client.row.parameters["previous_metadata_location"] = NEW.location


def test_a_refused_swap_back_to_the_previous_version_is_told_as_it_is(
    client: OneRowClient, commit: Callable[..., None]
) -> None:
    show_previous(client)
    client.before.append(fail(MetastoreError("no permission")))
    with pytest.raises(MetastoreError, match="no permission"):
        commit()
    assert location(client.row) == BASE.location


@pytest.mark.parametrize("compare", [True, False])
def test_a_swap_back_to_the_previous_version_whose_request_never_arrives_is_unknown(
    client: OneRowClient, commit: Callable[..., None], compare: bool
) -> None:
    show_previous(client)
    client.before.append(fail(MetastoreAnswerLostError("cut")))
    with pytest.raises(CommitStateUnknownError):
        commit(compare)
    assert location(client.row) == BASE.location


def test_a_swap_back_to_the_previous_version_whose_lock_was_lost_and_that_was_undone_is_unknown(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    def undone() -> None:
        guard.lose()
        client.show(BASE)
        show_previous(client)

    show_previous(client)
    client.after.append(undone)
    with pytest.raises(CommitStateUnknownError):
        commit()


def test_a_lost_answer_to_a_swap_back_to_the_previous_version_that_was_carried_out_is_a_success(
    client: OneRowClient, commit: Callable[..., None]
) -> None:
    show_previous(client)
    client.after.append(fail(MetastoreAnswerLostError("cut")))
    commit()
    assert location(client.row) == NEW.location


# ------------------------------------------------------------------------------------------------ creates


@pytest.mark.parametrize("error", [TableAlreadyExistsError("taken"), MetastoreError("a listener failed")])
def test_a_refused_create_that_was_made_all_the_same_is_a_success(client: OneRowClient, error: Exception) -> None:
    client.after.append(fail(error))
    TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)
    assert location(client.row) == NEW.location


@pytest.mark.parametrize("error", [TableAlreadyExistsError("taken"), MetastoreError("a listener failed")])
def test_a_refused_create_that_cannot_be_looked_at_is_unknown(client: OneRowClient, error: Exception) -> None:
    """Else its metadata file would be deleted, which may be that of the table that is there."""

    def refuse() -> None:
        client.away = True
        raise error

    client.after.append(refuse)
    with pytest.raises(CommitStateUnknownError):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)


def test_a_refused_create_in_whose_place_another_row_stands_is_unknown(client: OneRowClient) -> None:
    """It may be ours after some commits, or another one after ours was renamed."""

    def overtake() -> None:
        client.show(OTHERS)
        raise MetastoreError("a listener failed")

    client.after.append(overtake)
    with pytest.raises(CommitStateUnknownError):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)


def test_a_create_of_a_name_that_is_taken_is_refused(client: OneRowClient) -> None:
    client.before.append(fail(TableAlreadyExistsError("taken")))
    with pytest.raises(TableAlreadyExistsError, match="an Iceberg table of that name exists"):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)
