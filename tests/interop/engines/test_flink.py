"""Flink and we change the same tables on one metastore, with upserts and equality deletes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table
from tests.interop.engines.filters import filtered
from tests.interop.engines.flink import Flink
from tests.interop.engines.matrix import cells, documented, outcome
from tests.interop.engines.tables import Written
from tests.support.maven import UnavailableError
from tests.support.peer_rows import arrow_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.whole]


@pytest.fixture(scope="module")
def flink(metastore: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    try:
        with Flink(metastore.uri, str(metastore.warehouse), tmp_path_factory.mktemp("flink")) as engine:
            yield engine
    except UnavailableError as error:
        pytest.skip(str(error))


def flink_rows(flink: Flink, name: str, where: str = "") -> list[str]:
    return texts(flink.sql(f"select * from ice.{name} {where}"))


def texts(rows: Sequence[Sequence[Any]]) -> list[str]:
    return sorted(json.dumps(row) for row in rows)


def kinds_of_deletes(table: Table) -> set[str]:
    return {file.content.name for task in table.scan().plan_files() for file in task.delete_files}


def test_flink_reads_what_we_write_as_documented(flink: Flink, written: list[Written]) -> None:
    outcomes, seen = {}, {}
    for each in written:
        try:
            rows = flink_rows(flink, each.name)
        except AssertionError as error:
            rows, seen[each.case.title] = None, str(error)
        else:
            seen[each.case.title] = [pair for pair in zip(each.rows, rows, strict=False) if pair[0] != pair[1]]
        outcomes[each.case.feature, each.case.variant] = outcome(each, None, rows)
        outcomes |= filtered(each, lambda where, name=each.name: flink_rows(flink, name, f"where {where}"))
    said = documented("Flink")
    shown = {feature: cell for feature, cell in cells(outcomes).items() if said.get(feature) != cell}
    assert shown == {}, {title: seen[title] for title in seen if title.rpartition(", ")[0] in shown}


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_flink_upserts_into_a_table_and_we_go_on_with_it(
    catalog: Catalog, flink: Flink, namespace: str, file_format: str, version: str
) -> None:
    name = f"{namespace}.t"
    flink.sql(
        f"create table ice.{name} (id bigint, name string, price decimal(9, 2), moment timestamp(6), primary key (id) "
        f"not enforced) with ('format-version'='{version}', 'write.upsert.enabled'='true', "
        f"'write.format.default'='{file_format}')"
    )

    def upsert(values: str) -> None:
        flink.sql(
            f"insert into ice.{name} select id, name, cast(price as decimal(9, 2)), cast(moment as timestamp(6)) from "
            f"(values {values}) as s (id, name, price, moment)",
            "stream",
        )

    early = "timestamp '1969-12-31 23:59:58.5'"
    upsert(f"(1, 'a', 1.5, {early}), (2, cast(null as string), 2.5, {early}), (3, '', -0.01, {early})")
    upsert(f"(2, 'changed', 9.99, {early}), (4, 'new', 0.0, timestamp '1600-02-29 00:00:00')")
    moment = "1969-12-31T23:59:58.500000"
    rows = [
        [1, "a", "1.50", moment],
        [2, "changed", "9.99", moment],
        [3, "", "-0.01", moment],
        [4, "new", "0.00", "1600-02-29T00:00:00"],
    ]
    table = catalog.load_table(name)
    assert "EQUALITY_DELETES" in kinds_of_deletes(table)
    assert arrow_rows(table.scan().to_arrow()) == texts(rows) == flink_rows(flink, name)

    table.append(pa.table({"id": pa.array([5, 6], pa.int64()), "name": ["ours", None]}))
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id in (1, 6)")
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([3], pa.int64())}), ["id"])
    upsert(f"(5, 'theirs', 1.0, {early})")
    kept = [*rows[1:2], *rows[3:], [5, "theirs", "1.00", moment]]
    assert arrow_rows(table.refresh().scan().to_arrow()) == texts(kept) == flink_rows(flink, name)

    table.maintenance.rewrite_data_files()
    assert arrow_rows(table.refresh().scan().to_arrow()) == texts(kept) == flink_rows(flink, name)


def test_a_changing_result_of_flink_leaves_its_last_rows(catalog: Catalog, flink: Flink, namespace: str) -> None:
    """A streaming aggregate updates its rows many times: deletes by position and by key in one commit."""
    name = f"{namespace}.t"
    flink.sql(
        f"create table ice.{name} (city string, total bigint, primary key (city) not enforced) with "
        "('format-version'='2', 'write.upsert.enabled'='true')"
    )
    values = ", ".join(f"('c{number % 3}', cast({number} as bigint))" for number in range(30))
    flink.sql(
        f"insert into ice.{name} select city, sum(n) from (values {values}) as s (city, n) group by city", "stream"
    )
    expected = [[f"c{rest}", sum(range(rest, 30, 3))] for rest in range(3)]
    assert arrow_rows(catalog.load_table(name).scan().to_arrow()) == texts(expected) == flink_rows(flink, name)
