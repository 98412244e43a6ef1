"""Tables that were migrated from Hive are read by PyIceberg and by Apache Iceberg (Java) with the same rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.migration import migrate, rollback
from tests.support.hive_warehouse import HiveWarehouse, local_path, write_files

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COLUMNS = (
    "id int, name string, price decimal(9,2), at timestamp, tags array<string>, place struct<x:double,label:string>"
)


def rows(*ids: int) -> pa.Table:
    """Rows as a writer with names in upper and lower case stores them; each third one is null."""
    place = pa.struct([("X", pa.float64()), ("label", pa.string())])
    full = [number if number % 3 else None for number in ids]
    return pa.table(
        {
            "Id": pa.array(ids, pa.int32()),
            "name": pa.array([n and f"name {n}" for n in full], pa.string()),
            "price": pa.array([n and Decimal(n) / 4 for n in full], pa.decimal128(9, 2)),
            "at": pa.array([n and dt.datetime(2013, 1, n, 5, 0, 0, n) for n in full], pa.timestamp("us", tz="UTC")),
            "tags": pa.array([n and [f"t{n}", None] for n in full], pa.list_(pa.string())),
            "Place": pa.array([n and {"X": n / 2, "label": f"l{n}"} for n in full], place),
        }
    )


@pytest.fixture(params=["partitioned", "flat"])
def migrated(request: pytest.FixtureRequest, catalog: Catalog, namespace: str) -> str:
    """The name of a table that was migrated."""
    warehouse = HiveWarehouse(catalog, namespace)
    if request.param == "partitioned":
        warehouse.create("t", COLUMNS, "month int, place_name string")
        warehouse.add_partition("t", ["1", "a/b c"], rows(1, 2), rows(3))
        warehouse.add_partition("t", ["2", "__HIVE_DEFAULT_PARTITION__"], rows(4))
    else:
        made = warehouse.create("t", COLUMNS)
        write_files(made.table.sd.location, rows(1, 2), rows(3))
        int96 = local_path(made.table.sd.location) / "legacy"
        pq.write_table(rows(4), int96, use_deprecated_int96_timestamps=True)
    migrate(catalog, f"{namespace}.t")
    return f"{namespace}.t"


def plain(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by id, moments as text, so that those of different libraries compare."""
    keyed = sorted(found, key=lambda row: row["id"])
    return [{**row, "at": row["at"] and row["at"].isoformat()[:26]} for row in keyed]


def test_pyiceberg_reads_a_migrated_table(migrated: str, catalog: Catalog, pyiceberg_catalog: Any) -> None:
    ours = catalog.load_table(migrated).scan().to_arrow().to_pylist()

    theirs = pyiceberg_catalog.load_table(migrated).scan().to_arrow().to_pylist()

    assert plain(ours) == plain(theirs)
    assert [row["id"] for row in plain(ours)] == [1, 2, 3, 4]
    assert plain(ours)[0]["place"] == {"x": 0.5, "label": "l1"}


def test_java_reads_a_migrated_table_and_appends_to_it(migrated: str, catalog: Catalog, iceberg_java: Any) -> None:
    sql = (
        "select id, name, price, unix_micros(at) as at, tags[0] as tag, place.x as x, place.label as label "
        "from ice.{} order by id"
    )
    expected = [
        [n, f"name {n}", n / 4, _micros(n), f"t{n}", n / 2, f"l{n}"] if n % 3 else [n] + [None] * 6
        for n in (1, 2, 3, 4)
    ]

    found = [[None if v is None else float(v) if i == 2 else v for i, v in enumerate(row)] for row in
             iceberg_java.sql(sql.format(migrated))]  # fmt: skip
    assert found == expected
    iceberg_java.sql(f"insert into ice.{migrated} select * from ice.{migrated} where id = 2")

    assert sorted(catalog.load_table(migrated).scan().to_arrow()["id"].to_pylist()) == [1, 2, 2, 3, 4]
    assert rollback(catalog, migrated, discard_changes=True).discarded_snapshots == 1


def _micros(number: int) -> int:
    moment = dt.datetime(2013, 1, number, 5, 0, 0, number) - dt.datetime(1970, 1, 1)
    return moment // dt.timedelta(microseconds=1)
