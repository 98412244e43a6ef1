"""The golden tables pass the check of consistency, but for what their writers are known to leave out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hms_iceberg.maintenance import check_table
from hms_iceberg.maintenance.check.findings import WrongSummary
from hms_iceberg.table import StaticTable

ROOT = Path("/tmp/hms_iceberg_golden/public")
CASES = sorted(path.parent.name for path in ROOT.glob("*/expected.json"))


# Spark's add_files does not count the sizes of the files that it imports.
_WITHOUT_SIZES = ("c19_add_files", "c19_add_files_legacy_int96", "c19_add_files_partial")


@pytest.mark.parametrize("case", CASES)
def test_a_table_that_java_wrote_is_consistent(case: str) -> None:
    expected = json.loads((ROOT / case / "expected.json").read_text())
    table = StaticTable.from_metadata(str(ROOT / case / expected["metadata_file"]))
    findings = check_table(table, record_counts=True, values=True).findings
    if case in _WITHOUT_SIZES:
        assert findings
        assert all(isinstance(each, WrongSummary) and each.key.endswith("files-size") for each in findings)
    else:
        assert findings == ()
