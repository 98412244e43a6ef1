"""db.t.files and its like."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.scan.metadata_tables import METADATA_TABLES
from hms_iceberg.spec.data_types import FixedType, LongType, NestedField, StringType, TimestampNanoType, UUIDType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from tests.support.spark_tables import arrow_of, data_files, delete_positions, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def parted(catalog: Catalog, namespace: str, commit: Callable[..., None]) -> Table:
    """Partitioned, with files of three snapshots and a delete file."""
    schema = Schema(NestedField(1, "id", LongType(), True), NestedField(2, "item", StringType()))
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "item"), PartitionField(1, 1001, BucketTransform(2), "bucket")
    )
    table = catalog.create_table(f"{namespace}.parted", schema, partition_spec=spec)
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), ("item", pa.string())])
    table.append(pa.table([[1, 2, 3], ["pen", None, "pen"]], schema=arrow))
    table.append(pa.table([[4], ["ink"]], schema=arrow))
    first = data_files(table)[0]
    positions = delete_positions(table, (first, [0]))
    commit(table, type(positions)(**{**_fields(positions), "spec_id": first.spec_id, "partition": first.partition}))
    return table


def _fields(file: object) -> dict[str, object]:
    return {name: getattr(file, name) for name in file.__dataclass_fields__}  # type: ignore[attr-defined]


def test_they_are_those_of_the_python_api(spark: SparkSession, parted: Table, namespace: str) -> None:
    for name in METADATA_TABLES:
        expected = parted.inspect.table(name)
        found = spark.table(f"{namespace}.parted.{name}")
        assert found.columns == expected.column_names, name
        assert arrow_of(found).to_pylist() == expected.to_pylist(), name
        assert found.count() == expected.num_rows, name


def test_position_deletes_are_rows_too(spark: SparkSession, parted: Table, namespace: str) -> None:
    expected = parted.inspect.position_deletes()
    found = spark.table(f"{namespace}.parted.position_deletes")
    assert found.columns == expected.column_names
    # PySpark makes no Arrow of a null struct that has a field without nulls.
    assert arrow_of(found.drop("row")).to_pylist() == expected.drop_columns(["row"]).to_pylist()
    assert found.where("pos = 0 and row is null").count() == expected.num_rows == 1


def test_filters_joins_nested_fields_and_views(spark: SparkSession, parted: Table, namespace: str) -> None:
    name = f"{namespace}.parted"
    first = parted.metadata.snapshots[0].snapshot_id
    joined = (
        f"select s.operation, count(*) from {name}.entries e join {name}.snapshots s on e.snapshot_id = s.snapshot_id "
        f"where e.data_file.content = 0 and s.summary['added-records'] > 1 group by 1"
    )
    assert rows_of(spark, joined) == [("append", data_files_of(parted, first))]
    bounds = f"select readable_metrics.id.lower_bound from {name}.files where partition.item = 'ink'"
    assert rows_of(spark, bounds) == [(4,)]
    some = (
        "readable_metrics.id.upper_bound as u, readable_metrics.id.value_count as v, readable_metrics.item.lower_bound"
    )
    for kind in ("files", "entries"):
        whole = [row["readable_metrics"] for row in getattr(parted.inspect, kind)().to_pylist()]
        expected = [(row["id"]["upper_bound"], row["id"]["value_count"], row["item"]["lower_bound"]) for row in whole]
        found = [tuple(row) for row in spark.sql(f"select {some} from {name}.{kind}").collect()]
        assert sorted(found, key=str) == sorted(expected, key=str) and len(expected) > 1
    spark.sql(
        f"create or replace temporary view names as select name, snapshot_id from {name}.refs where type = 'BRANCH'"
    )
    assert rows_of(spark, "select * from names") == [("main", parted.current_snapshot().snapshot_id)]
    with_rows = f"select count(*) from {name} t join {name}.files f on t._file = f.file_path"
    assert rows_of(spark, with_rows) == [(3,)]


@pytest.mark.parametrize("kind", ["files", "data_files", "delete_files", "entries", "all_files", "snapshots", "refs"])
def test_the_first_rows_are_those_of_plain_spark(spark: SparkSession, parted: Table, namespace: str, kind: str) -> None:
    whole = spark.table(f"{namespace}.parted.{kind}")
    plain = spark.createDataFrame(whole.collect(), whole.schema)  # whose sorting knows nothing of metadata tables
    plain.createOrReplaceTempView("plain_rows")
    orders = ["1 desc, 2", "2 asc nulls last, 1", "2 desc nulls first, 1"]
    if kind == "entries":  # only the path is in one row alone
        orders = ["data_file.file_path desc"]
    if kind.endswith("files"):
        orders += ["sort_order_id nulls last, file_path desc", "partition.item desc nulls last, file_path"]
        orders += ["file_size_in_bytes + 1, file_path", "readable_metrics.id.lower_bound, file_path"]
    parts = {"limit 0": slice(0), "limit 1": slice(1), "limit 2 offset 1": slice(1, 3), "limit 1000": slice(None)}
    for number, order in enumerate(orders):
        expected = spark.sql(f"select * from plain_rows order by {order}").collect()
        for first, part in {**(parts if kind == "files" or not number else {}), "limit 2": slice(2)}.items():
            text = f"select * from {namespace}.parted.{kind} order by {order} {first}"
            assert spark.sql(text).collect() == expected[part], text
    rows = whole.collect()
    for count in range(len(rows) + 2):
        some = whole.limit(count).collect()
        assert len(some) == min(count, len(rows)) and all(row in rows for row in some)
    assert whole.limit(2).count() == spark.table("plain_rows").limit(2).count()
    both = whole.select(whole.columns[1]).limit(1).union(whole.select(whole.columns[1]).limit(2))
    assert both.count() == min(1, len(rows)) + min(2, len(rows))
    assert arrow_of(spark.table(f"{namespace}.parted.position_deletes").drop("row").limit(1)).num_rows == 1


def test_aggregates_are_those_of_plain_spark(
    spark: SparkSession, catalog: Catalog, parted: Table, namespace: str
) -> None:
    from pyspark.errors import ArithmeticException
    from pyspark.sql.types import IntegerType, StringType
    from pyspark.sql.types import LongType as Long

    def outcome(text: str) -> object:
        try:
            return spark.sql(text).collect()
        except ArithmeticException as error:  # a sum of ids of snapshots
            return type(error)

    catalog.create_table(f"{namespace}.bare", parted.schema())
    tables = [("parted", kind) for kind in ("files", "entries", "manifests", "snapshots", "position_deletes")]
    for table, kind in (*tables, ("bare", "files"), ("bare", "snapshots")):
        whole = spark.table(f"{namespace}.{table}.{kind}").drop("row")
        spark.createDataFrame(whole.collect(), whole.schema).createOrReplaceTempView("plain_rows")
        asked, sums, first = ["count(*)", *(f"count({name})" for name in whole.columns)], [], whole.columns[0]
        for field in whole.schema:
            if isinstance(field.dataType, IntegerType | Long | StringType):
                asked += [f"min({field.name})", f"max({field.name})"]
            if isinstance(field.dataType, IntegerType | Long):
                sums.append(f"sum({field.name})")
        queries = [
            f"select {', '.join(asked)} from {{}}",
            f"select {', '.join(each for each in sums if 'id' not in each) or 'count(*)'}, count(*) from {{}}",
            *(f"select {each} from {{}}" for each in sums if "snapshot_id" in each),
        ]
        queries += (
            []
            if kind != "files"
            else [
                f"select round(avg({sums[-1][4:-1]}), 3), count(distinct {first}) from {{}}" if sums else "select 1",
                f"select {first}, count(*) from {{}} group by 1 order by 1",
                f"select distinct {first} from {{}} order by 1",
                f"select count(*), max({first}) from {{}} where {first} is not null having count(*) > 0",
                f"select * from (select count({first}) n from {{}} limit 3) where n >= 0 limit 1",
            ]
        )
        for text in queries:
            assert outcome(text.format(f"{namespace}.{table}.{kind}")) == outcome(text.format("plain_rows")), text
    query = spark.sql(f"select count(*), sum(record_count), max(file_path) from {namespace}.parted.files")
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert all(name in plan for name in ("count_0", "sum_1", "max_2"))


def data_files_of(table: Table, snapshot_id: int) -> int:
    return table.inspect.data_files(snapshot_id).num_rows


def test_versions_of_tables_about_one_snapshot(spark: SparkSession, parted: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    name = f"{namespace}.parted"
    first, second, _ = (snapshot.snapshot_id for snapshot in parted.metadata.snapshots)
    count = data_files_of(parted, first)
    assert spark.sql(f"select * from {name}.files version as of {first}").count() == count
    assert spark.sql(f"select * from {name}.entries version as of {second}").count() == count + 1
    with pytest.raises(AnalysisException, match=r"UnsupportedError: .*parted\.snapshots as of a version"):
        spark.sql(f"select * from {name}.snapshots version as of {first}")
    with pytest.raises(AnalysisException, match=r"has no metadata table 'pages': expected one of all_data_files"):
        spark.sql(f"select * from {name}.pages")


def test_they_belong_to_tables_of_the_current_database(spark: SparkSession, parted: Table, namespace: str) -> None:
    from pyspark.errors import AnalysisException

    first = parted.metadata.snapshots[0].snapshot_id
    spark.sql(f"use {namespace}")
    try:
        spark.sql("create view kept as select count(*) files from parted.data_files")
        assert spark.sql("select * from parted.snapshots").count() == 3
        assert spark.sql(f"select * from parted.files version as of {first}").count() == data_files_of(parted, first)
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("select * from parted.pages")
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("select * from nothing.files")
    finally:
        spark.sql("use default")
    assert rows_of(spark, f"select * from {namespace}.kept") == [(parted.inspect.data_files().num_rows,)]


def test_a_version_may_be_part_of_the_name(spark: SparkSession, parted: Table, namespace: str) -> None:
    name, first = f"{namespace}.parted", parted.metadata.snapshots[0]
    assert spark.table(f"{name}.snapshot_id_{first.snapshot_id}").count() == 3
    assert spark.table(f"{name}.at_timestamp_{first.timestamp_ms}").count() == 3
    assert spark.table(f"{name}.branch_main").count() == 3


def test_values_that_arrow_and_spark_hold_differently(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    schema = Schema(
        NestedField(1, "u", UUIDType(), False),
        NestedField(2, "f", FixedType(2), False),
        NestedField(3, "n", TimestampNanoType(), False),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "u"))
    table = catalog.create_table(f"{namespace}.odd", schema, partition_spec=spec, properties={"format-version": "3"})
    key = uuid.UUID(int=77)
    columns = [pa.array([key.bytes], pa.uuid()), pa.array([b"ab"], pa.binary(2)), pa.array([1], pa.timestamp("ns"))]
    table.append(pa.table(columns, names=["u", "f", "n"]))
    query = "select partition.u, readable_metrics.u.upper_bound, readable_metrics.f.lower_bound from"
    assert rows_of(spark, f"{query} {namespace}.odd.files") == [(str(key), str(key), b"ab")]


def test_explain_reads_no_manifests(spark: SparkSession, parted: Table, namespace: str) -> None:
    for manifest in parted.inspect.manifests()["path"].to_pylist():
        parted.storage.delete(manifest)
    cache_of(None).clear()
    assert "iceberg" in spark.sql(f"explain select file_path from {namespace}.parted.files").collect()[0][0]
    with pytest.raises(Exception, match="MissingFileError"):
        spark.table(f"{namespace}.parted.files").collect()


def test_a_few_rows_are_read_from_a_few_manifests(spark: SparkSession, parted: Table, namespace: str) -> None:
    manifests = [row["path"] for row in parted.inspect.manifests().to_pylist() if row["content"] == 0]
    assert len(manifests) > 1
    parted.storage.delete(manifests[-1])
    cache_of(None).clear()
    assert len(spark.table(f"{namespace}.parted.data_files").limit(1).collect()) == 1
    with pytest.raises(Exception, match="MissingFileError"):
        spark.table(f"{namespace}.parted.data_files").orderBy("file_path").limit(1).collect()
