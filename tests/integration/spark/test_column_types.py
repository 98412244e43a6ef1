"""Columns of types that only some versions of Spark hold, or none; and the column _partition."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.spec.data_types import LongType, NestedField, StructType, TimestampNanoType, VariantType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform, IdentityTransform
from hms_iceberg.variant import variant_column, variant_of, variants_to_python
from tests.support.spark_tables import Rows, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]


def test_only_a_query_that_uses_a_column_of_nanoseconds_is_refused(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    from pyspark.errors import AnalysisException

    nanos = NestedField(3, "deep", TimestampNanoType())
    pair = StructType(nanos, NestedField(4, "other", LongType()))
    at = NestedField(2, "at", TimestampNanoType(), doc="when")
    schema = Schema(NestedField(1, "n", LongType()), at, NestedField(5, "pair", pair))
    name = f"{namespace}.nanos"
    table = catalog.create_table(name, schema, properties={"format-version": "3"})
    times = pa.array([1_700_000_000_000_000_123, None], pa.timestamp("ns"))
    table.append(
        pa.table({"n": [1, 2], "at": times, "pair": [{"deep": 5, "other": 6}, None]}, to_arrow(table.schema()))
    )
    assert rows_of(spark, f"select n, pair.other from {name} where pair.other is null or n = 1") == [(1, 6), (2, None)]
    assert rows_of(spark, f"select n from (select * from {name}) where n > 1") == [(2,)]
    for query in ("select * from {}", "select n from {} where at = '2020'", "select n from {} where at is null",
                  "select count(at) from {}", "select min(at) from {}"):  # fmt: skip
        with pytest.raises(AnalysisException, match=r"UnsupportedError: Cannot read the column at of .* timestamp_ns"):
            spark.sql(query.format(name)).collect()
    with pytest.raises(AnalysisException, match=r"UnsupportedError: Cannot read the column pair\.deep of "):
        spark.sql(f"select pair from {name}").collect()
    assert rows_of(spark, f"select pos from {name}.position_deletes") == []
    with pytest.raises(AnalysisException, match=r"UnsupportedError: Cannot read the column row\.at of "):
        spark.sql(f"select row from {name}.position_deletes").collect()
    comments = {row.col_name: row.comment for row in spark.sql(f"describe {name}").collect()}
    assert comments["at"] == "when (Iceberg type timestamp_ns, which Spark cannot hold)"


def test_a_time_is_read_where_spark_has_the_type(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    rows = Rows({"n": pa.int64(), "at": pa.time64("us")})
    name = f"{namespace}.times"
    catalog.create_table(name, rows.schema).append(rows([(1, dt.time(23, 59, 59, 999_999)), (2, None)]))
    assert rows_of(spark, f"select n from {name}") == [(1,), (2,)]
    if spark.version >= "4.1":
        # Spark's setting spark.sql.timeType.enabled is about literals and functions; columns are read without it.
        assert rows_of(spark, f"select * from {name}") == [(1, dt.time(23, 59, 59, 999_999)), (2, None)]


@pytest.mark.since_spark("4.0", "the type variant")
def test_a_variant_that_is_not_shredded_is_read(
    spark: SparkSession, catalog: Catalog, namespace: str, commit: Any
) -> None:
    schema = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
    name = f"{namespace}.variants"
    table = catalog.create_table(name, schema, properties={"format-version": "3"})
    empty = b"\x01\x00\x00"  # a dictionary of no names
    values = [{"metadata": empty, "value": b"\x0c\x05"}, {"metadata": empty, "value": b"\x09hi"}, None]
    location = f"{table.location()}/data/{uuid.uuid4()}.parquet"
    with table.storage.open_output(location) as output:
        pq.write_table(pa.table({"n": [1, 2, 3], "v": values}, to_arrow(table.schema())), output)
    file = DataFile(
        file_path=location,
        file_format="PARQUET",
        record_count=3,
        file_size_in_bytes=table.storage.length(location),
        content=DataFileContent.DATA,
    )
    commit(table, file)
    assert rows_of(spark, f"select n, to_json(v) from {name}") == [(1, "5"), (2, '"hi"'), (3, None)]
    assert rows_of(spark, f"select n, variant_get(v, '$', 'string') from {name} where n < 3") == [(1, "5"), (2, "hi")]
    assert [row.v and str(row.v) for row in spark.sql(f"select v from {name} order by n").collect()] == [
        "5", '"hi"', None
    ]  # fmt: skip
    assert rows_of(spark, f"select n from {name}") == [(1,), (2,), (3,)]


@pytest.mark.since_spark("4.1", "Parquet files that name variants")
def test_a_variant_that_is_shredded_is_what_duckdb_reads(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path
) -> None:
    schema = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
    name = f"{namespace}.shredded"
    table = catalog.create_table(name, schema, properties={"format-version": "3"})
    location = tmp_path / "rows.parquet"
    rows = """
        select i as n, case when i % 5 = 0 then null when i % 7 = 0 then [i, null]::variant
            when i % 11 = 0 then {'a': 'text', 'extra': {'deep': true}}::variant
            else {'a': i, 'b': 'x' || i, 'list': [{'x': i}],
                'd': case when i % 2 = 0 then {'z': 1.5::double} end}::variant
        end as v from range(100) t(i)
    """
    fields = "STRUCT(a BIGINT, b VARCHAR, list STRUCT(x BIGINT)[], d STRUCT(z DOUBLE))"
    with duckdb.connect() as connection:
        connection.sql(f"copy ({rows}) to '{location}' (format parquet, shredding {{'v': '{fields}'}})")
        wanted = connection.sql(f"select n, v::json::varchar from '{location}' order by n").fetchall()
    table.add_files([str(location)])
    found = rows_of(spark, f"select n, to_json(v) from {name}")
    assert [(n, v and json.loads(v)) for n, v in found] == [(n, v and json.loads(v)) for n, v in wanted]
    query = f"select n from {name} where try_variant_get(v, '$.a', 'bigint') > 90"
    numbers = [n for n in range(100) if n % 5 and n % 7 and n % 11]
    assert rows_of(spark, query) == [(n,) for n in numbers if n > 90]
    assert rows_of(spark, f"select count(*), sum(variant_get(v, '$.list[0].x', 'int')) from {name}") == [
        (100, sum(numbers))
    ]


@pytest.mark.since_spark("4.1", "Parquet files that name variants")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_variants_that_spark_writes_are_what_duckdb_reads(
    spark: SparkSession, catalog: Catalog, namespace: str, mode: str
) -> None:
    schema = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
    name = f"{namespace}.written"
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    shredding = {"write.parquet.shred-variants": "true"}
    table = catalog.create_table(name, schema, properties={"format-version": "3", **modes, **shredding})
    documents = [variant_of({"n": n, "list": [n, None], "x": {"y": str(n)}}) for n in range(20)]
    table.append(pa.table({"n": range(20), "v": variant_column(documents)}))
    made = """parse_json('{"n": ' || id || ', "list": [' || id || ', null], "x": {"y": "' || id || '"}}')"""
    spark.sql(f"insert into {name} select id, {made} from range(20, 40)")
    spark.sql(f"delete from {name} where variant_get(v, '$.x.y', 'int') in (3, 23)")
    spark.sql(f"update {name} set v = parse_json('5') where n = 24")
    spark.sql(f"update {name} set n = 104 where n = 4")
    spark.sql(
        f"merge into {name} t using (select 5L as n, parse_json('null') as v union all select 50L, null) s "
        "on t.n = s.n when matched then update set * when not matched then insert *"
    )
    wanted = {n: {"n": n, "list": [n, None], "x": {"y": str(n)}} for n in range(40) if n not in (3, 23)}
    wanted |= {24: 5, 104: wanted.pop(4), 5: None, 50: None}
    found = dict(rows_of(spark, f"select n, to_json(v) from {name}"))
    assert {n: v and json.loads(v) for n, v in found.items()} == wanted
    assert [n for n, v in found.items() if v is None] == [50]
    rows = catalog.load_table(name).scan().to_arrow()
    assert dict(zip(rows["n"].to_pylist(), variants_to_python(rows["v"]), strict=True)) == wanted
    if mode == "copy-on-write" and spark.version >= "4.3":  # older versions were not tried with DuckDB
        files = [task.file.file_path.removeprefix("file:") for task in catalog.load_table(name).scan().plan_files()]
        with duckdb.connect() as connection:
            read = connection.sql(f"select n, v::json::varchar, typeof(v) from read_parquet({files})").fetchall()
        assert {n: v and json.loads(v) for n, v, _ in read} == wanted
        assert {kind for _, _, kind in read} == {"VARIANT"}


def test_the_partition_of_a_row(spark: SparkSession, catalog: Catalog, namespace: str) -> None:
    rows = Rows({"n": pa.int64(), "at": pa.timestamp("us"), "kind": pa.string()})
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "n_bucket"),
        PartitionField(2, 1001, DayTransform(), "day"),
        PartitionField(3, 1002, IdentityTransform(), "kind"),
    )
    name = f"{namespace}.parts"
    table = catalog.create_table(name, rows.schema, partition_spec=spec)
    day = dt.datetime(2024, 1, 1)
    table.append(rows([(1, day, "a"), (2, day, None), (3, None, "c")]))
    with table.update_spec() as update:
        update.remove_field("kind")
    with table.transaction() as transaction:
        transaction.set_properties({"write.format.default": "orc"})
    table.refresh()
    table.append(rows([(7, day, "z")]))
    found = {row[0]: row[1] and row[1].asDict() for row in spark.sql(f"select n, _partition from {name}").collect()}
    assert found == {
        1: {"n_bucket": 0, "day": day.date(), "kind": "a"},
        2: {"n_bucket": 0, "day": day.date(), "kind": None},
        3: {"n_bucket": 3, "day": None, "kind": "c"},
        7: {"n_bucket": 3, "day": day.date(), "kind": None},
    }
    query = f"select n, _partition.kind, _spec_id from {name} where _partition.day = date'2024-01-01'"
    assert rows_of(spark, query) == [(1, "a", 0), (2, None, 0), (7, None, 1)]
    assert rows_of(spark, f"select _partition.n_bucket, count(*) from {name} group by 1") == [(0, 2), (3, 2)]


@pytest.mark.parametrize("page_limit", [200, 1 << 20], ids=["falling back to plain pages", "all pages"])
@pytest.mark.parametrize("deleted", ["false", "text like 'word 1%'", "n >= 3600"])
def test_texts_and_bytes_of_dictionaries_are_those_that_plain_spark_reads(
    spark: SparkSession, catalog: Catalog, namespace: str, tmp_path: Path, page_limit: int, deleted: str
) -> None:
    # Row groups whose dictionaries differ, of which some end in pages without one; batches reach over both.
    words = [None, "", "a", "ä\U0001f600", "a" * 300] + [f"word {number}" for number in range(500)]
    numbers = range(8_000)
    texts = [words[(number * 7 + number // 2000 * 31) % len(words)] for number in numbers]
    rows = pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "text": pa.array(texts),
            "bytes": pa.array([text and text.encode()[::-1] for text in texts], pa.binary()),
            "amount": pa.array(
                [None if n % 11 == 0 else Decimal(n % 40 - 20) * 10**28 for n in numbers], pa.decimal128(38)
            ),
            "nested": pa.array([None if n % 13 == 0 else {"text": texts[n]} for n in numbers]),
        }
    )
    file = tmp_path / "rows.parquet"
    pq.write_table(rows, file, row_group_size=2_000, dictionary_pagesize_limit=page_limit, data_page_size=500)
    table = catalog.create_table(f"{namespace}.texts", rows.schema, properties={"write.delete.mode": "merge-on-read"})
    table.add_files([str(file)])
    table.delete(deleted)
    plain = spark.read.parquet(str(file)).where(f"({deleted}) is not true")
    read = spark.table(f"{namespace}.texts")
    assert read.orderBy("n").collect() == plain.orderBy("n").collect()
    extremes = ("max(text)", "min(bytes)", "max(amount)", "count(distinct text, bytes, amount, nested.text)")
    assert read.selectExpr(*extremes).collect() == plain.selectExpr(*extremes).collect()
    assert read.groupBy("text").count().exceptAll(plain.groupBy("text").count()).count() == 0
