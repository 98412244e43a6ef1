"""Nanoseconds, defaults and row lineage of Apache Iceberg (Java) 1.12: what Python reads is what Java told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.table.file_system import FileSystemTables

GOLDEN = Path("/tmp/hms_iceberg_golden/version_3")
MODES = ("copy_on_write", "merge_on_read")


def told(case: str) -> list[list[Any]]:
    """The rows by Java."""
    rows: list[list[Any]] = json.loads((GOLDEN / case / "rows.json").read_text())
    return rows


def rows_of(found: pa.Table) -> list[list[Any]]:
    """The rows in the order of their first column."""
    return [list(row.values()) for row in found.sort_by(found.column_names[0]).to_pylist()]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_nanoseconds_are_those_of_javas_records(file_format: str) -> None:
    case = f"nanoseconds_{file_format}"
    table, wanted = FileSystemTables().load(str(GOLDEN / case)), told(case)
    numbers = pa.schema([("n", pa.int64()), ("at", pa.int64()), ("zoned", pa.int64())])
    assert rows_of(table.scan().to_arrow().cast(numbers)) == wanted
    for n, at, _ in wanted:
        condition = "at is null" if at is None else f"at = '{pa.scalar(at, pa.timestamp('ns'))}'"
        assert table.scan(condition).to_arrow()["n"].to_pylist() == [n], condition


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_columns_have_the_defaults_that_spark_reads_with_java(file_format: str) -> None:
    case = f"defaults_{file_format}"
    rows = rows_of(FileSystemTables().load(str(GOLDEN / case)).scan().to_arrow())

    def text(value: Any) -> str | None:
        if value is None or isinstance(value, bool):
            return None if value is None else str(value).lower()
        return str(value).removesuffix("+00:00")

    assert [list(map(text, row)) for row in rows] == told(case)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_have_the_lineage_that_spark_reads_with_java(file_format: str, mode: str) -> None:
    case = f"lineage_{mode}_{file_format}"
    scan = FileSystemTables().load(str(GOLDEN / case)).scan()
    assert rows_of(scan.select("k", "s", "_row_id", "_last_updated_sequence_number").to_arrow()) == told(case)
    assert rows_of(scan.to_arrow()) == [row[:2] for row in told(case)]
