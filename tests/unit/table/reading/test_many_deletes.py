"""Rows of tables to which very many equality deletes apply, beside SQLite."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.deletes import equality_deletes, united_deletes
from hms_iceberg.spec.data_types import DateType, DecimalType, DoubleType, LongType, NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.row_tables import create

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "price", DecimalType(9, 2)),
    NestedField(4, "day", DateType()),
    NestedField(5, "x", DoubleType()),
    NestedField(6, "version", LongType()),
)
NAMES = [field.name for field in SCHEMA.fields]
BY_NAME = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
COMMITS = 12


def random_row(source: random.Random, version: int) -> tuple[Any, ...]:
    def some(*values: Any) -> Any:
        return source.choice((None, *values))

    return (
        some(*range(12)),
        some("a", "b", "longer text than twelve bytes"),
        some(-100, 0, 25, 12345),
        some(-1, 0, 19_000),
        some(-1.5, 0.0, 1e300),
        version,
    )


def arrow(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [list(values) for values in zip(*rows, strict=True)]
    arrays = [
        pa.array(columns[0], pa.int64()),
        pa.array(columns[1], pa.string()),
        pa.array(columns[2], pa.int64())
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(21, 2))
        .cast(pa.decimal128(9, 2)),
        pa.array(columns[3], pa.int32()).cast(pa.date32()),
        pa.array(columns[4], pa.float64()),
        pa.array(columns[5], pa.int64()),
    ]
    return pa.table(arrays, names=NAMES)


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    days = table["day"].cast(pa.int32())
    prices = [None if each is None else int(each) for each in table["price"].to_pylist()]
    columns = {**table.to_pydict(), "day": days.to_pylist(), "price": prices}
    return sorted(zip(*(columns[name] for name in NAMES), strict=True), key=repr)


@pytest.mark.parametrize("small", [0, 1 << 40], ids=["by hash", "by join"])
@pytest.mark.parametrize(
    ("keys", "spec"),
    [
        (["id"], UNPARTITIONED),
        (["name"], UNPARTITIONED),
        (["id", "name"], BY_NAME),
        (["price", "day"], UNPARTITIONED),
        (["day", "name"], BY_NAME),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, list) else "",
)
def test_keys_that_many_commits_deleted_and_wrote_again_read_as_in_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str], spec: PartitionSpec, small: int
) -> None:
    monkeypatch.setattr(united_deletes, "FEW_FILES", 2)
    monkeypatch.setattr(equality_deletes, "_SMALL", small)
    table = create(tmp_path, schema=SCHEMA, spec=spec)
    oracle = sqlite3.connect(":memory:")
    oracle.execute(f"create table t ({', '.join(NAMES)})")
    source = random.Random(repr(keys))
    for version in range(COMMITS):
        doomed = [random_row(source, version) for _ in range(3)]
        rows = [random_row(source, version) for _ in range(6)]
        with table.new_row_delta() as delta:
            delta.delete_equal(arrow(doomed), keys)
            delta.add_rows(arrow(rows))
        matching = " and ".join(f"{name} is ?" for name in keys)
        for row in doomed:
            oracle.execute(f"delete from t where {matching}", [row[NAMES.index(name)] for name in keys])
        oracle.executemany(f"insert into t values ({', '.join('?' * len(NAMES))})", rows)
    expected = sorted(oracle.execute("select * from t").fetchall(), key=repr)
    oracle.close()
    assert plain(table.scan().to_arrow()) == expected
    assert table.scan().count() == len(expected)
    some = [row for row in expected if row[5] >= COMMITS - 4]
    assert plain(table.scan(f"version >= {COMMITS - 4}").to_arrow()) == some
    assert max(len(task.delete_files) for task in table.scan().plan_files()) > 2


@pytest.mark.parametrize("spec", [UNPARTITIONED, BY_NAME], ids=["unpartitioned", "by_name"])
def test_positions_that_many_commits_deleted_in_many_files_read_as_in_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: PartitionSpec
) -> None:
    monkeypatch.setattr(united_deletes, "FEW_FILES", 2)
    partition = {"write.delete.granularity": "partition"}
    table = create(tmp_path, schema=SCHEMA, spec=spec, **partition)
    oracle = sqlite3.connect(":memory:")
    oracle.execute(f"create table t ({', '.join(NAMES)})")
    source = random.Random(3)
    for version in range(COMMITS):
        rows = [random_row(source, 100 * version + number) for number in range(8)]
        oracle.executemany(f"insert into t values ({', '.join('?' * len(NAMES))})", rows)
        table.append(arrow(rows))
        live = [row for (row,) in oracle.execute("select version from t")]
        doomed = source.sample(live, min(4, len(live)))
        places = table.scan(f"version in ({', '.join(map(str, doomed))})").select("_file", "_pos").to_arrow()
        with table.new_row_delta() as delta:
            delta.delete_positions(places.rename_columns(["file_path", "pos"]))
        oracle.execute(f"delete from t where version in ({', '.join(map(str, doomed))})")
    expected = sorted(oracle.execute("select * from t").fetchall(), key=repr)
    oracle.close()
    groups = [each for task in table.scan().plan_files() for each in task.delete_files.position_groups()]
    assert any(len(each) > 2 and not each.names_data_files for each in groups)
    assert plain(table.scan().to_arrow()) == expected
    assert table.scan().count() == len(expected)
    assert plain(table.scan("version >= 900").to_arrow()) == [row for row in expected if row[5] >= 900]
