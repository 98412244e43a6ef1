"""Filters and columns reach the planning and the Parquet reader, and never lose a row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spec.data_types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from tests.support.spark_tables import Rows, from_arrow, plan_text, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark


def files_planned(frame: DataFrame) -> tuple[int, int]:
    """How many files a query reads, of how many that were looked at."""
    (found,) = re.findall(r"(\d+) of (\d+) files", plan_text(frame))
    return int(found[0]), int(found[1])


def test_files_are_planned_by_the_query_s_filter(spark: SparkSession, events: Table, namespace: str) -> None:
    fields = "id long, kind string, at timestamp_ntz, size double"
    spark.createDataFrame(events.scan().to_arrow().to_pylist(), fields).createOrReplaceTempView("all_events")
    most = {
        "kind = 'click'": 3,
        "kind is null": 3,
        "kind is not null": 6,
        "kind in ('view', 'buy')": 3,
        "kind <> 'click'": 3,
        "not (kind = 'click' or kind is null)": 3,
        "kind <=> null": 3,
        "kind like 'cl%'": 3,
        "at >= timestamp_ntz'2024-01-03 00:00:00'": 3,
        "at < timestamp_ntz'2024-01-02 00:00:00' and kind = 'view'": 1,
        "cast(at as date) = date'2024-01-02'": 3,
        "id = 40": 3,
        "id > 40 and id < 43": 3,
        "size > 88.5": 1,
        "id in (1, 2, 3)": 3,
        "kind = 'click' or id = 2": 5,
        "upper(kind) = 'CLICK'": 9,
        "kind = 'click' and length(kind) + id > 60": 3,
        "'click' = kind": 3,
        "60 <= id": 3,
    }
    plain = spark.sql(f"select id, {', '.join(most)} from all_events").collect()
    for number, (condition, files) in enumerate(most.items(), 1):
        frame = spark.sql(f"select id from {namespace}.events where {condition}")
        assert files_planned(frame)[0] <= files, condition
        assert sorted(row.id for row in frame.collect()) == sorted(row.id for row in plain if row[number]), condition


def test_comparisons_are_evaluated_before_patterns_and_functions(
    spark: SparkSession, orders: Table, namespace: str
) -> None:
    condition = "item rlike 'p.*|c.*' and upper(item) <> 'PAD' and id > 1 and not item in ('ink', 'box') and price < 9"
    found = spark.sql(f"select id from {namespace}.orders where {condition}")
    (text,) = re.findall(r"Filter (.*)", found._jdf.queryExecution().executedPlan().toString())
    assert max(map(text.index, ("(id", " IN (", "(price"))) < min(map(text.index, ("RLIKE", "upper(")))
    from_arrow(spark, orders.scan().to_arrow()).createOrReplaceTempView("plain_orders")
    assert sorted(found.collect()) == sorted(spark.sql(f"select id from plain_orders where {condition}").collect())


def test_patterns_match_what_plain_spark_matches(spark: SparkSession, namespace: str) -> None:
    """A text of the pattern is looked for first."""
    patterns = ["%p%n%", "p_n", "_%", "%_a%b", "%%", "%é_%x", "%ss%SS%", "%😀_%", "%!%%e%' escape '!"]
    patterns += [r"%50\\%%e%", r"%\\_%x%", r"%\\\\%e%"]
    texts = [
        "pen",
        "pin",
        "pan p n",
        "ab",
        "aab",
        "50% e",
        "50 e%",
        "a_b x",
        "éax",
        "ss SS",
        "a😀be",
        "\\e%",
        "",
        "%_",
        None,
    ]
    plain = spark.createDataFrame(list(enumerate(texts)), "n int, s string")
    plain.createOrReplaceTempView("plain_texts")
    name = f"{namespace}.texts"
    spark.sql(f"create table {name} using iceberg as select * from plain_texts")
    assert "Contains(s" in plan_text(spark.sql(f"select n from {name} where s like '%p%nn%'"))
    conditions = [f"s like '{pattern}'" for pattern in patterns]
    conditions += ["not s like '%p%n%'", "s like '%p%n%' and n > 1"]
    plain = spark.sql(f"select n, {', '.join(conditions)} from plain_texts").collect()
    for number, condition in enumerate(conditions, 1):
        found = spark.sql(f"select n from {name} where {condition}").collect()
        assert sorted(row.n for row in found) == sorted(row.n for row in plain if row[number]), condition


def test_columns_that_are_partitions_are_not_read_of_files(spark: SparkSession, events: Table, namespace: str) -> None:
    frame = spark.sql(f"select kind, count(*) from {namespace}.events where kind = 'click' group by kind")
    text = plan_text(frame)
    assert "ReadSchema: struct<>" in text
    assert [tuple(row) for row in frame.collect()] == [("click", 30)]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_functions_in_python_test_rows_by_the_columns_of_partitions(
    spark: SparkSession, events: Table, namespace: str, mode: str
) -> None:
    name = f"{namespace}.events"
    spark.sql(f"alter table {name} set tblproperties ('write.delete.mode' = '{mode}')")
    spark.udf.register("is_click", lambda kind: kind == "click", "boolean")
    assert rows_of(spark, f"select kind, count(*) from {name} where is_click(kind) group by kind") == [("click", 30)]
    assert spark.table(name).where("not is_click(kind) and kind = 'view'").count() == 30
    spark.sql(f"delete from {name} where is_click(kind)")
    assert rows_of(spark, f"select kind, count(*) from {name} where kind is not null group by kind") == [("view", 30)]


def test_partitions_are_pruned_at_run_time_by_the_other_side_of_a_join(
    spark: SparkSession, events: Table, namespace: str
) -> None:
    spark.sql(f"create table {namespace}.kinds (kind string, label string) stored as parquet")
    spark.sql(f"insert into {namespace}.kinds values ('click', 'good'), ('view', 'bad')")
    frame = spark.sql(
        f"select /*+ broadcast(k) */ count(*) from {namespace}.events e join {namespace}.kinds k on e.kind = k.kind "
        "where k.label = 'good'"
    )
    assert "dynamicpruning" in plan_text(frame)
    assert frame.collect()[0][0] == 30


def test_small_tables_are_broadcast(spark: SparkSession, events: Table, orders: Table, namespace: str) -> None:
    frame = spark.sql(f"select count(*) from {namespace}.events e join {namespace}.orders o on e.id = o.id")
    assert "BroadcastHashJoin" in plan_text(frame)
    assert frame.collect()[0][0] == 6


def test_plans_by_cost_know_how_many_rows_are_read(spark: SparkSession, events: Table, namespace: str) -> None:
    def statistics() -> Any:
        frame = spark.sql(f"select id, size from {namespace}.events where kind = 'click'")
        return frame._jdf.queryExecution().optimizedPlan().stats()

    assert statistics().rowCount().isEmpty()
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        assert int(str(statistics().rowCount().get())) == 30
        assert int(str(statistics().sizeInBytes())) == 30 * (8 + 8 + 8)
        joined = f"select count(*) from {namespace}.events a join {namespace}.events b using (id) where b.kind = 'view'"
        assert rows_of(spark, joined) == [(30,)]
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")


def test_only_the_columns_of_the_query_are_read(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    place = StructType(NestedField(11, "city", StringType()), NestedField(12, "zip", IntegerType()))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "place", place))
    table = catalog.create_table(f"{namespace}.people", schema)
    table.append(
        pa.table(
            {"id": pa.array([1, 2, 3]), "place": [{"city": "Rome", "zip": 1}, None, {"city": None, "zip": 3}]},
            schema=pa.schema([("id", pa.int64()), ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())]))]),
        )
    )
    frame = spark.sql(f"select place.zip from {namespace}.people where place.city = 'Rome'")
    assert "ReadSchema: struct<place:struct<city:string,zip:int>>" in plan_text(frame)
    assert "planned for place.city is not null" in plan_text(frame) or "place.city = 'Rome'" in plan_text(frame)
    assert [tuple(row) for row in frame.collect()] == [(1,)]
    only = spark.sql(f"select place.zip from {namespace}.people")
    assert "ReadSchema: struct<place:struct<zip:int>>" in plan_text(only)
    assert sorted((row[0] for row in only.collect()), key=str) == [1, 3, None]


def test_a_filter_is_not_applied_to_the_column_that_had_its_name_before(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    rows = Rows({"a": pa.int64(), "b": pa.int64()})
    table = catalog.create_table(f"{namespace}.swapped", rows.schema)
    table.append(rows((n, 1000 + n) for n in range(100)))
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    name = f"{namespace}.swapped"
    assert spark.table(name).columns == ["b", "a"]
    assert rows_of(spark, f"select a, b from {name} where a = 1005") == [(1005, 5)]
    assert rows_of(spark, f"select a, b from {name} where b = 5") == [(1005, 5)]
    table.append(rows([(2000, 3000)]).rename_columns(["b", "a"]))
    assert rows_of(spark, f"select a, b from {name} where a >= 1099") == [(1099, 99), (3000, 2000)]


def test_a_dropped_and_added_column_does_not_bring_the_old_values_back(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    rows = Rows({"a": pa.int64(), "b": pa.int64()})
    table = catalog.create_table(f"{namespace}.again", rows.schema)
    table.append(rows([(1, 10), (2, 20)]))
    with table.update_schema() as update:
        update.delete_column("b")
    with table.update_schema() as update:
        update.add_column("b", LongType())
    table.append(rows([(3, 30)]))
    name = f"{namespace}.again"
    assert rows_of(spark, f"select a, b from {name}") == [(1, None), (2, None), (3, 30)]
    assert rows_of(spark, f"select a from {name} where b is null") == [(1,), (2,)]
    assert rows_of(spark, f"select a from {name} where b = 10") == []


def test_promoted_columns_are_filtered_with_values_beyond_their_old_type(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    rows = Rows({"a": pa.int32(), "f": pa.float32()})
    table = catalog.create_table(f"{namespace}.wider", rows.schema)
    table.append(rows([(1, 0.5), (2, 1.5)]))
    with table.update_schema() as update:
        update.update_column("a", LongType())
        update.update_column("f", DoubleType())
    table.append(Rows({"a": pa.int64(), "f": pa.float64()})([(2**40, 1e300)]))
    name = f"{namespace}.wider"
    assert rows_of(spark, f"select a from {name} where a = {2**32 + 1}") == []
    assert rows_of(spark, f"select a, f from {name} where a < {2**40}") == [(1, 0.5), (2, 1.5)]
    assert rows_of(spark, f"select a from {name} where f > 1") == [(2,), (2**40,)]


def test_partition_evolution_mixes_files_of_several_specs(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    rows = Rows({"id": pa.int64(), "kind": pa.string()})
    table = catalog.create_table(f"{namespace}.evolved", rows.schema)
    table.append(rows([(1, "a"), (2, "b")]))
    with table.update_spec() as update:
        update.add_field("kind", IdentityTransform(), "kind_is")
    table.append(rows([(3, "a"), (4, None)]))
    with table.update_spec() as update:
        update.remove_field("kind_is")
        update.add_field("id", BucketTransform(4), "id_bucket")
    table.append(rows([(5, "a"), (6, "b")]))
    name = f"{namespace}.evolved"
    assert rows_of(spark, f"select id from {name} where kind = 'a'") == [(1,), (3,), (5,)]
    assert rows_of(spark, f"select id, kind from {name} where id > 3") == [(4, None), (5, "a"), (6, "b")]
    assert rows_of(spark, f"select kind, count(*) from {name} group by kind") == [("a", 3), ("b", 2), (None, 1)]
    assert files_planned(spark.sql(f"select id from {name} where kind = 'c'"))[0] == 0


def test_metadata_columns_say_where_a_row_is(spark: SparkSession, events: Table, namespace: str) -> None:
    rows: list[Any] = spark.sql(
        f"select id, kind, _file, _pos, _spec_id from {namespace}.events where id in (0, 3) order by id"
    ).collect()
    assert [row._pos for row in rows] == [0, 1]
    assert [row._spec_id for row in rows] == [0, 0]
    assert "kind=click" in rows[0]._file and rows[0]._file.startswith(events.location())
    assert "_file" not in spark.table(f"{namespace}.events").columns


def test_files_are_planned_by_the_metadata_columns(spark: SparkSession, events: Table, namespace: str) -> None:
    paths = sorted(task.file.file_path for task in events.scan().plan_files())
    columns, name = "id, _file, _pos, _spec_id, _partition.kind k", f"{namespace}.events"
    every = spark.sql(f"select id, kind, _file, _pos, _spec_id, _partition from {name} limit 1000")
    spark.createDataFrame(every.collect(), every.schema).createOrReplaceTempView("every_event")
    for condition, files in (
        (f"_file = '{paths[2]}'", 1),
        (f"_file in ('{paths[2]}', '{paths[4]}') and _pos < 3", 2),
        (f"_file <> '{paths[2]}'", 8),
        ("_spec_id = 0", 9),
        ("_spec_id > 0", 0),
        ("_partition.kind = 'click'", 3),
        ("_partition.day = date'2024-01-02' and _partition.kind is not null", 2),
        ("_partition.kind is null or _file = 'x'", 3),
        ("_pos = 4", 9),
    ):
        frame = spark.sql(f"select {columns} from {name} where {condition}")
        assert files_planned(frame) == (files, 9), condition
        plain = spark.sql(f"select {columns} from every_event where {condition}")
        assert sorted(frame.collect()) == sorted(plain.collect()), condition
