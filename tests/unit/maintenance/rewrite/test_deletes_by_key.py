"""Rows that equality deletes of one column leave, beside what DuckDB leaves: before and after a conversion.

Of every type but floats, which are no keys.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hms_iceberg.maintenance import convert_equality_deletes
from hms_iceberg.table.file_system import FileSystemTables

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 0, -1, 7]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 0, 2**53 + 1, 2**53]),
    "boolean": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-0.01"), Decimal("9" * 36 + ".99"), Decimal("0.00")]),
    "text": (pa.string(), ["", " ", "a", "\x00", "é", "e\u0301"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\x00"]),
}
DELETED = {"some": lambda values: [values[0], None], "one": lambda values: values[-1:], "all": lambda values: values}
"""Which keys are deleted: a null among them, few, all but null."""


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("deleted", DELETED)
@pytest.mark.parametrize("name", KEYS)
def test_a_database_leaves_the_same_rows(tmp_path: Path, name: str, deleted: str, version: str) -> None:
    kind, values = KEYS[name]
    often = [values[0]] * 300 if deleted == "one" else []  # one key that is deleted is then rare: other ways of copying
    keys = [*values, None] * 3 + often
    rows = pa.table({"k": pa.array(keys, kind), "n": pa.array(range(len(keys)), pa.int64())})
    gone = pa.table({"k": pa.array(DELETED[deleted](values), kind)})
    tables = FileSystemTables()
    table = tables.create(rows.schema, str(tmp_path / "table"), properties={"format-version": version})
    for start in (0, len(values) + 1):  # two files, one of all values
        table.append(rows.slice(start) if start else rows.slice(0, len(values) + 1))
    with table.new_row_delta() as delta:
        delta.delete_equal(gone, columns=["k"])
    left = (
        "select n from rows where not exists (select 1 from gone where gone.k is not distinct from rows.k) order by n"
    )
    expected = [number for (number,) in duckdb.sql(left).fetchall()]

    assert sorted(table.refresh().scan().to_arrow()["n"].to_pylist()) == expected
    assert sorted(table.scan(selected_fields=("n",)).to_arrow()["n"].to_pylist()) == expected
    assert convert_equality_deletes(table).converted_equality_delete_files_count == 1
    assert sorted(table.refresh().scan().to_arrow()["n"].to_pylist()) == expected
