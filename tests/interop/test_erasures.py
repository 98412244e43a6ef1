"""Tables in which rows were forgotten, read and changed by Apache Iceberg (Java)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from tests.support.erasure_histories import PERSON, History
from tests.support.hdfs_path import local_path

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize(("version", "file_format"), [(1, "orc"), (2, "parquet"), (2, "avro"), (3, "parquet")])
def test_java_reads_every_snapshot_without_forgotten_rows(
    version: int, file_format: str, iceberg_java: Any, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"

    def made(schema: Schema, spec: PartitionSpec, properties: dict[str, str]) -> Table:
        own = {**properties, "format-version": str(version)}
        return catalog.create_table(name, schema, partition_spec=spec, properties=own)

    history = History(made, 2, version, file_format).run(14)
    before = lineage(history.table) if history.version == 3 else {}

    catalog.load_table(name).forget(f"name = '{PERSON}'", dry_run=False, after=dt.timedelta(0))

    for snapshot_id, rows in history.snapshots.items():
        read = iceberg_java.sql(f"select id, name, team, who.mail from ice.{name} version as of {snapshot_id}")
        kept = [row for row in rows if row["name"] != PERSON]
        expected = [[row["id"], row["name"], row["team"], (row["who"] or {}).get("mail")] for row in kept]
        assert sorted(map(repr, read)) == sorted(map(repr, expected)), history.log
    if history.version == 3:
        after = iceberg_java.sql(f"select id, _row_id, _last_updated_sequence_number from ice.{name}")
        assert all(before[row[0]] == row[1:] for row in after)
    iceberg_java.sql(f"delete from ice.{name} where id % 5 = 0")
    iceberg_java.sql(f"call ice.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    iceberg_java.sql(f"call ice.system.rewrite_manifests('{name}')")
    table = catalog.load_table(name)
    left = sorted(row["id"] for row in history.branches["main"] if row["name"] != PERSON and row["id"] % 5)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == left
    assert not check_table(table).findings
    assert PERSON not in str(list(local_path(table.location()).rglob("*")))


def lineage(table: Table) -> dict[int, list[int]]:
    rows = table.refresh().scan().select("id", "_row_id", "_last_updated_sequence_number").to_arrow().to_pylist()
    return {row["id"]: [row["_row_id"], row["_last_updated_sequence_number"]] for row in rows}
