"""Encrypted tables written by Apache Iceberg (Java) 1.12 on Spark 4.1: keys of every length, Parquet and Avro."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.encryption.encrypted_tables import metadata_hash
from hms_iceberg.errors import KeyUnavailableError
from hms_iceberg.maintenance.check.consistency import check_table
from hms_iceberg.metastore import TablePointer
from hms_iceberg.table.readable import StaticTable
from hms_iceberg.transaction.workspace import read_current
from tests.support.java_peer import encode

GOLDEN = Path("/tmp/hms_iceberg_golden/encrypted")
KEYS = {"encryption.kms-type": "keystore", "kms.keystore.path": str(GOLDEN / "keys.json")}
CASES = ["parquet_copy", "parquet_merge", "avro_merge"]


def expected(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / case / "expected.json").read_text())
    return found


@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_that_java_reads(case: str) -> None:
    wanted = expected(case)
    table = StaticTable.from_metadata(wanted["row"]["metadata_location"], KEYS)
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    rows = [[encode(list(each.values()) if isinstance(each, dict) else each) for each in row.values()] for row in found]
    assert rows == wanted["rows"]
    assert len(rows) == 20
    for snapshot in table.snapshots():
        assert table.scan(snapshot_id=snapshot.snapshot_id).count() in (30, 20)
    assert not check_table(table, record_counts=True, values=True).findings
    with pytest.raises(KeyUnavailableError):
        StaticTable.from_metadata(wanted["row"]["metadata_location"]).scan().to_arrow()


@pytest.mark.parametrize("case", CASES)
def test_the_hash_in_the_metastore_is_that_of_the_metadata(case: str) -> None:
    row = expected(case)["row"]
    version = read_current(TablePointer(("db", case), row["metadata_location"], row), ArrowStorage())
    assert metadata_hash(version.metadata) == row["metadata_hash"]
