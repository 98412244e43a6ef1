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
    MetastoreUnavailableError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.hms.commit.pointer_kinds import TableSwap
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import RowSettings
from hms_iceberg.metastore import MetadataVersion
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


def test_a_lock_that_was_lost_during_an_alter_of_a_table_that_is_gone_is_unknown(
    client: OneRowClient, guard: Guard, commit: Callable[..., None]
) -> None:
    client.after += [lambda: (guard.lose(), setattr(client, "row", None))]  # type: ignore[list-item, func-returns-value]
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


# --------------------------------------------------------------------------------- what the row proves

MODIFIED = MetastoreError("The table has been modified. The parameter value is not the expected one")
FAILED, CUT = MetastoreError("a listener failed"), MetastoreAnswerLostError("cut")
FIRST = MetadataVersion("mem://t/metadata/00009-x.metadata.json", BASE.metadata)
ROWS: dict[str, Callable[[OneRowClient], None]] = {
    "ours": lambda client: client.show(NEW, BASE),
    "ours before another": lambda client: client.show(OTHERS, NEW),
    "the base": lambda client: client.show(BASE, FIRST),
    "one after the base": lambda client: client.show(OTHERS, BASE),
    "a later one": lambda client: client.show(OTHERS, FIRST),
    "none": lambda client: setattr(client, "row", None),
    "no parameters": lambda client: setattr(client.row, "parameters", None),
}
MADE, BEATEN, UNKNOWN = None, CommitFailedError, CommitStateUnknownError
# Of an alter that the server refused since the table was modified, refused for another reason, or whose answer was
# lost by a server that compares, and by one that does not.
ENDS: dict[str, tuple[type[Exception] | None, ...]] = {
    "ours": (MADE, MADE, MADE, MADE),
    "ours before another": (MADE, MADE, MADE, MADE),
    "the base": (BEATEN, MetastoreError, UNKNOWN, UNKNOWN),
    "one after the base": (BEATEN, UNKNOWN, BEATEN, UNKNOWN),
    "a later one": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "none": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "no parameters": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
}


@pytest.mark.parametrize("found", ENDS)
@pytest.mark.parametrize(
    ("error", "compare", "place"), [(MODIFIED, True, 0), (FAILED, False, 1), (CUT, True, 2), (CUT, False, 3)]
)
def test_what_became_of_an_alter_is_what_the_row_proves(
    client: OneRowClient, commit: Callable[..., None], found: str, error: Exception, compare: bool, place: int
) -> None:
    def end() -> None:
        ROWS[found](client)
        raise error

    client.before.append(end)
    expected = ENDS[found][place]
    if expected is None:
        commit(compare)
    else:
        with pytest.raises(expected) as told:
            commit(compare)
        assert type(told.value) is expected
    assert len(client.sent) == 1


def test_a_version_that_is_shown_already_is_not_sent_again(client: OneRowClient, commit: Callable[..., None]) -> None:
    client.show(NEW, BASE)
    commit()
    assert client.sent == []


@pytest.mark.parametrize("compare", [True, False])
def test_a_server_that_compares_is_told_what_the_row_has_to_show(
    client: OneRowClient, commit: Callable[..., None], compare: bool
) -> None:
    commit(compare)
    expected = {"expected_parameter_key": "metadata_location", "expected_parameter_value": BASE.location}
    assert client.expected == [expected if compare else {}]


def test_what_was_not_sent_is_told_as_it_is_and_nobody_looks(
    client: OneRowClient, commit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        client.away = True
        raise MetastoreUnavailableError("no server")

    client.before.append(away)
    with pytest.raises(MetastoreUnavailableError, match="no server"):
        commit()
    monkeypatch.setattr(client, "create_table", lambda row: away())
    with pytest.raises(MetastoreUnavailableError, match="no server"):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)


def test_one_looks_again_where_a_look_fails(
    client: OneRowClient, commit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LATE_SECONDS", 20.0)
    look, failures = client.get_table, [MetastoreUnavailableError("away"), MetastoreError("busy")]

    def failing(database: str, name: str) -> ttypes.Table:
        if failures:
            raise failures.pop()
        return look(database, name)

    def cut() -> None:
        client.get_table = failing  # type: ignore[method-assign]
        raise CUT

    client.after.append(cut)
    commit()
    assert failures == []


# ------------------------------------------------------------------- columns that the server does not like

DISLIKED = MetastoreError("The following columns have types incompatible with the existing columns: id")


def test_columns_that_the_server_dislikes_in_the_old_ones_places_are_put_in_after_those_are_out(
    client: OneRowClient, commit: Callable[..., None]
) -> None:
    client.before.append(fail(DISLIKED))
    commit(True)
    assert [(location(row), bool(row.sd.cols)) for row in client.sent] == [
        (NEW.location, True),
        (BASE.location, False),
        (NEW.location, True),
    ]
    assert location(client.row) == NEW.location
    assert all(each["expected_parameter_value"] == BASE.location for each in client.expected)


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (MetastoreUnavailableError("no server"), MetastoreUnavailableError, "no server"),
        (MODIFIED, CommitFailedError, "another commit was first"),
        (FAILED, MetastoreError, r"refuses the new columns \(.*disallow\.incompatible.*Nothing was changed"),
        (CUT, CommitFailedError, "its new version was not sent"),
    ],
)
def test_an_error_while_the_old_columns_are_taken_out_sends_no_new_version(
    client: OneRowClient, commit: Callable[..., None], error: Exception, expected: type[Exception], message: str
) -> None:
    client.before += [fail(DISLIKED), fail(error)]
    with pytest.raises(expected, match=message):
        commit(True)
    assert [location(row) for row in client.sent] == [NEW.location, BASE.location]
    assert location(client.row) == BASE.location and client.row is not None and client.row.sd.cols


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_lost_request_to_take_the_columns_out_is_waited_for_until_it_has_arrived(
    client: OneRowClient, commit: Callable[..., None], monkeypatch: pytest.MonkeyPatch, is_dropped: bool
) -> None:
    looks = []

    def arrive_late() -> None:
        look = client.get_table

        def later(database: str, name: str) -> ttypes.Table:
            looks.append(name)
            if len(looks) == 3:
                if is_dropped:
                    client.row = None
                else:
                    assert client.row is not None
                    client.row.sd.cols = []
            return look(database, name)

        client.get_table = later  # type: ignore[method-assign]
        raise CUT

    monkeypatch.setattr(answers, "_LATE_SECONDS", 20.0)
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.01))
    client.before += [fail(DISLIKED), arrive_late]
    with pytest.raises(CommitFailedError, match="its new version was not sent"):
        commit()
    assert len(looks) == 3


# ------------------------------------------------------------------------------------------------ creates


@pytest.mark.parametrize(
    ("found", "error", "expected"),
    [
        ("ours", CUT, MADE),
        ("ours before another", CUT, MADE),
        ("a later one", CUT, UNKNOWN),
        ("none", CUT, UNKNOWN),
        ("ours before another", FAILED, MADE),
        ("none", FAILED, MetastoreError),
        ("none", TableAlreadyExistsError("taken"), TableAlreadyExistsError),
        ("ours before another", TableAlreadyExistsError("taken"), MADE),
    ],
)
def test_what_became_of_a_create_is_what_the_row_proves(
    client: OneRowClient,
    monkeypatch: pytest.MonkeyPatch,
    found: str,
    error: Exception,
    expected: type[Exception] | None,
) -> None:
    def end() -> None:
        ROWS[found](client)
        raise error

    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.0))
    client.before.append(end)
    swaps = TableSwap(cast(HmsClient, client), RowSettings())
    if expected is None:
        swaps.create(NAME, NEW)
    else:
        with pytest.raises(expected, match=r"table db\.events|a listener failed") as told:
            swaps.create(NAME, NEW)
        assert type(told.value) is expected


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda row: row.parameters.pop("table_type"), "a table that is not an Iceberg table"),
        (lambda row: setattr(row, "tableType", "VIRTUAL_VIEW"), "a view"),
        (lambda row: None, "an Iceberg table"),
    ],
)
def test_a_create_tells_what_its_name_is_taken_by(client: OneRowClient, change: Any, kind: str) -> None:
    assert client.row is not None
    change(client.row)
    client.before.append(fail(TableAlreadyExistsError("taken")))
    with pytest.raises(TableAlreadyExistsError, match=rf"Cannot create table db\.events: {kind} of that name exists"):
        TableSwap(cast(HmsClient, client), RowSettings()).create(NAME, NEW)


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
