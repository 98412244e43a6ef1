"""Random histories: a person's rows are forgotten in every snapshot, and no byte of them is left below the table."""

from __future__ import annotations

import datetime as dt
from itertools import product
from pathlib import Path

import pytest

from hms_iceberg.maintenance import check_table
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from tests.support.erasure_histories import PERSON, History, in_order, left_of, rows_of
from tests.support.row_tables import create
from tests.support.spread import ALL

SEEDS, FORMATS = (1, 10, 14), ("parquet", "orc", "avro")
# Each format in each version, with one of the histories; HMS_ICEBERG_TESTS=all tries all of them.
CASES = [
    (seed, version, file_format)
    for (place, seed), version, (number, file_format) in product(enumerate(SEEDS), (1, 2, 3), enumerate(FORMATS))
    if ALL or place == (version + number) % len(SEEDS)
]


@pytest.mark.parametrize(("seed", "version", "file_format"), CASES)
def test_no_byte_of_a_person_is_left(tmp_path: Path, seed: int, version: int, file_format: str) -> None:
    def made(schema: Schema, spec: PartitionSpec, properties: dict[str, str]) -> Table:
        return create(tmp_path, version, schema=schema, spec=spec, **properties)

    history = History(made, seed, version, file_format).run(14)
    table = history.table.refresh()
    for snapshot_id, rows in history.snapshots.items():
        assert in_order(rows_of(table, snapshot_id)) == in_order(rows), history.log

    result = table.forget(f"name = '{PERSON}'", dry_run=False, after=dt.timedelta(0))

    for snapshot_id, rows in history.snapshots.items():
        kept = [row for row in rows if row["name"] != PERSON]
        assert in_order(rows_of(table, snapshot_id)) == in_order(kept), history.log
    if result.plan.files:
        assert result.report is not None and result.report["proof"]["matches"] == 0
    assert left_of(PERSON, tmp_path) == [], history.log
    assert not check_table(table, record_counts=True).findings, history.log
