"""Caches of bounded size."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hms_iceberg.bounded_cache import BoundedCache


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache: BoundedCache[str] = BoundedCache(12, len)
    for key in "abcd":
        cache.put(key, key * 3)
    assert cache.get("a") == "aaa"
    cache.put("e", "eee")
    assert [cache.get(key) for key in "abcde"] == ["aaa", None, "ccc", "ddd", "eee"]
    cache.put("c", "c")  # another value of a key takes the place of the first, and its cost
    cache.put("f", "ff")
    assert [cache.get(key) for key in "adecf"] == ["aaa", "ddd", "eee", "c", "ff"]


def test_a_value_that_costs_more_than_a_quarter_is_not_kept() -> None:
    cache: BoundedCache[str] = BoundedCache(12, len)
    assert cache.get_or_make("a", lambda: "aaaa") == "aaaa" and cache.get("a") is None
    assert cache.get_or_make("a", lambda: "a") == cache.get_or_make("a", lambda: "b") == cache.pop("a") == "a"
    assert cache.pop("a") is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_lets_no_value_of_its_parent_go() -> None:
    """One that waits for threads as it goes, as a frame of polars may, would wait for ever."""
    script = """
import os
from hms_iceberg.bounded_cache import BoundedCache
class Waits:
    def __del__(self):
        if os.getpid() != parent:
            os._exit(3)
parent = os.getpid()
cache = BoundedCache(4)
cache.put("a", Waits())
child = os.fork()
if not child:
    os._exit(len(cache))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert len(cache) == 1
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_while_the_cache_is_used_leaves_one_that_can_be_used() -> None:
    script = """
import os
from hms_iceberg.bounded_cache import BoundedCache
cache = BoundedCache(4)
cache.put("a", 1)
with cache._lock:
    child = os.fork()
    if not child:
        os._exit(cache.get_or_make("a", lambda: 2))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
assert cache.get("a") == 1
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
