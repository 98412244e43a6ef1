"""Tables cross between this project, PyIceberg and Apache Iceberg (Java) on one metastore, in every direction."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TruncateTransform,
)
from tests.support.peer_rows import arrow_rows, json_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "score", DoubleType()),
    NestedField(6, "price", DecimalType(12, 2)),
    NestedField(7, "day", DateType()),
    NestedField(8, "at", TimestampType()),
    NestedField(9, "at_utc", TimestamptzType()),
    NestedField(10, "name", StringType()),
    NestedField(11, "raw", BinaryType()),
    NestedField(12, "code", FixedType(4)),
    NestedField(13, "tags", ListType(20, StringType(), element_required=False)),
    NestedField(14, "props", MapType(21, StringType(), 22, LongType(), value_required=False)),
    NestedField(
        15,
        "place",
        StructType(NestedField(23, "x", DoubleType()), NestedField(24, "label", StringType())),
    ),
)

SPECS = {
    "unpartitioned": PartitionSpec(),
    "identity": PartitionSpec(PartitionField(10, 1000, IdentityTransform(), "name")),
    "bucket_and_day": PartitionSpec(
        PartitionField(1, 1000, BucketTransform(3), "id_bucket"),
        PartitionField(8, 1001, DayTransform(), "at_day"),
    ),
    "truncate": PartitionSpec(PartitionField(6, 1000, TruncateTransform(1000), "price_trunc")),
}


def sample(start: int, count: int) -> pa.Table:
    """`count` rows of SCHEMA from key `start`; every fifth row is null wherever it may be."""

    def row(key: int) -> dict[str, Any]:
        if key % 5 == 4:
            return {"id": key}
        return {
            "id": key,
            "flag": key % 2 == 0,
            "small": key - 7,
            "ratio": key / 4,
            "score": key * -1.25,
            "price": Decimal(key * 731) / 100,
            "day": datetime.date(1969, 12, 30) + datetime.timedelta(days=key),
            "at": datetime.datetime(1969, 12, 31, 22, 15) + datetime.timedelta(hours=7 * key, microseconds=key),
            "at_utc": datetime.datetime(2024, 2, 28, 23, tzinfo=datetime.timezone.utc) + datetime.timedelta(hours=key),
            "name": ["ä b/c", "plain", "x=1", ""][key % 4],
            "raw": bytes([key % 256, 0, 255]),
            "code": key.to_bytes(4, "big"),
            "tags": [f"t{key}", None] if key % 3 else [],
            "props": [("k", key), ("none", None)],
            "place": {"x": key / 2, "label": None} if key % 2 else None,
        }

    return pa.Table.from_pylist([row(key) for key in range(start, start + count)], schema=ARROW)


ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("ratio", pa.float32()),
        ("score", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("at_utc", pa.timestamp("us", tz="UTC")),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("code", pa.binary(4)),
        ("tags", pa.list_(pa.string())),
        ("props", pa.map_(pa.string(), pa.int64())),
        ("place", pa.struct([("x", pa.float64()), ("label", pa.string())])),
    ]
)


def java_rows(iceberg_java: Any, name: str, where: str = "") -> list[str]:
    return json_rows(iceberg_java.sql(f"select * from ice.{name} {where}"))


@pytest.fixture
def name(namespace: str) -> str:
    return f"{namespace}.t_{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_every_peer_reads_the_rows_that_we_append(
    catalog: Any, iceberg_java: Any, pyiceberg_catalog: Any, name: str, spec: PartitionSpec, version: str
) -> None:
    table = catalog.create_table(name, SCHEMA, partition_spec=spec, properties={"format-version": version})
    table.append(sample(0, 12))
    table.append(sample(12, 8))

    expected = arrow_rows(sample(0, 20))
    assert arrow_rows(table.scan().to_arrow()) == expected
    assert arrow_rows(pyiceberg_catalog.load_table(name).scan().to_arrow()) == expected
    assert java_rows(iceberg_java, name) == expected
    # A filter goes through our bounds and partition values; a wrong one would lose rows here.
    kept = [row for row in sample(0, 20).to_pylist() if row["price"] is not None and row["price"] > Decimal("60")]
    assert len(java_rows(iceberg_java, name, "where price > 60")) == len(kept)
    assert pyiceberg_catalog.load_table(name).scan("price > 60").to_arrow().num_rows == len(kept)
    summary = [row[0] for row in iceberg_java.sql(f"select summary['total-records'] from ice.{name}.snapshots")]
    assert sorted(summary) == ["12", "20"]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_we_read_the_rows_that_pyiceberg_appends(
    catalog: Any, pyiceberg_catalog: Any, name: str, spec: PartitionSpec
) -> None:
    catalog.create_table(name, SCHEMA, partition_spec=spec)
    theirs = pyiceberg_catalog.load_table(name)
    theirs.append(sample(0, 15))

    table = catalog.load_table(name)
    assert arrow_rows(table.scan().to_arrow()) == arrow_rows(sample(0, 15))
    table.append(sample(15, 5))
    theirs.refresh().append(sample(20, 5))
    expected = arrow_rows(sample(0, 25))
    assert arrow_rows(table.refresh().scan().to_arrow()) == expected
    assert arrow_rows(theirs.refresh().scan().to_arrow()) == expected


def test_we_read_a_table_that_pyiceberg_creates(catalog: Any, pyiceberg_catalog: Any, name: str) -> None:
    theirs = pyiceberg_catalog.create_table(name, ARROW)
    theirs.append(sample(0, 9))

    assert arrow_rows(catalog.load_table(name).scan().to_arrow()) == arrow_rows(sample(0, 9))


JAVA_COLUMNS = (
    "id bigint not null, flag boolean, small int, ratio float, score double, price decimal(12,2), day date, "
    "at timestamp_ntz, at_utc timestamp, name string, raw binary, tags array<string>, props map<string,bigint>, "
    "place struct<x:double,label:string>"
)
JAVA_PARTITIONS = {
    "unpartitioned": "",
    "identity": "partitioned by (name)",
    "hidden": "partitioned by (bucket(3, id), days(at), truncate(2, name))",
    "times": "partitioned by (hours(at_utc), months(day))",
}


def java_insert(iceberg_java: Any, name: str, start: int, count: int) -> None:
    iceberg_java.sql(
        f"insert into ice.{name} select id, id % 2 = 0, cast(id - 7 as int), cast(id / 4 as float), id * -1.25D, "
        "cast(id * 7.31 as decimal(12,2)), date_add(date'1969-12-30', cast(id as int)), "
        "timestamp_ntz'1969-12-31 22:15:00' + make_dt_interval(0, 7 * cast(id as int)), "
        "timestamp'2024-02-28 23:00:00' + make_dt_interval(0, cast(id as int)), "
        "if(id % 5 = 0, null, concat('n', id % 3)), cast(concat('r', id) as binary), array(concat('t', id), null), "
        "map('k', id), named_struct('x', id / 2D, 'label', if(id % 2 = 0, null, 'odd')) "
        f"from range({start}, {start + count})"
    )


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("partitioned", JAVA_PARTITIONS.values(), ids=JAVA_PARTITIONS.keys())
def test_we_read_and_extend_a_table_that_java_writes(
    catalog: Any, iceberg_java: Any, name: str, partitioned: str, version: str
) -> None:
    iceberg_java.sql(
        f"create table ice.{name} ({JAVA_COLUMNS}) using iceberg {partitioned} "
        f"tblproperties ('format-version'='{version}')"
    )
    java_insert(iceberg_java, name, 0, 20)

    table = catalog.load_table(name)
    first = table.scan().to_arrow()
    assert arrow_rows(first) == java_rows(iceberg_java, name)
    # What we append goes back to Java with its hidden partitions computed by us.
    more = first.set_column(0, first.schema.field(0), pa.compute.add(first["id"], 100))
    table.append(more)
    assert java_rows(iceberg_java, name) == arrow_rows(table.scan().to_arrow())
    assert len(java_rows(iceberg_java, name, "where id >= 100 and day > date'1970-01-05'")) == (
        table.scan("id >= 100 and day > date'1970-01-05'").to_arrow().num_rows
    )
    java_insert(iceberg_java, name, 200, 5)
    assert arrow_rows(table.refresh().scan().to_arrow()) == java_rows(iceberg_java, name)


@pytest.mark.parametrize("partitioned", ["", "partitioned by (bucket(2, id))"], ids=["unpartitioned", "bucket"])
def test_we_apply_the_position_deletes_that_java_writes(
    catalog: Any, iceberg_java: Any, name: str, partitioned: str
) -> None:
    iceberg_java.sql(
        f"create table ice.{name} ({JAVA_COLUMNS}) using iceberg {partitioned} "
        "tblproperties ('format-version'='2', 'write.delete.mode'='merge-on-read', "
        "'write.update.mode'='merge-on-read')"
    )
    java_insert(iceberg_java, name, 0, 30)
    iceberg_java.sql(f"delete from ice.{name} where id % 7 = 3")
    iceberg_java.sql(f"update ice.{name} set name = 'changed' where id in (1, 2, 28)")

    table = catalog.load_table(name)
    assert arrow_rows(table.scan().to_arrow()) == java_rows(iceberg_java, name)
    table.append(table.scan("id < 5").to_arrow())
    assert arrow_rows(table.scan().to_arrow()) == java_rows(iceberg_java, name)


def test_time_travel_agrees_with_java(catalog: Any, iceberg_java: Any, name: str) -> None:
    table = catalog.create_table(name, SCHEMA)
    for start in (0, 10, 20):
        table.append(sample(start, 10))

    for snapshot in table.snapshots():
        ours = arrow_rows(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())
        assert ours == java_rows(iceberg_java, f"{name} version as of {snapshot.snapshot_id}")
