"""How a commit begins, and how long one that was beaten waits before it tries again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tenacity import RetryCallState, Retrying

from hms_iceberg.errors import CommitFailedError
from hms_iceberg.metastore import Identifier
from hms_iceberg.transaction.retry import Approach, Eagerness, Freshness, commit_policy, status_policy
from hms_iceberg.transaction.transaction import Created, CreatedOrReplaced, Existing, Transaction
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.table_settings import SetProperties
from tests.support import memory_metastore as outcomes
from tests.support.memory_metastore import InMemoryLease, InMemoryMetastore
from tests.support.tables import NAME, World, data_file, metadata


def waits_of(properties: dict[str, str], error: CommitFailedError, *at_once: Callable[[int], bool]) -> list[float]:
    """Seconds between the attempts of a commit that always loses."""
    waits: list[float] = []
    policy = commit_policy(properties, *at_once)
    policy.sleep = waits.append

    def lose() -> None:
        raise error

    with pytest.raises(CommitFailedError):
        policy(lose)
    return waits


def test_one_that_loses_again_and_again_waits_longer_but_is_not_left_behind() -> None:
    waits = waits_of({}, CommitFailedError("another one was first"))
    assert len(waits) == 20
    assert all(wait <= 0.1 * 1.3**number for number, wait in enumerate(waits))
    assert len(set(waits)) > 10, "jittered"


def test_no_wait_is_longer_than_the_table_says() -> None:
    properties = {"commit.retry.num-retries": "40", "commit.retry.max-wait-ms": "150"}
    waits = waits_of(properties, CommitFailedError("another one was first"))
    assert len(waits) == 40 and 0.1 < max(waits) <= 0.15


def test_one_that_others_wait_for_does_not_wait() -> None:
    assert set(waits_of({}, CommitFailedError("the lock is taken"), lambda attempt: True)) == {0.0}
    waits = waits_of({}, CommitFailedError("the lock is taken"), lambda attempt: attempt == 1)
    assert (waits[0], len(set(waits)) > 10) == (0.0, True)


def test_a_commit_that_goes_on_for_too_long_gives_up_whatever_tries_are_left() -> None:
    assert waits_of({"commit.retry.total-timeout-ms": "0"}, CommitFailedError("another one was first")) == []
    assert waits_of({"commit.retry.num-retries": "-3"}, CommitFailedError("another one was first")) == []
    limit = {"commit.retry.total-timeout-ms": "1000"}
    assert [_stops_after(commit_policy(limit), seconds) for seconds in (0.9, 1.1)] == [False, True]


def _stops_after(policy: Retrying, seconds: float) -> bool:
    state = RetryCallState(policy, None, (), {})
    state.outcome_timestamp = state.start_time + seconds
    return bool(policy.stop(state))


def test_one_looks_for_a_commit_as_often_and_as_long_as_the_table_says() -> None:
    names = ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms")
    for values, expected in (
        (("4", "100", "400", "60000"), [0.1, 0.2, 0.4, 0.4]),
        (("1", "0", "0", "60000"), [0.0]),
        (("-2", "100", "400", "60000"), []),
        (("4", "100", "400", "0"), []),
    ):
        policy = status_policy(
            {f"commit.status-check.{name}": value for name, value in zip(names, values, strict=True)}
        )
        waits: list[float] = []
        policy.sleep = waits.append
        assert policy(lambda: None) is None
        assert waits == expected
    policy = status_policy({"commit.status-check.total-timeout-ms": "1000"})
    assert [_stops_after(policy, seconds) for seconds in (0.9, 1.1)] == [False, True]


def test_without_retries_a_commit_begins_with_the_lock() -> None:
    for retries, first in (("0", Approach.LOCK), ("1", Approach.TRUST)):
        eagerness = Eagerness.of(Approach.TRUST, {"commit.retry.num-retries": retries})
        assert (eagerness.approach(1), eagerness.approach(2)) == (first, Approach.LOCK)
        assert eagerness.retries_without_waiting(1) is (first is Approach.TRUST)
        assert not eagerness.retries_without_waiting(2)
    assert not Eagerness.of(Approach.LOOK, {}).retries_without_waiting(1)


def test_a_version_that_was_current_a_moment_ago_is_trusted_and_one_that_others_change_is_locked() -> None:
    now = time.monotonic()
    assert Freshness().first_approach() is Freshness.of(now).first_approach() is Approach.TRUST
    assert Freshness.of(None).first_approach() is Freshness.of(now - 2).first_approach() is Approach.LOOK
    contended = Freshness(now - 2, is_contended=True)
    assert contended.first_approach() is contended.renewed().first_approach() is Approach.LOCK
    assert Freshness.of(now - 2).renewed().first_approach() is Approach.TRUST


@pytest.mark.parametrize(
    ("first", "blocks_others", "waits"),
    [(Approach.TRUST, False, False), (Approach.LOOK, True, False), (Approach.LOOK, False, True)],
)
def test_the_next_attempt_waits_unless_others_wait_for_it_or_the_first_only_trusted_its_version(
    first: Approach, blocks_others: bool, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.with_table(metadata(properties={"commit.retry.min-wait-ms": "60000"}))
    transaction = Transaction(NAME, Existing(world.version()), world.metastore, world.storage, first=first)
    transaction.add(FastAppend((data_file(),)))
    world.append(data_file())
    if first is Approach.LOOK:
        world.metastore.script.append(outcomes.conflict)
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    monkeypatch.setattr(InMemoryLease, "blocks_others", blocks_others)
    transaction.commit()
    assert transaction.attempts == 2 and len(world.live()) == 2
    assert (sum(waited) > 0) is waits


def test_a_table_is_locked_as_it_says_before_the_change_and_a_new_one_as_it_will_say() -> None:
    class Told(InMemoryMetastore):
        def lease(self, identifier: Identifier, properties: Mapping[str, str]) -> Any:
            told.append(properties["how"])
            return super().lease(identifier, properties)

    told: list[str] = []
    world = World(metastore=Told())
    world.metastore.create_namespace("db", {})
    Transaction(NAME, Created(metadata(properties={"how": "created"})), world.metastore, world.storage).commit()
    world.commit(SetProperties({"how": "changed"}))
    anew = metadata(properties={"how": "replaced"})
    replaced = CreatedOrReplaced(lambda: anew, lambda before: anew, world.version())
    Transaction(NAME, replaced, world.metastore, world.storage).commit()
    assert told == ["created", "created", "changed"]
