"""Apache Iceberg's own runtime for Spark reads what we write, and filters it by our metrics, as ENGINES.md says."""

from __future__ import annotations

from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from tests.interop.engines.filters import filtered
from tests.interop.engines.matrix import cells, documented, outcome
from tests.interop.engines.tables import Written
from tests.support.peer_rows import json_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_java_reads_what_we_write_as_documented(catalog: Catalog, iceberg_java: Any, written: list[Written]) -> None:
    outcomes, seen = {}, {}
    for each in written:
        try:
            rows = json_rows(iceberg_java.sql(f"select * from ice.{each.name}"))
        except AssertionError as error:
            rows, seen[each.case.title] = None, str(error)[:300]
        else:
            seen[each.case.title] = [pair for pair in zip(each.rows, rows, strict=False) if pair[0] != pair[1]]
        outcomes[each.case.feature, each.case.variant] = outcome(each, None, rows)
        outcomes |= filtered(
            each, lambda where, name=each.name: json_rows(iceberg_java.sql(f"select * from ice.{name} where {where}"))
        )
    said = documented("Java")
    shown = {feature: cell for feature, cell in cells(outcomes).items() if said.get(feature) != cell}
    assert shown == {}, {title: seen[title] for title in seen if title.rpartition(", ")[0] in shown}
