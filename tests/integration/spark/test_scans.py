"""What Spark is told of a scan: how its rows are grouped, what is in its columns, and which files values leave out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform
from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import plan_text, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = pytest.mark.spark

GROUPING = "spark.sql.iceberg.planning.preserve-data-grouping"
BUCKETING = "spark.sql.sources.v2.bucketing"


def visits(spark: SparkSession, name: str, step: int) -> None:
    """A table of two specs, the later of which also has the day, with nulls."""
    spark.sql(
        f"create table {name} (id bigint, day timestamp, kind string, v string) using iceberg "
        "partitioned by (bucket(4, id), kind)"
    )
    rows = (
        "select nullif(id, 9), timestamp'2024-01-01' + make_interval(0, 0, 0, int(id % 5)), "
        "case id % 4 when 0 then 'a' when 1 then '' end, concat('v', id) "
    )
    spark.sql(f"insert into {name} {rows} from range(0, 60, {step})")
    spark.sql(f"alter table {name} add partition field days(day)")
    spark.sql(f"insert into {name} {rows} from range(60, 120, {step})")


def scans(plan: Any) -> dict[str, dict[str, int]]:
    """The metrics of the scans of a plan that ran, by what they scan."""
    name = plan.nodeName()
    if name.startswith("AdaptiveSparkPlan"):
        return scans(plan.executedPlan())
    if "QueryStage" in name:
        return scans(plan.plan())
    found = {}
    if name.startswith("BatchScan"):
        metrics, keys = plan.metrics(), plan.metrics().keysIterator()
        names = [keys.next() for _ in range(metrics.size())]
        found[name.rpartition(".")[2]] = {each: metrics.apply(each).value() for each in names}
    children = plan.children()
    for number in range(children.size()):
        found |= scans(children.apply(number))
    return found


def test_tables_that_are_partitioned_alike_are_joined_and_grouped_without_an_exchange(
    spark: SparkSession, namespace: str
) -> None:
    a, b = f"{namespace}.a", f"{namespace}.b"
    visits(spark, a, 1)
    visits(spark, b, 3)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    spark.conf.set(f"{BUCKETING}.enabled", "true")
    spark.conf.set(f"{BUCKETING}.pushPartValues.enabled", "true")
    queries = [
        f"select {a}.id, {b}.v from {a} join {b} on {a}.id = {b}.id",
        f"select {a}.id, {b}.v from {a} left join {b} on {a}.id = {b}.id and {a}.kind = {b}.kind",
        f"select id, count(*), max(v) from {a} group by id",
        f"select kind, id, count(*) from {a} group by kind, id",
    ]
    for query in queries:
        spark.conf.set(GROUPING, "false")
        shuffled = spark.sql(query)
        assert "Exchange hashpartitioning" in plan_text(shuffled), query
        spark.conf.set(GROUPING, "true")
        grouped = spark.sql(query)
        assert "Exchange hashpartitioning" not in plan_text(grouped), query
        assert sorted(map(str, grouped.collect())) == sorted(map(str, shuffled.collect())), query


@pytest.mark.parametrize(
    ("column", "value", "partitions"),
    [
        ("id", "5L", f"partition.id_bucket = {BucketTransform(4).transform(LongType())(5)}"),
        ("day", "timestamp'2024-01-02 00:00:00'", "spec_id = 0 or partition.day_day = date'2024-01-02'"),
        ("kind", "''", "partition.kind = ''"),
    ],
)
def test_values_of_the_other_side_of_a_join_leave_out_files(
    spark: SparkSession, namespace: str, column: str, value: str, partitions: str
) -> None:
    name = f"{namespace}.a"
    visits(spark, name, 1)
    spark.sql(f"create table {namespace}.k stored as parquet as select {value} as value, 'x' as x")
    condition = f"from {name} join {namespace}.k on {name}.{column} = k.value where k.x = 'x'"
    spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio", "10")
    frame = spark.sql(f"select v {condition}")
    found = sorted(row.v for row in frame.collect())
    assert found == sorted(row[0] for row in rows_of(spark, f"select v from {name} where {column} = {value}"))
    assert found
    (metrics,) = scans(frame._jdf.queryExecution().executedPlan()).values()
    files = f"select count(*), count_if({partitions}) from {name}.files"
    total, wanted = rows_of(spark, files)[0]
    assert metrics["numFiles"] == wanted < total


def test_files_that_are_left_of_a_group_are_in_as_few_partitions_as_before(spark: SparkSession, namespace: str) -> None:
    """Spark refuses a scan that has more of one key once it has learnt of values; fewer files are more splits each."""
    name, k = f"{namespace}.a", f"{namespace}.k"
    spark.sql(f"create table {name} (id bigint, v string) using iceberg partitioned by (bucket(4, id))")
    for insert in range(3):
        spark.sql(f"insert into {name} select id, concat('v', id) from range({insert}, 60, 3)")
    spark.sql(
        f"create table {k} stored as parquet as select 5L as id, file_path as path from {name}.files"
        f" where partition.id_bucket = {BucketTransform(4).transform(LongType())(5)}"
    )
    for setting in (GROUPING, f"{BUCKETING}.enabled"):
        spark.conf.set(setting, "true")
    spark.conf.set("spark.sql.files.maxPartitionNum", "3")
    for condition, files in ((f"id = (select max(id) from {k})", 3), (f"_file = (select max(path) from {k})", 1)):
        frame = spark.sql(f"select v from {name} where {condition}")

        found = sorted(row.v for row in frame.collect())
        spark.conf.set(GROUPING, "false")
        assert found == sorted(row[0] for row in rows_of(spark, f"select v from {name} where {condition}"))
        spark.conf.set(GROUPING, "true")
        assert found
        (metrics,) = (each for each in scans(frame._jdf.queryExecution().executedPlan()).values() if "numFiles" in each)
        # Spark hands on the value of such a subquery since 4.2 only.
        assert metrics["numFiles"] == (files if spark_release() > (4, 1) else 12)


def test_paths_of_the_other_side_of_a_join_leave_out_files(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.a"
    visits(spark, name, 1)
    spark.sql(
        f"create table {namespace}.k stored as parquet as select file_path as path, "
        f"row_number() over (order by file_path) as n from {name}.files"
    )
    frame = spark.sql(f"select v from {name} join {namespace}.k on _file = path where n < 3")
    found = sorted(row.v for row in frame.collect())
    (first, second) = (row[0] for row in rows_of(spark, f"select path from {namespace}.k where n < 3"))
    assert found == sorted(
        row[0] for row in rows_of(spark, f"select v from {name} where _file in ('{first}', '{second}')")
    )
    (metrics,) = scans(frame._jdf.queryExecution().executedPlan()).values()
    assert found and metrics["numFiles"] == 2


def test_what_all_files_are_partitioned_by_is_tested_on_no_row(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.a"
    visits(spark, name, 1)
    frame = spark.sql(f"select v from {name} where upper(kind) = 'A' and id > 50")
    assert "upper(kind" not in plan_text(frame)
    assert sorted(row.v for row in frame.collect()) == sorted(f"v{n}" for n in range(52, 120, 4))
    spark.sql(f"alter table {name} drop partition field kind")
    spark.sql(f"insert into {name} values (200, null, 'b', 'v200'), (201, null, 'a', 'v201')")
    frame = spark.sql(f"select v from {name} where upper(kind) = 'A' and id > 100")
    assert "upper(kind" in plan_text(frame)
    assert sorted(row.v for row in frame.collect()) == sorted(["v201", *(f"v{n}" for n in range(104, 120, 4))])


def test_the_optimizer_knows_what_is_in_columns(spark: SparkSession, namespace: str) -> None:
    """The least, the greatest, nulls, and distinct values: by a sketch where there is one."""
    name = f"{namespace}.people"
    spark.sql(
        f"create table {name} using iceberg as select id, id % 10 as few, string(id % 7) as text from range(1000)"
    )
    spark.conf.set("spark.sql.cbo.enabled", "true")
    spark.conf.set("spark.sql.cbo.planStats.enabled", "true")
    assert rows_in(spark, f"select * from {name} where id < 100") == pytest.approx(100, rel=0.1)
    assert rows_in(spark, f"select * from {name} where few = 3") == 100
    assert rows_in(spark, f"select * from {name} where id is null") == 0
    assert rows_in(spark, f"select distinct few from {name}") == 10
    assert rows_in(spark, f"select a.id from {name} a join {name} b on a.few = b.few") == 100_000
    spark.sql(f"call spark_catalog.system.compute_table_stats('{name}')")
    assert rows_in(spark, f"select distinct text from {name}") == 7


def test_the_optimizer_joins_first_what_leaves_few_rows(spark: SparkSession, namespace: str) -> None:
    """The order of Apache Iceberg's plan: 5,000 distinct values meet 1,000 of them, ten meet each a hundred times."""
    fact, few, many = (f"{namespace}.{name}" for name in ("fact", "by_few", "by_many"))
    spark.sql(
        f"create table {fact} using iceberg as select int(id % 10) as few, int(id % 5000) as many from range(20000)"
    )
    spark.sql(f"create table {few} using iceberg as select int(id % 10) as few from range(1000)")
    spark.sql(f"create table {many} using iceberg as select int(id) as many from range(1000)")
    for setting in ("enabled", "planStats.enabled", "joinReorder.enabled"):
        spark.conf.set(f"spark.sql.cbo.{setting}", "true")
    query = f"select count(*) from {fact} f join {few} using (few) join {many} using (many)"
    plan = str(spark.sql(query)._jdf.queryExecution().optimizedPlan())
    order = re.findall(r"RelationV2\[[^]]*\] \S*?(fact|by_few|by_many)\b", plan)
    assert sorted(order) == ["by_few", "by_many", "fact"] and "by_few" in (order[0], order[-1])
    assert spark.sql(query).first() == (400_000,)


def rows_in(spark: SparkSession, query: str) -> int:
    """How many rows the optimizer expects."""
    return int(str(spark.sql(query)._jdf.queryExecution().optimizedPlan().stats().rowCount().get()))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"maxPartitionBytes": "3000", "openCostInBytes": "0"},
        {"maxPartitionBytes": "20000", "openCostInBytes": "500"},
        {"maxPartitionBytes": "3000", "openCostInBytes": "100", "maxPartitionNum": "3"},
    ],
    ids=str,
)
def test_splits_are_packed_as_spark_packs_those_of_its_own_tables(
    spark: SparkSession, namespace: str, settings: dict[str, str]
) -> None:
    """Each partition has the files' rows that it has where Spark reads the same files as Parquet."""
    name = f"{namespace}.files"
    spark.sql(f"create table {name} (id bigint, text string) using iceberg")
    for number in range(5):
        spark.sql(
            f"insert into {name} select /*+ repartition(1) */ id + {10_000 * number}, uuid() "
            f"from range({10 + 150 * number})"
        )
    paths = [row[0] for row in rows_of(spark, f"select file_path from {name}.files")]
    for setting, value in settings.items():
        spark.conf.set(f"spark.sql.files.{setting}", value)
    try:
        both = [
            sorted(
                sorted(row.ids)
                for row in frame.selectExpr("spark_partition_id() as part", "id")
                .groupBy("part")
                .agg({"id": "collect_list"})
                .toDF("part", "ids")
                .collect()
            )
            for frame in (spark.table(name), spark.read.parquet(*paths))
        ]
    finally:
        for setting in settings:
            spark.conf.unset(f"spark.sql.files.{setting}")
    assert both[0] == both[1] and len(both[0]) > 1


@pytest.mark.parametrize("names", [["é"], ["é", "è"], ["x", "x.parquet", "xé"]])
def test_files_whose_names_begin_alike_even_within_a_character_are_read(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path, names: list[str]
) -> None:
    table = catalog.create_table(f"{namespace}.t", pa.schema([("name", pa.string())]))
    for name in names:
        pq.write_table(pa.table({"name": [name]}), tmp_path / f"{name}.parquet")
    table.add_files([str(tmp_path / f"{name}.parquet") for name in names])
    found = rows_of(spark, f"select name, _file from {namespace}.t")
    assert sorted((name, file.rsplit("/", 1)[1]) for name, file in found) == sorted(
        (name, f"{name}.parquet") for name in names
    )


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_a_limit_reads_as_many_files_as_have_so_many_rows(
    spark: SparkSession, namespace: str, format_: str, mode: str
) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"create table {name} (id bigint, kind string) using iceberg partitioned by (kind) tblproperties "
        f"('write.format.default' = '{format_}', 'write.delete.mode' = '{mode}')"
    )
    for kind in "abcd":
        spark.sql(f"insert into {name} select /*+ repartition(1) */ id, '{kind}' from range(10)")
    spark.sql(f"delete from {name} where id > 4 and kind in ('a', 'b')")  # 5, 5, 10 and 10 are left
    merge = mode == "merge-on-read"
    all_rows = set(rows_of(spark, f"select id, kind from {name}"))
    expected = {
        "limit 0": (0, None),
        "limit 10": (10, 1 if merge else 2),
        "limit 11": (11, 2 if merge else 3),
        "limit 20": (20, 2 if merge else 3),
        "limit 29": (29, 4),
        "limit 1000": (30, 4),
        "limit 3 offset 5": (3, 1 if merge else 2),
        "where kind = 'd' limit 4": (4, 1),
        "where kind < 'c' limit 4": (4, 2 if merge else 1),
        "where id >= 4 limit 3": (3, 4),  # rows are tested
    }
    for clause, (count, files) in expected.items():
        frame = spark.sql(f"select id, kind from (select * from {name} {clause})").repartition(2)
        found = [tuple(row) for row in frame.collect()]
        assert len(found) == len(set(found)) == count and set(found) <= all_rows, clause
        if files is not None:
            (metrics,) = scans(frame._jdf.queryExecution().executedPlan()).values()
            assert metrics["numFiles"] <= files, clause
    least = f"select count(*), min(a.id) from (select * from {name} limit 7) a, (select * from {name} limit 12) b"
    assert rows_of(spark, least)[0][0] == 84
