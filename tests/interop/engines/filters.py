"""Filters whose rows engines find by our bounds and partition values: too narrow ones would lose rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.interop.engines.matrix import outcome
from tests.interop.engines.tables import Written

FILTERS: dict[str, dict[str, Callable[[dict[str, Any]], bool]]] = {
    "Changed partitions": {
        "id >= 15": lambda row: row["id"] >= 15,
        "price > 60": lambda row: row["price"] is not None and float(row["price"]) > 60,
        "name = 'x=1'": lambda row: row["name"] == "x=1",
        "name is null": lambda row: row["name"] is None,
    },
    "Values": {
        "id = 9223372036854775807": lambda row: row["id"] == 2**63 - 1,
        "price < -9999999": lambda row: row["price"] is not None and float(row["price"]) < -9999999,
        "name = ''": lambda row: row["name"] == "",
        "small > 7": lambda row: row["small"] is not None and row["small"] > 7,
    },
}


def filtered(written: Written, read: Callable[[str], Sequence[str] | None]) -> dict[tuple[str, str], str]:
    """The outcome of all filters of a table, as a feature of its own; nothing where it has none.

    Args:
        written: the table.
        read: the rows of it that a filter keeps, or None if the engine refuses.
    """
    results = set()
    for where, holds in FILTERS.get(written.case.feature, {}).items():
        kept = [row for row in written.rows if holds(dict(zip(written.columns, json.loads(row), strict=True)))]
        results.add(outcome(written, None, read(where), kept))
    if not results:
        return {}
    worst = next(each for each in ("wrong", "no", "yes") if each in results)
    return {(f"{written.case.feature}, filtered", written.case.variant): worst}
