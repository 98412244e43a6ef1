"""Rows changed through the real Hive Metastore, by writers that race."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from tests.support.row_tables import arrow, ids, numbered, row, rows_of
from tests.support.tables import SCHEMA

BY_BUCKET = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_are_changed_and_read_back(catalog: Any, namespace: str, version: str, mode: str) -> None:
    properties = {"format-version": version, **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")}}
    table = catalog.create_table(f"{namespace}.events", SCHEMA, partition_spec=BY_BUCKET, properties=properties)
    table.append(numbered(0, 20))
    table.delete("id < 3")
    table.update({"amount": pc.negate(pc.field("amount"))}, "id = 5")
    result = table.upsert(arrow([row(6, amount=0), row(7), row(30)]), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    table.overwrite(numbered(40, 42), "id between 10 and 19")
    expected = [*(row(key) for key in range(3, 10)), row(30), row(40), row(41)]
    expected[2], expected[3] = row(5, amount=-10), row(6, amount=0)
    assert rows_of(catalog.load_table(f"{namespace}.events")) == expected
    table.dynamic_partition_overwrite(numbered(50, 51))
    assert 50 in ids(catalog.load_table(f"{namespace}.events"))


def test_writers_that_upsert_different_keys_all_get_through(catalog: Any, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.events", SCHEMA)
    for start in range(0, 30, 10):
        table.append(numbered(start, start + 10))
    errors: list[BaseException] = []

    def work(start: int) -> None:
        try:
            mine = catalog.load_table(f"{namespace}.events")
            mine.upsert(arrow(row(key, amount=-1) for key in range(start, start + 5)), ["id"])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    changed = [each["id"] for each in rows_of(table.refresh()) if each["amount"] == -1]
    assert changed == [*range(5), *range(10, 15), *range(20, 25)]


def test_a_change_of_rows_that_a_concurrent_commit_changed_is_refused(catalog: Any, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.events", SCHEMA, properties={"write.delete.mode": "merge-on-read"})
    table.append(numbered(0, 10))
    other = catalog.load_table(f"{namespace}.events")
    table.delete("amount = 4")
    with pytest.raises(CommitConflictError):
        other.overwrite(pa.Table.from_batches([], numbered(0, 0).schema), "amount = 6")
    assert ids(table.refresh()) == [0, 1, *range(3, 10)]
