"""All tables at a glance: by the rows of a metastore, or by loading each; one damaged table is never another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg import load_catalog
from hms_iceberg.cli.main import main
from hms_iceberg.maintenance import warehouse_tables
from hms_iceberg.maintenance.service.policy import Policies
from hms_iceberg.maintenance.warehouse_tables import SCHEMA
from hms_iceberg.metastore import TableRow
from tests.unit.maintenance.service.test_service import make


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    found = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    for name in ("web", "raw"):
        found.create_namespace(name)
    return found


class Rows:
    """The rows of a metastore as it tells them."""

    def __init__(self, *rows: TableRow) -> None:
        self._rows = rows

    def rows(self, namespace: str | None = None) -> Any:
        return iter(self._rows)


def test_tables_are_told_with_what_they_hold_and_need(catalog: Any) -> None:
    small = make(catalog, "web.small", 6)
    make(catalog, "raw.empty", 0)
    broken = make(catalog, "web.broken", 6)
    snapshot = broken.current_snapshot()
    broken.storage.delete(snapshot.manifest_list)

    told = warehouse_tables(catalog)
    assert told.schema.equals(SCHEMA)
    by_name = {each["table"]: each for each in told.to_pylist()}
    assert list(by_name) == ["raw.empty", "web.broken", "web.small"]
    found, current = by_name["web.small"], small.current_snapshot()
    assert (found["rows"], found["data_files"], found["delete_files"], found["snapshots"]) == (12, 6, 0, 6)
    assert (found["snapshot_id"], found["committed_ms"]) == (current.snapshot_id, current.timestamp_ms)
    assert found["bytes"] == sum(each.file.file_size_in_bytes for each in small.scan().plan_files())
    assert found["average_file_bytes"] == found["bytes"] // 6 and 0 <= found["age_seconds"] < 600
    assert by_name["raw.empty"]["snapshot_id"] is None and by_name["raw.empty"]["needs"] is None

    deep = {each["table"]: each for each in warehouse_tables(catalog, ("web.*",), Policies()).to_pylist()}
    assert list(deep) == ["web.broken", "web.small"]
    assert deep["web.small"]["needs"][0].startswith("rewrite_data_files: 6 of 6 data files")
    assert deep["web.broken"]["error"].startswith("MissingFileError: ") and deep["web.broken"]["needs"] is None


def test_the_rows_of_a_metastore_are_enough(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = {"total-records": "7", "total-data-files": "2", "total-delete-files": "1", "total-files-size": "300"}
    current = {"current-snapshot-id": "42", "current-snapshot-timestamp-ms": "1000", "snapshot-count": "3"}
    hive = {"numFiles": "2", "numRows": "7", "totalSize": "300"}
    whole = {**hive, **current, "current-snapshot-summary": json.dumps(summary)}
    rows = Rows(
        TableRow(("db", "whole"), "s3://b/whole", whole, is_iceberg=True),
        TableRow(("db", "cut"), "s3://b/cut", {**whole, "current-snapshot-summary": '{"total-rec'}, is_iceberg=True),
        TableRow(("db", "hive"), "s3://b/hive", hive),
        TableRow(("db", "bare"), "s3://b/bare", {"metadata_location": "s3://b/bare/m.json"}, is_iceberg=True),
    )
    monkeypatch.setattr(type(catalog.metastore), "table_rows", rows, raising=False)
    bare, cut, told = warehouse_tables(catalog).to_pylist()
    assert told | {"age_seconds": 0} == {
        "table": "db.whole",
        "location": "s3://b/whole",
        "rows": 7,
        "data_files": 2,
        "delete_files": 1,
        "bytes": 300,
        "average_file_bytes": 150,
        "snapshots": 3,
        "snapshot_id": 42,
        "committed_ms": 1000,
        "age_seconds": 0,
        "needs": None,
        "error": None,
    }
    assert (cut["rows"], cut["data_files"], cut["delete_files"], cut["bytes"]) == (7, 2, None, 300)
    assert bare["rows"] is None and bare["error"].startswith("NoSuch"), "it is loaded, and not there"


def test_the_command_lists_them(catalog: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(catalog, "web.small", 6)
    make(catalog, "raw.other", 1)
    where = ["-p", "type=hadoop", "-p", f"warehouse={tmp_path}"]
    assert main(["list", "--long", "--needs", *where]) == 0
    header, other, small = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert (header[0], header[-1]) == ("table", "needs")
    assert (small[0], small[1], small[2], small[6]) == ("web.small", "12", "6", "6") and "rewrite_data_files" in small[
        -1
    ]
    assert (other[0], other[-1]) == ("raw.other", "")
    assert main(["list", "web", "-l", "--output", "json", *where]) == 0
    [told] = json.loads(capsys.readouterr().out)
    assert (told["table"], told["data_files"]) == ("web.small", 6)
    assert main(["list", "nosuch", "-l", *where]) == 1
    assert main(["list", "--needs", *where]) == 2
