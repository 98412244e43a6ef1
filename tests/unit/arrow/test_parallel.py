from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hms_iceberg.arrow.parallel import SharedCache, default_workers, read_in_order


def batch(number: int, rows: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([number] * rows, pa.int64())})


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [each.column(0)[0].as_py() for each in batches]


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_batches_keep_the_order_of_their_items(workers: int) -> None:
    def read(item: int) -> Iterator[pa.RecordBatch]:
        time.sleep(0.002 * (5 - item % 5))
        for part in range(item % 3):
            yield batch(item * 10 + part)

    wanted = [item * 10 + part for item in range(30) for part in range(item % 3)]
    assert numbers(read_in_order(range(30), read, workers, 1 << 20)) == wanted


def test_waiting_batches_are_bounded() -> None:
    made = []

    def read(item: int) -> Iterator[pa.RecordBatch]:
        for part in range(100):
            made.append(part)
            yield batch(part)

    batches = read_in_order(range(3), read, 2, buffer_bytes=1000)
    next(batches)
    time.sleep(0.1)
    assert len(made) < 60
    assert len(list(batches)) == 299


def test_an_error_of_a_worker_comes_after_the_batches_before_it() -> None:
    def read(item: int) -> Iterator[pa.RecordBatch]:
        yield batch(item)
        if item == 1:
            raise ValueError("item 1 is bad")

    batches = read_in_order(range(4), read, 2, 1 << 20)
    assert [next(batches).column(0)[0].as_py() for _ in range(2)] == [0, 1]
    with pytest.raises(ValueError, match="item 1 is bad"):
        next(batches)


def test_workers_stop_when_the_reader_goes_away() -> None:
    def read(item: int) -> Iterator[pa.RecordBatch]:
        while True:
            yield batch(item)

    before = set(threading.enumerate())
    batches = read_in_order(iter(range(1_000_000)), read, 3, 1000)
    next(batches)
    batches.close()
    assert set(threading.enumerate()) <= before


def test_items_are_taken_only_a_few_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    batches = read_in_order(items(), lambda item: iter([batch(item)]), 2, 1 << 20)
    next(batches)
    assert len(taken) <= 6
    batches.close()


def test_there_are_no_more_workers_than_items() -> None:
    assert default_workers(0) == 1
    assert default_workers(1, remote=True) == 1
    assert default_workers(1000, remote=True) >= 8


def test_a_memo_computes_once_for_all_threads_and_remembers_errors() -> None:
    cache: SharedCache[str, int] = SharedCache()
    calls = []

    def compute() -> int:
        calls.append(1)
        time.sleep(0.02)
        return 5

    threads = [threading.Thread(target=lambda: cache.get("k", compute)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (cache.get("k", compute), len(calls)) == (5, 1)
    cache.forget("k")
    assert (cache.get("k", compute), len(calls)) == (5, 2)

    def fail() -> int:
        raise OSError("gone")

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            cache.get("other", fail)


def test_a_stream_that_is_forgotten_by_one_of_its_own_threads_ends_without_a_word() -> None:
    """As the garbage collector does it, which runs in any thread."""
    streams: list[Iterator[pa.RecordBatch]] = []
    forgotten = threading.Event()
    may_forget = threading.Event()

    def read(item: int) -> Iterator[pa.RecordBatch]:
        if item == 1:
            may_forget.wait(10)
            streams.clear()
            forgotten.set()
        yield batch(item)

    streams.append(read_in_order(range(4), read, 2, 1 << 20))
    next(streams[0])
    may_forget.set()
    assert forgotten.wait(10)
