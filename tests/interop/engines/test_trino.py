"""Trino and we change the same tables on one metastore."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table
from tests.interop.engines.filters import filtered
from tests.interop.engines.matrix import cells, documented, outcome
from tests.interop.engines.tables import NUMBERED, Written
from tests.interop.engines.trino import Trino, as_json
from tests.support.maven import UnavailableError
from tests.support.peer_rows import arrow_rows, json_rows

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


def texts(rows: Sequence[Sequence[Any]]) -> list[str]:
    return sorted(json.dumps(row) for row in rows)


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


@pytest.mark.parametrize("partitioned", ["", "partitioning = ARRAY['bucket(id, 2)', 'month(day)', 'name'],"])
@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "AVRO"])
def test_trino_changes_a_table_and_we_go_on_with_it(
    catalog: Catalog, trino: Trino, namespace: str, file_format: str, partitioned: str
) -> None:
    name = f"ice.{namespace}.t"
    location = f"{catalog.load_namespace_properties(namespace)['location']}/t"
    trino.sql(
        f"create table {name} (id bigint, name varchar, day date, price decimal(12, 2), at timestamp(6)) with "
        f"({partitioned} format = '{file_format}', location = '{location}')"
    )
    trino.sql(
        f"insert into {name} values (1, 'ä', date '1969-12-31', -0.01, timestamp '1969-12-31 23:59:58.5'), "
        "(2, null, null, null, null), (3, 'x=1', date '2024-02-29', 9999999999.99, timestamp '1582-10-10 00:00:00'), "
        "(4, '', date '0001-01-01', 0.00, timestamp '2262-01-01 00:00:00.000001'), "
        "(5, 'a%2Fb', date '9999-12-31', 1.50, timestamp '2024-02-29 12:34:56.789012')"
    )
    trino.sql(f"delete from {name} where id = 2")
    trino.sql(f"update {name} set price = price + 1, name = 'changed' where id = 5")
    trino.sql(
        f"merge into {name} t using (values (3, 'm'), (6, null)) s (id, name) on t.id = s.id when matched then update "
        "set name = s.name when not matched then insert (id, name) values (s.id, s.name)"
    )
    rows: list[list[Any]] = [
        [1, "ä", "1969-12-31", "-0.01", "1969-12-31T23:59:58.500000"],
        [3, "m", "2024-02-29", "9999999999.99", "1582-10-10T00:00:00"],
        [4, "", "0001-01-01", "0.00", "2262-01-01T00:00:00.000001"],
        [5, "changed", "9999-12-31", "2.50", "2024-02-29T12:34:56.789012"],
        [6, None, None, None, None],
    ]
    table = catalog.load_table(f"{namespace}.t")
    assert arrow_rows(table.scan().to_arrow()) == texts(rows) == trino_rows(trino, table)

    table.append(pa.table({"id": pa.array([7, 8], pa.int64()), "name": ["ours", None]}))
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id in (1, 8)")
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.add_column("more", "int")
    trino.sql(f"update {name} set more = 9 where title = 'ours'")
    table.refresh()
    kept = [[*row, None] for row in rows[1:]] + [[7, "ours", None, None, None, 9]]
    assert arrow_rows(table.scan().to_arrow()) == texts(kept) == trino_rows(trino, table)
    assert texts(row for row in kept if row[0] > 4) == trino_rows(trino, table, "where id > 4")
    trino.sql(f"alter table {name} execute optimize")
    assert arrow_rows(table.refresh().scan("id > 4").to_arrow()) == texts(row for row in kept if row[0] > 4)


def test_trino_reads_a_table_that_we_rewrote_and_expired(catalog: Catalog, trino: Trino, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", NUMBERED, properties={"write.delete.mode": "merge-on-read"})
    for start in (0, 10):
        table.append(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}))
    table.delete("id in (0, 3, 6)")
    table.maintenance.rewrite_data_files()
    table.maintenance.expire_snapshots().commit()
    assert trino_rows(trino, table) == arrow_rows(table.refresh().scan().to_arrow())


def test_times_before_1970_in_orc_files_of_trino_are_what_apache_iceberg_reads_in_them(
    catalog: Catalog, trino: Trino, iceberg_java: Any, namespace: str
) -> None:
    """Trino writes a fraction under a millisecond so that ORC's own readers find it a second late; see ENGINES.md."""
    name = f"{namespace}.early"
    location = f"{catalog.load_namespace_properties(namespace)['location']}/early"
    trino.sql(f"create table ice.{name} (id bigint, at timestamp(6)) with (format = 'ORC', location = '{location}')")
    values = [
        "1969-12-31 23:59:58.5",
        "1969-12-31 23:59:58.000001",
        "1950-06-01 00:00:00.000999",
        "1901-01-01 00:00:00",
    ]
    rows = ", ".join(f"({number}, timestamp '{value}')" for number, value in enumerate(values))
    trino.sql(f"insert into ice.{name} values {rows}")
    ours = arrow_rows(catalog.load_table(name).scan().to_arrow())
    assert ours == json_rows(iceberg_java.sql(f"select * from ice.{name}"))
    assert ours == texts(
        [
            [0, "1969-12-31T23:59:58.500000"],
            [1, "1969-12-31T23:59:59.000001"],
            [2, "1950-06-01T00:00:01.000999"],
            [3, "1901-01-01T00:00:00"],
        ]
    )
