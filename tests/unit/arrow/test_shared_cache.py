from __future__ import annotations

import random
import threading
from functools import partial

import pytest

from hms_iceberg.arrow.parallel import SharedCache


def test_a_value_is_computed_once_also_for_threads_that_ask_together() -> None:
    cache: SharedCache[str, int] = SharedCache()
    started, calls = threading.Event(), []

    def compute() -> int:
        calls.append(1)
        started.wait(5)
        return 7

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(cache.get("a", compute))) for _ in range(4)]
    for each in threads:
        each.start()
    started.set()
    for each in threads:
        each.join()
    assert (found, len(calls)) == ([7] * 4, 1)


def test_an_error_is_remembered_until_it_is_forgotten() -> None:
    cache: SharedCache[str, float] = SharedCache()
    for zero in (0, 1):
        with pytest.raises(ZeroDivisionError):
            cache.get("a", lambda zero=zero: 1 / zero)  # type: ignore[misc]
    cache.forget("a")
    assert cache.get("a", lambda: 2.0) == 2.0


def test_what_was_not_asked_for_longest_is_forgotten_beyond_the_bound() -> None:
    cache: SharedCache[str, bytes] = SharedCache(len, 10)
    computed = []

    def get(key: str, size: int = 4) -> None:
        cache.get(key, lambda: (computed.append(key), bytes(size))[1])

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert computed == ["a", "b", "c", "b"]
    get("large", 50)  # larger than the bound: kept as long as nothing else is computed
    get("large")
    get("a")
    get("large", 50)
    assert computed == ["a", "b", "c", "b", "large", "a", "large"]


def test_what_is_computed_now_is_not_forgotten_for_others_unless_somebody_says_so() -> None:
    cache: SharedCache[str, bytes] = SharedCache(len, 4)
    computed: list[str] = []

    def compute(key: str, *meanwhile: str, forgets: bool = False) -> bytes:
        computed.append(key)
        for each in meanwhile:
            cache.get(each, partial(compute, each))
        if forgets:
            cache.forget(key)
        return bytes(4)

    cache.get("a", lambda: compute("a", "b", "c"))
    cache.get("a", lambda: compute("a"))
    assert computed == ["a", "b", "c"]
    cache.get("d", lambda: compute("d", forgets=True))
    cache.get("d", lambda: compute("d"))
    assert computed == ["a", "b", "c", "d", "d"]


@pytest.mark.parametrize("bound", [0, 7, 10**9])
def test_what_is_kept_is_counted_right_whatever_is_asked_for_and_forgotten(bound: int) -> None:
    cache: SharedCache[int, bytes] = SharedCache(len, bound)
    kept: dict[int, int] = {}  # least recently used first
    rng = random.Random(bound)
    for _ in range(2_000):
        key, size, computed = rng.randrange(8), rng.randrange(5), []
        if rng.random() < 0.2:
            cache.forget(key)
            kept.pop(key, None)
            continue
        cache.get(key, lambda size=size, computed=computed: (computed.append(1), bytes(size))[1])  # type: ignore[misc]
        assert bool(computed) is (key not in kept)
        kept[key] = kept.pop(key, size)
        if computed:
            for old in [each for each in kept if each != key]:
                if sum(kept.values()) <= bound:
                    break
                del kept[old]


class CountedSize(int):
    """A size that counts how often sizes are added up or taken away."""

    steps = 0

    def _counted(self, other: int) -> CountedSize:
        CountedSize.steps += 1
        return CountedSize(int(self) + int(other))

    def _taken_away(self, other: int) -> CountedSize:
        CountedSize.steps += 1
        return CountedSize(int(self) - int(other))

    __add__ = __radd__ = _counted
    __sub__ = _taken_away


@pytest.mark.parametrize("bound", [100, 10**9], ids=["full", "roomy"])
def test_sizes_are_added_up_once_a_value_and_not_all_of_them_for_each(bound: int) -> None:
    cache: SharedCache[int, bytes] = SharedCache(lambda value: CountedSize(len(value)), bound)
    CountedSize.steps = 0
    for number in range(2_000):
        cache.get(number, lambda: b"x")
    assert 2_000 <= CountedSize.steps <= 6 * 2_000
