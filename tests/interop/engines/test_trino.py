"""Trino reads what we write, as ENGINES.md says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table
from tests.interop.engines.filters import filtered
from tests.interop.engines.matrix import cells, documented, outcome
from tests.interop.engines.tables import Written
from tests.interop.engines.trino import Trino, as_json
from tests.support.maven import UnavailableError

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.whole]


@pytest.fixture(scope="module")
def trino(metastore: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    try:
        with Trino(metastore.uri, tmp_path_factory.mktemp("trino")) as server:
            yield server
    except UnavailableError as error:
        pytest.skip(str(error))


def trino_rows(trino: Trino, table: Table, where: str = "") -> list[str]:
    kinds = [field.field_type for field in table.schema().fields]
    return as_json(trino.sql(f"select * from ice.{'.'.join(table.name())} {where}"), kinds)


def test_trino_reads_what_we_write_as_documented(catalog: Catalog, trino: Trino, written: list[Written]) -> None:
    outcomes, seen = {}, {}
    for each in written:
        table = catalog.load_table(each.name)
        try:
            rows = trino_rows(trino, table)
        except AssertionError as error:
            rows, seen[each.case.title] = None, str(error)
        else:
            seen[each.case.title] = [pair for pair in zip(each.rows, rows, strict=False) if pair[0] != pair[1]]
        outcomes[each.case.feature, each.case.variant] = outcome(each, None, rows)
        outcomes |= filtered(each, lambda where, table=table: trino_rows(trino, table, f"where {where}"))
    said = documented("Trino")
    shown = {feature: cell for feature, cell in cells(outcomes).items() if said.get(feature) != cell}
    assert shown == {}, {title: seen[title] for title in seen if title.rpartition(", ")[0] in shown}
