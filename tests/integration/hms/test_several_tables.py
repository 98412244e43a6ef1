"""Transactions on several tables of a real metastore: all of it is seen or nothing, whatever fails or is killed."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.cli.main import cli
from hms_iceberg.errors import CommitConflictError, InvalidInputError, NoSuchTableError, UnsupportedError
from hms_iceberg.hms.commit.several_tables import unfinished_transactions
from hms_iceberg.hms.commit.several_tables.finishing import End
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.rows.transaction_marks import MARK
from hms_iceberg.maintenance import check_table, remove_orphan_files
from hms_iceberg.maintenance.check import consistency
from hms_iceberg.maintenance.doctor.metastore_health import examine_transactions
from hms_iceberg.processes import Process
from tests.support.commit_operations import QUICK, find_out_capability, outcome
from tests.support.killed_catalog import Killed, KilledAt
from tests.support.several_tables import ALTER, SCHEMA, Storm, give_back_locks, open_intents, peer_table, rows
from tests.support.thrift_proxy import Fault, ThriftProxy


@pytest.fixture(params=["true", "false"], ids=["lock", "compare-and-swap"])
def bank(request: pytest.FixtureRequest, metastore: EmbeddedMetastore) -> Iterator[Catalog]:
    properties = {"warehouse": metastore.warehouse, "iceberg.engine.hive.lock-enabled": request.param}
    with load_catalog("bank", type="hive", uri=metastore.uri, **properties) as catalog:
        yield catalog


@pytest.fixture
def names(bank: Catalog, namespace: str) -> list[str]:
    found = [f"{namespace}.{each}" for each in ("a", "b", "c")]
    for name in found:
        bank.create_table(name, SCHEMA, properties=QUICK).append(rows((1, 100)))
    return found


def amounts(catalog: Catalog, names: list[str]) -> list[int]:
    return [sum(each.scan().to_arrow()["amount"].to_pylist()) for each in catalog.load_tables(names)]


def marks(catalog: Catalog, names: list[str]) -> list[str | None]:
    return [catalog.metastore.load(tuple(each.split("."))).properties.get(MARK) for each in names]


def transfer(catalog: Catalog, names: list[str]) -> None:
    with catalog.transaction() as transaction:
        transaction.table(names[0]).append(rows((2, -30)))
        transaction.table(names[1]).update({"amount": 130}, "id = 1")


def test_changes_of_several_tables_are_one_commit(bank: Catalog, names: list[str]) -> None:
    transfer(bank, names)
    assert amounts(bank, names) == [70, 130, 100]
    assert marks(bank, names)[0] is None
    for name in names:
        bank.load_table(name).append(rows((9, 0)))
    assert open_intents(bank, names) == []
    assert marks(bank, names) == [None, None, None]


# ---------------------------------------------------------------------------------------------- killed


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished_transactions, "_OWNER_TIMEOUT_SECONDS", 0.1)


def killed_transfer(bank: Catalog, names: list[str], number: int | None) -> list[str]:
    """Transfers 30 from the first table to each other, and is killed after a call; the calls that were made."""
    with load_catalog("doomed", **bank.properties) as doomed:
        find_out_capability(doomed)
        killed = KilledAt(doomed, number)
        with suppress(Killed), doomed.transaction() as transaction:
            transaction.table(names[0]).append(rows((2, -30)))
            for name in names[1:]:
                transaction.table(name).append(rows((2, 30)))
        return killed.calls


def after_moves(calls: list[str]) -> range:
    """The numbers of the calls from the last file before the first move on."""
    return range(calls.index(ALTER) - 1, len(calls))


def check_transferred(bank: Catalog, names: list[str], before: list[int], what: str) -> list[int]:
    """Checks that both tables have a transfer or none has it; returns what they have."""
    found = amounts(bank, names)
    assert found in (before, [before[0] - 30, before[1] + 30]), what
    return found


def test_whoever_is_killed_at_any_call_leaves_all_or_nothing(bank: Catalog, names: list[str]) -> None:
    check_every_kill(bank, names[:2])


def check_every_kill(bank: Catalog, names: list[str]) -> None:
    """Kills a transfer between two tables after each call; all of it is seen or nothing, then and ever after."""
    calls = killed_transfer(bank, names, None)
    amount, ends = amounts(bank, names), set()
    for number in after_moves(calls):
        what = f"after call {number} of {calls}"
        killed_transfer(bank, names, number)
        found = check_transferred(bank, names, amount, what)
        ends.add(found == amount)
        bank.load_table(names[number % 2]).append(rows((9, 0)))
        assert amounts(bank, names) == found, what
        amount = found
        for intent in open_intents(bank, names):  # of an owner that was killed before the first move
            assert bank.metastore.unfinished.finish_intent(intent) is not End.TORN
        assert amounts(bank, names) == found, what
        assert open_intents(bank, names) == [], what
        assert marks(bank, names)[0] is None, what
    assert ends == {True, False}


def stopped_after_first_move(bank: Catalog, names: list[str]) -> None:
    calls = killed_transfer(bank, names, None)
    killed_transfer(bank, names, calls.index(ALTER))
    assert marks(bank, names)[0] is not None


def test_what_others_commit_on_top_of_an_open_transaction_is_kept_and_carries_it_forward(
    bank: Catalog, names: list[str]
) -> None:
    names = names[:2]
    stopped_after_first_move(bank, names)
    before = amounts(bank, names)
    assert sum(before) == 200
    give_back_locks(bank)
    peer = peer_table(bank, names[0])
    peer.append(rows((5, 7)))
    assert amounts(bank, names) == before, "others' commit is not seen before it is clear what it is on top of"
    bank.load_table(names[0]).append(rows((6, 1)))
    assert amounts(bank, names) == [before[0] - 30 + 7 + 1, before[1] + 30]
    assert peer.refresh().scan().to_arrow()["amount"].to_pylist().count(7) == 1
    assert open_intents(bank, names) == []


def test_a_transaction_is_taken_back_if_others_committed_to_what_had_not_moved(bank: Catalog, names: list[str]) -> None:
    names = names[:2]
    stopped_after_first_move(bank, names)
    before = amounts(bank, names)
    give_back_locks(bank)
    peer_table(bank, names[1]).append(rows((5, 7)))
    assert amounts(bank, names) == [before[0], before[1] + 7]
    assert len(open_intents(bank, names)) == 1
    bank.load_table(names[0]).append(rows((6, 1)))
    assert amounts(bank, names) == [before[0] + 1, before[1] + 7]
    assert open_intents(bank, names) == []


def test_a_transaction_that_others_have_torn_is_told_and_nothing_of_theirs_is_undone(
    bank: Catalog, names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    names = names[:2]
    stopped_after_first_move(bank, names)
    before = amounts(bank, names)
    give_back_locks(bank)
    for name in names:
        peer_table(bank, name).append(rows((5, 7)))
    bank.load_table(names[0]).append(rows((6, 1)))
    assert amounts(bank, names) == [before[0] - 30 + 7 + 1, before[1] + 7]
    assert "is torn" in caplog.text


def test_a_conflict_replays_the_table_that_moved_on_alone(bank: Catalog, names: list[str]) -> None:
    transaction = bank.transaction()
    for name, amount in zip(names, (-30, 10, 20), strict=True):
        transaction.table(name).append(rows((2, amount)))
    bank.load_table(names[1]).append(rows((3, 5)))
    made = transaction.commit_transaction()
    assert amounts(bank, names) == [70, 115, 120]
    first = made[tuple(names[0].split("."))]
    files = [each.location for each in first.storage.list(f"{first.location()}/metadata")]
    assert len([each for each in files if each.endswith(".metadata.json")]) == 3, "it was written once"


def test_a_change_that_cannot_be_replayed_leaves_every_table_as_it_was(bank: Catalog, names: list[str]) -> None:
    transaction = bank.transaction()
    transaction.table(names[0]).append(rows((2, -30)))
    transaction.table(names[1]).update({"amount": 130}, "id = 1")
    bank.load_table(names[1]).delete("id = 1")
    with pytest.raises(CommitConflictError, match=names[1]):
        transaction.commit_transaction()
    assert amounts(bank, names) == [100, 0, 100]
    assert open_intents(bank, names) == []


def test_bad_input_is_refused_before_anything_is_written(bank: Catalog, catalog: Catalog, names: list[str]) -> None:
    with bank.transaction() as transaction:
        first = transaction.table(names[0])
        assert transaction.table(names[0]) is first
        with pytest.raises(InvalidInputError, match="twice"):
            transaction.table(names[0].upper())
        with pytest.raises(InvalidInputError, match="not of catalog"):
            transaction.table(catalog.load_table(names[1]))
        with pytest.raises(NoSuchTableError):
            transaction.table(f"{names[0]}_not_there")
        with pytest.raises(InvalidInputError, match="commit that"):
            first.commit_transaction()
    bank.register_table(f"{names[0]}_copy", bank.load_table(names[0]).metadata_location)
    with bank.transaction() as transaction:
        transaction.table(names[0])
        with pytest.raises(InvalidInputError, match="twice"):
            transaction.table(f"{names[0]}_copy")
    with pytest.raises(InvalidInputError, match="Begin a new one"):
        transaction.table(names[1])


def test_a_table_that_is_dropped_or_renamed_in_the_middle_stops_all(bank: Catalog, names: list[str]) -> None:
    first, dropped, renamed = names
    for name in (dropped, renamed):
        transaction = bank.transaction()
        transaction.table(first).append(rows((2, -30)))
        transaction.table(name).append(rows((2, 30)))
        if name == dropped:
            bank.drop_table(name)
        else:
            bank.rename_table(name, f"{name}_renamed")
        with pytest.raises(NoSuchTableError, match=name):
            transaction.commit_transaction()
        assert amounts(bank, [first]) == [100]


def test_a_branch_that_is_dropped_in_the_middle_stops_all(bank: Catalog, names: list[str]) -> None:
    branched = bank.load_table(names[1])
    snapshot = branched.current_snapshot()
    assert snapshot is not None
    branched.manage_snapshots().create_branch(snapshot.snapshot_id, "audit").commit()
    transaction = bank.transaction()
    transaction.table(names[0]).append(rows((2, -30)))
    transaction.table(names[1]).append(rows((2, 30)), branch="audit")
    branched.refresh().manage_snapshots().remove_branch("audit").commit()
    with pytest.raises(
        CommitConflictError, match=f"branch 'audit' of table {names[1]}: a concurrent commit dropped it"
    ):
        transaction.commit_transaction()
    assert amounts(bank, [names[0]]) == [100] and "audit" not in branched.refresh().refs()


def test_tables_in_folders_have_no_such_transaction(tmp_path: Path) -> None:
    with (
        load_catalog("folders", type="hadoop", warehouse=str(tmp_path)) as folders,
        pytest.raises(UnsupportedError, match="folders"),
    ):
        folders.transaction()


def test_orphan_removal_spares_what_an_open_transaction_names_and_finishes_old_ones(
    bank: Catalog, names: list[str]
) -> None:
    stopped_after_first_move(bank, names)
    before = amounts(bank, names)
    give_back_locks(bank)
    hour = dt.timedelta(hours=1)
    for name in names:  # one has moved, one has not, and one decides
        table = bank.load_table(name)
        found = remove_orphan_files(table, older_than=dt.datetime.now() + hour, nobody_writes=True, dry_run=True)
        assert found.locations == (), name
    peer_table(bank, names[0]).append(rows((5, 7)))
    remove_orphan_files(bank.load_table(names[1]), older_than=dt.datetime.now() + hour, nobody_writes=True)
    assert amounts(bank, names) == before, "it is finished where its intent is"
    remove_orphan_files(bank.load_table(names[2]), older_than=dt.datetime.now() + hour, nobody_writes=True)
    assert amounts(bank, names) == [before[0] - 30 + 7, before[1] + 30, before[2] + 30]


def test_doctor_check_and_the_list_of_locks_tell_of_what_is_not_finished(
    bank: Catalog, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_after_first_move(bank, names)

    def told() -> list[list[str]]:
        doctor = [str(each) for each in examine_transactions(bank.metastore.table_rows.rows())]
        checked = [str(each) for name in names for each in check_table(bank.load_table(name)).findings]
        locks = CliRunner().invoke(cli, ["locks", "list", names[0].partition(".")[0], "--uri", bank.properties["uri"]])
        assert locks.exit_code == 0
        return [
            [each for each in lines if "ransaction" in each] for lines in (doctor, checked, locks.output.splitlines())
        ]

    of_doctor, of_check, of_locks = told()
    assert any(names[0] in each and names[2] in each for each in of_doctor)
    assert of_check == [], "its owner, this process, lives"
    assert [names[0] in each and names[2] in each for each in of_locks] == [True]
    with monkeypatch.context() as patch:
        patch.setattr(Process, "may_be_alive", lambda _: False)
        assert [names[2] in each for each in told()[1]] == [True]
    with monkeypatch.context() as patch:
        patch.setattr(consistency, "_OPEN_SECONDS", -5)
        # That of the table that has moved and that of the one that decides; no file tells of the third.
        assert [names[2] in each for each in told()[1]] == [True, True]
    bank.load_table(names[0]).append(rows((6, 1)))
    assert told() == [[each for each in of_doctor if names[0] not in each], [], []]


# ---------------------------------------------------------------------------------------------- a network that fails


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late requests are waited for a little only."""
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.02, 0.05))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 0.1)


@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, Fault.DROP_ANSWER, Fault.LATE_REQUEST])
def test_what_is_told_of_a_transaction_over_a_network_that_fails_is_true(
    bank: Catalog, names: list[str], metastore: EmbeddedMetastore, fault: Fault, hurried: None
) -> None:
    names = names[:2]
    for number in range(3):  # the two moves, and the mark that is removed
        amount = amounts(bank, names)
        with (
            ThriftProxy(metastore.port, late_seconds=0.3) as proxy,
            load_catalog("harmed", **{**bank.properties, "uri": proxy.uri}) as harmed,
        ):
            find_out_capability(harmed)
            proxy.on(ALTER, fault, skip=number)
            reported = outcome(lambda harmed=harmed: transfer_again(harmed, names))
            found = check_transferred(bank, names, amount, f"{fault} of alter {number}")
            proxy.heal()
        assert reported == "unknown" or (found != amount) == (reported == "made"), f"{fault} of alter {number}"
        assert amounts(bank, names) == found
        for name in names:
            bank.load_table(name).append(rows((9, 0)))
        assert amounts(bank, names) == found, f"after {fault} of alter {number}"
        assert open_intents(bank, names) == []


def transfer_again(catalog: Catalog, names: list[str]) -> None:
    with catalog.transaction() as transaction:
        transaction.table(names[0]).append(rows((2, -30)))
        transaction.table(names[1]).append(rows((2, 30)))


# ---------------------------------------------------------------------------------------------- at random


ROUNDS, SEED = int(os.environ.get("SEVERAL_ROUNDS", "6")), int(os.environ.get("SEVERAL_SEED", "1"))


# Threads of a killed owner die too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_random_transactions_with_kills_and_commits_of_others_are_seen_whole(
    bank: Catalog,
    metastore: EmbeddedMetastore,
    namespace: str,
    hurried: None,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    storm = Storm(bank, metastore, namespace, [lambda name: peer_table(bank, name).append(rows((0, 0)))], SEED)
    storm.run(ROUNDS)
    record_property("ends", dict(storm.told))
    assert storm.reads > 0
    assert "is torn" not in caplog.text
