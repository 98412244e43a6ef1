"""How much of a long search one test run takes: a spread of it, or all with HMS_ICEBERG_FAULTS=all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import count

ALL = os.environ.get("HMS_ICEBERG_FAULTS") == "all"


def changes(turn: int, every: int) -> Iterable[int]:
    """After how many changes to die, without an end: each number, or from `turn` on `every`-th ones.

    Tests that differ in `turn` share the numbers among them.
    """
    return count() if ALL else count(turn, every)
