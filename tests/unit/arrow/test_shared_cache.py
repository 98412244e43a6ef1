from __future__ import annotations

import threading

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
