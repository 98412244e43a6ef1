"""Arguments of another type than they should be are refused by name, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import ConfigurationError, InvalidInputError
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables

ROWS = pa.table({"id": [1], "city": ["Oslo"]})

WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "columns": (lambda table: table.scan(selected_fields="id"), r"selected_fields: .*\('id',\), got 'id'"),
    "numbers as columns": (lambda table: table.scan().select(5), r"selected_fields: .* got \(5,\)"),
    "limit": (lambda table: table.scan(limit="a"), r"Limit of a scan: .* got 'a'"),
    "half a row": (lambda table: table.scan(limit=1.5), r"Limit of a scan: .* got 1\.5"),
    "snapshot": (lambda table: table.scan(snapshot_id="12"), "Snapshot id: expected an integer, got '12'"),
    "rollback": (lambda table: table.manage_snapshots().rollback_to_snapshot("12").commit(), "Snapshot id"),
    "filter": (lambda table: table.scan(row_filter=5), "row_filter: expected text or an expression, got 5"),
    "key": (lambda table: table.upsert(ROWS, join_cols="id"), r"join_cols: .*\('id',\), got 'id'"),
    "branch": (lambda table: table.append(ROWS, branch=5), "Branch of a change: expected its name, got 5"),
    "summary": (lambda table: table.append(ROWS, snapshot_properties="a"), "snapshot_properties: .* got 'a'"),
    "properties": (lambda table: table.set_properties("a=1"), "Table properties: .* got 'a=1'"),
    "names": (lambda table: table.remove_properties(5), "Cannot remove table properties: .*5"),
    "column": (lambda table: table.update_schema().add_column(5, "string"), "Path of a column: .* got 5"),
    "locations": (lambda table: table.add_files([5]), r"a list of locations, got \[5\]"),
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = FileSystemTables().create(ROWS.schema, str(tmp_path / "t"))
    table.append(ROWS)
    return table


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_the_wrong_type_is_refused_by_name_and_nothing_is_written(table: Table, name: str) -> None:
    call, words = WRONG[name]
    before = sorted(Path(table.location()).rglob("*"))
    with pytest.raises(InvalidInputError, match=words):
        call(table)
    assert sorted(Path(table.location()).rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "value", "near"),
    [
        ("write.delete.mode", "merge-on-raed", "Did you mean merge-on-read?"),
        ("write.format.default", "parqet", "Did you mean parquet?"),
        ("write.distribution-mode", "sideways", "none, hash, range"),
    ],
)
def test_a_property_that_no_writer_would_accept_is_not_set(table: Table, name: str, value: str, near: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        table.set_properties({name: value})
    assert name in str(refused.value) and near in str(refused.value)
    with pytest.raises(ConfigurationError):
        FileSystemTables().create(ROWS.schema, f"{table.location()}2", properties={name: value})
    assert name not in table.refresh().properties and not Path(f"{table.location()}2").exists()
