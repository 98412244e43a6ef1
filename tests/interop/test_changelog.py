"""Changelogs beside those of Apache Iceberg (Java), which knows them of tables without delete files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.peer_rows import arrow_rows, json_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COLUMNS = ["id", "city", "amount", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
STATEMENTS = (
    "insert into {0} values (1, 'Oslo', 1.5D), (2, 'Rome', cast('NaN' as double)), (3, null, 3D), (3, null, 3D)",
    "insert into {0} values (4, 'Bonn', 4D), (5, 'Oslo', null)",
    "delete from {0} where id in (2, 4)",
    "update {0} set amount = amount + 1 where city = 'Oslo'",
    "call ice.system.rewrite_data_files(table => '{0}', options => map('rewrite-all', 'true'))",
    "insert into {0} values (2, 'Rome', cast('NaN' as double))",
    "merge into {0} t using (select 1 as id, 'Rome' as city union all select 6, 'Ulm') s on t.id = s.id "
    "when matched then update set city = s.city "
    "when not matched then insert (id, city, amount) values (s.id, s.city, 6D)",
    "delete from {0} where id = 2",
)


def test_changes_are_those_of_java(iceberg_java: Any, catalog: Any, namespace: str) -> None:
    name = f"{namespace}.changes"
    java = f"ice.{name}"
    iceberg_java.sql(
        f"create table {java} (id bigint, city string, amount double) using iceberg partitioned by (city) "
        "tblproperties ('format-version' = '2')"
    )
    for statement in STATEMENTS:
        iceberg_java.sql(statement.format(java))
    table = catalog.load_table(name)
    first = table.snapshots()[0].snapshot_id
    start = {"from_snapshot_id_exclusive": first}
    java_start = f", options => map('start-snapshot-id', '{first}')"
    forms: tuple[tuple[str, dict[str, Any], list[str]], ...] = (
        ("", {}, COLUMNS),
        (f"{java_start}, identifier_columns => array('id')", {**start, "identifier_columns": ["id"]}, COLUMNS),
        (", net_changes => true", {"net_changes": True}, COLUMNS[:4]),
    )
    for arguments, options, columns in forms:
        call = f"call ice.system.create_changelog_view(table => '{java}', changelog_view => 'changes'{arguments})"
        iceberg_java.sql(call)
        wanted = json_rows(iceberg_java.sql(f"select {', '.join(columns)} from changes"))
        found = table.changelog_scan(**options).to_arrow().select(columns)
        assert arrow_rows(found) == wanted, arguments
    iceberg_java.sql("drop view changes")  # of the session, which other tests go on with
    iceberg_java.sql(f"drop table {java} purge")
