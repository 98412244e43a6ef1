"""Nanoseconds in files of every format: Java's own readers and writers, PyIceberg and DuckDB find what we find.

Apache Iceberg's Spark has no such type, so its readers and writers of records are asked.
`HMS_ICEBERG_DIFFERENTIAL=7:1` takes the seed 7.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.spec.data_types import (
    ListType,
    LongType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform, HourTransform

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCHEMA = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "at", TimestampNanoType()),
    NestedField(3, "zoned", TimestamptzNanoType()),
    NestedField(4, "inner", StructType(NestedField(5, "at", TimestampNanoType()))),
    NestedField(6, "many", ListType(7, TimestamptzNanoType(), False)),
)
ARROW = pa.schema([
    ("n", pa.int64()), ("at", pa.timestamp("ns")), ("zoned", pa.timestamp("ns", "UTC")),
    ("inner", pa.struct([("at", pa.timestamp("ns"))])), ("many", pa.list_(pa.timestamp("ns", "UTC"))),
])  # fmt: skip
SEED = int(os.environ.get("HMS_ICEBERG_DIFFERENTIAL", "11").split(":")[0])
TRANSFORMS = {"parquet": HourTransform(), "orc": BucketTransform(3), "avro": DayTransform()}
DAY = 86_400_000_000_000
# Numbers that are long ones for Py4J too.
ADDED = [(2**40, 123_456_789, -1_000_000_001), (2**41, None, 2**62), (2**42, -7_200_000_000_000, 10)]


def moments(random: Random, file_format: str) -> list[int | None]:
    """Around the epoch, ends of days and hours, and anywhere.

    ORC has no fraction of the last second before 1970; to DuckDB, the very last nanosecond is infinity.
    """
    pool = [
        0,
        1,
        999,
        10**9,
        DAY - 1,
        DAY,
        3_600_000_000_001,
        -DAY - 1,
        -(10**9),
        -2_500_000_001,
        2**62 + 7,
        -(2**62) - 7,
    ]
    pool += [random.randrange(-(2**62), 2**62) for _ in range(6)]
    pool += [] if file_format == "orc" else [-1, -999_999_999, 2**63 - 2, 2 - 2**63]
    return [None if random.random() < 0.15 else random.choice(pool) for _ in range(24)]


def rows(random: Random, first: int, file_format: str) -> pa.Table:
    columns = [moments(random, file_format) for _ in range(4)]
    made = [
        {"n": first + n, "at": at, "zoned": zoned, "inner": None if n % 7 == 0 else {"at": inner}, "many": [many, None]}
        for n, (at, zoned, inner, many) in enumerate(zip(*columns, strict=True))
    ]
    return pa.Table.from_pylist(made, ARROW)


def told(found: pa.Table) -> list[str]:
    """Rows as Java's records show themselves."""
    kinds = [pa.int64(), pa.int64(), pa.int64(), pa.struct([("at", pa.int64())]), pa.list_(pa.int64())]
    plain = found.select(ARROW.names).cast(ARROW).cast(pa.schema(list(zip(ARROW.names, kinds, strict=True))))
    return sorted(record(*row.values()) for row in plain.to_pylist())


def record(
    n: int, at: int | None, zoned: int | None, inner: dict[str, int | None] | None, many: list[int | None] | None
) -> str:
    struct = "null" if inner is None else f"Record({time(inner['at'])})"
    moments = "null" if many is None else f"[{', '.join(time(each, 'Z') for each in many)}]"
    return f"Record({n}, {time(at)}, {time(zoned, 'Z')}, {struct}, {moments})"


def time(nanos: int | None, zone: str = "") -> str:
    """Nanoseconds since 1970 as Java shows a time: no seconds of 0, and digits of the fraction by threes."""
    if nanos is None:
        return "null"
    text = str(np.datetime64(nanos, "ns"))
    while "." in text and text.endswith("000"):
        text = text[:-3].removesuffix(".")
    return (text[:-3] if len(text) == 19 and text.endswith(":00") else text) + zone


def javas_records(spark: Any, location: str, added: Any, conditions: list[list[str]]) -> Any:
    """Rows of a table, and of each condition, by Java's readers; `added` is what its writers add to the table first."""
    import re

    java = spark._jvm
    iceberg, util = java.org.apache.iceberg, java.org.apache.iceberg.util.DateTimeUtil
    table = iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration()).load(location)
    expressions, generics = iceberg.expressions.Expressions, iceberg.data.IcebergGenerics

    def read(condition: Any) -> list[str]:
        with_all = java.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList
        found = [record.toString() for record in with_all(generics.read(table).where(condition).build())]
        # Records of a file with deletes have their position too.
        return sorted(re.sub(r"(null|\]), \d+\)$", r"\1)", text) for text in found)

    if added:
        kind = getattr(iceberg.FileFormat, table.properties()["write.format.default"].upper())
        writers = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(table).dataFileFormat(kind).build()
        files = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).format(kind).build()
        append = table.newAppend()
        for n, at, zoned in added:
            record = iceberg.data.GenericRecord.create(table.schema())
            record.setField("n", n)
            record.setField("at", None if at is None else util.timestampFromNanos(at))
            record.setField("zoned", util.timestamptzFromNanos(zoned))
            key = iceberg.PartitionKey(table.spec(), table.schema())
            key.partition(iceberg.data.InternalRecordWrapper(table.schema().asStruct()).wrap(record))
            writer = writers.newDataWriter(files.newOutputFile(table.spec(), key), table.spec(), key)
            writer.write(record)
            writer.close()
            append.appendFile(writer.toDataFile())
        append.commit()
        table.refresh()
    both = getattr(expressions, "and")  # its records take null for less than all
    tests = [both(expressions.notNull(on), getattr(expressions, way)(on, text)) for way, on, text in conditions]
    return [read(each) for each in (expressions.alwaysTrue(), *tests)]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_java_and_others_read_nanoseconds_of_ours_and_we_read_javas(
    iceberg_java: Any, tmp_path: Path, file_format: str
) -> None:
    random = Random(SEED)
    catalog = load_catalog("folders", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("nanos")
    spec = PartitionSpec(PartitionField(2, 1000, TRANSFORMS[file_format], "part"))
    properties = {"format-version": "3", "write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("nanos.t", SCHEMA, partition_spec=spec, properties=properties)
    for first in (0, 100):
        table.append(rows(random, first, file_format))
    table.delete("n in (3, 105) or at = '1970-01-02T00:00:00.000000000'")
    conditions = [
        ("lessThan", "at", "1970-01-02T00:00:00", "at < '1970-01-02T00:00:00'"),
        ("greaterThanOrEqual", "at", "1970-01-01T00:00:00.000000999", "at >= '1970-01-01T00:00:00.000000999'"),
        ("equal", "at", "1970-01-01T01:00:00.000000001", "at = '1970-01-01T01:00:00.000000001'"),
        ("greaterThan", "zoned", "1970-01-01T00:00:00+00:00", "zoned > '1970-01-01T00:00:00+00:00'"),
        (
            "lessThanOrEqual",
            "zoned",
            "1970-01-01T00:00:00.000000001+00:00",
            "zoned <= '1970-01-01T00:00:00.000000001Z'",
        ),
    ]
    for added in (None, ADDED):
        found = iceberg_java.ask(javas_records, table.location(), added, [each[:3] for each in conditions])
        table.refresh()
        ours = [told(table.scan().to_arrow())]
        ours += [told(table.scan(row_filter=text).to_arrow()) for *_, text in conditions]
        assert found == ours
    assert {record(*row, None, None) for row in ADDED} <= set(ours[0]) and len(ours[0]) > 40
    if file_format == "parquet":
        files = [task.file.file_path.removeprefix("file:") for task in table.scan().plan_files()]
        columns = """n, epoch_ns("at"), epoch_ns(zoned), if("inner" is null, null, {'at': epoch_ns("inner"."at")}),
            list_transform(many, lambda x: epoch_ns(x))"""
        stored = duckdb.execute(f"select {columns} from read_parquet({files})").fetchall()
        assert set(ours[0]) <= {record(*row) for row in stored}
    if file_format != "avro":  # which PyIceberg does not read
        peer = pytest.importorskip("pyiceberg.table").StaticTable.from_metadata(table.metadata_location)
        assert told(peer.scan().to_arrow()) == ours[0]
