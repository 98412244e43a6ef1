"""First come, first served."""

from __future__ import annotations

import threading
import time

import pytest

from hms_iceberg.errors import LockTimeoutError
from hms_iceberg.hms.locking import fair_queue
from hms_iceberg.hms.locking.fair_queue import FairQueue, QueuePlace


def test_places_are_served_in_the_order_in_which_they_were_taken() -> None:
    queue = FairQueue()
    served: list[int] = []
    places = [queue.enter("t") for _ in range(8)]

    def work(number: int) -> None:
        places[number].wait(10)
        served.append(number)
        places[number].leave()

    threads = [threading.Thread(target=work, args=(number,)) for number in reversed(range(8))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert served == list(range(8))


def test_queues_of_different_tables_do_not_wait_for_each_other() -> None:
    queue = FairQueue()
    queue.enter("a")
    other = queue.enter("b")
    assert other.ahead() == 0
    other.wait(0)


def test_one_that_waits_too_long_gives_its_place_up_and_says_who_is_before_it() -> None:
    queue = FairQueue()
    first, second, third = (queue.enter("t") for _ in range(3))
    with pytest.raises(LockTimeoutError, match=rf"1 before this one; thread '{threading.current_thread().name}'"):
        second.wait(0.05)
    assert third.ahead() == 1
    first.leave()
    third.wait(0)


def test_leaving_twice_or_from_the_middle_harms_nobody() -> None:
    queue = FairQueue()
    first, second, third = (queue.enter("t") for _ in range(3))
    second.leave()
    second.leave()
    first.leave()
    first.leave()
    third.wait(0)
    third.leave()
    assert queue.enter("t").ahead() == 0


def test_one_who_is_about_to_leave_is_waited_for_by_the_next_one_alone() -> None:
    queue = FairQueue()
    first, second, third = (queue.enter("t") for _ in range(3))
    assert not second.is_first()
    first.is_leaving = True
    leaves = threading.Timer(0.05, first.leave)
    leaves.start()
    assert not third.is_first() and second.is_first()
    leaves.join()


def test_an_empty_queue_takes_no_memory() -> None:
    queue = FairQueue()
    queue.enter("t").leave()
    assert queue._places == {}


def test_who_waits_behind_one_that_stands_still_is_told_once_and_in_a_queue_that_moves_nobody_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_queue, "WARN_AFTER_SECONDS", 0.1)
    queue, told = FairQueue(), list[str]()
    places = [queue.enter("t") for _ in range(8)]

    def work(place: QueuePlace) -> None:
        place.wait(10, told.append)
        time.sleep(0.04)
        place.leave()

    threads = [threading.Thread(target=work, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == []
    still, second = queue.enter("t"), queue.enter("t")
    leaves = threading.Timer(0.5, still.leave)
    leaves.start()
    second.wait(10, told.append)
    leaves.join()
    assert len(told) == 1
    with pytest.raises(LockTimeoutError):
        queue.enter("t").wait(0.05, told.append)
    assert len(told) == 1
