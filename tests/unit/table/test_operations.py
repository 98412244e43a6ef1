"""Every operation on every format version leaves a consistent table, and rows that keep their identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.maintenance import check_table
from hms_iceberg.table import Table
from tests.support.operations import BY_CITY, OPERATIONS, SCHEMA, begin
from tests.support.row_tables import create

CASES = [(name, version) for name, operation in OPERATIONS.items() for version in operation.versions]


def lineage(table: Table) -> dict[int, tuple[Any, ...]]:
    """Key, row id and last update of the live rows."""
    key = table.schema().find_column_name(1)
    assert key is not None
    found = table.scan().select(key, "_row_id", "_last_updated_sequence_number").to_arrow()
    return {each[0]: each[1:] for each in zip(*(column.to_pylist() for column in found.columns), strict=True)}


@pytest.mark.parametrize(("name", "version"), CASES)
def test_an_operation_leaves_a_consistent_table(tmp_path: Path, name: str, version: int) -> None:
    operation = OPERATIONS[name]
    table = create(tmp_path, version, schema=SCHEMA, spec=BY_CITY, **operation.properties)
    begin(table)
    operation.run(table)
    report = check_table(table.refresh(), record_counts=True)
    assert report.findings == ()
    assert (report.metadata_location, report.snapshots) == (table.metadata_location, len(table.snapshots()))
    assert table.metadata.format_version >= version


@pytest.mark.parametrize("name", [name for name, version in CASES if version == 3])
def test_rows_keep_their_identity_through_an_operation(tmp_path: Path, name: str) -> None:
    operation = OPERATIONS[name]
    table = create(tmp_path, 3, schema=SCHEMA, spec=BY_CITY, **operation.properties)
    begin(table)
    before = lineage(table)
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    operation.run(table)
    after = lineage(table)
    ids = [row_id for row_id, _ in after.values()]
    assert len(set(ids)) == len(ids)
    assert table.metadata.next_row_id is not None and max(ids) < table.metadata.next_row_id
    found = {row.get("id", row.get("key")): row for row in table.scan().to_arrow().to_pylist()}
    for key in before.keys() & after.keys():
        assert after[key][0] == before[key][0] or name == "equality_deletes"  # they end a row's identity
        if all(found[key].get(column) == value for column, value in rows[key].items() if column in found[key]):
            assert after[key][1] == before[key][1]
