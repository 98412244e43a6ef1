"""Signs of life in the background."""

from __future__ import annotations

import time
from collections.abc import Callable

from hms_iceberg.errors import MetastoreError, MetastoreUnavailableError
from hms_iceberg.hms.locking.table_lock import Heartbeat, HeartbeatThread


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return condition()


def test_a_lock_beats_until_it_is_removed() -> None:
    thread, beats = HeartbeatThread(idle_seconds=0.05), []
    beat = Heartbeat(lambda: beats.append(time.monotonic()), 0.1, "lock 1")
    thread.add(beat)
    assert eventually(lambda: len(beats) >= 3 and beat.is_alive)
    thread.remove(beat)
    time.sleep(0.5)  # one may be on its way
    count = len(beats)
    time.sleep(0.2)
    assert len(beats) == count


def test_the_first_sign_is_due_after_half_of_the_interval() -> None:
    before = time.monotonic()
    beat = Heartbeat(lambda: None, 10.0, "lock 1")
    assert before + 5 <= beat.due <= time.monotonic() + 5


def test_a_lock_that_the_metastore_dropped_is_dead_at_once_and_beats_no_more() -> None:
    calls = []

    def refuse() -> None:
        calls.append(1)
        raise MetastoreError("No such lock 1")

    thread = HeartbeatThread(idle_seconds=0.05)
    beat = Heartbeat(refuse, 0.1, "lock 1")
    thread.add(beat)
    assert eventually(lambda: beat.failure is not None)
    assert not beat.is_alive
    assert "No such lock" in str(beat.failure)
    time.sleep(0.2)
    assert len(calls) == 1
    thread.remove(beat)


def test_a_metastore_that_is_away_for_a_moment_costs_no_lock() -> None:
    answers = iter([MetastoreUnavailableError("away"), None])

    def once() -> None:
        answer = next(answers, None)
        if answer is not None:
            raise answer

    beat = Heartbeat(once, 60.0, "lock 1")
    beat.send()
    assert beat.is_alive
    assert beat.due - time.monotonic() <= 1.0, "it is tried again soon"
    beat.send()
    assert beat.is_alive


def test_a_metastore_that_stays_away_for_the_interval_costs_the_lock() -> None:
    def away() -> None:
        raise MetastoreUnavailableError("away")

    beat = Heartbeat(away, 1.0, "lock 1")
    assert beat.is_alive
    time.sleep(1.1)
    assert not beat.is_alive, "even if nobody tried to send a sign"
    beat.send()
    assert isinstance(beat.failure, MetastoreUnavailableError)


def test_one_thread_serves_all_locks_and_comes_back_after_a_rest() -> None:
    thread, beats = HeartbeatThread(idle_seconds=0.02), []
    for number in range(2):
        beat = Heartbeat(lambda number=number: beats.append(number), 0.05, f"lock {number}")
        thread.add(beat)
        assert eventually(lambda number=number: number in beats)
        thread.remove(beat)
        time.sleep(0.1)
