"""Tables of format version 4, a draft, written by Apache Iceberg (Java) 1.12 on Spark 4.1: manifests are Parquet."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.maintenance.check.consistency import check_table
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.table import Table

GOLDEN = Path("/tmp/hms_iceberg_golden/v4")
CASES = ["copied", "vectors", "upgraded", "evolved"]


def table_of(case: str) -> Table:
    return FileSystemTables({"preview.format-v4": "true"}).load(f"file://{GOLDEN}/{case}")


def known(case: str) -> Any:
    return json.loads((GOLDEN / case / "rows.json").read_text())


def as_spark_writes(value: Any) -> Any:
    """A value of Arrow as `to_json` of Spark and a JSON parser give it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: as_spark_writes(each) for name, each in value.items()}
    if hasattr(value, "isoformat"):
        text = value.isoformat().replace("+00:00", "")
        if "T" in text:
            text += "Z" if "." in text else ".000Z"
        return text
    return float(value) if type(value).__name__ == "Decimal" else value


def ids(scan: Any) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_that_java_reads(case: str) -> None:
    table = table_of(case)
    assert table.format_version == 4
    found = {}
    for row in table.scan().to_arrow().to_pylist():
        row["m"] = None if row["m"] is None else dict(row["m"])
        found[row["id"]] = {name: as_spark_writes(each) for name, each in row.items()}
    wanted = {number: json.loads(text) for number, text in known(case)["rows"]}
    for row in wanted.values():
        if row["ts"] is not None and row["ts"].startswith("1960"):
            row["ts"] = row["ts"][:-1] + "001Z"  # Spark's JSON cuts off microseconds
    assert found == wanted


@pytest.mark.parametrize("case", CASES)
def test_every_snapshot_filter_and_file_is_as_java_has_it(case: str) -> None:
    table, wanted = table_of(case), known(case)
    for snapshot_id, rows in wanted["snapshots"]:
        assert ids(table.scan(snapshot_id=snapshot_id)) == rows
    for text, rows in wanted["filters"].items():
        condition = text.replace("date'", "'").replace("timestamp'2000-01-01 00:00:00'", "'2000-01-01T00:00:00+00:00'")
        assert ids(table.scan(row_filter=condition)) == rows, text
    files = [
        [row["file_path"].rpartition("/")[2], row["content"], row["record_count"], row["spec_id"]]
        for row in table.inspect.files().to_pylist()
    ]
    assert sorted(files) == sorted(wanted["files"])


def test_a_filter_leaves_out_files_by_bounds_and_partitions() -> None:
    planned = [task.file.record_count for task in table_of("copied").scan(row_filter="id > 12").plan_files()]
    assert sum(planned) < len(known("copied")["rows"]) and len(planned) <= 3


@pytest.mark.parametrize("case", CASES)
def test_such_a_table_is_read_only_if_asked_for_and_never_changed(case: str) -> None:
    location = f"file://{GOLDEN}/{case}"
    with pytest.raises(UnsupportedError, match=r"format version 4.*preview\.format-v4"):
        FileSystemTables().load(location)
    table = table_of(case)
    files = sorted(path for path in (GOLDEN / case).rglob("*"))
    for change in (
        lambda: table.append(table.scan().to_arrow()),
        lambda: table.delete("id = 1"),
        lambda: table.transaction().set_properties(a="b").commit_transaction(),
        lambda: table.maintenance.expire_snapshots().commit(),
    ):
        with pytest.raises(UnsupportedError, match=r"Cannot change table.*format version 4"):
            change()
    assert sorted(path for path in (GOLDEN / case).rglob("*")) == files


@pytest.mark.parametrize("case", CASES)
def test_a_check_of_such_a_table_finds_nothing_wrong(case: str) -> None:
    assert list(check_table(table_of(case)).findings) == []
