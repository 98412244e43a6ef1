"""How much of a long search one test run takes: a spread of it, or all with HMS_ICEBERG_TESTS=all."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ALL = os.environ.get("HMS_ICEBERG_TESTS") == "all"


def _number_of_commit() -> int:
    """The number of the checked-out commit, which chooses the sample; 0 outside of a checkout."""
    git = shutil.which("git")
    if git is None:
        return 0
    told = subprocess.run([git, "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True)
    return int(told.stdout.strip() or "0", 16)


SEED = _number_of_commit()
"""Chooses other samples for every commit."""


def changes(turn: int, every: int) -> Iterable[int]:
    """After how many changes to die, without an end: each number, or `every`-th ones, other ones for every commit.

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
