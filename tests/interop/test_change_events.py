"""Tables to which events of change streams were applied, read and changed by Apache Iceberg (Java)."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "at", LongType()), NestedField(3, "s", StringType())
)
BY_BUCKET = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "id_bucket"))


@pytest.mark.parametrize(
    ("version", "file_format", "mode"),
    [
        (1, "orc", "copy-on-write"),
        (2, "parquet", "merge-on-read"),
        (2, "avro", "merge-on-read"),
        (3, "parquet", "merge-on-read"),
        (3, "orc", "copy-on-write"),
    ],
)
def test_java_reads_every_version_of_a_table_to_which_events_are_applied_and_changes_rows_between(
    version: int, file_format: str, mode: str, iceberg_java: Any, catalog: Catalog, namespace: str
) -> None:
    name, source = f"{namespace}.t", random.Random(version)
    properties = {"format-version": str(version), "write.format.default": file_format}
    table = catalog.create_table(name, SCHEMA, partition_spec=BY_BUCKET, properties=properties)
    rows: dict[int, list[Any]] = {}
    for turn in range(4):
        events = [
            {"id": source.randrange(40), "at": 100 * turn + n, "s": f"{turn}-{n}", "op": source.choice("cuud")}
            for n in range(60)
        ]
        for event in events:
            rows.pop(event["id"], None)
            if event["op"] != "d":
                rows[event["id"]] = [event["id"], event["at"], event["s"]]
        shuffled = pa.Table.from_pylist(source.sample(events, 60))
        applied = table.refresh().apply_changes(
            shuffled, keys=["id"], operation="op", order="at", mode=mode, name="topic", offsets={"0": 60 * (turn + 1)}
        )
        assert applied.events == 60
        assert sorted(iceberg_java.sql(f"select * from ice.{name}")) == sorted(rows.values())
        if turn == 1:
            iceberg_java.sql(f"update ice.{name} set s = 'java' where id % 7 = 0")
            rows = {key: [*row[:2], "java" if key % 7 == 0 else row[2]] for key, row in rows.items()}
            iceberg_java.sql(f"delete from ice.{name} where id % 5 = 0")
            rows = {key: row for key, row in rows.items() if key % 5}
        if turn == 2:
            options = "options => map('rewrite-all', 'true')"
            iceberg_java.sql(f"call ice.system.rewrite_data_files(table => '{name}', {options})")
    table.refresh()
    assert sorted(map(list, zip(*table.scan().to_arrow().to_pydict().values(), strict=True))) == sorted(rows.values())
    assert table.applied_offsets("topic") == {"0": 240}
    assert not check_table(table).findings
