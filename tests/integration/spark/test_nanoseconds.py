"""Timestamps in nanoseconds as the session wants them: in microseconds, or as numbers; whole tables, all formats."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hms_iceberg.spec.data_types import (
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform, IdentityTransform
from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import data_files, plan_text, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

SETTING = "spark.hms_iceberg.nanoseconds"
SCHEMA = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "at", TimestampNanoType()),
    NestedField(3, "zoned", TimestamptzNanoType()),
    NestedField(4, "inner", StructType(NestedField(5, "at", TimestampNanoType()), NestedField(6, "k", LongType()))),
    NestedField(7, "many", ListType(8, TimestampNanoType(), False)),
)
# In microseconds: around the epoch, the ends of what nanoseconds hold, a day's ends, null.
TIMES = [0, -2_500_000, 1, 1_700_000_000_123_456, -9_223_372_036_854_775, 9_223_372_036_854_775, 86_400_000_000, None]
ARROW = pa.schema([
    ("n", pa.int64()), ("at", pa.timestamp("ns")), ("zoned", pa.timestamp("ns", "UTC")),
    ("inner", pa.struct([("at", pa.timestamp("ns")), ("k", pa.int64())])), ("many", pa.list_(pa.timestamp("ns"))),
])  # fmt: skip
PARTITIONS = {"parquet": DayTransform(), "orc": BucketTransform(4), "avro": IdentityTransform()}
ALL = "n, at, zoned, inner.at, inner.k, many"


def rows(start: int = 0, odd: int = 0) -> pa.Table:
    """A row for each time; `odd` nanoseconds are added to the first."""
    nanos = [None if each is None else each * 1000 for each in TIMES]
    nanos[0] = odd
    at = pa.array(nanos, pa.int64())
    near = [5000 if each is not None and abs(each) > 9e18 else each for each in nanos]  # ORC's are less, in nested ones
    inner_at = pa.array(near, pa.int64()).cast(pa.timestamp("ns"))
    inner = pa.StructArray.from_arrays([inner_at, pa.array(range(8), pa.int64())], ["at", "k"])
    many = pa.array([[each, None] if each is not None else None for each in near], pa.list_(pa.int64()))
    columns = [
        pa.array(range(start, start + 8), pa.int64()), at.cast(pa.timestamp("ns")), at.cast(pa.timestamp("ns", "UTC")),
        inner, many.cast(pa.list_(pa.timestamp("ns"))),
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=ARROW)


def made(catalog: Catalog, name: str, form: str, mode: str) -> Table:
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    properties = {"format-version": "3", "write.format.default": form, **modes}
    spec = PartitionSpec(PartitionField(2, 1000, PARTITIONS[form], "part"))
    table = catalog.create_table(name, SCHEMA, partition_spec=spec, properties=properties)
    table.append(rows())
    return table


def shown(table: pa.Table, choice: str) -> list[tuple[Any, ...]]:
    """Rows of Python as the session shows them."""

    def numbers(array: Any) -> list[Any]:
        nanos = array.cast(pa.int64())
        if choice == "bigint":
            return nanos.to_pylist()
        return [None if each is None else each // 1000 for each in nanos.to_pylist()]

    found = []
    for row in table.sort_by("n").combine_chunks().to_batches():
        many = [each and numbers(pa.array(each, pa.timestamp("ns"))) for each in _lists(row["many"])]
        inner = row["inner"].combine_chunks() if isinstance(row["inner"], pa.ChunkedArray) else row["inner"]
        found += zip(
            row["n"].to_pylist(), numbers(row["at"]), numbers(row["zoned"]), numbers(pc.struct_field(inner, "at")),
            pc.struct_field(inner, "k").to_pylist(), many, strict=True,
        )  # fmt: skip
    return found


def _lists(column: Any) -> list[Any]:
    return column.cast(pa.list_(pa.int64())).to_pylist()


def in_spark(choice: str) -> str:
    """The columns of a query, as whole numbers."""
    if choice == "bigint":
        return ALL
    wrapped = [f"unix_micros(cast({each} as timestamp))" for each in ("at", "zoned", "inner.at")]
    return f"n, {', '.join(wrapped)}, inner.k, transform(many, each -> unix_micros(cast(each as timestamp)))"


def literal(micros: int, choice: str) -> str:
    if choice == "bigint":
        return f"{micros * 1000}l"
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    return f"timestamp_ntz'{moment.isoformat(sep=' ')}'"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


@pytest.mark.parametrize("choice", ["micros", "bigint"])
@pytest.mark.parametrize(
    ("form", "mode"), [("parquet", "copy-on-write"), ("orc", "merge-on-read"), ("avro", "copy-on-write")]
)
def test_nanoseconds_are_read_filtered_and_written(
    session: SparkSession, catalog: Catalog, namespace: str, form: str, mode: str, choice: str
) -> None:
    name = f"{namespace}.nanos_{form}_{choice}"
    table = made(catalog, name, form, mode)
    session.conf.set(SETTING, choice)
    kinds = [field.dataType.simpleString() for field in session.table(name).schema.fields[1:3]]
    assert kinds == (["bigint", "bigint"] if choice == "bigint" else ["timestamp_ntz", "timestamp"])
    query = f"select {in_spark(choice)} from {name}"
    assert rows_of(session, query) == shown(rows(), choice)
    session.table(name).localCheckpoint().createOrReplaceTempView("plain_nanoseconds")
    at = literal(TIMES[3], choice)
    for condition in (
        f"at = {at}", f"at <> {at}", f"at < {at}", f"at >= {literal(1, choice)}", "at is null", f"not (at <=> {at})",
        f"at in ({at}, null, {literal(-2_500_000, choice)})", f"inner.at > {literal(0, choice)}", "at >= zoned",
    ):  # fmt: skip
        wanted = rows_of(session, f"select n from plain_nanoseconds where {condition}")
        assert rows_of(session, f"select n from {name} where {condition}") == wanted, condition
    extremes = "select min(at), max(at), count(at), count(*) from "
    assert rows_of(session, extremes + name) == rows_of(session, extremes + "plain_nanoseconds")

    session.sql(f"insert into {name} select n + 100, at, zoned, inner, many from {name} where n <> 3")
    session.sql(f"delete from {name} where at = {at} or n = 107")
    session.sql(f"update {name} set at = {literal(-86_400_000_001, choice)} where n = 100")
    wanted = [row for row in [*shown(rows(), choice), *shown(rows(100), choice)] if row[0] not in (3, 103, 107)]
    unit = 1000 if choice == "bigint" else 1
    wanted = [(100, -86_400_000_001 * unit, *row[2:]) if row[0] == 100 else row for row in wanted]
    assert rows_of(session, query) == wanted
    appended = f"select {in_spark(choice)} from {name}.changes where n < 100 and _change_ordinal = 0"
    assert rows_of(session, appended) == shown(rows(), choice)
    table.refresh()
    if form == "parquet" and spark_release() >= (4, 0):  # rows are copied, so that another reader needs no deletes
        paths = [file.file_path for file in data_files(table)]
        times = 'epoch_ns("at"), epoch_ns(zoned), epoch_ns("inner"."at")'
        columns = f'n, {times}, "inner".k, list_transform(many, lambda each: epoch_ns(each))'
        source = f"read_parquet({paths}, hive_partitioning = false)"
        found = duckdb.sql(f"select {columns} from {source} order by n").fetchall()
        nanos = 1 if choice == "bigint" else 1000
        assert found == [
            (n, *(each and each * nanos for each in times), k, many and [each and each * nanos for each in many])
            for n, *times, k, many in wanted
        ]
    assert shown(table.scan().to_arrow(), choice) == wanted
    twin = catalog.create_table(f"{name}_twin", SCHEMA, partition_spec=table.spec(), properties={"format-version": "3"})
    twin.append(table.scan().to_arrow())
    alive = {file.partition for file in data_files(table)}
    assert alive >= {file.partition for file in data_files(twin)}
    found = table.scan(row_filter="at < '1970-01-01T00:00:00.000001'").to_arrow()["n"].to_pylist()
    assert sorted(found) == sorted(row[0] for row in wanted if row[1] is not None and row[1] < unit)
    bounds = {row["at"]["upper_bound"] for row in table.inspect.files()["readable_metrics"].to_pylist() if row["at"]}
    assert any(bounds)


def test_parts_of_microseconds_are_an_error_in_microseconds(
    session: SparkSession, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.odd"
    table = catalog.create_table(name, SCHEMA, properties={"format-version": "3"})
    table.append(rows(odd=123))
    session.conf.set(SETTING, "micros")
    assert rows_of(session, f"select n from {name} where n < 2") == [(0,), (1,)]
    assert rows_of(session, f"select unix_micros(cast(at as timestamp)) from {name} where n = 1") == [(-2_500_000,)]
    with pytest.raises(Exception, match=r"(?s)Cannot read a column of nanoseconds in microseconds.*bigint"):
        session.sql(f"select at from {name}").collect()
    session.conf.set(SETTING, "bigint")
    assert rows_of(session, f"select at, many[0] from {name} where n = 0") == [(123, 123)]
    rows_each = "select /*+ coalesce(1) */ id, id * 1000000007, null, null, null from range(25000)"
    session.sql(f"insert into {name} {rows_each}")
    table.refresh()
    assert pq.read_metadata(data_files(table)[-1].file_path).num_row_groups == 1
    assert rows_of(session, f"select count(*), sum(at) from {name} where zoned is null") == [
        (25001, 1000000007 * sum(range(25000)))
    ]
    session.conf.set(SETTING, "nanos")
    with pytest.raises(Exception, match="may be micros or bigint"):
        session.table(name)
    session.conf.unset(SETTING)
    with pytest.raises(Exception, match="Cannot read the column at"):
        session.table(name).collect()


def test_rows_of_python_are_tested_by_their_partitions_and_streamed(
    session: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    name = f"{namespace}.kinds"
    inner = StructType(NestedField(4, "b", StringType()), NestedField(5, "a", LongType()))
    many = ListType(7, StructType(NestedField(8, "x", LongType()), NestedField(9, "y", LongType())), False)
    schema = Schema(
        NestedField(1, "kind", StringType()), NestedField(2, "at", TimestampNanoType()), NestedField(3, "s", inner),
        NestedField(6, "many", many),
    )  # fmt: skip
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "kind"))
    catalog.create_table(name, schema, partition_spec=spec, properties={"format-version": "3"})
    session.conf.set(SETTING, "bigint")
    kinds = "case id % 3 when 0 then 'a' when 1 then 'B' end"
    session.sql(
        f"insert into {name} select {kinds}, id, named_struct('b', string(id), 'a', id), "
        "array(named_struct('x', id, 'y', -id)) from range(30)"
    )
    frame = session.sql(f"select s.a from {name} where upper(kind) = 'A' and at > 20")
    assert "read by Python" in plan_text(frame) and "upper(kind" not in plan_text(frame)
    assert sorted(row.a for row in frame.collect()) == [21, 24, 27]
    assert rows_of(session, f"select sum(many[0].y), max(many.y[0]) from {name}") == [(-435, 0)]
    assert rows_of(session, f"select count(*) from {name} where lower(kind) = 'b'") == [(10,)]
    assert rows_of(session, f"select l.s.b from {name} l join {name} r on l.at = r.s.a + 28") == [("28",), ("29",)]
    found: list[int] = []
    query = (
        session.readStream.table(name).where("kind = 'a'").select("s.a").writeStream
        .foreachBatch(lambda batch, _: found.extend(row.a for row in batch.collect()))
        .option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    assert sorted(found) == list(range(0, 30, 3))
