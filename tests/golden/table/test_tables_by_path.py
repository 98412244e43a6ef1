"""Tables of Java's Hadoop catalog load by their path, and copies of them are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hms_iceberg.table.file_system import FileSystemTables

ROOT = Path("/tmp/hms_iceberg_golden/public")
EXPECTED = {path.parent.name: json.loads(path.read_text()) for path in ROOT.glob("*/expected.json")}
CASES = sorted(case for case, expected in EXPECTED.items() if Path(expected["metadata_file"]).name.startswith("v"))


@pytest.mark.parametrize("case", CASES)
def test_the_newest_version_of_a_table_is_found_by_its_path(case: str) -> None:
    expected = EXPECTED[case]
    table = FileSystemTables().load(str(ROOT / case))
    assert table.metadata_location == str(ROOT / case / expected["metadata_file"])
    assert table.metadata.format_version == expected["format_version"]
    assert table.metadata.current_snapshot_id == expected["current_snapshot_id"]
