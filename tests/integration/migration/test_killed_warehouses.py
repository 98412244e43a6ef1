"""A whole warehouse, whose migration is killed again and again: each run goes on, and the last one ends.

A few tables are taken; HMS_ICEBERG_TESTS=all takes thirty, with kept plans and new ones, one and four jobs.
"""

from __future__ import annotations

import io
import random
from itertools import product
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from tests.support.crash_server import DEAD, Crash
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, Rows, data_files, write_files, write_orc
from tests.support.spread import ALL

pytestmark = pytest.mark.slow

TABLES = 30 if ALL else 3
SERDES = {
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "avro": "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    "text": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
}
EVERY = list(product(("in place", "copied"), ("kept plan", "new plans"), (1, 4)))
SPREAD = [("in place", "new plans", 2), ("copied", "kept plan", 1)]


@pytest.mark.parametrize(("way", "plans", "jobs"), EVERY if ALL else SPREAD)
def test_a_warehouse_whose_migration_is_killed_again_and_again_is_migrated_whole(
    catalog: Catalog, namespace: str, crash: Crash, tmp_path: Path, way: str, plans: str, jobs: int
) -> None:
    warehouse, chance = HiveWarehouse(catalog, namespace), random.Random(f"{way} {plans} {jobs}")
    names = [f"t{number:02}" for number in range(TABLES)]
    before = {name: _make(warehouse, name, number, way) for number, name in enumerate(names)}
    files = {name: data_files(rows.location) for name, rows in before.items()}
    plan = str(tmp_path / "plan.json") if plans == "kept plan" else None

    codes: list[int] = []
    while not codes or codes[-1] == DEAD:
        codes.append(crash("warehouse", f"{namespace}.*", chance.randint(6, 40 * jobs), jobs=jobs, plan=plan))

    assert len(codes) > 1
    assert warehouse.names() == sorted([*names, *(f"{name}_backup_" for name in names)])
    for name in names:
        table = catalog.load_table((namespace, name))
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert len(table.metadata.snapshots) == 1
        backup = warehouse.rows(f"{name}_backup_")
        assert [row.sd.location for row in backup.partitions] == [row.sd.location for row in before[name].partitions]
        assert data_files(before[name].location) == files[name]
        metadata = local_path(table.metadata_location).parent
        assert len(list(metadata.glob("*.metadata.json"))) == (1 if way == "in place" else 2)
        assert len(list(metadata.glob("*.avro"))) == 2  # of no other attempt


def _make(warehouse: HiveWarehouse, name: str, number: int, way: str) -> Rows:
    """A table of three rows in two files; of every format, with partitions and without."""
    form = "text" if way == "copied" else ("parquet", "orc", "avro")[number % 3]
    partitioned = number % 2 == 1
    serde = ttypes.SerDeInfo(serializationLib=SERDES[form], parameters={})
    made = warehouse.create(name, "id int", "k int" if partitioned else "", managed=number % 4 < 2, serdeInfo=serde)
    for part, ids in enumerate(([1, 2], [3])):
        location = made.table.sd.location
        if partitioned:
            warehouse.add_partition(name, [str(part)])
            location += f"/k={part}"
        _write(location, form, f"{part:06}_0", ids)
    return warehouse.rows(name)


def _write(location: str, form: str, file: str, ids: list[int]) -> None:
    path, table = local_path(location) / file, pa.table({"id": pa.array(ids, pa.int32())})
    if form == "orc":
        write_orc(path, table)
    elif form == "avro":
        schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "int"]}]}
        content = io.BytesIO()
        fastavro.writer(content, schema, [{"id": each} for each in ids])
        path.write_bytes(content.getvalue())
    else:
        write_files(location, table)
