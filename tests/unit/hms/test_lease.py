"""What a lease holds on to after an attempt was lost, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from hms_iceberg.errors import CommitFailedError, CommitStateUnknownError, LockError, MetastoreAnswerLostError
from hms_iceberg.hms.commit.lease import HiveLease
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.commit.pointer_kinds import TableSwap
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.rows.table_rows import RowSettings
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.spec.metadata.metadata_definition import set_properties
from tests.support.one_row_client import BASE, NAME, NEW, OTHERS, OneRowClient


class Lock:
    """A lock that may be taken, and may be lost."""

    def __init__(self, mode: str) -> None:
        self.excludes_all = mode == "true"
        self.is_free = True
        self.lost = False
        self.calls: list[str] = []

    def try_acquire(self) -> bool:
        self.calls.append("try")
        return self.is_free

    def acquire(self) -> None:
        self.calls.append("wait")

    def ensure_active(self) -> None:
        if self.lost:
            raise LockError("lost")

    def release(self) -> None:
        self.calls.append("release")


class Locks:
    """The locks that a lease took, in order."""

    def __init__(self) -> None:
        self.taken: list[Lock] = []
        self.names: list[str] = []
        self.is_free = True

    def mode(self, properties: Mapping[str, str]) -> str:
        return properties.get("engine.hive.lock-enabled", "true")

    def new_lock(self, identifier: Identifier, mode: str) -> Lock:
        self.taken.append(Lock(mode))
        self.taken[-1].is_free = self.is_free
        return self.taken[-1]

    def compares(self, lock: Lock) -> bool:
        return not lock.excludes_all

    def check_name(self, identifier: Identifier, properties: Mapping[str, str]) -> None:
        self.names.append(identifier[1])

    @property
    def calls(self) -> list[list[str]]:
        return [lock.calls for lock in self.taken]


@pytest.fixture
def client() -> OneRowClient:
    return OneRowClient()


@pytest.fixture
def locks() -> Locks:
    return Locks()


@pytest.fixture
def lease(client: OneRowClient, locks: Locks) -> HiveLease[MetadataVersion]:
    return make_lease(client, locks, {})


def make_lease(client: OneRowClient, locks: Locks, properties: Mapping[str, str]) -> HiveLease[MetadataVersion]:
    swap = TableSwap(cast(HmsClient, client), RowSettings())
    return HiveLease(NAME, swap, cast(LockChoice, locks), properties)


def switched(version: MetadataVersion, enabled: str) -> MetadataVersion:
    return replace(version, metadata=set_properties(version.metadata, {"engine.hive.lock-enabled": enabled}))


def test_an_attempt_that_finds_the_lock_taken_keeps_its_place_for_the_next(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient
) -> None:
    locks.is_free = False
    with pytest.raises(CommitFailedError, match="another commit is under way"):
        lease.swap(BASE, NEW)
    assert lease.blocks_others and client.sent == []
    client.show(OTHERS)
    lease.acquire()
    assert lease.load().metadata_location == OTHERS.location
    lease.swap(OTHERS, NEW)
    lease.release()
    lease.release()
    assert locks.calls == [["try", "wait", "release"]], "one lock, given back once"


def test_a_base_that_proves_old_under_the_lock_keeps_it_for_the_next_attempt(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient
) -> None:
    client.show(OTHERS)
    with pytest.raises(CommitFailedError, match="moved on"):
        lease.swap(BASE, NEW)
    assert lease.blocks_others
    lease.acquire()
    lease.swap(OTHERS, NEW)
    assert locks.calls == [["try"]]


def test_a_second_conflict_under_the_lock_comes_from_those_who_take_none_and_gives_it_back(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient
) -> None:
    lease.acquire()
    client.show(OTHERS)
    with pytest.raises(CommitFailedError):
        lease.swap(BASE, NEW)
    assert not lease.blocks_others
    assert locks.calls == [["wait", "release"]]


def test_without_a_lock_of_all_machines_a_conflict_lets_the_others_of_this_one_in(
    client: OneRowClient, locks: Locks
) -> None:
    base = switched(BASE, "false")
    lease = make_lease(client, locks, base.metadata.properties)
    client.show(OTHERS)
    with pytest.raises(CommitFailedError):
        lease.swap(base, NEW)
    assert not lease.blocks_others
    assert locks.calls == [["try", "release"]]


def test_a_lock_that_was_lost_is_not_kept(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient
) -> None:
    new_lock = locks.new_lock

    def lose(identifier: Identifier, mode: str) -> Lock:
        lock = new_lock(identifier, mode)
        lock.lost = True
        return lock

    locks.new_lock = lose  # type: ignore[method-assign]
    with pytest.raises(CommitFailedError, match="nothing was sent"):
        lease.swap(BASE, NEW)
    assert not lease.blocks_others and client.sent == []


def test_what_may_have_been_made_is_waited_for_under_the_lock_which_is_given_back_then(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    look = client.get_table

    def watch(database: str, name: str) -> Any:
        held.append(lease.blocks_others)
        return look(database, name)

    def lose_the_answer() -> None:
        client.get_table = watch  # type: ignore[method-assign]
        raise MetastoreAnswerLostError("cut")

    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.01))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 0.1)
    client.before.append(lose_the_answer)
    with pytest.raises(CommitStateUnknownError):
        lease.swap(BASE, NEW)
    assert len(held) > 3 and all(held)
    assert locks.calls == [["try", "release"]]


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_locks_that_were_switched_on_or_off_meanwhile_are_followed(
    client: OneRowClient, locks: Locks, enabled: str
) -> None:
    before = switched(BASE, "false" if enabled == "true" else "true")
    lease = make_lease(client, locks, before.metadata.properties)
    lease.acquire()
    with pytest.raises(CommitFailedError, match="switched"):
        lease.swap(switched(BASE, enabled), NEW)
    assert client.sent == [] and not lease.blocks_others
    lease.acquire()
    lease.swap(switched(BASE, enabled), NEW)
    assert [lock.excludes_all for lock in locks.taken] == [enabled == "false", enabled == "true"]


def test_a_row_that_was_read_before_the_lock_or_long_ago_is_read_again(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "compares", lambda lock: True)
    reads = count_reads(client)
    lease.load()
    lease.swap(BASE, NEW)
    assert len(reads) == 2, "the first was before the lock"
    lease.load()
    lease.swap(NEW, OTHERS)
    assert len(reads) == 3, "under the lock once is enough"
    lease.load()
    monkeypatch.setattr("hms_iceberg.hms.commit.lease._ROW_SECONDS", -1.0)
    lease.swap(OTHERS, BASE)
    assert len(reads) == 5


def test_a_row_that_was_read_before_the_lock_was_waited_for_is_read_again_and_one_without_comparison_always(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = count_reads(client)
    lease.acquire()
    lease.load()
    lease.swap(BASE, NEW)
    assert len(reads) == 2, "a server that does not compare tells the row last"
    lease.release()
    monkeypatch.setattr(locks, "compares", lambda lock: True)
    lease.load()
    lease.acquire()
    lease.swap(NEW, OTHERS)
    assert len(reads) == 4 and locks.calls[-1] == ["wait"]


def test_a_late_request_is_refused_only_where_the_last_swap_compared(client: OneRowClient, locks: Locks) -> None:
    unlocked = switched(BASE, "false")
    lease = make_lease(client, locks, BASE.metadata.properties)
    assert not lease.refuses_late
    lease.swap(unlocked, unlocked)  # nobody held a lock that was switched off
    assert lease.refuses_late and [lock.excludes_all for lock in locks.taken] == [False]
    client.row = None
    lease.swap(None, NEW)
    assert not lease.refuses_late and client.row is not None
    assert locks.names == ["events"]


def test_a_table_is_renamed_under_the_lock_that_was_acquired(
    lease: HiveLease[MetadataVersion], locks: Locks, client: OneRowClient
) -> None:
    with pytest.raises(AssertionError):
        lease.rename(("db", "renamed"))
    lease.acquire()
    lease.rename(("db", "renamed"))
    assert client.sent[-1].tableName == "renamed" and client.expected == [{}]
    assert locks.names == ["renamed"] * 2


def count_reads(client: OneRowClient) -> list[str]:
    reads: list[str] = []
    read: Callable[[str, str], Any] = client.get_table

    def counted(database: str, name: str) -> Any:
        reads.append(name)
        return read(database, name)

    client.get_table = counted  # type: ignore[method-assign]
    return reads
