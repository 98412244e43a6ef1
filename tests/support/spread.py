"""How much of a long search one test run takes: a spread of it, or all with HMS_ICEBERG_TESTS=all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ALL = os.environ.get("HMS_ICEBERG_TESTS") == "all"


SEED = int(os.environ.get("HMS_ICEBERG_SEED", "0x765cab5bd9334f761bfd553c890c5d759f763741"), 0)
"""Chooses the samples, and what is drawn at random: the same for every commit, so that a test that passed passes again.
`HMS_ICEBERG_SEED=7` takes others."""


def changes(turn: int, every: int) -> Iterable[int]:
    """After how many changes to die, without an end: each number, or `every`-th ones, other ones for every seed.

    Tests that differ in `turn` share the numbers among them.
    """
    return count() if ALL else count((turn + SEED) % every, every)


def covering(tests: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Of the cases of one test, as few as have each value of each parameter in one of them.

    Args:
        tests: the cases, in their order.
    """
    values = {test: {(name, repr(value)) for name, value in test.callspec.params.items()} for test in tests}
    missing, kept = set().union(*values.values()), set()
    while missing:
        best = max(tests, key=lambda test: len(values[test] & missing))
        missing -= values[best]
        kept.add(best)
    return [test for test in tests if test in kept]
