"""Tables that were migrated from Hive are read by PyIceberg and by Apache Iceberg (Java) with the same rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.migration import migrate, rollback
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, write_files

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


def lowered(table: pa.Table) -> pa.Table:
    """The same as Hive's writer of Avro names columns."""
    places = [each and {"x": each["X"], "label": each["label"]} for each in table["Place"].to_pylist()]
    place = pa.array(places, pa.struct([("x", pa.float64()), ("label", pa.string())]))
    return table.set_column(5, "place", place).rename_columns([name.lower() for name in table.column_names])


def write_avro(table: pa.Table, path: Any) -> None:
    def optional(name: str, kind: Any) -> dict[str, Any]:
        return {"name": name, "type": ["null", kind], "default": None}

    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    place = {"type": "record", "name": "place", "fields": [optional("x", "double"), optional("label", "string")]}
    fields = [
        optional("id", "int"),
        optional("name", "string"),
        optional("price", decimal),
        optional("at", {"type": "long", "logicalType": "timestamp-micros"}),
        optional("tags", {"type": "array", "items": ["null", "string"]}),
        optional("place", place),
    ]
    with open(path, "wb") as file:
        fastavro.writer(file, {"type": "record", "name": "t", "fields": fields}, table.to_pylist())


def hive(serde: str) -> dict[str, Any]:
    """The descriptor of tables of another format."""
    return {"serdeInfo": ttypes.SerDeInfo(serializationLib=f"org.apache.hadoop.hive.{serde}", parameters={})}


@pytest.fixture(params=["partitioned", "flat", "orc"])
def migrated(request: pytest.FixtureRequest, catalog: Catalog, namespace: str) -> str:
    """The name of a table that was migrated."""
    warehouse = HiveWarehouse(catalog, namespace)
    if request.param == "partitioned":
        warehouse.create("t", COLUMNS, "month int, place_name string")
        warehouse.add_partition("t", ["1", "a/b c"], rows(1, 2), rows(3))
        warehouse.add_partition("t", ["2", "__HIVE_DEFAULT_PARTITION__"], rows(4))
    elif request.param == "orc":  # a file of Hive 1, and one with names
        folder = local_path(warehouse.create("t", COLUMNS, **hive("ql.io.orc.OrcSerde")).table.sd.location)
        old = rows(1, 2)
        orc.write_table(old.rename_columns([f"_col{n}" for n in range(old.num_columns)]), str(folder / "000000_0"))
        orc.write_table(rows(3, 4), str(folder / "000001_0"))
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
    _check_java(migrated, catalog, iceberg_java)


def test_java_reads_a_table_of_avro_and_orc_partitions(catalog: Catalog, namespace: str, iceberg_java: Any) -> None:
    warehouse = HiveWarehouse(catalog, namespace)
    for number, (kind, serde) in enumerate((("avro", "serde2.avro.AvroSerDe"), ("orc", "ql.io.orc.OrcSerde"))):
        if number == 0:
            made = warehouse.create("t", COLUMNS, "month int", **hive(serde))
        else:
            made.table.sd.serdeInfo = hive(serde)["serdeInfo"]
            warehouse.client.alter_table(namespace, "t", made.table)
        warehouse.add_partition("t", [str(number)])
        folder = local_path(f"{made.table.sd.location}/month={number}")
        folder.mkdir(exist_ok=True)
        if kind == "avro":
            write_avro(lowered(rows(1, 2)), folder / "000000_0")
        else:
            orc.write_table(rows(3, 4), str(folder / "000000_0"))
    migrate(catalog, f"{namespace}.t")

    _check_java(f"{namespace}.t", catalog, iceberg_java)


def _check_java(migrated: str, catalog: Catalog, iceberg_java: Any) -> None:
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
