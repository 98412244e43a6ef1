"""After an erasure every version of a table has its rows but those, and no byte of these is left."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.maintenance import check_table
from hms_iceberg.table import Table
from tests.support.operations import BY_CITY, OPERATIONS, SCHEMA, begin
from tests.support.row_tables import create
from tests.support.spread import ALL

NOW = dt.timedelta(0)


def made(folder: Path, version: int = 2, **properties: str) -> Table:
    table = create(folder, version, schema=SCHEMA, spec=BY_CITY, **properties)
    begin(table)
    return table


def contents(table: Any) -> dict[int, list[dict[str, Any]]]:
    names = ["*", "_row_id", "_last_updated_sequence_number"] if table.metadata.format_version >= 3 else ["*"]
    scans = {each.snapshot_id: table.scan(snapshot_id=each.snapshot_id) for each in table.metadata.snapshots}
    return {id: sorted(scan.select(*names).to_arrow().to_pylist(), key=repr) for id, scan in scans.items()}


def changes(table: Any) -> list[dict[str, Any]]:
    """The changes of main's history."""
    scan = table.changelog_scan().select("*", "_change_type", "_commit_snapshot_id")
    found: list[dict[str, Any]] = scan.to_arrow().to_pylist()
    return sorted(found, key=repr)


# Each operation in one version that knows it, its neighbour in another; HMS_ICEBERG_TESTS=all tries all of them.
CASES = [
    (name, version)
    for number, (name, each) in enumerate(OPERATIONS.items())
    for version in each.versions
    if ALL or version == each.versions[number % len(each.versions)]
]


def is_forgotten(row: dict[str, Any]) -> bool:
    return "Köln" in row.values() or row.get("id", row.get("key")) in (1, 3)


@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_snapshot_has_its_rows_without_those_forgotten(tmp_path: Path, name: str, version: int) -> None:
    table = made(tmp_path, version, **OPERATIONS[name].properties)
    OPERATIONS[name].run(table)
    table.refresh()
    before, changed = contents(table), changes(table)
    found = check_table(table, record_counts=True).findings
    snapshots, refs = table.snapshots(), table.refs()
    result = table.forget("city = 'Köln' or id in (1, 3)", dry_run=False, after=NOW)
    expected = {id: [row for row in rows if not is_forgotten(row)] for id, rows in before.items()}
    assert contents(table.refresh()) == expected
    assert changes(table) == [row for row in changed if not is_forgotten(row)]
    assert [(each.snapshot_id, each.timestamp_ms, each.parent_snapshot_id) for each in table.snapshots()] == [
        (each.snapshot_id, each.timestamp_ms, each.parent_snapshot_id) for each in snapshots
    ]
    assert table.refs() == refs
    after = check_table(table, record_counts=True).findings
    assert {type(each) for each in after} <= {type(each) for each in found}
    assert result.report is not None and result.report["proof"]["matches"] == 0
