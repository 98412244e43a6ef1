"""Apache Iceberg's own runtime on Spark, whose rows say whether a fault is ours or an engine's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.engines.filters import filtered
from tests.interop.engines.matrix import cells, documented, outcome
from tests.interop.engines.tables import Written
from tests.support.peer_rows import json_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.whole]


def test_apache_iceberg_reads_what_we_write_as_documented(iceberg_java: Any, written: list[Written]) -> None:
    def read(name: str, where: str = "true") -> list[str]:
        return json_rows(iceberg_java.sql(f"select * from ice.{name} where {where}"))

    outcomes, seen = {}, {}
    for each in written:
        try:
            rows = read(each.name)
        except AssertionError as error:
            rows, seen[each.case.title] = None, str(error)
        else:
            seen[each.case.title] = [pair for pair in zip(each.rows, rows, strict=False) if pair[0] != pair[1]]
            outcomes |= filtered(each, lambda where, name=each.name: read(name, where))
        outcomes[each.case.feature, each.case.variant] = outcome(each, None, rows)
    said = documented("Spark")
    shown = {feature: cell for feature, cell in cells(outcomes).items() if said.get(feature) != cell}
    assert shown == {}, {title: seen[title] for title in seen if title.rpartition(", ")[0] in shown}
